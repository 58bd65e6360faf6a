//! The sealed blocks of a ring: which there are, and how some of them are read without those beside them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_recording::reader::{Kinds, Listed, Recording, TimeRange};
use kymo_sys::disk::RealDisk;

use super::what::RecordingSource;
use crate::recorded::Recorded;
use crate::source::{Source, Step};

const SECOND_NS: i64 = 1_000_000_000;

/// A second of the wall clock, as a block's name has it, in nanoseconds.
pub(super) fn wall_ns(seconds: u64) -> i64 {
    i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(SECOND_NS)
}

/// Blocks of a recording and the folders they are in.
pub(super) struct Blocks {
    /// As the blocks name them, by number.
    pub folders: Vec<PathBuf>,
    /// Oldest first.
    pub blocks: Vec<Listed>,
}

impl Blocks {
    /// Lists them.
    pub(super) fn list(ring: &Path) -> Result<Blocks, String> {
        let recording = Recording::open(Arc::new(RealDisk), ring).map_err(|e| e.to_string())?;
        let folders = recording.folders().map_err(|e| e.to_string())?;
        let blocks = recording.blocks(&folders).map_err(|e| e.to_string())?;
        Ok(Blocks { folders, blocks })
    }

    /// The number of the last record of a block.
    pub(super) fn last_seq(&self, block: &Listed) -> Result<u64, String> {
        let folder = self.folders.get(block.folder);
        let folder = folder.ok_or("cannot find the block")?;
        let path = folder.join(block.name.format());
        let mut source = Recorded::open(&path, TimeRange::ALL, Kinds::NONE)?;
        let mut last = 0;
        while let Some(step) = source.next()? {
            if let Step::Sample(moment) | Step::Event(moment, _) = step {
                last = moment.seq;
            }
        }
        Ok(last)
    }
}

/// Successive blocks that are read whole, without the samples before and after them.
pub(super) struct Run {
    first_seq: u64,
    end_seq: u64,
    range: TimeRange,
}

impl Run {
    /// These blocks, up to the record before `end_seq`.
    pub(super) fn of(blocks: &[Listed], end_seq: u64) -> Run {
        let min = blocks.iter().map(|block| block.name.wall_min_s).min();
        let max = blocks.iter().map(|block| block.name.wall_max_s).max();
        Run {
            first_seq: blocks.first().map_or(0, |block| block.name.first_seq),
            end_seq,
            range: TimeRange {
                from_ns: min.map_or(0, wall_ns),
                thru_ns: max.map_or(0, |max| wall_ns(max).saturating_add(SECOND_NS)),
            },
        }
    }

    /// The records from `first_seq` on that are in `range`.
    pub(super) fn from(first_seq: u64, range: TimeRange) -> Run {
        Run {
            first_seq,
            end_seq: u64::MAX,
            range,
        }
    }

    /// Opens it.
    pub(super) fn open(&self, what: &RecordingSource, kinds: Kinds) -> Result<impl Source, String> {
        Ok(Within {
            source: what.open(self.range, kinds)?,
            first_seq: self.first_seq,
            end_seq: self.end_seq,
        })
    }
}

/// Samples outside of these numbers are there for the rates of others only.
struct Within<S> {
    source: S,
    first_seq: u64,
    end_seq: u64,
}

impl<S: Source> Source for Within<S> {
    fn next(&mut self) -> Result<Option<Step>, String> {
        loop {
            return Ok(match self.source.next()? {
                Some(Step::Sample(moment) | Step::Event(moment, _))
                    if moment.seq >= self.end_seq =>
                {
                    None
                }
                Some(Step::Event(moment, _)) if moment.seq < self.first_seq => continue,
                Some(Step::Sample(mut moment)) => {
                    moment.warmup |= moment.seq < self.first_seq;
                    Some(Step::Sample(moment))
                }
                step => step,
            });
        }
    }

    fn tracks(&self) -> &Tracks {
        self.source.tracks()
    }

    fn context(&self) -> &Context {
        self.source.context()
    }
}
