//! Expressions over samples that were written to both: where PromQL and MetricsQL mean the same, results are the same.

use std::collections::BTreeMap;
use std::fs;

use kymo_tests::machine::skipped;
use kymo_wire::remote_write::{WriteEncoder, WriteLabel, WriteSample, WriteVersion, compress};

use super::pair::{Pair, difference, exchange};
use super::target;
use crate::prometheus_api::now_s;

/// Seconds of samples, a sample each second.
const LENGTH_S: i64 = 120;

/// Expressions that mean the same in both languages. Counters that grow evenly have the same rate however the edges of
/// a window are treated.
const SAME: &[&str] = &[
    "shop_size",
    "shop_level offset 3s",
    "{__name__=~\"shop_(level|size)\",zone!=\"a\",of!~\"l.*\"}",
    "shop_requests_total{code=~\"2..|5..\"}",
    "sum(shop_level)",
    "sum by (job, code) (shop_requests_total)",
    "sum without (path, job) (shop_requests_total)",
    "avg by (zone) (shop_level)",
    "min by (job) (shop_level)",
    "max by (job) (shop_level)",
    "count by (job) (shop_requests_total)",
    "group by (code) (shop_requests_total)",
    "stddev by (zone) (shop_requests_total)",
    "stdvar by (job) (shop_requests_total)",
    "quantile by (job) (0.5, shop_requests_total)",
    "count_values by (job) (\"size\", shop_restarts_total)",
    "topk by (job) (1, shop_requests_total)",
    "bottomk by (job) (1, shop_requests_total > 0)",
    "count_over_time(shop_level[6s])",
    "sum_over_time(shop_level[6s])",
    "sum without (none) (avg_over_time(shop_level[6s]))",
    "sum without (none) (min_over_time(shop_level[6s]))",
    "sum without (none) (max_over_time(shop_level[6s]))",
    "last_over_time(shop_level[6s])",
    "sum without (none) (quantile_over_time(0.25, shop_level[6s]))",
    "stddev_over_time(shop_requests_total[6s])",
    "present_over_time(shop_level[6s])",
    "shop_requests_total * 2 - 1",
    "-shop_level",
    "shop_level > 0",
    "shop_level > bool 0",
    "shop_requests_total / on (job) group_left shop_duration_seconds_count",
    "shop_requests_total{code=\"404\"} and shop_requests_total{path=\"/a\"}",
    "shop_requests_total unless shop_requests_total{code=\"200\"}",
    "shop_requests_total{code=\"404\"} or shop_level",
    "histogram_quantile(0.9, shop_duration_seconds_bucket)",
    "abs(shop_level)",
    "sum without (none) (ceil(shop_level))",
    "sum without (none) (floor(shop_level))",
    "sum without (none) (clamp(shop_level, -1, 1))",
    "sum without (none) (clamp_min(shop_level, 0))",
    "sum without (none) (clamp_max(shop_level, 0))",
    "exp(shop_level{zone=\"a\"})",
    "sqrt(shop_requests_total)",
    "ln(shop_requests_total > 0)",
    "sgn(shop_level)",
    "scalar(shop_requests_total{code=\"404\",job=\"a\"})",
    "vector(3)",
    "label_replace(shop_level, \"part\", \"$1\", \"__name__\", \"shop_(.+)\")",
    "label_join(shop_level, \"both\", \"-\", \"job\", \"zone\")",
    "absent(shop_nothing{zone=\"a\"})",
    "sort_desc(shop_requests_total)",
    "max_over_time(sum by (job) (shop_requests_total)[6s:1s])",
    "deriv(shop_requests_total[6s])",
    "rate(shop_requests_total[5s])",
    "irate(shop_level[5s])",
    "increase(shop_requests_total[10s])",
    "histogram_quantile(0.5, sum by (le) (rate(shop_duration_seconds_bucket[20s])))",
    "round(shop_level * 10)",
    "timestamp(shop_level)",
];

/// Expressions over a range.
const RANGES: &[&str] = &[
    "shop_level",
    "sum by (job) (shop_requests_total)",
    "rate(shop_requests_total[20s])",
    "stddev_over_time(shop_level[15s])",
    "histogram_quantile(0.9, shop_duration_seconds_bucket)",
    "max by (zone) (shop_level offset 4s) > 0",
];

/// Expressions that differ, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "increase(shop_restarts_total[7s])",
        "Prometheus extrapolates to the edges of a window, victoria-metrics takes the sample before it",
    ),
    ("rate(shop_restarts_total[7s])", "likewise"),
    ("delta(shop_level[5s])", "likewise"),
    (
        "changes(shop_level[6s])",
        "victoria-metrics compares with the sample before the window, too",
    ),
    ("resets(shop_restarts_total[5s])", "likewise"),
    (
        "avg_over_time(shop_level[6s])",
        "victoria-metrics keeps the name where a value keeps its meaning",
    ),
    ("ceil(shop_level)", "likewise"),
];

/// A request with what two targets said each second until a moment.
fn request(thru_ms: i64) -> Vec<u8> {
    let mut all: BTreeMap<String, Vec<WriteSample>> = BTreeMap::new();
    for back in (0..LENGTH_S).rev() {
        for (job, ahead) in [("a", 0), ("b", 2)] {
            let scrape = LENGTH_S - back + ahead;
            let text = target::moving(scrape.unsigned_abs());
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let labels = labels.trim_end_matches('}');
                let sample = WriteSample {
                    t_ms: thru_ms - back * 1000,
                    value: value.parse().expect("a number"),
                    created_ms: None,
                };
                let key = format!("__name__=\"{name}\",job=\"{job}\",{labels}");
                all.entry(key).or_default().push(sample);
            }
        }
    }
    let mut encoder = WriteEncoder::new(WriteVersion::V1);
    for (series, samples) in &all {
        let pairs = series.split(',').filter_map(|pair| pair.split_once('='));
        let mut labels: Vec<WriteLabel> = pairs
            .map(|(name, value)| WriteLabel {
                name,
                value: value.trim_matches('"'),
            })
            .collect();
        labels.sort_by_key(|label| label.name);
        encoder.push(&labels, samples, None);
    }
    let (mut message, mut body) = (Vec::new(), Vec::new());
    encoder.finish(&mut message);
    compress(&message, &mut body).expect("a block");
    body
}

#[test]
fn expressions_of_both_languages_have_the_same_values() {
    let Some(pair) = Pair::start("victoria-asked", None) else {
        return skipped("victoria-metrics is missing");
    };
    let thru_s = now_s() - 5;
    let body = request(thru_s * 1000 + 137);
    let token = fs::read_to_string(&pair.token_file).expect("a token");
    for address in [&pair.kymo, &pair.victoria] {
        let head = format!(
            "POST /api/v1/write HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\nContent-Length: {}\r\n\r\n",
            token.trim(),
            body.len()
        );
        let (status, text) =
            exchange(address, &[head.as_bytes(), &body].concat()).expect("an answer");
        assert_eq!(status, 204, "{address}: {text}");
    }
    let at = format!("{}.5", thru_s - 1);
    pair.same("{job=~\"a|b\"}[100s]", &at, difference);
    let answers = |expr: &str| {
        let (ours, theirs) = (pair.of_kymo(expr, &at), pair.of_victoria(expr, &at));
        (ours.expect("an answer"), theirs.expect("an answer"))
    };
    let wrong = SAME.iter().filter_map(|expr| {
        let (ours, theirs) = answers(expr);
        let wrong = difference(&ours, &theirs).or(theirs.is_empty().then(|| "no series".into()))?;
        Some(format!("{expr}: {wrong}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for expr in RANGES {
        for step_s in [1, 7, 15] {
            // Where a series begins, Prometheus extrapolates to zero at most.
            let range_s = (thru_s - 90, thru_s - 1);
            let [ours, theirs] = pair.ranges(expr, range_s, step_s).expect("answers");
            assert!(!theirs.is_empty(), "{expr}: no series");
            assert_eq!(difference(&ours, &theirs), None, "{expr}, each {step_s} s");
        }
    }
    for (expr, why) in DIFFERENT {
        let (ours, theirs) = answers(expr);
        assert!(
            difference(&ours, &theirs).is_some(),
            "{expr} differs no more: {why}"
        );
    }
}
