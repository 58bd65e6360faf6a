//! The running machine as a source: records straight from the sampler's queue, decoded as
//! a recording would be.

use std::sync::Arc;
use std::time::Duration;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::source;
use kymo_recording::queue::{Queue, Taken};
use kymo_recording::record::{self, Head, Record, RecordType};

use crate::source::{Moment, Source, Step};

/// Gives the facts of the machine again when they changed.
pub type Refresh = Box<dyn FnMut() -> Option<Context>>;

/// Records of a sampler that runs now.
pub struct Live {
    queue: Arc<Queue>,
    batch: Vec<u8>,
    at: usize,
    decoder: Decoder,
    context: Context,
    refresh: Refresh,
    seq: u64,
}

impl Live {
    /// A source of the records in `queue`: from a sampler, or from a writer after it recorded them.
    pub fn new(queue: Arc<Queue>, context: Context, refresh: Refresh) -> Live {
        let decoder = Decoder::default();
        Live {
            queue,
            batch: Vec::new(),
            at: 0,
            decoder,
            context,
            refresh,
            seq: 0,
        }
    }
}

impl Source for Live {
    fn next(&mut self) -> Result<Option<Step>, String> {
        if let Some(step) = self.decoder.pending() {
            return Ok(Some(step));
        }
        loop {
            if self.at >= self.batch.len() {
                self.at = 0;
                match self.queue.take(&mut self.batch, Duration::from_secs(3600)) {
                    Taken::Records => {}
                    Taken::Nothing => continue,
                    Taken::Closed => return Ok(None),
                }
            }
            let rest = &self.batch[self.at..];
            let record = record::parse_unsealed(rest)
                .map_err(|why| format!("cannot read a live sample: {why}"))?;
            self.at += record.length;
            self.seq += 1;
            let head = Head {
                seq: self.seq,
                ..record.head
            };
            if head.record_type == RecordType::Context {
                self.context = Context::parse(record.text().as_bytes());
                continue;
            }
            if let Some(context) = (self.refresh)() {
                self.context = context;
            }
            if let Some(step) = self.decoder.step(head, &record) {
                return Ok(Some(step));
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

/// Keeps the tracks up to date, record by record.
#[derive(Default)]
pub(crate) struct Decoder {
    pub(crate) tracks: Tracks,
    /// True: there has been a key since the last gap.
    synced: bool,
    /// Kinds that are not believed until the next key.
    broken: Vec<u8>,
    /// Steps to give first.
    pending: Option<Step>,
}

impl Decoder {
    /// Step of a record; `None`: the record cannot be understood yet.
    pub(crate) fn step(&mut self, head: Head, record: &Record<'_>) -> Option<Step> {
        match head.record_type {
            RecordType::Sample => self.sample(
                head,
                record
                    .sections()
                    .map(|section| (section.kind, section.bytes)),
                false,
            ),
            RecordType::Event => Some(Step::Event(moment(head, false), record.text().into_owned())),
            RecordType::Context => None,
        }
    }

    /// Takes in a sample's sections. A kind whose section cannot be understood is missing until the
    /// next key: a gap, then the sample with all others.
    pub(crate) fn sample<'a>(
        &mut self,
        head: Head,
        sections: impl Iterator<Item = (u8, &'a [u8])>,
        warmup: bool,
    ) -> Option<Step> {
        self.synced |= head.key;
        if !self.synced {
            return None;
        }
        if head.key {
            self.tracks.restart();
            self.broken.clear();
        }
        self.tracks.begin_sample();
        let mut damaged = Vec::new();
        for (kind, bytes) in sections {
            if !self.broken.contains(&kind)
                && self.tracks.get_mut(kind).apply(head.key, bytes).is_err()
            {
                self.restart_kind(kind);
                damaged.push(kind);
            }
        }
        let sample = Step::Sample(moment(head, warmup));
        if damaged.is_empty() {
            return Some(sample);
        }
        self.pending = Some(sample);
        Some(Step::Damage(format!(
            "sample {} is damaged: {} cannot be read",
            head.seq,
            source::names(&damaged)
        )))
    }

    /// Steps to give before the next record.
    pub(crate) fn pending(&mut self) -> Option<Step> {
        self.pending.take()
    }

    /// After a gap nothing is believed until the next key.
    pub(crate) fn restart(&mut self) {
        self.tracks.restart();
        self.synced = false;
    }

    /// After a gap in one kind that kind is not believed until the next key.
    pub(crate) fn restart_kind(&mut self, kind: u8) {
        self.tracks.get_mut(kind).restart();
        self.broken.push(kind);
    }
}

pub(crate) fn moment(head: Head, warmup: bool) -> Moment {
    Moment {
        seq: head.seq,
        real_ns: head.stamp.real_ns,
        mono_ns: head.stamp.mono_ns,
        boot_ns: head.stamp.boot_ns,
        missed: head.missed,
        warmup,
    }
}
