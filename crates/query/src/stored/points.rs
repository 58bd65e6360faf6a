//! The keeper as a reader of labels and samples.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use kymo_keeper_client::{Keeper, Partial, SamplesAhead};
use kymo_series::{
    Budget, Kind, Labels, Matcher, Metadata, Op, ReadError, Reader, RowSink, RowValue, RowsAs,
    Sample, SampleSink, SeriesId, TimeRange, names,
};
use kymo_wire::keeper::{
    Find, IDS_MAX, LabelMatcher, LabelsOf, MatchOp, MetricFamily, SamplesOf, SamplesPiece,
};

use crate::readers::RowMaker;

/// Reads what a keeper has. A reader is for one request of its user: it remembers the labels of the series that it found.
pub struct KeeperReader {
    keeper: Keeper,
    found: RefCell<HashMap<SeriesId, Labels>>,
    /// Samples that are being read by the keeper.
    ahead: RefCell<Option<Ahead>>,
    missing: RefCell<Vec<String>>,
}

struct Ahead {
    request: SamplesOf,
    answer: SamplesAhead,
}

impl KeeperReader {
    /// Asks this keeper.
    pub fn new(keeper: Keeper) -> KeeperReader {
        KeeperReader {
            keeper,
            found: RefCell::default(),
            ahead: RefCell::default(),
            missing: RefCell::default(),
        }
    }

    fn pieces(&self, of: &SamplesOf) -> Result<Vec<SamplesPiece>, ReadError> {
        let ahead = self.ahead.take();
        let is_same = |ahead: &Ahead| {
            // The budget may have shrunk since; the caller counts the samples.
            let samples_max = of.samples_max;
            let request = ahead.request.clone();
            *of == SamplesOf {
                samples_max,
                ..request
            }
        };
        let read = ahead.filter(is_same).and_then(|ahead| ahead.answer.read());
        let read = read.unwrap_or_else(|| self.keeper.samples(of));
        self.taken(read)
    }

    /// The items of an answer; tells a keeper that does not answer from one that refuses.
    fn taken<T>(&self, answer: Result<Partial<T>, String>) -> Result<Vec<T>, ReadError> {
        let partial = answer.map_err(|why| self.failed(why))?;
        self.missing.borrow_mut().extend(partial.missing);
        Ok(partial.items)
    }

    fn failed(&self, why: String) -> ReadError {
        match why.contains("did not answer") || why.contains("has not answered") {
            true => ReadError::Silent {
                source: self.keeper.name().into(),
            },
            false => ReadError::Failed(why),
        }
    }
}

fn samples_of(ids: &[SeriesId], range: TimeRange, rows: RowsAs, budget: &Budget) -> SamplesOf {
    SamplesOf {
        ids: ids.iter().map(|id| id.0).collect(),
        from_ms: range.from_ms,
        thru_ms: range.thru_ms,
        row_value: code(rows.value),
        rows_before: rows.before,
        samples_max: budget.samples,
    }
}

/// Ends of the names of a family's parts.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

fn metadata_of(family: &MetricFamily) -> Metadata {
    Metadata {
        metric: family.metric.clone(),
        kind: match &*family.kind {
            "counter" => Kind::Counter,
            "gauge" => Kind::Gauge,
            "histogram" => Kind::Histogram,
            _ => Kind::Untyped,
        },
        openmetrics_type: family.kind.clone(),
        unit: family.unit.clone(),
        help: family.help.clone(),
    }
}

fn find(matchers: &[Matcher], range: TimeRange, budget: &Budget) -> Find {
    let matchers = matchers.iter().map(|matcher| LabelMatcher {
        label: matcher.label().into(),
        op: match matcher.op() {
            Op::Equal => MatchOp::Equal,
            Op::NotEqual => MatchOp::NotEqual,
            Op::Matches => MatchOp::Matches,
            Op::NotMatches => MatchOp::NotMatches,
        },
        value: matcher.value().into(),
    });
    Find {
        matchers: matchers.collect(),
        from_ms: range.from_ms,
        thru_ms: range.thru_ms,
        series_max: budget.series,
    }
}

/// The protocol's code of a value of rows.
fn code(value: RowValue) -> u8 {
    let place = RowValue::ALL.iter().position(|other| *other == value);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(0)
}

impl Reader for KeeperReader {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let found = self.taken(self.keeper.find(&find(matchers, range, budget)))?;
        budget.take_series(found.len())?;
        let ids = found.iter().map(|series| SeriesId(series.id)).collect();
        let found = found.into_iter();
        let labels = found.map(|series| (SeriesId(series.id), series.labels));
        self.found.borrow_mut().extend(labels);
        Ok(ids)
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        self.found.borrow().get(&id).cloned()
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        for ids in ids.chunks(IDS_MAX) {
            for piece in self.pieces(&samples_of(ids, range, rows, budget))? {
                let samples = piece.samples.into_iter();
                let samples: Vec<Sample> = samples.map(|(t_ms, v)| Sample { t_ms, v }).collect();
                budget.take_samples(samples.len())?;
                if !samples.is_empty() {
                    sink.samples(SeriesId(piece.id), &samples, piece.resolution_s);
                }
            }
        }
        Ok(())
    }

    fn samples_soon(&self, ids: &[SeriesId], range: TimeRange, rows: RowsAs, budget: &Budget) {
        let first = ids.get(..IDS_MAX.min(ids.len())).unwrap_or_default();
        let request = samples_of(first, range, rows, budget);
        let answer = self.keeper.samples_ahead(&request);
        *self.ahead.borrow_mut() = answer.map(|answer| Ahead { request, answer });
    }

    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        let mut maker = RowMaker::new(step_s, sink);
        self.samples(
            ids,
            range,
            RowsAs::values(RowValue::Mean),
            budget,
            &mut maker,
        )
    }

    fn label_names(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        self.label_values("", matchers, range)
    }

    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        let of = LabelsOf {
            label: label.into(),
            find: find(matchers, range, &Budget::UNLIMITED),
        };
        self.taken(self.keeper.label_texts(&of))
    }

    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        let metrics = match metric {
            Some(metric) => vec![metric.to_string()],
            None => self.label_values(names::METRIC, &[], TimeRange::ALL)?,
        };
        let families = self.keeper.families(metric);
        let families = families.map_err(|why| self.failed(why))?;
        let described: BTreeMap<&str, &MetricFamily> =
            families.iter().map(|of| (&*of.metric, of)).collect();
        let is_part = |metric: &str| {
            let family = PARTS.iter().find_map(|end| metric.strip_suffix(end));
            family.is_some_and(|family| described.contains_key(family))
        };
        let alone = metrics
            .into_iter()
            .filter(|metric| !described.contains_key(&**metric) && !is_part(metric));
        let alone = alone.map(|metric| {
            let kind = names::kind_of(&metric);
            Metadata::of_kind(metric, kind)
        });
        Ok(alone
            .chain(described.values().map(|of| metadata_of(of)))
            .collect())
    }

    fn missing(&self) -> Vec<String> {
        self.missing.borrow().clone()
    }
}
