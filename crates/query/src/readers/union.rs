//! Several readers as one: the recording, which is finer, before the store, which reaches further back.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use kymo_series::{
    Budget, Labels, Matcher, Metadata, ReadError, Reader, Row, RowSink, RowsAs, Sample, SampleRuns,
    SampleSink, SeriesId, TimeRange,
};

/// Ids of series in one reader, and the place of each in the question.
type OwnIds = (Vec<SeriesId>, HashMap<SeriesId, usize>);

/// A sample of points as they came stands for no longer than this.
const STANDS_MAX_MS: i64 = 60_000;

/// Readers, the finest first. A union is for one question of its user: it remembers the series that it found.
///
/// If a reader does not answer, its part is missing: the union answers with the rest and names the missing part.
pub struct Union<'a> {
    readers: Vec<Box<dyn Reader + 'a>>,
    found: RefCell<JoinedSeries>,
    missing: RefCell<Vec<String>>,
}

#[derive(Default)]
struct JoinedSeries {
    series: Vec<Joined>,
    ids: HashMap<Labels, usize>,
}

/// A series, with its ids in the readers that have it.
struct Joined {
    labels: Labels,
    ids: Vec<Option<SeriesId>>,
}

impl<'a> Union<'a> {
    /// A union of readers, the finest first.
    pub fn new(readers: Vec<Box<dyn Reader + 'a>>) -> Union<'a> {
        Union {
            readers,
            found: RefCell::default(),
            missing: RefCell::default(),
        }
    }

    /// Asks each reader. Fails if the question is too large, or if no reader has answered.
    fn ask<T>(
        &self,
        mut ask: impl FnMut(usize, &dyn Reader) -> Result<T, ReadError>,
    ) -> Result<Vec<(usize, T)>, ReadError> {
        let (mut answers, mut failed) = (Vec::new(), None);
        for (number, reader) in self.readers.iter().enumerate() {
            match ask(number, &**reader) {
                Ok(answer) => answers.push((number, answer)),
                Err(error @ ReadError::TooMuch { .. }) => return Err(error),
                Err(error @ (ReadError::Silent { .. } | ReadError::Failed(_))) => {
                    failed = Some(error);
                    self.miss(failed.as_ref());
                }
            }
        }
        match failed {
            Some(error) if answers.is_empty() => Err(error),
            _ => Ok(answers),
        }
    }

    fn miss(&self, error: Option<&ReadError>) {
        let mut missing = self.missing.borrow_mut();
        let text = error.map(ReadError::to_string);
        if let Some(text) = text.filter(|text| !missing.contains(text)) {
            missing.push(text);
        }
    }

    /// The ids of series in one reader.
    fn ids_in(&self, ids: &[SeriesId], reader: usize) -> OwnIds {
        let found = self.found.borrow();
        let own = ids.iter().enumerate().filter_map(|(place, id)| {
            let joined = found.series.get(id.place())?;
            Some(((*joined.ids.get(reader)?)?, place))
        });
        let own: Vec<(SeriesId, usize)> = own.collect();
        (
            own.iter().map(|(id, _)| *id).collect(),
            own.into_iter().collect(),
        )
    }

    /// The reader that has all of these series, if no other one has any of them, and their ids in it.
    fn only_reader(&self, ids: &[SeriesId]) -> Option<(usize, OwnIds)> {
        let mut having = (0..self.readers.len()).filter_map(|reader| {
            let own = self.ids_in(ids, reader);
            (!own.0.is_empty()).then_some((reader, own))
        });
        let only = having.next()?;
        having.next().is_none().then_some(only)
    }

    /// All texts that readers answer, sorted.
    fn texts(
        &self,
        ask: impl Fn(&dyn Reader) -> Result<Vec<String>, ReadError>,
    ) -> Result<Vec<String>, ReadError> {
        let answers = self.ask(|_, reader| ask(reader))?;
        let texts: BTreeSet<String> = answers.into_iter().flat_map(|(_, texts)| texts).collect();
        Ok(texts.into_iter().collect())
    }
}

impl JoinedSeries {
    fn join(&mut self, labels: Labels, reader: usize, id: SeriesId, readers: usize) -> SeriesId {
        let place = *self.ids.entry(labels).or_insert_with_key(|labels| {
            self.series.push(Joined {
                labels: labels.clone(),
                ids: vec![None; readers],
            });
            self.series.len() - 1
        });
        self.series[place].ids[reader] = Some(id);
        SeriesId::at(place)
    }
}

impl Reader for Union<'_> {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let whole = *budget;
        let answers = self.ask(|_, reader| {
            let ids = reader.select(matchers, range, &mut whole.clone())?;
            let labelled = ids.into_iter().map(|id| (id, reader.labels(id)));
            Ok(labelled.collect::<Vec<_>>())
        })?;
        let (mut found, mut picked) = (self.found.borrow_mut(), BTreeSet::new());
        for (reader, ids) in answers {
            for (id, labels) in ids {
                if let Some(labels) = labels {
                    picked.insert(found.join(labels, reader, id, self.readers.len()));
                }
            }
        }
        budget.take_series(picked.len())?;
        Ok(picked.into_iter().collect())
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        let found = self.found.borrow();
        let joined = found.series.get(id.place())?;
        Some(joined.labels.clone())
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        if let Some((only, own)) = self.only_reader(ids) {
            let mut renamed = Renamed {
                places: own.1,
                ids,
                sink,
            };
            self.ask(|number, reader| match number == only {
                true => reader.samples(&own.0, range, rows, budget, &mut renamed),
                false => Ok(()),
            })?;
            return Ok(());
        }
        let answers = self.ask(|number, reader| {
            let (own, places) = self.ids_in(ids, number);
            let mut kept = KeptSamples {
                places,
                of: BTreeMap::new(),
            };
            if !own.is_empty() {
                reader.samples(&own, range, rows, budget, &mut kept)?;
            }
            Ok(kept.of)
        })?;
        let mut answers: Vec<_> = answers.into_iter().map(|(_, of)| of).collect();
        for (place, &id) in ids.iter().enumerate() {
            let of = answers.iter_mut().filter_map(|of| of.remove(&place));
            let joined = of.reduce(|first, next| joined_with(&first, &next));
            for (samples, resolution_s) in joined.iter().flat_map(SampleRuns::runs) {
                sink.samples(id, samples, resolution_s);
            }
        }
        Ok(())
    }

    fn samples_soon(&self, ids: &[SeriesId], range: TimeRange, rows: RowsAs, budget: &Budget) {
        for (number, reader) in self.readers.iter().enumerate() {
            let (own, _) = self.ids_in(ids, number);
            if !own.is_empty() {
                reader.samples_soon(&own, range, rows, budget);
            }
        }
    }

    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        let answers = self.ask(|number, reader| {
            let (own, places) = self.ids_in(ids, number);
            let mut kept = KeptRows {
                places,
                of: BTreeMap::new(),
            };
            if !own.is_empty() {
                reader.rows(&own, range, step_s, budget, &mut kept)?;
            }
            Ok(kept.of)
        })?;
        let mut answers: Vec<_> = answers.into_iter().map(|(_, of)| of).collect();
        for (place, &id) in ids.iter().enumerate() {
            let of = answers.iter_mut().filter_map(|of| of.remove(&place));
            if let Some((rows, step_s)) = of.reduce(joined_rows) {
                sink.rows(id, &rows, step_s);
            }
        }
        Ok(())
    }

    fn label_names(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        self.texts(|reader| reader.label_names(matchers, range))
    }

    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        self.texts(|reader| reader.label_values(label, matchers, range))
    }

    /// Metadata of each metric by the first reader that knows it.
    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        let mut all = BTreeMap::new();
        for (_, answer) in self.ask(|_, reader| reader.metadata(metric))? {
            for of in answer {
                all.entry(of.metric.clone()).or_insert(of);
            }
        }
        Ok(all.into_values().collect())
    }

    fn missing(&self) -> Vec<String> {
        let mut all = self.missing.borrow().clone();
        let of_readers = self.readers.iter().flat_map(|reader| reader.missing());
        all.extend(of_readers);
        all
    }
}

/// Passes samples on under the ids of the question.
struct Renamed<'a> {
    places: HashMap<SeriesId, usize>,
    ids: &'a [SeriesId],
    sink: &'a mut dyn SampleSink,
}

impl SampleSink for Renamed<'_> {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
        let place = self.places.get(&id);
        if let Some(&id) = place.and_then(|&place| self.ids.get(place)) {
            self.sink.samples(id, samples, resolution_s);
        }
    }
}

/// Samples by the place of their series in the question.
struct KeptSamples {
    places: HashMap<SeriesId, usize>,
    of: BTreeMap<usize, SampleRuns>,
}

impl SampleSink for KeptSamples {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
        if let Some(&place) = self.places.get(&id) {
            let kept = self.of.entry(place).or_default();
            kept.extend(samples, resolution_s);
        }
    }
}

struct KeptRows {
    places: HashMap<SeriesId, usize>,
    of: BTreeMap<usize, (Vec<Row>, u32)>,
}

impl RowSink for KeptRows {
    fn rows(&mut self, id: SeriesId, rows: &[Row], step_s: u32) {
        if let Some(&place) = self.places.get(&id) {
            let (kept, step) = self.of.entry(place).or_default();
            kept.extend_from_slice(rows);
            *step = step_s;
        }
    }
}

/// Joins samples of a reader with those of the next one. Rows of the first, which stand for samples that are gone, are coarser than the
/// samples that the next one may have still.
fn joined_with(first: &SampleRuns, next: &SampleRuns) -> SampleRuns {
    let (mut points, mut rows) = (SampleRuns::default(), SampleRuns::default());
    for (samples, resolution_s) in first.runs() {
        match resolution_s {
            0 => points.extend(samples, 0),
            _ => rows.extend(samples, resolution_s),
        }
    }
    joined(&joined(&points, next), &rows)
}

/// Joins samples of a finer reader with those of a coarser one. A coarse sample stands for the time since the one before; it is
/// left out if a fine sample lies in that time, so that a border has neither a double nor a gap.
fn joined(fine: &SampleRuns, coarse: &SampleRuns) -> SampleRuns {
    let mut all = SampleRuns::default();
    let mut left = fine
        .runs()
        .flat_map(|(samples, of)| samples.iter().map(move |one| (one, of)));
    let mut next = left.next();
    let mut before_ms = None;
    for (samples, resolution_s) in coarse.runs() {
        for (number, sample) in samples.iter().enumerate() {
            let after = samples.get(number + 1);
            let stands_ms = stands_ms(sample, before_ms, after, resolution_s);
            before_ms = Some(sample.t_ms);
            let begin_ms = sample.t_ms.saturating_sub(stands_ms);
            while let Some((fine, of)) = next.filter(|(fine, _)| fine.t_ms <= begin_ms) {
                all.extend(&[*fine], of);
                next = left.next();
            }
            if next.is_none_or(|(fine, _)| fine.t_ms > sample.t_ms) {
                all.extend(&[*sample], resolution_s);
            }
        }
    }
    for (fine, of) in next.into_iter().chain(left) {
        all.extend(&[*fine], of);
    }
    all
}

/// How long a sample stands for: since the one before; the first one as long as the next.
fn stands_ms(
    sample: &Sample,
    before_ms: Option<i64>,
    after: Option<&Sample>,
    resolution_s: u32,
) -> i64 {
    let most_ms = match resolution_s {
        0 => STANDS_MAX_MS,
        step_s => i64::from(step_s) * 1000,
    };
    let distance = match (before_ms, after) {
        (Some(before_ms), _) => Some(sample.t_ms.saturating_sub(before_ms)),
        (None, Some(after)) => Some(after.t_ms.saturating_sub(sample.t_ms)),
        (None, None) => None,
    };
    distance.unwrap_or(most_ms).min(most_ms)
}

/// Joins rows: where the finer reader covers less of a row, the coarser one's stands.
fn joined_rows(
    (fine, fine_s): (Vec<Row>, u32),
    (coarse, coarse_s): (Vec<Row>, u32),
) -> (Vec<Row>, u32) {
    if fine.is_empty() || fine_s != coarse_s {
        return match fine.is_empty() {
            true => (coarse, coarse_s),
            false => (beside(fine, coarse), fine_s.max(coarse_s)),
        };
    }
    let mut all: BTreeMap<i64, Row> = coarse.into_iter().map(|row| (row.t_ms, row)).collect();
    for row in fine {
        let known = all.entry(row.t_ms).or_insert(row);
        if known.mean.is_nan() || row.covered >= known.covered {
            *known = row;
        }
    }
    (all.into_values().collect(), fine_s)
}

/// Rows of two lengths: the coarser ones that end before the finer ones begin, then the finer ones.
fn beside(fine: Vec<Row>, mut coarse: Vec<Row>) -> Vec<Row> {
    let begin_ms = fine.first().map_or(i64::MAX, |row| row.t_ms);
    coarse.retain(|row| row.t_ms < begin_ms);
    coarse.extend(fine);
    coarse
}

#[cfg(test)]
mod tests;
