//! The recording as a reader: this machine's metrics under node_exporter's names and its fields, at the recording's own interval.

use std::cell::RefCell;
use std::collections::BTreeSet;

use kymo_base::label_set;
use kymo_recording::reader::{self as recording, Kinds};
use kymo_series::{
    Budget, Labels, Matcher, Metadata, ReadError, Reader, RowSink, RowValue, RowsAs, SampleSink,
    SeriesId, TimeRange,
};

use super::collection::Collection;
use super::discovery::{Discovery, MatcherSet, RecordedSeries, metadata};
use super::pass::{Pass, PassSink};
use super::rows::RowMaker;
use super::scan::{SAMPLES_MAX, Scan, ScannedSamples};
use crate::open::Recordings;
use crate::source::Source;

/// Opens a range of samples, with these kinds at least, as a source.
pub type Open = Box<dyn Fn(recording::TimeRange, Kinds) -> Result<Box<dyn Source>, String>>;

/// Reads a recording. A reader is for one question of its user: it remembers the series that it found.
pub struct RecordedReader {
    open: Open,
    found: RefCell<RecordedSeries>,
    /// Samples of the series that were found last.
    scanned: RefCell<Option<ScannedSamples>>,
}

impl RecordedReader {
    /// The reader of the recordings of a machine.
    pub fn new(recordings: Recordings) -> RecordedReader {
        RecordedReader::of(Box::new(move |range, kinds| recordings.open(range, kinds)))
    }

    /// The reader of the samples that `open` gives.
    pub fn of(open: Open) -> RecordedReader {
        RecordedReader {
            open,
            found: RefCell::default(),
            scanned: RefCell::default(),
        }
    }

    fn run(&self, pass: Pass, range: TimeRange, sink: &mut dyn PassSink) -> Result<(), ReadError> {
        if pass.is_empty() {
            return Ok(());
        }
        let nanoseconds = |ms: i64| ms.saturating_mul(1_000_000);
        let range = recording::TimeRange {
            from_ns: nanoseconds(range.from_ms),
            // A stamp is cut to the millisecond that it lies in.
            thru_ns: nanoseconds(range.thru_ms).saturating_add(999_999),
        };
        let source = (self.open)(range, pass.kinds());
        let mut source = source.map_err(ReadError::Failed)?;
        pass.run(&mut *source, sink).map_err(ReadError::Failed)
    }

    /// Calls `each` with the labels of the series that all matchers pick.
    fn each_picked(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        each: &mut dyn FnMut(&Labels),
    ) -> Result<(), ReadError> {
        let mut budget = Budget::UNLIMITED;
        let matcher_set = MatcherSet(matchers);
        let ids = {
            let mut found = self.found.borrow_mut();
            let mut discovery = Discovery::new(matcher_set, &mut budget, &mut found);
            self.run(matcher_set.pass(), range, &mut discovery)?;
            discovery.end()?
        };
        let found = self.found.borrow();
        let series = ids.into_iter().filter_map(|id| found.get(id));
        series.for_each(|(labels, _)| each(labels));
        Ok(())
    }
}

impl Reader for RecordedReader {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let matcher_set = MatcherSet(matchers);
        let pass = matcher_set.pass();
        let mut found = self.found.borrow_mut();
        let mut room = Budget {
            samples: SAMPLES_MAX,
            ..Budget::UNLIMITED
        };
        let discovery = Discovery::new(matcher_set, budget, &mut found);
        let mut scan = Scan::new(discovery, &mut room);
        self.run(pass, range, &mut scan)?;
        let (ids, scanned) = scan.end(range)?;
        *self.scanned.borrow_mut() = scanned;
        Ok(ids)
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        let found = self.found.borrow();
        found.get(id).map(|(labels, _)| labels.clone())
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        _rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        let scanned = self.scanned.borrow();
        if let Some(scanned) = scanned.as_ref().filter(|scanned| scanned.have(ids, range)) {
            return scanned.give(ids, range, budget, sink);
        }
        let mut collection = Collection::new(budget);
        for &id in ids {
            if let Some((_, origin)) = self.found.borrow().get(id) {
                collection.add(id, origin);
            }
        }
        self.run(collection.pass(), range, &mut collection)?;
        for (id, samples) in collection.end()? {
            if !samples.is_empty() {
                sink.samples(id, &samples, 0);
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
        let mut found = BTreeSet::new();
        self.each_picked(matchers, range, &mut |labels| {
            let names = label_set::each(labels.text()).map(|(name, _)| name);
            found.extend(names.map(|name| String::from_utf8_lossy(name).into_owned()));
        })?;
        Ok(found.into_iter().collect())
    }

    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        let mut found = BTreeSet::new();
        self.each_picked(matchers, range, &mut |labels| {
            let value = label_set::value(labels.text(), label);
            found.insert(String::from_utf8_lossy(&value).into_owned());
        })?;
        found.remove("");
        Ok(found.into_iter().collect())
    }

    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        let mut all = metadata();
        all.retain(|of| metric.is_none_or(|metric| of.metric == metric));
        Ok(all)
    }
}
