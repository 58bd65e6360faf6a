//! A recording as records again, as the sampler made them: what `kymo feed` sends.

use std::sync::Arc;

use anyhow::Result;
use kymo_base::context::Context;
use kymo_recording::cursor::{Cursor, Item};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record;
use kymo_sys::clock::Stamp;

/// Longest record that is sent: a frame has to hold it.
const RECORD_MAX: usize = 7 << 20;

/// Records of a range, and those that are recorded later.
pub(super) struct RecordedRecords {
    cursor: Cursor,
    facts: Arc<str>,
    /// Kinds that are not sent until the next key, since a part of them is missing.
    broken: Vec<u8>,
    /// True: a record was left out, so that nothing is understood until the next key.
    has_gap: bool,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Come {
    More,
    /// All that is recorded up to now.
    All,
}

impl RecordedRecords {
    pub(super) fn new(recording: &Recording, range: TimeRange, kinds: Kinds) -> RecordedRecords {
        RecordedRecords {
            cursor: Cursor::new(recording, range, kinds),
            facts: Arc::from(""),
            broken: Vec::new(),
            has_gap: false,
        }
    }

    /// Appends the next record, if there is one.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> Result<Come> {
        let Some(item) = self.cursor.next()? else {
            return Ok(Come::All);
        };
        match item {
            Item::Context { head, text } if text != &*self.facts => {
                self.facts = Arc::from(text);
                record::push_context(out, head.stamp, text);
            }
            Item::Context { .. } => {}
            Item::Event { head, text } => record::push_event(out, head.stamp, text),
            // Where all kinds are missing, samples resume at a key.
            Item::Gap(gap) => self.broken.extend(gap.kind),
            Item::Sample { head, sections, .. } => {
                if head.key {
                    self.broken.clear();
                    self.has_gap = false;
                }
                let length: usize = sections.iter().map(|section| section.bytes.len()).sum();
                self.has_gap |= length > RECORD_MAX;
                if self.has_gap {
                    return Ok(Come::More);
                }
                let mut open = record::begin(out, &head);
                for section in sections
                    .iter()
                    .filter(|section| !self.broken.contains(&section.kind))
                {
                    open.section(section.kind, section.cost, |out| {
                        out.extend_from_slice(section.bytes);
                    });
                }
                open.end();
            }
        }
        Ok(Come::More)
    }
}

/// A record of facts.
pub(super) fn context(context: &Context) -> Vec<u8> {
    let mut out = Vec::new();
    record::push_context(&mut out, Stamp::default(), &context.text());
    out
}

/// Times of the first and the last sample; 0 where there is none. Of whole blocks only the names are read.
pub(super) fn extent(recording: &Recording) -> Result<(i64, i64)> {
    let in_ns = |seconds: u64| {
        i64::try_from(seconds)
            .unwrap_or(0)
            .saturating_mul(1_000_000_000)
    };
    let blocks = recording.blocks(&recording.folders()?)?;
    let first_ns = blocks
        .iter()
        .map(|block| in_ns(block.name.wall_min_s))
        .min();
    let sealed_ns = blocks
        .iter()
        .map(|block| in_ns(block.name.wall_max_s))
        .max();
    let range = TimeRange {
        from_ns: sealed_ns.unwrap_or(i64::MIN),
        thru_ns: i64::MAX,
    };
    let mut cursor = Cursor::new(recording, range, Kinds::NONE);
    let (mut first, mut last) = (first_ns, sealed_ns);
    while let Some(item) = cursor.next()? {
        if let Item::Sample { head, .. } = item {
            let real_ns = head.stamp.real_ns;
            first = Some(first.unwrap_or(real_ns).min(real_ns));
            last = Some(last.unwrap_or(real_ns).max(real_ns));
        }
    }
    Ok((first.unwrap_or(0), last.unwrap_or(0)))
}
