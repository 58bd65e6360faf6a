//! Series of a query in the order of their labels, some of them at a time.

use std::collections::HashMap;

use kymo_query::readers::Union;
use kymo_series::{Budget, Reader as _, Sample, SampleSink, SeriesId, TimeRange};
use kymo_wire::remote_read::{SeriesChunks, put_labels, put_sample};

use super::super::failure::{ErrorType, Failure};
use super::super::labels::pairs;
use super::super::{Hub, Terms};
use super::SeriesQuery;

/// Series of a request at most.
const SERIES_MAX: u64 = 100_000;
/// Samples that all queries of a request read at most.
const SAMPLES_MAX: u64 = 50_000_000;
/// Samples of a batch, if each of its series has one a second.
const BATCH_SAMPLES: i64 = 4_000_000;
/// Series of a batch at least, and at most.
const BATCH: (i64, i64) = (8, 64);

/// Samples of a series, encoded as they come.
pub(super) enum EncodedSeries {
    /// Fields of samples.
    Samples(Vec<u8>),
    /// Chunks.
    Chunks(SeriesChunks),
}

impl EncodedSeries {
    fn push(&mut self, sample: Sample) {
        match self {
            EncodedSeries::Samples(fields) => put_sample(fields, sample.t_ms, sample.v),
            EncodedSeries::Chunks(chunks) => chunks.push(sample.t_ms, sample.v),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            EncodedSeries::Samples(fields) => fields.is_empty(),
            EncodedSeries::Chunks(chunks) => chunks.is_empty(),
        }
    }

    /// Bytes in memory, about.
    fn size_bytes(&self) -> usize {
        match self {
            EncodedSeries::Samples(fields) => fields.len(),
            EncodedSeries::Chunks(chunks) => chunks.size_bytes(),
        }
    }
}

/// Reads the series of queries, some at a time.
pub(super) struct Batches<'a> {
    reader: Union<'static>,
    terms: &'a Terms,
    budget: Budget,
    /// Bytes that a batch may have.
    most: usize,
    begin: fn() -> EncodedSeries,
}

impl<'a> Batches<'a> {
    /// `begin` begins a series. A batch of more than `most` bytes is an error.
    pub(super) fn new(
        hub: &Hub,
        terms: &'a Terms,
        most: usize,
        begin: fn() -> EncodedSeries,
    ) -> Result<Batches<'a>, Failure> {
        Ok(Batches {
            reader: terms.own_reader(hub)?,
            terms,
            budget: Budget {
                series: SERIES_MAX,
                samples: SAMPLES_MAX,
            },
            most,
            begin,
        })
    }

    /// Calls `each` with the encoded labels and the samples of each series of a query that has samples.
    pub(super) fn each_series(
        &mut self,
        query: &SeriesQuery,
        mut each: impl FnMut(&[u8], EncodedSeries) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for ids in self.sorted(query)?.chunks(batch(query.range)) {
            for (id, series) in ids.iter().zip(self.read(query, ids)?) {
                let labels = self.reader.labels(*id).filter(|_| !series.is_empty());
                if let Some(labels) = labels {
                    let (mut fields, pairs) = (Vec::new(), pairs(&labels));
                    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
                    put_labels(&mut fields, pairs);
                    each(&fields, series)?;
                }
            }
        }
        Ok(())
    }

    /// The series of a query in the order of their labels.
    fn sorted(&mut self, query: &SeriesQuery) -> Result<Vec<SeriesId>, Failure> {
        self.terms.check()?;
        let range = query.range;
        let matchers = query.matchers.as_deref();
        let Some(matchers) = matchers.filter(|_| range.from_ms <= range.thru_ms) else {
            return Ok(Vec::new());
        };
        let mut ids = self.reader.select(matchers, range, &mut self.budget)?;
        self.check_whole()?;
        ids.sort_by_cached_key(|id| self.reader.labels(*id).map(|labels| pairs(&labels)));
        Ok(ids)
    }

    fn read(
        &mut self,
        query: &SeriesQuery,
        ids: &[SeriesId],
    ) -> Result<Vec<EncodedSeries>, Failure> {
        self.terms.check()?;
        let places = ids.iter().enumerate().map(|(place, id)| (*id, place));
        let mut encoded = Encoded {
            range: query.range,
            places: places.collect(),
            series: ids.iter().map(|_| (self.begin)()).collect(),
            size_bytes: 0,
            most: self.most,
        };
        let budget = &mut self.budget;
        (self.reader).samples(ids, query.range, query.rows, budget, &mut encoded)?;
        self.check_whole()?;
        match encoded.size_bytes > self.most {
            true => Err(too_large()),
            false => Ok(encoded.series),
        }
    }

    /// Fails if a part of the samples is missing: an answer has no place for a warning.
    fn check_whole(&self) -> Result<(), Failure> {
        match self.reader.missing().into_iter().next() {
            Some(why) => Err(Failure::new(ErrorType::Unavailable, why)),
            None => Ok(()),
        }
    }
}

/// The error of an answer that has too many samples.
pub(super) fn too_large() -> Failure {
    let text = "exceeded sample limit: ask for fewer series or a shorter time, or take STREAMED_XOR_CHUNKS";
    Failure::new(ErrorType::Execution, text)
}

/// Series of a batch, so that their samples fit into memory if there is one each second.
fn batch(range: TimeRange) -> usize {
    let length_s = range.thru_ms.saturating_sub(range.from_ms) / 1000;
    let (least, most) = BATCH;
    let count = (BATCH_SAMPLES / length_s.max(1)).clamp(least, most);
    usize::try_from(count).unwrap_or(1)
}

/// Encodes the samples of a batch.
struct Encoded {
    range: TimeRange,
    places: HashMap<SeriesId, usize>,
    series: Vec<EncodedSeries>,
    size_bytes: usize,
    /// Bytes beyond which no sample is kept.
    most: usize,
}

impl SampleSink for Encoded {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], _resolution_s: u32) {
        let place = self.places.get(&id);
        let series = place.and_then(|&place| self.series.get_mut(place));
        let Some(series) = series.filter(|_| self.size_bytes <= self.most) else {
            return;
        };
        let before = series.size_bytes();
        for sample in samples.iter().filter(|of| self.range.has(of.t_ms)) {
            series.push(*sample);
        }
        self.size_bytes += series.size_bytes().saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fit_into_memory() {
        for (from_ms, thru_ms, expected) in [
            (0, 1000, 64),
            (0, 86_400_000, 46),
            (0, 864_000_000, 8),
            (i64::MIN, i64::MAX, 8),
            (5, 1, 64),
        ] {
            let range = TimeRange { from_ms, thru_ms };
            assert_eq!(batch(range), expected, "{from_ms} {thru_ms}");
        }
    }

    #[test]
    fn samples_beyond_a_limit_are_not_kept() {
        let samples: Vec<Sample> = (0..100).map(|t_ms| Sample { t_ms, v: 0.5 }).collect();
        let kinds: [fn() -> EncodedSeries; 2] = [
            || EncodedSeries::Samples(Vec::new()),
            || EncodedSeries::Chunks(SeriesChunks::default()),
        ];
        for begin in kinds {
            let mut encoded = Encoded {
                range: TimeRange {
                    from_ms: 10,
                    thru_ms: 19,
                },
                places: [(SeriesId(7), 0), (SeriesId(8), 1)].into(),
                series: vec![begin(), begin()],
                size_bytes: 0,
                most: 10,
            };
            for id in [9, 7, 8] {
                encoded.samples(SeriesId(id), &samples, 0);
            }
            assert!(encoded.size_bytes > 10 && !encoded.series[0].is_empty());
            assert!(encoded.series[1].is_empty());
            if let EncodedSeries::Samples(fields) = &encoded.series[0] {
                assert_eq!(fields.len(), 10 * 13);
            }
        }
    }
}
