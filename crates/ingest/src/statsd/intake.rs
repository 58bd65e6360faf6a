//! Reads lines and adds up their values.

use kymo_base::name::DisplayName;
use kymo_store::Store;
use kymo_sys::clock::Stamp;
use kymo_wire::statsd::{self, BadSample, Sample, SampleKind, SampleStep, SampleValue, Samples};
use std::hash::BuildHasher as _;

use super::aggregate::{Aggregate, Family};
use super::flush::Flusher;
use super::metrics::Metrics;
use crate::common::keyed_hash::KeyedHash;
use crate::common::line_server::LineIntake;
use crate::common::sender_lots::SenderLot;
use crate::common::troubles::Troubles;

/// Most members of all sets between two flushes: 16 MB.
const MEMBERS_MAX: usize = 1_000_000;

/// The state of the listener.
pub(super) struct StatsdIntake {
    metrics: Metrics,
    flusher: Flusher,
    /// Hash of the members of sets.
    member_hash: KeyedHash,
    members: usize,
    /// Samples accepted since the start.
    samples: u64,
    troubles: Troubles,
}

impl StatsdIntake {
    /// No metrics yet.
    pub(super) fn new(interval_s: u32) -> StatsdIntake {
        StatsdIntake {
            metrics: Metrics::new(),
            flusher: Flusher::new(interval_s),
            member_hash: KeyedHash::default(),
            members: 0,
            samples: 0,
            troubles: Troubles::default(),
        }
    }

    fn take(&mut self, sample: &Sample, sender: SenderLot, store: &Store, now_ns: u64) {
        let family = match sample.kind {
            SampleKind::Counter => Family::Counter,
            SampleKind::Unknown => {
                let why = "a type that is not known, taken for a counter's";
                self.troubles.count(why, 1);
                Family::Counter
            }
            SampleKind::Gauge => Family::Gauge,
            SampleKind::Timer | SampleKind::Histogram | SampleKind::Distribution => {
                Family::Histogram
            }
            SampleKind::Set => Family::Set,
        };
        let named = (family, sample.name, &sample.tags);
        let place = match self.metrics.find(named, sender, store, now_ns) {
            Ok(place) => place,
            Err(why) => {
                let name = sample.name;
                return self.troubles.note(why, || shown(name));
            }
        };
        self.add(place, sample, now_ns);
    }

    fn add(&mut self, place: usize, sample: &Sample, now_ns: u64) {
        let Some((metric, room)) = self.metrics.metric(place) else {
            return;
        };
        metric.received_ns = now_ns;
        self.samples += 1;
        match (&mut metric.aggregate, sample.value) {
            (Aggregate::Counter { total, .. }, SampleValue::Number(number)) => {
                *total += number / sample.rate;
            }
            // As in etsy's daemon, where a gauge of 0 counts as missing.
            (Aggregate::Gauge { value, .. }, SampleValue::Number(number)) => {
                let before = if sample.signed { *value } else { 0.0 };
                *value = before + number;
            }
            (Aggregate::Histogram(histogram), SampleValue::Number(number)) => {
                let made = histogram.add(number, 1.0 / sample.rate, room);
                self.metrics.add_series(place, made);
            }
            (Aggregate::Set { members, .. }, SampleValue::Text(member)) => {
                if self.members >= MEMBERS_MAX {
                    let why = "a member of a set, as there are 1000000 in this interval";
                    self.samples -= 1;
                    return self.troubles.count(why, 1);
                }
                let hash = self.member_hash.hash_one(member);
                self.members += usize::from(members.insert(hash));
            }
            // The parser gives texts to sets, and numbers to all other kinds.
            (Aggregate::Set { .. }, SampleValue::Number(_))
            | (
                Aggregate::Counter { .. } | Aggregate::Gauge { .. } | Aggregate::Histogram(_),
                SampleValue::Text(_),
            ) => {}
        }
    }
}

impl LineIntake for StatsdIntake {
    const LINE_MAX: usize = statsd::LINE_MAX;

    fn take_lines(&mut self, lines: &[u8], sender: SenderLot, store: &Store, now: Stamp) {
        let mut samples = Samples::of(lines);
        while let Some(step) = samples.next() {
            match step {
                Ok(SampleStep::Sample(sample)) => self.take(&sample, sender, store, now.mono_ns),
                Ok(SampleStep::Event) => self.troubles.count("an event", 1),
                Ok(SampleStep::ServiceCheck) => self.troubles.count("a service check", 1),
                Err(bad) => {
                    let line = samples.line();
                    self.troubles.note(bad.why(), || shown(line));
                }
            }
        }
    }

    fn refuse_long_line(&mut self) {
        self.troubles.count(BadSample::LineLength.why(), 1);
    }

    fn end_round(&mut self, _store: &Store) {
        if !self.metrics.is_empty() {
            self.flusher.begin();
        }
    }

    fn due_ns(&self) -> Option<u64> {
        self.flusher.due_ns()
    }

    fn on_time(&mut self, store: &Store, now: Stamp, _ends: bool) {
        self.members = 0;
        self.flusher
            .flush(&mut self.metrics, store, now, &mut self.troubles);
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn troubles(&mut self) -> &mut Troubles {
        &mut self.troubles
    }
}

/// The beginning of a line, for a message.
fn shown(line: &[u8]) -> String {
    const SHOWN_MAX: usize = 80;
    DisplayName(line.get(..SHOWN_MAX).unwrap_or(line)).to_string()
}

#[cfg(test)]
mod tests;
