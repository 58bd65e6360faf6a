//! Verifies the journal's files: heads, frames and entries, and decides which gaps between frames are damage.

use super::{Check, Seen, Weight};
use crate::error::{Error, Tried};
use crate::folder::read_only::TRIES;
use crate::recovery::lost::{SyncedPositions, take_synced};
use crate::recovery::open::SOURCE_MAX;
use crate::recovery::replay::proofs;
use crate::wal::frame;
use crate::wal::frame::{FRAMES_OFFSET, FileHead, Frame};
use crate::wal::point_records::skip_points;
use crate::wal::record::{Record, take_next, take_short};
use crate::wal::tailed;
use crate::wal::value::{Stamps, take_value};
use crate::wal::writer;
use kymo_sys::disk::OpenMode;
use std::io;
use std::path::{Path, PathBuf};

/// A journal file with its frames, and for each frame true if its entries are valid.
struct Walked {
    path: PathBuf,
    head: FileHead,
    frames: Vec<Frame>,
    understood: Vec<bool>,
    synced_positions: SyncedPositions,
}

impl Check<'_> {
    /// Verifies all files. A frame written during the read may seem
    /// to be missing, so findings are confirmed by further reads.
    pub(super) fn journal(&mut self, synced_positions: &SyncedPositions) -> Result<(), Error> {
        let mut seen = self.look_at_journal(synced_positions)?;
        for _ in 1..TRIES {
            if seen.findings.is_empty() {
                break;
            }
            seen = self.look_at_journal(synced_positions)?;
        }
        self.take(seen);
        Ok(())
    }

    /// By chunk, the position up to which the journal reports blocks as synced.
    pub(super) fn synced_positions(&mut self) -> Result<SyncedPositions, Error> {
        Ok(synced_positions(&self.walk_journal(&mut Seen::default())?))
    }

    fn look_at_journal(&mut self, before: &SyncedPositions) -> Result<Seen, Error> {
        let mut seen = Seen::default();
        let files = self.walk_journal(&mut seen)?;
        self.progress(seen.counts.bytes);
        let missing = synced_positions(&files)
            .into_iter()
            .filter_map(|(chunk, position)| {
                let position = position.min(*before.get(&chunk)?);
                let saved = self.saved.get(&chunk).copied().unwrap_or(0);
                (saved < position).then_some((chunk, saved, position))
            });
        for (chunk, saved, position) in missing {
            let what = format!(
                "a block of chunk {chunk} that was on the disk is missing: its journal's bytes from {saved} to {position} are in none"
            );
            seen.find(Weight::Damage, self.folder, 0, what);
        }
        judge(files, self.proven, &mut seen);
        Ok(seen)
    }

    fn walk_journal(&mut self, seen: &mut Seen) -> Result<Vec<Walked>, Error> {
        let mut files = Vec::new();
        let tailed = tailed::list(&*self.disk, self.folder).tried("list", self.folder)?;
        let tailed = tailed
            .into_iter()
            .map(|sequence| (sequence, tailed::name_of(sequence)));
        let journal = writer::list(&*self.disk, self.folder)?.into_iter();
        let journal = journal.map(|sequence| (sequence, writer::name_of(sequence)));
        // Tails alone need the oldest files.
        for (sequence, name) in tailed.chain(journal) {
            let path = self.folder.join(name);
            let Some(bytes) = self.read(&path, seen)? else {
                continue;
            };
            seen.counts.journal_files += 1;
            seen.counts.bytes += bytes.len() as u64;
            match FileHead::parse(&bytes, sequence) {
                Err(version) => return Err(Error::version(path, version, frame::VERSION)),
                Ok(Some(head)) if head.sequence == sequence => files.push(walk(path, head, &bytes)),
                // A file that was about to be reused at a power cut.
                Ok(Some(_)) => seen.find(Weight::Note, &path, 0, "its head is another file's"),
                Ok(None) => headless(&path, &bytes, seen),
            }
        }
        Ok(files)
    }

    /// Reads a file; `None` if a daemon has reused it, or if it is unreadable, which is then a finding.
    fn read(&self, path: &Path, seen: &mut Seen) -> Result<Option<Vec<u8>>, Error> {
        let file = match self.disk.open(path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.tried("open", path)?,
        };
        let stat = file.metadata().tried("stat", path)?;
        if stat.size_bytes > SOURCE_MAX {
            seen.find(
                Weight::Damage,
                path,
                0,
                "too long for a file of the journal",
            );
            return Ok(None);
        }
        let mut bytes = vec![0; stat.size_bytes as usize];
        match file.read_at(&mut bytes, 0) {
            Ok(count) => bytes.truncate(count),
            Err(error) => {
                seen.find(Weight::Damage, path, 0, format!("cannot be read: {error}"));
                return Ok(None);
            }
        }
        let now = self.disk.metadata(path);
        let same = now.is_ok_and(|now| (now.device, now.inode) == (stat.device, stat.inode));
        Ok(same.then_some(bytes))
    }
}

fn headless(path: &Path, bytes: &[u8], seen: &mut Seen) {
    let frames = bytes.get(FRAMES_OFFSET as usize..).unwrap_or_default();
    let weight = match frames.iter().all(|&byte| byte == 0) {
        // The power failed while a daemon began the file.
        true => Weight::Note,
        // A power cut may leave frames that were never synced without a head. Synced frames whose head was lost look the
        // same, and that loss is damage.
        false => Weight::Damage,
    };
    seen.find(weight, path, 0, "it has no head");
}

fn walk(path: PathBuf, head: FileHead, bytes: &[u8]) -> Walked {
    let frames = frame::walk(bytes, &head);
    let understood = frames
        .iter()
        .map(|frame| are_entries(bytes, frame, Stamps::at(head.stamp_s)).is_some())
        .collect();
    let mut synced_positions = SyncedPositions::new();
    for frame in &frames {
        take_synced(&bytes[frame.entries.clone()], frame, &mut synced_positions);
    }
    Walked {
        path,
        head,
        frames,
        understood,
        synced_positions,
    }
}

/// The newest reported position of each chunk.
fn synced_positions(files: &[Walked]) -> SyncedPositions {
    let mut all = SyncedPositions::new();
    for file in files {
        all.extend(&file.synced_positions);
    }
    all.retain(|_, position| *position > 0);
    all
}

fn are_entries(bytes: &[u8], frame: &Frame, mut stamps: Stamps) -> Option<()> {
    let mut input = &bytes[frame.entries.clone()];
    let mut text = Vec::new();
    if frame.short {
        take_short(&mut input, &mut stamps)?;
        take_value(&mut input, &mut stamps, &mut text)?;
    }
    while !input.is_empty() {
        let count = match take_next(&mut input, &mut stamps) {
            Some(_) => 1,
            None if skip_points(&mut input, &mut stamps)? => 0,
            None => match Record::take(&mut input)? {
                Record::Values { id, count } => {
                    stamps.id = id;
                    count
                }
                _ => 0,
            },
        };
        for _ in 0..count {
            text.clear();
            take_value(&mut input, &mut stamps, &mut text)?;
        }
    }
    Some(())
}

/// Adds the findings that a replay of these files would report.
fn judge(mut files: Vec<Walked>, proven: u64, seen: &mut Seen) {
    for at in 0..files.len() {
        let later = files[at + 1..].iter().map(|later| later.head.base).min();
        // Frames at or after the base of a later file were refused when that file was begun.
        files[at]
            .frames
            .retain(|frame| later.is_none_or(|base| frame.end <= base));
    }
    let frames: Vec<Vec<Frame>> = files.iter().map(|file| file.frames.clone()).collect();
    let heads: Vec<&FileHead> = files.iter().map(|file| &file.head).collect();
    let proofs = proofs(&heads, &frames, proven);
    let bases = files.iter().map(|file| file.head.base);
    let (mut position, mut number) = (bases.min().unwrap_or(0), 0);
    for file in &files {
        let first = number;
        number += file.frames.len();
        let place = |position: u64| FRAMES_OFFSET + position.saturating_sub(file.head.base);
        for (at, frame) in (first..).zip(&file.frames) {
            let again = at == first && file.head.carries_over && frame.position == file.head.base;
            if frame.position > position && !again {
                if proofs[at] <= position {
                    // The gap was never synced, so the frames after it do not count.
                    let count = number - at;
                    let what = format!(
                        "{} bytes were never known to be on the disk, and are not there: {count} frames behind them do not count",
                        frame.position - position
                    );
                    seen.find(Weight::Note, &file.path, place(position), what);
                    break;
                }
                let what = format!("{} bytes are damaged", frame.position - position);
                seen.find(Weight::Damage, &file.path, place(position), what);
            }
            seen.counts.journal_frames += 1;
            position = frame.end;
            if !file.understood[at - first] {
                let what = "an entry is not understood";
                seen.find(Weight::Damage, &file.path, place(frame.position), what);
            }
        }
    }
}
