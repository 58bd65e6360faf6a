//! The last samples of a machine in memory, as the sampler's records: they can be read again and again, each time as a source.
//! The records may come from a sampler here or from another machine.

use std::collections::VecDeque;
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_recording::record::{self, Head, Record, RecordType};

use crate::live::Decoder;
use crate::source::{Source, Step};

/// Samples of the last while. They are let go of in spans, each of which begins with a key.
pub struct RecentSamples {
    keep_ns: i64,
    bytes_max: usize,
    spans: VecDeque<Arc<KeySpan>>,
    context: Context,
    seq: u64,
}

/// Records from a key up to the next one.
#[derive(Clone, Default)]
struct KeySpan {
    bytes: Vec<u8>,
    first_ns: i64,
    last_ns: i64,
    /// Sequence number of the first record.
    seq: u64,
}

impl RecentSamples {
    /// Keeps samples for `keep_ns` at least, as far as they fit into `bytes_max`.
    pub fn new(keep_ns: i64, bytes_max: usize, context: Context) -> RecentSamples {
        RecentSamples {
            keep_ns,
            bytes_max,
            spans: VecDeque::new(),
            context,
            seq: 0,
        }
    }

    /// Takes in whole records, one behind the other. Samples before the first key are left out.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let record = record::parse_unsealed(bytes)
                .map_err(|why| format!("cannot read a sample: {why}"))?;
            let (own, rest) = bytes.split_at(record.length);
            self.push_record(&record, own);
            bytes = rest;
        }
        self.let_go();
        Ok(())
    }

    fn push_record(&mut self, record: &Record<'_>, bytes: &[u8]) {
        let head = record.head;
        if head.record_type == RecordType::Context {
            self.context = Context::parse(record.text().as_bytes());
            return;
        }
        self.seq += 1;
        let real_ns = head.stamp.real_ns;
        if head.key && head.record_type == RecordType::Sample {
            self.spans.push_back(Arc::new(KeySpan {
                first_ns: real_ns,
                seq: self.seq,
                ..KeySpan::default()
            }));
        }
        // Samples without keys between them are too many: the next key is the beginning.
        if self.bytes_since_key().saturating_add(bytes.len()) > self.bytes_max {
            self.spans.clear();
        }
        if let Some(span) = self.spans.back_mut() {
            let span = Arc::make_mut(span);
            span.bytes.extend_from_slice(bytes);
            span.last_ns = real_ns;
        }
    }

    /// Lets go of spans that are too old, or too much.
    fn let_go(&mut self) {
        let newest_ns = self.last_ns().unwrap_or(0);
        while let (Some(_), Some(next)) = (self.spans.front(), self.spans.get(1)) {
            let is_old = newest_ns.saturating_sub(next.first_ns) > self.keep_ns;
            if !is_old && self.size_bytes() <= self.bytes_max {
                return;
            }
            self.spans.pop_front();
        }
    }

    /// Bytes of the samples that are kept.
    pub fn size_bytes(&self) -> usize {
        self.spans.iter().map(|span| span.bytes.len()).sum()
    }

    /// Bytes of the samples since the last key.
    pub fn bytes_since_key(&self) -> usize {
        self.spans.back().map_or(0, |span| span.bytes.len())
    }

    /// Time of the last sample, in nanoseconds since 1970.
    pub fn last_ns(&self) -> Option<i64> {
        self.spans.back().map(|span| span.last_ns)
    }

    /// Facts of the machine.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Replaces the facts of the machine.
    pub fn set_context(&mut self, context: Context) {
        self.context = context;
    }

    /// The samples of a range with these kinds, and those before it that are needed to decode them.
    pub fn open(&self, range: TimeRange, kinds: Kinds) -> Box<dyn Source> {
        // One key more: the rates of the first sample need the sample before it.
        let is_before = |span: &Arc<KeySpan>| span.first_ns < range.from_ns;
        let begin = self.spans.iter().rposition(is_before).unwrap_or(0);
        let spans: VecDeque<Arc<KeySpan>> = self.spans.iter().skip(begin).cloned().collect();
        Box::new(Again {
            seq: spans.front().map_or(0, |span| span.seq),
            spans,
            at: 0,
            range,
            kinds,
            decoder: Decoder::default(),
            context: self.context.clone(),
        })
    }
}

/// Samples that are read again.
struct Again {
    spans: VecDeque<Arc<KeySpan>>,
    /// Place in the first span.
    at: usize,
    seq: u64,
    range: TimeRange,
    kinds: Kinds,
    decoder: Decoder,
    context: Context,
}

impl Source for Again {
    fn next(&mut self) -> Result<Option<Step>, String> {
        if let Some(step) = self.decoder.pending() {
            return Ok(Some(step));
        }
        while let Some(span) = self.spans.front() {
            let rest = span.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                self.at = 0;
                self.spans.pop_front();
                continue;
            }
            // Each record was parsed when it was taken in.
            let record = record::parse_unsealed(rest)?;
            let head = Head {
                seq: self.seq,
                ..record.head
            };
            (self.at, self.seq) = (self.at + record.length, self.seq + 1);
            let real_ns = head.stamp.real_ns;
            if real_ns > self.range.thru_ns {
                return Ok(None);
            }
            let is_early = real_ns < self.range.from_ns;
            let step = match head.record_type {
                RecordType::Sample => {
                    let kinds = self.kinds;
                    let sections = record.sections();
                    let sections = sections.filter(|section| kinds.contains(section.kind));
                    let sections = sections.map(|section| (section.kind, section.bytes));
                    self.decoder.sample(head, sections, is_early)
                }
                RecordType::Event | RecordType::Context if is_early => None,
                RecordType::Event | RecordType::Context => self.decoder.step(head, &record),
            };
            if step.is_some() {
                return Ok(step);
            }
        }
        Ok(None)
    }

    fn tracks(&self) -> &Tracks {
        &self.decoder.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

#[cfg(test)]
mod tests {
    use kymo_recording::record::push_event;
    use kymo_sys::clock::Stamp;

    use super::*;

    fn stamp(second: i64) -> Stamp {
        Stamp {
            real_ns: second * 1_000_000_000,
            ..Stamp::default()
        }
    }

    fn sample(second: i64, key: bool, bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut open = record::begin(&mut out, &Head::sample(stamp(second), key, 0));
        // A kind that nobody asks for.
        open.section(250, 0, |section| section.resize(section.len() + bytes, 0));
        open.end();
        out
    }

    fn recent(keep_s: i64, bytes_max: usize, samples: &[(i64, bool)]) -> RecentSamples {
        let mut recent = RecentSamples::new(keep_s * 1_000_000_000, bytes_max, Context::default());
        for &(second, key) in samples {
            recent.push(&sample(second, key, 8)).unwrap();
        }
        recent
    }

    /// Times of the samples of a range, in seconds; those for rates alone are negative.
    fn seconds(recent: &RecentSamples, from: i64, thru: i64) -> Vec<i64> {
        let range = TimeRange {
            from_ns: from * 1_000_000_000,
            thru_ns: thru * 1_000_000_000,
        };
        let (mut source, mut seconds) = (recent.open(range, Kinds::NONE), Vec::new());
        while let Some(step) = source.next().unwrap() {
            if let Step::Sample(moment) = step {
                let second = moment.real_ns / 1_000_000_000;
                seconds.push(if moment.warmup { -second } else { second });
            }
        }
        seconds
    }

    #[test]
    fn samples_are_read_from_the_key_before_them() {
        let samples = [(1, false), (2, true), (3, false), (4, true), (5, false)];
        let recent = recent(100, 1 << 20, &samples);
        assert_eq!(seconds(&recent, 0, 9), [2, 3, 4, 5]);
        assert_eq!(seconds(&recent, 4, 4), [-2, -3, 4]);
        assert_eq!(seconds(&recent, 5, 9), [-4, 5]);
        assert_eq!(seconds(&recent, 9, 9), [-4, -5]);
    }

    #[test]
    fn old_samples_are_let_go_of() {
        let samples: Vec<(i64, bool)> =
            (1..=100).map(|second| (second, second % 10 == 0)).collect();
        let kept = seconds(&recent(15, 1 << 20, &samples), 0, 1000);
        assert_eq!((kept.first(), kept.len()), (Some(&80), 21));
        let little = recent(1000, 1000, &samples);
        assert!(little.size_bytes() <= 1000, "{}", little.size_bytes());
        assert_eq!(seconds(&little, 0, 1000).last(), Some(&100));
    }

    #[test]
    fn a_stream_without_keys_takes_no_memory() {
        let mut recent = recent(1000, 1000, &[(1, true)]);
        for second in 2..1000 {
            recent.push(&sample(second, false, 8)).unwrap();
            assert!(recent.size_bytes() <= 1000);
        }
        assert!(seconds(&recent, 0, 1000).is_empty());
        recent.push(&sample(1000, true, 8)).unwrap();
        assert_eq!(seconds(&recent, 0, 1000), [1000]);
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let (mut recent, mut event) = (recent(9, 1000, &[]), Vec::new());
        push_event(&mut event, stamp(1), "something");
        let whole = [sample(1, true, 8), event].concat();
        let first = sample(1, true, 8).len();
        for end in 0..whole.len() {
            let is_whole = end == 0 || end == first;
            assert_eq!(recent.push(&whole[..end]).is_ok(), is_whole, "{end}");
        }
    }
}
