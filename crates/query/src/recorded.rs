//! A kymo recording as a source: the cursor's sections, decoded into tracks.

use std::path::Path;
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_recording::cursor::{Cursor, Item};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::Section;
use kymo_sys::disk::RealDisk;

use crate::live::{Decoder, moment};
use crate::source::{Source, Step};

/// A recording being played.
pub struct Recorded {
    cursor: Cursor,
    decoder: Decoder,
    context: Context,
    /// Kinds and cost codes of the last sample's sections.
    costs: Vec<(u8, u8)>,
}

impl Recorded {
    /// Opens the recording at `path` (its folder, a host's folder or one block); only `kinds`
    /// are read, and only what `range` needs.
    pub fn open(path: &Path, range: TimeRange, kinds: Kinds) -> Result<Recorded, String> {
        let disk = Arc::new(RealDisk);
        let recording = Recording::open(disk, path).map_err(|error| error.to_string())?;
        let cursor = Cursor::new(&recording, range, kinds);
        Ok(Recorded {
            cursor,
            decoder: Decoder::default(),
            context: Context::default(),
            costs: Vec::new(),
        })
    }

    /// Cost of reading each kind in the last sample, as codes of `kymo_base::cost`.
    pub fn costs(&self) -> &[(u8, u8)] {
        &self.costs
    }

    /// Bytes read from files so far.
    pub fn bytes_read(&self) -> u64 {
        self.cursor.bytes_read()
    }
}

impl Source for Recorded {
    fn next(&mut self) -> Result<Option<Step>, String> {
        if let Some(step) = self.decoder.pending() {
            return Ok(Some(step));
        }
        loop {
            let Recorded {
                cursor,
                decoder,
                context,
                costs,
            } = self;
            let Some(item) = cursor.next().map_err(|error| error.to_string())? else {
                return Ok(None);
            };
            let step = match item {
                Item::Sample {
                    head,
                    warmup,
                    sections,
                } => {
                    costs.clear();
                    costs.extend(sections.iter().map(|section| (section.kind, section.cost)));
                    decoder.sample(
                        head,
                        sections
                            .iter()
                            .map(|&Section { kind, bytes, .. }| (kind, bytes)),
                        warmup,
                    )
                }
                Item::Event { head, text } => {
                    Some(Step::Event(moment(head, false), text.to_string()))
                }
                Item::Context { text, .. } => {
                    *context = Context::parse(text.as_bytes());
                    None
                }
                Item::Gap(gap) => {
                    match gap.kind {
                        Some(kind) => decoder.restart_kind(kind),
                        None => decoder.restart(),
                    }
                    Some(Step::Damage(gap.message))
                }
            };
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    fn tracks(&self) -> &Tracks {
        &self.decoder.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}
