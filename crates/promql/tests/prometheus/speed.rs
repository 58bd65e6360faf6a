//! The cost of evaluation, printed by
//! `cargo test --release -p kymo-promql --test prometheus speed -- --ignored --nocapture`.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kymo_promql::{Engine, LabelSet, Limits, Value, Watch, parse};
use kymo_series::Sample;

use crate::loaded::Loaded;

/// Runs of each question, of which the fastest counts.
const RUNS: usize = 7;

/// A question over series, and the milliseconds that it may take.
struct Row {
    text: &'static str,
    thru_s: i64,
    step_s: i64,
    bar_ms: f64,
}

#[test]
#[ignore = "it prints what a machine costs"]
fn questions_are_quick() {
    let many = counters(1000, 3600 + 300, 10);
    let one = counters(1, 86_400, 1);
    for (loaded, row) in [
        (
            &many,
            Row {
                text: "rate(x_total[5m])",
                thru_s: 3900,
                step_s: 15,
                bar_ms: 40.0,
            },
        ),
        (
            &many,
            Row {
                text: "sum by (l) (rate(x_total[5m]))",
                thru_s: 3900,
                step_s: 15,
                bar_ms: 20.0,
            },
        ),
        (
            &one,
            Row {
                text: "rate(x_total[5m])",
                thru_s: 86_400,
                step_s: 60,
                bar_ms: 100.0,
            },
        ),
        (
            &many,
            Row {
                text: "x_total",
                thru_s: 3900,
                step_s: 15,
                bar_ms: 40.0,
            },
        ),
        (
            &many,
            Row {
                text: "avg_over_time(x_total[5m])",
                thru_s: 3900,
                step_s: 15,
                bar_ms: 200.0,
            },
        ),
        (
            &many,
            Row {
                text: "x_total / on(l, n) x_total",
                thru_s: 3900,
                step_s: 15,
                bar_ms: 40.0,
            },
        ),
        (
            &many,
            Row {
                text: "topk(5, rate(x_total[5m]))",
                thru_s: 3900,
                step_s: 15,
                bar_ms: 200.0,
            },
        ),
    ] {
        let expr = parse(row.text).unwrap();
        let from_ms = if row.thru_s > 3900 { 0 } else { 300_000 };
        let mut fastest = f64::INFINITY;
        let mut points = 0;
        for _ in 0..RUNS {
            let canceled = AtomicBool::new(false);
            let begin = Instant::now();
            let watch = Watch {
                canceled: &canceled,
                is_late: &|| begin.elapsed().as_secs() > 30,
            };
            let engine = Engine::new(Limits::default());
            let (thru_ms, step_ms) = (row.thru_s * 1000, row.step_s * 1000);
            let answer = engine.range(&expr, from_ms, thru_ms, step_ms, loaded, watch);
            fastest = fastest.min(begin.elapsed().as_secs_f64() * 1000.0);
            let Value::Matrix(tracks) = answer.unwrap().value else {
                panic!("a range is no matrix");
            };
            points = tracks.iter().map(|track| track.samples.len()).sum();
        }
        let Row { text, bar_ms, .. } = row;
        println!("{text}: {fastest:.1} ms, bar {bar_ms} ms, {points} points");
    }
}

/// Counters of ten groups, of which every one begins again now and then.
fn counters(series: u32, length_s: i64, every_s: i64) -> Loaded {
    let mut loaded = Loaded::default();
    for number in 0..series {
        let labels = [
            ("__name__", "x_total".to_string()),
            ("l", (number % 10).to_string()),
            ("n", number.to_string()),
            ("instance", "localhost:9100".to_string()),
            ("job", "node".to_string()),
        ];
        let labels: Vec<(&str, &str)> = labels
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut value = 0.0;
        let samples = (0..=length_s / every_s).map(|at| {
            value += f64::from(number % 7) + 1.0;
            if (at + i64::from(number)) % 500 == 0 {
                value = 1.0;
            }
            Sample {
                t_ms: at * every_s * 1000,
                v: value,
            }
        });
        loaded.add(&LabelSet::new(&labels), &samples.collect::<Vec<_>>(), false);
    }
    loaded
}
