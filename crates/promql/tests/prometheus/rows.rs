//! Rows that stand for samples which are no longer kept.

use std::sync::atomic::AtomicBool;

use kymo_promql::{Engine, Limits, Value, Watch, parse};
use kymo_series::{
    Budget, Labels, Matcher, Metadata, ReadError, Reader, RowSink, RowValue, RowsAs, Sample,
    SampleSink, SeriesId, TimeRange,
};

const HOUR_S: i64 = 3600;
const ROWS: i64 = 10;

/// A counter that grows by one a second: rows of an hour up to the tenth hour, and then a sample a minute.
struct Kept;

impl Reader for Kept {
    fn select(
        &self,
        _matchers: &[Matcher],
        _range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        budget.take_series(1)?;
        Ok(vec![SeriesId(1)])
    }

    fn labels(&self, _id: SeriesId) -> Option<Labels> {
        Labels::new([("__name__", &b"x_total"[..])]).ok()
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        let sample = |t_s: i64, v: i64| Sample {
            t_ms: t_s * 1000,
            v: v as f64,
        };
        let row = |end_s: i64| match rows.value {
            RowValue::Mean => sample(end_s, end_s - HOUR_S / 2),
            RowValue::Min => sample(end_s, end_s - HOUR_S),
            RowValue::Max | RowValue::Last | RowValue::Growth => sample(end_s, end_s),
        };
        let from_ms = range.from_ms - i64::from(rows.before) * HOUR_S * 1000;
        let in_range = |t_ms: i64, from_ms: i64| (from_ms..=range.thru_ms).contains(&t_ms);
        let hours = (1..=ROWS).map(|hour| row(hour * HOUR_S));
        let hours: Vec<Sample> = hours.filter(|row| in_range(row.t_ms, from_ms)).collect();
        let minutes = (1..=240).map(|minute| ROWS * HOUR_S + minute * 60);
        let minutes = minutes.map(|t_s| sample(t_s, t_s));
        let minutes: Vec<Sample> = minutes
            .filter(|one| in_range(one.t_ms, range.from_ms))
            .collect();
        budget.take_samples(hours.len() + minutes.len())?;
        sink.samples(ids[0], &hours, 3600);
        sink.samples(ids[0], &minutes, 0);
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

    fn label_names(&self, _of: &[Matcher], _range: TimeRange) -> Result<Vec<String>, ReadError> {
        Ok(Vec::new())
    }

    fn label_values(
        &self,
        _label: &str,
        _of: &[Matcher],
        _range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        Ok(Vec::new())
    }

    fn metadata(&self, _metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        Ok(Vec::new())
    }
}

/// Values at each ten minutes from the third hour to the thirteenth, and the notes.
fn ask(text: &str) -> (Vec<(i64, f64)>, Vec<String>) {
    let canceled = AtomicBool::new(false);
    let watch = Watch {
        canceled: &canceled,
        is_late: &|| false,
    };
    let engine = Engine::new(Limits::default());
    let hours = |hours: i64| hours * HOUR_S * 1000;
    let expr = parse(text).unwrap();
    let answer = engine.range(&expr, hours(3), hours(13), 600_000, &Kept, watch);
    let answer = answer.unwrap();
    let Value::Matrix(tracks) = answer.value else {
        panic!("no matrix");
    };
    let samples = tracks.first().map_or(&[][..], |track| &track.samples);
    let values = samples.iter().map(|one| (one.t_ms / 1000, one.v));
    let notes = answer.notes.iter().map(|note| note.text(text));
    (values.collect(), notes.collect())
}

#[test]
fn growth_is_that_of_the_samples_that_are_gone() {
    for (text, expect) in [
        ("rate(x_total[5m])", 1.0),
        ("increase(x_total[5m])", 300.0),
        ("rate(x_total[3h])", 1.0),
        ("deriv(x_total[5m])", 1.0),
        ("delta(x_total[10m])", 600.0),
    ] {
        let (values, notes) = ask(text);
        assert_eq!(values.len(), 61, "{text}");
        for (t_s, value) in values {
            // The first hours of a counter that began at 0 are not extrapolated before that.
            let is_near = (value - expect).abs() < 0.001 * expect;
            assert!(is_near, "{text} at {t_s}: {value}");
        }
        assert!(notes[0].starts_with("PromQL warning: rows of 1h stand for samples that are gone"));
        let widened = notes.iter().any(|note| note.contains("is widened to 2h"));
        assert_eq!(widened, !text.contains("3h"), "{notes:?}");
    }
}

#[test]
fn each_function_has_its_value_of_a_row() {
    let at = |text: &str, t_s: i64| {
        let (values, _) = ask(text);
        let found = values.into_iter().find(|(at_s, _)| *at_s == t_s);
        found.map(|(_, value)| value)
    };
    // Ten minutes after the end of the fifth hour.
    let after = 5 * HOUR_S + 600;
    for (text, expect) in [
        ("x_total", 5 * HOUR_S),
        ("min_over_time(x_total[1m])", 4 * HOUR_S),
        ("max_over_time(x_total[1m])", 5 * HOUR_S),
        ("avg_over_time(x_total[1m])", 5 * HOUR_S - HOUR_S / 2),
        ("last_over_time(x_total[1m])", 5 * HOUR_S),
        ("count_over_time(x_total[1m])", 1),
        ("min_over_time(x_total[2h])", 3 * HOUR_S),
    ] {
        assert_eq!(at(text, after), Some(expect as f64), "{text}");
    }
    for text in ["irate(x_total[5m])", "idelta(x_total[5m])"] {
        assert_eq!(at(text, after), None, "{text}");
        let later = ROWS * HOUR_S + 1200;
        let expect = if text.starts_with("ir") { 1.0 } else { 60.0 };
        assert_eq!(at(text, later), Some(expect), "{text}");
    }
    // Samples are as they came.
    let (values, _) = ask("x_total");
    assert_eq!(values.len(), 61);
    assert!(
        values
            .iter()
            .all(|(t_s, v)| *t_s < ROWS * HOUR_S || *v == *t_s as f64)
    );
}
