//! A reading of the tail: samples in the journal's order become groups, each with samples of one series in the order of
//! their times.

use std::ops::RangeInclusive;

use kymo_keeper_client::TailSink;
use kymo_wire::keeper::{DefinedSeries, MissedPart, NumberedSample};
use kymo_wire::remote_write::WriteSample;

use super::catalog::Catalog;
use super::picker::Picker;

/// Milliseconds since 1970.
pub(crate) type Times = RangeInclusive<i64>;
/// All times.
pub(crate) const ALL_TIMES: Times = i64::MIN..=i64::MAX;
/// Most samples of a group: a series with more has several, so that no request becomes too long.
const GROUP_MAX: usize = 2000;

/// A sample that waits for its group.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    place: u32,
    t_ms: i64,
    value: f64,
}

/// Samples of a series: a range of [`Batch::samples`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Place of the series in the catalog.
    pub(crate) place: u32,
    from: usize,
    to: usize,
}

/// The events of a reading.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    picker: Picker,
    /// The series.
    pub(crate) catalog: Catalog,
    waiting: Vec<Waiting>,
    /// Groups in the order of their places.
    pub(crate) groups: Vec<Group>,
    samples: Vec<WriteSample>,
    /// By place: the begin of its samples.
    begins: Vec<usize>,
}

impl Batch {
    /// A batch of the series that are picked.
    pub(crate) fn new(picker: Picker) -> Batch {
        Batch {
            picker,
            ..Batch::default()
        }
    }

    /// Begins the next reading. All samples of the last one are forgotten.
    pub(crate) fn begin(&mut self) {
        self.waiting.clear();
        self.groups.clear();
        self.samples.clear();
        self.catalog.tidy();
    }

    /// Samples of a group at these times.
    pub(crate) fn samples_of(&self, group: &Group, times: &Times) -> &[WriteSample] {
        let samples = self.samples.get(group.from..group.to).unwrap_or_default();
        let from = samples.partition_point(|sample| sample.t_ms < *times.start());
        let to = samples.partition_point(|sample| sample.t_ms <= *times.end());
        samples.get(from..to).unwrap_or_default()
    }

    /// The times of all samples, each once, in their order.
    pub(crate) fn times(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.samples.iter().map(|sample| sample.t_ms).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// Makes groups of the samples of a whole reading: they are counted by place, then put to where their place begins.
    pub(crate) fn group(&mut self) {
        const EMPTY: WriteSample = WriteSample {
            t_ms: 0,
            value: 0.0,
            created_ms: None,
        };
        let at = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
        self.begins.clear();
        self.begins.resize(self.catalog.len() + 1, 0);
        for sample in &self.waiting {
            if let Some(count) = self.begins.get_mut(at(sample.place)) {
                *count += 1;
            }
        }
        let mut total = 0;
        for begin in &mut self.begins {
            total += std::mem::replace(begin, total);
        }
        self.samples.clear();
        self.samples.resize(total, EMPTY);
        for sample in self.waiting.drain(..) {
            let Some(next) = self.begins.get_mut(at(sample.place)) else {
                continue;
            };
            if let Some(out) = self.samples.get_mut(*next) {
                *out = WriteSample {
                    t_ms: sample.t_ms,
                    value: sample.value,
                    created_ms: None,
                };
            }
            *next += 1;
        }
        self.cut();
    }

    /// Cuts the samples of each place into groups. [`Batch::begins`] has the ends of places by now.
    fn cut(&mut self) {
        self.groups.clear();
        let mut begin = 0;
        for (place, &end) in (0..).zip(&self.begins) {
            let Some(samples) = self.samples.get_mut(begin..end) else {
                continue;
            };
            if !samples.is_sorted_by_key(|sample| sample.t_ms) {
                samples.sort_by_key(|sample| sample.t_ms);
            }
            for from in (begin..end).step_by(GROUP_MAX) {
                let to = end.min(from + GROUP_MAX);
                self.groups.push(Group { place, from, to });
            }
            begin = end;
        }
    }
}

impl TailSink for Batch {
    fn restarted(&mut self) {
        self.catalog.clear();
        self.begin();
    }

    fn defined(&mut self, series: DefinedSeries) {
        self.catalog.define(&series, &self.picker);
    }

    fn gone(&mut self, series: u32) {
        self.catalog.remove(series);
    }

    fn missed(&mut self, _missed: MissedPart) {}

    fn samples(&mut self, samples: &[NumberedSample]) {
        let catalog = &self.catalog;
        self.waiting.extend(samples.iter().filter_map(|sample| {
            let place = catalog.place(sample.series, sample.column, sample.v)?;
            Some(Waiting {
                place,
                t_ms: sample.t_ms,
                value: sample.v,
            })
        }));
    }
}
