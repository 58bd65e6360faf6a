//! Reads a store by labels: for answers of the keeper, and for commands that read a folder.
//!
//! Series of points have their own labels. Columns of .rrd files are `rrd{path=,ds=}`, and also have collectd's name if the path
//! is collectd's. Label sets of earlier builds, which have no `__name__`, get the name that their source has today.

mod index;
mod labelled;
mod tiers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kymo_base::label_set;
use kymo_series::{
    Budget, Kind, Labels, Matcher, Metadata, ReadError, Reader, Row, RowSink, RowValue, RowsAs,
    Sample, SampleSink, SeriesId, TimeRange, names,
};
use kymo_store::{
    FetchError, FileError, KnownSeries, LookRange, PointSeries, PointsKind, RowsWithExtremes,
    SeriesName, Store,
};

use index::{LabelIndex, StoredColumn};
use labelled::{alias_of, counts, metric_kind};
pub(crate) use labelled::{labels_of, scale_of};

/// Series that are looked up under one lock of the store.
const SLICE: usize = 1024;
/// Most cells of one series that are read at once, and most rows of an answer's step.
const CELLS_MAX: u64 = 1 << 20;
const ROWS_MAX: u64 = CELLS_MAX / 4;

/// Reads a store by labels.
pub struct StoreReader {
    store: Store,
    index: Mutex<LabelIndex>,
}

impl StoreReader {
    /// A reader of this store.
    pub fn new(store: Store) -> StoreReader {
        StoreReader {
            store,
            index: Mutex::default(),
        }
    }

    /// The index of all current series.
    fn index(&self) -> MutexGuard<'_, LabelIndex> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let renamed = self.store.renamed();
        if index.renamed != renamed {
            *index = LabelIndex::default();
            index.renamed = renamed;
        }
        let mut from = Some(index.next_id);
        while let Some(first) = from {
            let known = self.store.known(first);
            for series in &known.series {
                index.add(series);
            }
            index.next_id = known.end;
            from = known.next();
        }
        index
    }

    /// Calls `each` for the entries that all matchers pick, with their series and labels.
    fn picked(
        &self,
        matchers: &[Matcher],
        each: &mut dyn FnMut(StoredColumn, &KnownSeries, Labels) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let candidates = self.index().candidates(matchers);
        for slice in candidates.chunks(SLICE) {
            let ids: Vec<u32> = slice.iter().map(|entry| entry.id).collect();
            let known = self.store.known_of(&ids);
            for (&entry, series) in slice.iter().zip(&known) {
                let Some(series) = series else { continue };
                let Some(labels) = labels_of(series, entry.column) else {
                    continue;
                };
                if picks(matchers, &labels, || alias_of(series, entry.column)) {
                    each(entry, series, labels)?;
                }
            }
        }
        Ok(())
    }

    fn known(&self, id: SeriesId) -> Option<(StoredColumn, KnownSeries)> {
        let entry = StoredColumn::of(id);
        let known = self.store.known_of(&[entry.id]).pop().flatten()?;
        Some((entry, known))
    }
}

/// True if all matchers pick a series. An alias is found only by a matcher that names it by equality.
fn picks(matchers: &[Matcher], labels: &Labels, alias: impl FnOnce() -> Option<Labels>) -> bool {
    let all = |labels: &Labels| {
        let mut matchers = matchers.iter();
        matchers.all(|matcher| matcher.matches(&label_set::value(labels.text(), matcher.label())))
    };
    if all(labels) {
        return true;
    }
    let names_one =
        |matcher: &Matcher| matcher.label() == names::METRIC && matcher.only().is_some();
    matchers.iter().any(names_one) && alias().is_some_and(|alias| all(&alias))
}

impl Reader for StoreReader {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let mut found = Vec::new();
        self.picked(matchers, &mut |entry, series, _| {
            // A series that ended before the range has no samples in it.
            let last_ms = series.last.map_or(i64::MIN, milliseconds);
            if last_ms >= range.from_ms {
                budget.take_series(1)?;
                found.push(entry.series_id());
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        let (entry, series) = self.known(id)?;
        labels_of(&series, entry.column)
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        for &id in ids {
            let Some((entry, series)) = self.known(id) else {
                continue;
            };
            match series.points {
                Some((points, _)) => {
                    let scale = scale_of(&series);
                    self.points((id, points, scale), range, rows, budget, sink)?;
                }
                None => {
                    let archived = self.archived_rows(entry, &series, range, rows)?;
                    if let Some((samples, resolution_s)) = archived {
                        budget.take_samples(samples.len())?;
                        sink.samples(id, &samples, resolution_s);
                    }
                }
            }
        }
        Ok(())
    }

    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        for &id in ids {
            let Some((entry, series)) = self.known(id) else {
                continue;
            };
            let Some(looked) = self.look(&series, range, step_s)? else {
                continue;
            };
            let rows = rows_of(&looked, usize::from(entry.column), scale_of(&series));
            budget.take_samples(rows.len())?;
            sink.rows(
                id,
                &rows,
                u32::try_from(looked.mean.step).unwrap_or(u32::MAX),
            );
        }
        Ok(())
    }

    fn label_names(
        &self,
        matchers: &[Matcher],
        _range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        if matchers.is_empty() {
            return Ok(self.index().label_names());
        }
        let mut found = BTreeSet::new();
        self.picked(matchers, &mut |_, _, labels| {
            for (name, _) in label_set::each(labels.text()) {
                found.insert(String::from_utf8_lossy(name).into_owned());
            }
            Ok(())
        })?;
        Ok(found.into_iter().collect())
    }

    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        _range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        let mut found = BTreeSet::new();
        let has = Matcher::new(label, kymo_series::Op::NotEqual, "");
        let has = has.map_err(|error| ReadError::Failed(error.to_string()))?;
        let all: Vec<Matcher> = matchers.iter().cloned().chain([has]).collect();
        self.picked(&all, &mut |_, _, labels| {
            let value = label_set::value(labels.text(), label);
            let value = String::from_utf8_lossy(&value);
            if !found.contains(&*value) {
                found.insert(value.into_owned());
            }
            Ok(())
        })?;
        Ok(found.into_iter().collect())
    }

    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        let matchers: Vec<Matcher> = metric.map(Matcher::of_metric).into_iter().collect();
        let mut found: BTreeMap<String, Kind> = BTreeMap::new();
        self.picked(&matchers, &mut |_, series, labels| {
            let metric = names::metric_of(&labels);
            found.entry(metric).or_insert(metric_kind(series));
            Ok(())
        })?;
        let found = found.into_iter();
        Ok(found
            .map(|(metric, kind)| Metadata::of_kind(metric, kind))
            .collect())
    }
}

impl StoreReader {
    /// Samples of a series of points; where they have expired, rows.
    fn points(
        &self,
        (id, points, scale): (SeriesId, PointSeries, f64),
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        let failed = |error: FileError| ReadError::Failed(error.to_string());
        let expired = self
            .store
            .expired_rows(points, (range.from_ms, range.thru_ms), rows.before);
        let expired = expired.map_err(failed)?;
        budget.take_samples(expired.rows.len())?;
        tiers::each_tier(&expired.rows, rows.value, scale, &mut |samples, step_s| {
            sink.samples(id, samples, step_s);
        });
        let from_ms = range.from_ms.max(expired.thru_ms.saturating_add(1));
        if from_ms > range.thru_ms {
            return Ok(());
        }
        let read = self.store.samples(points, (from_ms, range.thru_ms));
        let read = read.map_err(failed)?;
        budget.take_samples(read.points.len())?;
        let samples = read.points.iter().map(|point| Sample {
            t_ms: point.t_ms,
            // Without a factor the bits stay the same: a stale marker is a certain NaN.
            v: if scale == 1.0 {
                point.v
            } else {
                point.v * scale
            },
        });
        sink.samples(id, &samples.collect::<Vec<_>>(), 0);
        Ok(())
    }

    /// Rows of the finest archive, each as a sample at its end, and their length in seconds.
    fn archived_rows(
        &self,
        entry: StoredColumn,
        series: &KnownSeries,
        range: TimeRange,
        rows: RowsAs,
    ) -> Result<Option<(Vec<Sample>, u32)>, ReadError> {
        let before = |step_s: u64| {
            let before_s = step_s.saturating_mul(rows.before.into());
            let before_ms = i64::try_from(before_s)
                .unwrap_or(i64::MAX)
                .saturating_mul(1000);
            TimeRange {
                // A row that ends with the begin of the range is in it.
                from_ms: range.from_ms.saturating_sub(before_ms).saturating_sub(1),
                thru_ms: range.thru_ms,
            }
        };
        let mut range = before(series.columns.step);
        let Some(mut looked) = self.look(series, range, 1)? else {
            return Ok(None);
        };
        if rows.before > 0 && looked.mean.step > series.columns.step {
            // The finest archive does not reach so far back.
            range = before(looked.mean.step);
            looked = self.look(series, range, 1)?.unwrap_or(looked);
        }
        let column = usize::from(entry.column);
        let read = rows_of(&looked, column, scale_of(series));
        let kind = series
            .columns
            .columns
            .get(column)
            .map(|(_, kind)| &kind[..]);
        let step_s = looked.mean.step as f64;
        let mut grown = 0.0;
        let known = read.iter().filter(|row| !row.mean.is_nan());
        let samples = known.map(|row| {
            grown += row.mean * step_s;
            let v = match rows.value {
                RowValue::Mean | RowValue::Last => row.mean,
                RowValue::Min => row.min,
                RowValue::Max => row.max,
                RowValue::Growth if kind.is_some_and(counts) => grown,
                RowValue::Growth => row.mean,
            };
            Sample { t_ms: row.t_ms, v }
        });
        let samples = samples.filter(|sample| range.has(sample.t_ms)).collect();
        let resolution_s = u32::try_from(looked.mean.step).unwrap_or(u32::MAX);
        Ok(Some((samples, resolution_s)))
    }

    /// Rows of a series with about this step, coarser if there would be too many. `None`: there are none.
    fn look(
        &self,
        series: &KnownSeries,
        range: TimeRange,
        step_s: u32,
    ) -> Result<Option<RowsWithExtremes>, ReadError> {
        let Some(newest_ms) = series.last.map(milliseconds) else {
            return Ok(None);
        };
        let thru_ms = range.thru_ms.min(newest_ms);
        let thru = thru_ms.div_euclid(1000).saturating_add(1);
        // No row is older, and a range over all time would have too many rows.
        let reach_s = i64::try_from(series.reach_s).unwrap_or(i64::MAX);
        let oldest = newest_ms.div_euclid(1000).saturating_sub(reach_s).max(0);
        let from = range.from_ms.div_euclid(1000).max(oldest);
        if thru <= from {
            return Ok(None);
        }
        let least_step = u64::try_from(thru - from).unwrap_or(0) / ROWS_MAX;
        let range = LookRange {
            from,
            thru,
            step: u64::from(step_s).max(least_step).max(1),
            cells_max: CELLS_MAX,
        };
        let labels = Labels::parse(&series.name);
        let name = match &labels {
            Ok(labels) if label_set::is_set(&series.name) => SeriesName::Labels(labels),
            _ => SeriesName::File(&series.name),
        };
        match self.store.look(name, &range) {
            Ok(looked) => Ok(Some(looked)),
            // rrdtool's errors for a range or a series without rows.
            Err(FetchError::Rrd(_)) => Ok(None),
            Err(FetchError::Large) => Err(ReadError::TooMuch { things: "samples" }),
            Err(FetchError::File(error)) => Err(ReadError::Failed(error.to_string())),
        }
    }
}

/// Rows of one column.
fn rows_of(looked: &RowsWithExtremes, column: usize, scale: f64) -> Vec<Row> {
    let width = looked.mean.names.len().max(1);
    let step = i64::try_from(looked.mean.step).unwrap_or(i64::MAX);
    let peak = |found: &Option<kymo_rrd::fetch::Fetched>, at: usize, mean: f64| {
        let cell = found.as_ref().and_then(|found| found.rows.get(at).copied());
        cell.map_or(mean, |cell| cell * scale)
    };
    let rows = looked.mean.rows.chunks_exact(width).enumerate();
    let rows = rows.filter_map(|(number, cells)| {
        let mean = *cells.get(column)? * scale;
        let at = number * width + column;
        let ends = i64::try_from(number + 1).ok()?.saturating_mul(step);
        Some(Row {
            t_ms: looked.mean.start.saturating_add(ends).saturating_mul(1000),
            mean,
            min: peak(&looked.min, at, mean),
            max: peak(&looked.max, at, mean),
            last: mean,
            covered: if mean.is_nan() { 0.0 } else { 1.0 },
        })
    });
    rows.collect()
}

/// Seconds in milliseconds.
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Kind of a series of points in the model of series.
fn kind_of(kind: PointsKind) -> Kind {
    match kind {
        PointsKind::Untyped => Kind::Untyped,
        PointsKind::Gauge => Kind::Gauge,
        PointsKind::Counter => Kind::Counter,
        PointsKind::Histogram => Kind::Histogram,
    }
}

#[cfg(test)]
mod tests;
