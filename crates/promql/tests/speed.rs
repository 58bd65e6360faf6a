//! How long an expression of a dashboard takes to read. It prints, and asserts no time.

#![allow(clippy::print_stderr, reason = "a person reads it")]
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use kymo_promql::parse;

const RUNS: u32 = 20_000;

#[test]
#[ignore = "prints times"]
fn expressions_of_dashboards() {
    for text in [
        "up",
        "rate(node_cpu_seconds_total{mode=\"idle\",instance=\"web1:9100\"}[5m])",
        "100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\",job=\"node\"}[5m])))",
        "histogram_quantile(0.99, sum by (le, route) (rate(http_request_duration_seconds_bucket{job=\"api\",code!=\"500\"}[5m])))",
        "sum(rate(x{code=~\"5..\"}[5m]))",
        "sum(rate(x{instance=~\"web1|web2|web3\"}[5m]))",
    ] {
        let start = Instant::now();
        for _ in 0..RUNS {
            black_box(parse(black_box(text)).unwrap());
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(RUNS);
        eprintln!("{each:.2} µs: {text}");
    }
}
