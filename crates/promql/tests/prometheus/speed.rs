//! The cost of evaluation, printed by
//! `cargo test --release -p kymo-promql --test prometheus speed -- --ignored --nocapture`.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kymo_promql::{Engine, LabelSet, Limits, Value, Watch, parse};
use kymo_series::Sample;

use crate::loaded::Loaded;

/// Runs of each question, of which the fastest counts.
const RUNS: usize = 7;

/// A question, and the milliseconds that it may take.
type Row = (&'static str, f64);

/// Questions about 1,000 series of 10 s: an hour by steps of 15 s.
const MANY: [Row; 6] = [
    ("rate(x_total[5m])", 40.0),
    ("sum by (l) (rate(x_total[5m]))", 20.0),
    ("x_total", 40.0),
    ("avg_over_time(x_total[5m])", 200.0),
    ("x_total / on(l, n) x_total", 40.0),
    ("topk(5, rate(x_total[5m]))", 200.0),
];
/// Questions about one series of 1 s: a day by steps of a minute.
const ONE: [Row; 1] = [("rate(x_total[5m])", 100.0)];

#[test]
#[ignore = "it prints what a machine costs"]
fn questions_are_quick() {
    let many = counters(1000, 3900, 10);
    for row in MANY {
        println!(
            "1,000 series: {}",
            cost(row, &many, 300_000, 3_900_000, 15_000)
        );
    }
    let one = counters(1, 86_400, 1);
    for row in ONE {
        println!("one series: {}", cost(row, &one, 0, 86_400_000, 60_000));
    }
}

fn cost((text, bar_ms): Row, loaded: &Loaded, from_ms: i64, thru_ms: i64, step_ms: i64) -> String {
    let expr = parse(text).unwrap();
    let (mut fastest, mut points) = (f64::INFINITY, 0);
    for _ in 0..RUNS {
        let canceled = AtomicBool::new(false);
        let begin = Instant::now();
        let watch = Watch {
            canceled: &canceled,
            is_late: &|| begin.elapsed().as_secs() > 30,
        };
        let engine = Engine::new(Limits::default());
        let answer = engine.range(&expr, from_ms, thru_ms, step_ms, loaded, watch);
        fastest = fastest.min(begin.elapsed().as_secs_f64() * 1000.0);
        let Value::Matrix(tracks) = answer.unwrap().value else {
            panic!("a range is no matrix");
        };
        points = tracks.iter().map(|track| track.samples.len()).sum();
    }
    format!("{text}: {fastest:.1} ms, bar {bar_ms} ms, {points} points")
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
