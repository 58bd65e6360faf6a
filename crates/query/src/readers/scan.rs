//! One pass that finds series and collects their samples, as long as these fit into memory.

use std::collections::HashMap;

use kymo_base::context::Context;
use kymo_kernel::exposition::MetricGroup;
use kymo_series::{Budget, ReadError, Sample, SampleSink, SeriesId, TimeRange};

use super::collection::Collection;
use super::discovery::Discovery;
use super::pass::PassSink;
use crate::sheet::Line;

/// Most samples that are kept between a question for series and one for their samples: 32 MB.
pub(super) const SAMPLES_MAX: u64 = 2_000_000;

/// Finds series, and collects their samples.
pub(super) struct Scan<'a> {
    discovery: Discovery<'a>,
    /// `None`: there are too many samples.
    collection: Option<Collection<'a>>,
}

impl<'a> Scan<'a> {
    /// Collects samples within `room`.
    pub(super) fn new(discovery: Discovery<'a>, room: &'a mut Budget) -> Scan<'a> {
        Scan {
            discovery,
            collection: Some(Collection::new(room)),
        }
    }

    /// The series, and the samples of the range if all of them were collected.
    pub(super) fn end(
        self,
        range: TimeRange,
    ) -> Result<(Vec<SeriesId>, Option<ScannedSamples>), ReadError> {
        let ids = self.discovery.end()?;
        let columns = self.collection.and_then(|collection| collection.end().ok());
        let scanned = columns.map(|columns| ScannedSamples {
            range,
            columns: columns.into_iter().collect(),
        });
        Ok((ids, scanned))
    }

    fn collect(&mut self, go_on: bool, collect: impl FnOnce(&mut Collection<'a>) -> bool) -> bool {
        if let Some(collection) = &mut self.collection {
            self.discovery
                .take_fresh(|id, origin| collection.add(id, origin));
            if !collect(collection) {
                self.collection = None;
            }
        }
        go_on
    }
}

impl PassSink for Scan<'_> {
    fn metrics(
        &mut self,
        t_ms: i64,
        subsystem: usize,
        groups: &[MetricGroup],
        context: &Context,
    ) -> bool {
        let go_on = self.discovery.metrics(t_ms, subsystem, groups, context);
        self.collect(go_on, |collection| {
            collection.metrics(t_ms, subsystem, groups, context)
        })
    }

    fn field(&mut self, t_ms: i64, line: (usize, &Line), value: f64, context: &Context) -> bool {
        let go_on = self.discovery.field(t_ms, line, value, context);
        self.collect(go_on, |collection| {
            collection.field(t_ms, line, value, context)
        })
    }
}

/// Samples that were collected when their series were found.
pub(super) struct ScannedSamples {
    range: TimeRange,
    columns: HashMap<SeriesId, Vec<Sample>>,
}

impl ScannedSamples {
    /// Returns true if all samples of these series in a range are here.
    pub(super) fn have(&self, ids: &[SeriesId], range: TimeRange) -> bool {
        self.range.from_ms <= range.from_ms
            && range.thru_ms <= self.range.thru_ms
            && ids.iter().all(|id| self.columns.contains_key(id))
    }

    /// Gives the samples of a range, series by series.
    pub(super) fn give(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        for id in ids {
            let samples = self.columns.get(id).map_or(&[][..], |samples| samples);
            let first = samples.partition_point(|sample| sample.t_ms < range.from_ms);
            let behind = samples.partition_point(|sample| sample.t_ms <= range.thru_ms);
            let samples = samples.get(first..behind).unwrap_or_default();
            budget.take_samples(samples.len())?;
            if !samples.is_empty() {
                sink.samples(*id, samples, 0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Given(Vec<(SeriesId, Vec<i64>)>);

    impl SampleSink for Given {
        fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
            assert_eq!(resolution_s, 0);
            let stamps = samples.iter().map(|sample| sample.t_ms).collect();
            self.0.push((id, stamps));
        }
    }

    #[test]
    fn collected_samples_answer_for_their_range_alone() {
        let samples = |stamps: &[i64]| -> Vec<Sample> {
            let stamps = stamps.iter();
            stamps.map(|&t_ms| Sample { t_ms, v: 1.0 }).collect()
        };
        let range = |from_ms, thru_ms| TimeRange { from_ms, thru_ms };
        let (a, b, c) = (SeriesId(1), SeriesId(2), SeriesId(3));
        let columns = [(a, samples(&[10, 20, 30])), (b, samples(&[15]))];
        let scanned = ScannedSamples {
            range: range(10, 30),
            columns: columns.into(),
        };
        for (ids, range, expect) in [
            (&[a, b][..], range(10, 30), true),
            (&[a], range(20, 25), true),
            (&[a, c], range(20, 25), false),
            (&[a], range(9, 30), false),
            (&[a], range(10, 31), false),
        ] {
            assert_eq!(scanned.have(ids, range), expect, "{ids:?} {range:?}");
        }
        let mut budget = Budget {
            samples: 3,
            ..Budget::UNLIMITED
        };
        let mut given = Given::default();
        let give = |budget: &mut Budget, given: &mut Given| {
            scanned.give(&[b, a], range(20, 30), budget, given)
        };
        assert_eq!(give(&mut budget, &mut given), Ok(()));
        assert_eq!(given.0, [(a, vec![20, 30])]);
        let refused = give(&mut budget, &mut given);
        assert_eq!(refused, Err(ReadError::TooMuch { things: "samples" }));
    }
}
