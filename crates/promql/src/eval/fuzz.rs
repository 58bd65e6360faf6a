//! Fuzzing of expressions over a few series.

use std::sync::atomic::AtomicBool;

use kymo_base::label_set;
use kymo_series::{
    Budget, Labels, Matcher, Metadata, ReadError, Reader, RowSink, RowsAs, Sample, SampleSink,
    SeriesId, TimeRange, stale,
};

use crate::eval::{Answer, Engine, EvalError, LabelSet, Limits, Value, Watch};
use crate::parse;

/// Labels of the series, as they are written.
const SERIES: [&str; 7] = [
    r#"{__name__="x",a="1",b="c"}"#,
    r#"{__name__="x",a="2",b="c"}"#,
    r#"{__name__="y:z",a="1"}"#,
    r#"{__name__="b",a="1",le="0.5"}"#,
    r#"{__name__="b",a="1",le="1"}"#,
    r#"{__name__="b",a="1",le="+Inf"}"#,
    r#"{__name__="b",a="1",le="none"}"#,
];
/// Seconds between two samples.
const EVERY_S: i64 = 15;
/// Texts of more levels or steps take longer than a run may.
const TEXT_MAX: usize = 400;

/// Any text is refused, or has a value at each moment that is the same alone and as a step of a range.
pub fn fuzz_evaluation(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(expr) = parse(text) else {
        return;
    };
    if text.len() > TEXT_MAX {
        return;
    }
    let canceled = AtomicBool::new(false);
    let watch = Watch {
        canceled: &canceled,
        is_late: &|| false,
    };
    let engine = Engine::new(Limits {
        values: 100_000,
        samples: 100_000,
        ..Limits::default()
    });
    let (from_ms, thru_ms, step_ms) = (600_000, 720_000, 60_000);
    let range = engine.range(&expr, from_ms, thru_ms, step_ms, &Few, watch);
    // These mean another thing for a range than for one moment.
    let of_query = ["start", "end", "step", "range", "sort", "topk", "bottomk"];
    let differs = of_query.iter().any(|word| text.contains(word));
    let (Ok(range), false) = (range, differs) else {
        return;
    };
    for t_ms in [from_ms, thru_ms] {
        match engine.instant(&expr, t_ms, &Few, watch) {
            Ok(alone) => check_step(text, &alone, &range, t_ms),
            Err(EvalError::TooManySamples | EvalError::TooManySeries) => {}
            Err(error) => panic!("{text} has a range and no moment: {error}"),
        }
    }
}

fn check_step(text: &str, alone: &Answer, range: &Answer, t_ms: i64) {
    let mut alone: Vec<(LabelSet, u64)> = match &alone.value {
        Value::Scalar(v) => vec![(LabelSet::empty(), bits(*v))],
        Value::Vector(vector) => {
            let series = vector.iter().map(|(labels, v)| (labels.clone(), bits(*v)));
            series.collect()
        }
        Value::Text(_) | Value::Matrix(_) => return,
    };
    let Value::Matrix(tracks) = &range.value else {
        panic!("{text}: a range is no matrix");
    };
    let step = tracks.iter().filter_map(|track| {
        let sample = track.samples.iter().find(|sample| sample.t_ms == t_ms)?;
        Some((track.labels.clone(), bits(sample.v)))
    });
    let mut step: Vec<(LabelSet, u64)> = step.collect();
    alone.sort();
    step.sort();
    assert_eq!(alone, step, "{text} at {t_ms}");
}

/// Bits of a number, the same for every NaN.
fn bits(value: f64) -> u64 {
    match value.is_nan() {
        true => f64::NAN.to_bits(),
        false => value.to_bits(),
    }
}

/// A few series, whose samples follow from their place and time.
struct Few;

impl Reader for Few {
    fn select(
        &self,
        matchers: &[Matcher],
        _range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let picks = |text: &str| {
            let value = |label: &str| label_set::value(text.as_bytes(), label);
            matchers.iter().all(|of| of.matches(&value(of.label())))
        };
        let picked = SERIES.iter().enumerate().filter(|(_, text)| picks(text));
        let ids: Vec<SeriesId> = picked.map(|(place, _)| SeriesId::at(place)).collect();
        budget.take_series(ids.len())?;
        Ok(ids)
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        Labels::parse(SERIES.get(id.place())?.as_bytes()).ok()
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
            let samples = (0..100).map(|at| sample(id, at));
            let samples: Vec<Sample> = samples.filter(|sample| range.has(sample.t_ms)).collect();
            budget.take_samples(samples.len())?;
            sink.samples(id, &samples, 0);
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

/// A counter that begins again now and then, with gaps, and for one series values that are no numbers.
fn sample(id: SeriesId, at: i64) -> Sample {
    let place = i64::try_from(id.place()).unwrap_or(0);
    let turn = (at * 7 + place * 3) % 23;
    let v = match turn {
        0 => stale(),
        1 if place == 2 => f64::NAN,
        2 if place == 2 => f64::INFINITY,
        _ => crate::eval::number::whole((at % 31) * (place + 1)) / 4.0,
    };
    let gap_s = if at > 50 { 400 } else { 0 };
    Sample {
        t_ms: (at * EVERY_S + gap_s) * 1000,
        v,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueryTimes;
    use crate::eval::context::Context;
    use crate::eval::grid::{Grid, QuerySpan};
    use crate::eval::run::{Evaluated, Evaluator};

    #[test]
    fn moments_are_steps_of_ranges() {
        for text in [
            "x",
            "-x + on (a) group_left () y:z",
            "sum by (a) (rate({__name__=~\".+\"}[5m]))",
            "histogram_quantile(0.9, b)",
            "count_values(\"v\", x) or x @ 100 or vector(time())",
            "max_over_time((x > 1)[3m:7s] offset 10s) unless absent(y:z{a=\"2\"})",
            "label_join(x, \"c\", \"-\", \"a\", \"b\")",
            "scalar(x) % 3",
            "quantile without (b) (0.3, x smoothed)",
        ] {
            parse(text).unwrap();
            fuzz_evaluation(text.as_bytes());
        }
    }

    /// The deepest expressions that the parser takes fit half the stack of a thread of the hub.
    #[test]
    fn deep_expressions_fit_a_small_stack() {
        let deep = || {
            for (before, after, levels) in [
                ("abs(", ")", 126),
                ("sum(", ")", 126),
                ("-", "", 126),
                ("1 ^ ", "", 126),
                ("max_over_time(", "[1m:1m])", 63),
                ("label_join(", ", \"c\", \"\", \"a\")", 126),
                ("round(", ", 1)", 126),
                ("topk(1, ", ")", 126),
                ("histogram_quantile(0.9, ", ")", 126),
                ("x + ", "", 250),
                ("", " and x", 250),
            ] {
                let text = format!("{}x{}", before.repeat(levels), after.repeat(levels));
                let is_whole = parse(&text).map(|expr| {
                    let canceled = AtomicBool::new(false);
                    let watch = Watch {
                        canceled: &canceled,
                        is_late: &|| false,
                    };
                    let engine = Engine::new(Limits::default());
                    let range = engine.range(&expr, 600_000, 660_000, 15_000, &Few, watch);
                    range.is_ok()
                });
                assert_eq!(is_whole, Ok(true), "{before}x{after}");
            }
        };
        let thread = std::thread::Builder::new().stack_size(512 << 10);
        thread.spawn(deep).unwrap().join().unwrap();
    }

    #[test]
    fn memory_is_given_back() {
        let inner = [
            "x",
            "x > 30",
            "-x",
            "rate(x[5m])",
            "x @ 700",
            "max_over_time((x > 1)[3m:7s])",
            "quantile_over_time(0.5, x[2m])",
            "clamp(x, 5, 1)",
            "round(x, 5)",
            "absent(x)",
            "vector(scalar(y:z))",
            "label_replace(x, \"c\", \"$1\", \"a\", \"(.*)\")",
            "histogram_quantile(0.9, b)",
            "hour()",
            "timestamp(x)",
        ];
        let outer = [
            "sum by (a) (%)",
            "topk(1, %)",
            "quantile(0.5, %)",
            "count_values(\"v\", %)",
            "(%) / on (a) group_left () y:z",
            "x unless on (a) (%)",
            "(%) or y:z",
            "(%) and x",
            "1 < (%)",
            "sort(%)",
        ];
        let query = QuerySpan {
            from_ms: 600_000,
            thru_ms: 900_000,
            times: QueryTimes {
                step_ms: 15_000,
                range_ms: 300_000,
            },
        };
        let canceled = AtomicBool::new(false);
        let watch = Watch {
            canceled: &canceled,
            is_late: &|| false,
        };
        let mut evaluated = 0;
        for (inner, outer) in inner
            .iter()
            .flat_map(|inner| outer.map(|outer| (inner, outer)))
        {
            let text = outer.replace('%', inner);
            let expr = parse(&text).unwrap();
            for grid in [
                Grid::instant(600_000),
                Grid::range(600_000, 900_000, 15_000).unwrap(),
            ] {
                let context = Context::new(Limits::default(), &Few, query, watch);
                let evaluator = Evaluator { context: &context };
                let Ok(Evaluated::Vector(columns)) = evaluator.eval(&expr, grid) else {
                    continue;
                };
                let kept: usize = columns.iter().map(|column| column.values.len()).sum();
                assert_eq!(context.meter.held(), kept, "{text} of {} steps", grid.count);
                evaluated += 1;
            }
        }
        assert!(evaluated > 200, "{evaluated} expressions are too few");
    }
}
