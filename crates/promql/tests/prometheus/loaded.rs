//! Series in memory, read as any other.

use std::cell::Cell;
use std::collections::BTreeMap;

use kymo_promql::LabelSet;
use kymo_series::{
    Budget, Labels, Matcher, Metadata, ReadError, Reader, RowSink, RowsAs, Sample, SampleSink,
    SeriesId, TimeRange,
};

/// Series in memory.
#[derive(Default)]
pub(crate) struct Loaded {
    series: Vec<Kept>,
    places: BTreeMap<Vec<u8>, usize>,
    /// True once series were picked that are kept in part only.
    pub(crate) picked_parts: Cell<bool>,
}

struct Kept {
    labels: Labels,
    samples: Vec<Sample>,
    /// Prometheus has more of it: native histograms or start timestamps.
    is_part: bool,
}

impl Loaded {
    /// Adds samples to a series.
    pub(crate) fn add(&mut self, labels: &LabelSet, samples: &[Sample], is_part: bool) {
        let labels = labels.iter().map(|(name, value)| (name, value.as_bytes()));
        let labels = Labels::new(labels).unwrap();
        let place = self.places.entry(labels.text().to_vec());
        let place = *place.or_insert(self.series.len());
        if place == self.series.len() {
            self.series.push(Kept {
                labels,
                samples: Vec::new(),
                is_part,
            });
        }
        let kept = &mut self.series[place];
        kept.is_part |= is_part;
        kept.samples.extend_from_slice(samples);
        kept.samples.sort_by_key(|sample| sample.t_ms);
        // The last one that was loaded for a moment counts.
        kept.samples.reverse();
        kept.samples.dedup_by_key(|sample| sample.t_ms);
        kept.samples.reverse();
    }

    fn at(&self, id: SeriesId) -> Option<&Kept> {
        self.series.get(id.place())
    }
}

impl Reader for Loaded {
    fn select(
        &self,
        matchers: &[Matcher],
        _range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let picks = |kept: &Kept| {
            matchers.iter().all(|matcher| {
                let value = kymo_base::label_set::value(kept.labels.text(), matcher.label());
                matcher.matches(&value)
            })
        };
        let picked = self
            .series
            .iter()
            .enumerate()
            .filter(|(_, kept)| picks(kept));
        let picked: Vec<(usize, &Kept)> = picked.collect();
        if picked.iter().any(|(_, kept)| kept.is_part) {
            self.picked_parts.set(true);
        }
        budget.take_series(picked.len())?;
        Ok(picked
            .into_iter()
            .map(|(place, _)| SeriesId::at(place))
            .collect())
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        self.at(id).map(|kept| kept.labels.clone())
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        _rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        for &id in ids {
            let kept = self.at(id).map_or(&[][..], |kept| &kept.samples);
            let first = kept.partition_point(|sample| sample.t_ms < range.from_ms);
            let behind = kept.partition_point(|sample| sample.t_ms <= range.thru_ms);
            let found = kept.get(first..behind).unwrap_or_default();
            budget.take_samples(found.len())?;
            sink.samples(id, found, 0);
        }
        Ok(())
    }

    fn rows(
        &self,
        _ids: &[SeriesId],
        _range: TimeRange,
        _step_s: u32,
        _budget: &mut Budget,
        _sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        Ok(())
    }

    fn label_names(
        &self,
        _matchers: &[Matcher],
        _range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        Ok(Vec::new())
    }

    fn label_values(
        &self,
        _label: &str,
        _matchers: &[Matcher],
        _range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        Ok(Vec::new())
    }

    fn metadata(&self, _metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        Ok(Vec::new())
    }
}
