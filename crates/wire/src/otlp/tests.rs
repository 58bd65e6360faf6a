//! Messages of OTLP, put together field by field, and the samples that they become.

use proptest::prelude::*;

use super::response::{is_protobuf, put_response};
use super::*;
use crate::protobuf::{put_bytes, put_double, put_fixed64, put_message, put_number};

const SECOND: u64 = 1_000_000_000;
const GAUGE: u64 = 5;
const SUM: u64 = 7;
const HISTOGRAM: u64 = 9;
const EXPONENTIAL: u64 = 10;
const SUMMARY: u64 = 11;

/// Fields of a message.
fn fields(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// An attribute in field `number`, its value as it is encoded.
fn put_attribute(out: &mut Vec<u8>, number: u64, key: &str, value: &[u8]) {
    put_message(out, number, |out| {
        put_bytes(out, 1, key.as_bytes());
        put_bytes(out, 2, value);
    });
}

fn text(text: &str) -> Vec<u8> {
    fields(|out| put_bytes(out, 1, text.as_bytes()))
}

/// A request with one resource of these attributes, and one metric.
fn request(resource: &[(&str, &str)], metric: &[u8]) -> Vec<u8> {
    fields(|out| {
        put_message(out, 1, |out| {
            put_message(out, 2, |out| put_bytes(out, 2, metric));
            // A resource may be behind its metrics.
            put_message(out, 1, |out| {
                for (key, value) in resource {
                    put_attribute(out, 1, key, &text(value));
                }
            });
        });
    })
}

/// A metric with points of a kind; `rest`: fields beside the points.
fn metric(name: &str, unit: &str, kind: u64, points: &[Vec<u8>], rest: &[(u64, u64)]) -> Vec<u8> {
    fields(|out| {
        put_message(out, kind, |out| {
            for point in points {
                put_bytes(out, 1, point);
            }
            for &(number, value) in rest {
                put_number(out, number, value);
            }
        });
        put_bytes(out, 1, name.as_bytes());
        put_bytes(out, 2, b"Help.");
        put_bytes(out, 3, unit.as_bytes());
    })
}

/// A point of a gauge or sum at 2 s, counting since 1 s.
fn number(value: i64, attributes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    fields(|out| {
        put_fixed64(out, 2, SECOND);
        put_fixed64(out, 3, 2 * SECOND);
        put_fixed64(out, 6, value.cast_unsigned());
        for (key, value) in attributes {
            put_attribute(out, 7, key, value);
        }
    })
}

fn histogram(bounds: &[f64], counts: &[u64], sum: Option<f64>) -> Vec<u8> {
    fields(|out| {
        put_fixed64(out, 3, 2 * SECOND);
        put_fixed64(out, 4, counts.iter().sum());
        if let Some(sum) = sum {
            put_double(out, 5, sum);
        }
        let packed: Vec<u8> = counts
            .iter()
            .flat_map(|count| count.to_le_bytes())
            .collect();
        put_bytes(out, 6, &packed);
        for &bound in bounds {
            put_double(out, 7, bound);
        }
    })
}

fn say(message: &[u8], limits: &OtlpLimits) -> (Vec<String>, Result<OtlpCounts, BadOtlp>) {
    let mut lines = Vec::new();
    let counts = read_metrics(message, limits, &mut |sample: &OtlpSample| {
        let labels: Vec<(&str, &str)> = sample.labels.iter().collect();
        assert!(
            labels.is_sorted_by(|a, b| a.0 < b.0),
            "an order: {labels:?}"
        );
        assert!(
            labels
                .iter()
                .all(|(name, value)| !name.is_empty() && !value.is_empty())
        );
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let created = sample.created_ms.map_or(String::new(), |t| format!("<{t}"));
        lines.push(format!(
            "{} {}@{}{created}",
            labels.join(","),
            sample.value,
            sample.t_ms
        ));
    });
    (lines, counts)
}

fn lines(message: &[u8]) -> Vec<String> {
    say(message, &OtlpLimits::default()).0
}

/// Why the only point is refused.
fn refusal(metric: &[u8], limits: &OtlpLimits) -> BadDataPoint {
    let (lines, counts) = say(
        &request(&[("service.name", "a"), ("x", "y")], metric),
        limits,
    );
    assert_eq!(lines, [""; 0]);
    let counts = counts.unwrap();
    let reasons: Vec<_> = counts.reasons().collect();
    assert_eq!(
        (reasons.len(), counts.refused_points(), counts.points),
        (1, 1, 0),
        "{reasons:?}"
    );
    reasons[0].0
}

#[test]
fn gauges_and_sums_are_series() {
    let point = || vec![number(5, &[])];
    for (metric, expected) in [
        (
            metric("cpu.usage", "1", GAUGE, &point(), &[]),
            "__name__=cpu_usage_ratio 5@2000<1000",
        ),
        (
            metric("reqs", "{r}", SUM, &point(), &[(2, 2), (3, 1)]),
            "__name__=reqs_total 5@2000<1000",
        ),
        (
            metric("used", "By", SUM, &point(), &[(2, 2)]),
            "__name__=used_bytes 5@2000<1000",
        ),
    ] {
        assert_eq!(lines(&request(&[], &metric)), [expected]);
    }
    let negative = metric("t", "", GAUGE, &[number(-7, &[])], &[]);
    assert_eq!(lines(&request(&[], &negative)), ["__name__=t -7@2000<1000"]);
    // Said to be unknown now: Prometheus' marker.
    let unknown = fields(|out| {
        put_fixed64(out, 3, SECOND);
        put_number(out, 8, 1);
    });
    let mut bits = 0;
    let message = request(&[], &metric("t", "", GAUGE, &[unknown], &[]));
    let counts = read_metrics(
        &message,
        &OtlpLimits::default(),
        &mut |sample: &OtlpSample| {
            bits = sample.value.to_bits();
            assert_eq!(
                (sample.family, sample.help, sample.unit),
                ("t", "Help.", "")
            );
            assert_eq!(sample.metric_type, MetricType::Gauge);
        },
    );
    assert_eq!((bits, counts.unwrap().samples), (0x7ff0_0000_0000_0002, 1));
}

#[test]
fn histograms_become_classic_ones() {
    let of = |point| request(&[], &metric("d", "s", HISTOGRAM, &[point], &[(2, 2)]));
    assert_eq!(
        lines(&of(histogram(&[-0.5, 1.0, 2.5e-7], &[1, 2, 0, 3], None))),
        [""; 0],
        "bounds that do not rise"
    );
    assert_eq!(
        lines(&of(histogram(
            &[0.5, 10.0, f64::INFINITY],
            &[1, 2, 0, 3],
            Some(4.5)
        ))),
        [
            "__name__=d_seconds_sum 4.5@2000",
            "__name__=d_seconds_count 6@2000",
            "__name__=d_seconds_bucket,le=0.5 1@2000",
            "__name__=d_seconds_bucket,le=10 3@2000",
            "__name__=d_seconds_bucket,le=+Inf 6@2000",
        ]
    );
    assert_eq!(
        lines(&of(histogram(&[], &[2], None))),
        [
            "__name__=d_seconds_count 2@2000",
            "__name__=d_seconds_bucket,le=+Inf 2@2000"
        ]
    );
    assert_eq!(
        lines(&of(histogram(&[], &[], None))),
        [
            "__name__=d_seconds_count 0@2000",
            "__name__=d_seconds_bucket,le=+Inf 0@2000"
        ]
    );
}

#[test]
fn summaries_become_quantiles() {
    let point = fields(|out| {
        put_fixed64(out, 3, 2 * SECOND);
        put_fixed64(out, 4, 9);
        put_double(out, 5, 1.5);
        for quantile in [0.5, 0.999] {
            put_message(out, 6, |out| {
                put_double(out, 1, quantile);
                put_double(out, 2, quantile * 2.0);
            });
        }
        put_attribute(out, 7, "quantile", &text("own"));
    });
    assert_eq!(
        lines(&request(&[], &metric("d", "ms", SUMMARY, &[point], &[]))),
        [
            "__name__=d_milliseconds_sum,quantile=own 1.5@2000",
            "__name__=d_milliseconds_count,quantile=own 9@2000",
            "__name__=d_milliseconds,quantile=0.5 1@2000",
            "__name__=d_milliseconds,quantile=0.999 1.998@2000",
        ]
    );
}

#[test]
fn resources_say_job_and_instance() {
    let metric = metric("t", "", GAUGE, &[number(1, &[("job", text("mine"))])], &[]);
    let one = "instance=i,job=n/s";
    for (resource, labels, target) in [
        (&[][..], "job=mine", None),
        (&[("host.name", "h")], "job=mine", None),
        (&[("service.name", "s")], "job=s", None),
        (&[("service.namespace", "n")], "job=mine", None),
        (
            &[("service.instance.id", "i"), ("os", "")],
            "instance=i,job=mine",
            Some("instance=i"),
        ),
        (
            &[
                ("service.namespace", "n"),
                ("service.name", "s"),
                ("service.instance.id", "i"),
                ("host.name", "h"),
                ("0", "x"),
            ],
            one,
            Some("host_name=h,instance=i,job=n/s,key_0=x"),
        ),
    ] {
        let mut expected = vec![format!("__name__=t,{labels} 1@2000<1000")];
        expected.extend(target.map(|labels| format!("__name__=target_info,{labels} 1@2000")));
        assert_eq!(lines(&request(resource, &metric)), expected);
    }
}

#[test]
fn attributes_become_labels() {
    let list = fields(|out| {
        put_message(out, 5, |out| {
            put_bytes(out, 1, &text("a\"\\\n\u{1}"));
            put_message(out, 1, |out| put_number(out, 3, 5));
            put_message(out, 1, |_| ());
            put_message(out, 1, |out| put_bytes(out, 7, b"ab"));
            put_message(out, 1, |out| put_bytes(out, 7, b""));
            put_message(out, 1, |out| put_bytes(out, 1, b""));
        });
    });
    let map = fields(|out| {
        put_message(out, 6, |out| {
            put_attribute(out, 1, "k", &text("v"));
            put_attribute(out, 1, "l", &fields(|out| put_message(out, 5, |_| ())));
        });
    });
    let of = |number, value| fields(|out| put_number(out, number, value));
    let double = |value| fields(|out| put_double(out, 4, value));
    for (value, expected) in [
        (text("a b"), "a b"),
        (of(2, 1), "true"),
        (of(2, 0), "false"),
        (of(3, u64::MAX), "-1"),
        (double(1.0), "1"),
        (double(-0.25), "-0.25"),
        (double(1e21), "1e+21"),
        (double(1.5e-9), "1.5e-9"),
        (double(f64::NAN), "NaN"),
        (double(f64::NEG_INFINITY), "-Inf"),
        (fields(|out| put_bytes(out, 7, b"abcd")), "YWJjZA=="),
        (fields(|out| put_bytes(out, 7, b"abc?\xff")), "YWJjP/8="),
        (list, "[\"a\\\"\\\\\\n\\u0001\",5,null,\"YWI=\",null,\"\"]"),
        (map, "{\"k\":\"v\",\"l\":[]}"),
    ] {
        let metric = metric("t", "", GAUGE, &[number(1, &[("x", value)])], &[]);
        assert_eq!(
            lines(&request(&[], &metric)),
            [format!("__name__=t,x={expected} 1@2000<1000")]
        );
    }
    // Keys that become one name, one that has no value, and one that is not for senders to say.
    let attributes = [
        ("a_b", text("2")),
        ("a.b", text("1")),
        ("z", text("")),
        ("a b", text("0")),
        ("__name__", text("other")),
    ];
    let metric = metric("t", "", GAUGE, &[number(1, &attributes)], &[]);
    assert_eq!(
        lines(&request(&[], &metric)),
        ["__name__=t,a_b=0;1;2 1@2000<1000"]
    );
}

#[test]
fn points_are_refused_alone() {
    use BadDataPoint::*;
    let limits = OtlpLimits {
        attributes: 2,
        attribute_bytes: 20,
        buckets: 2,
    };
    let gauge = |point: Vec<u8>| metric("t", "", GAUGE, &[point], &[]);
    let with = |attributes: &[(&str, Vec<u8>)]| gauge(number(1, attributes));
    let of = |point| metric("t", "", HISTOGRAM, &[point], &[(2, 2)]);
    let nested = |depth: usize| {
        (0..depth).fold(text("x"), |inner, _| {
            fields(|out| put_message(out, 5, |out| put_bytes(out, 1, &inner)))
        })
    };
    let one = || vec![number(1, &[])];
    for (metric, expected) in [
        (metric("t", "", SUM, &one(), &[(2, 1), (3, 1)]), Delta),
        (metric("t", "", HISTOGRAM, &one(), &[(2, 1)]), Delta),
        (metric("t", "", SUM, &one(), &[(3, 1)]), NoTemporality),
        (metric("t", "", EXPONENTIAL, &one(), &[(2, 2)]), Exponential),
        (metric("", "", GAUGE, &one(), &[]), Name),
        (metric("...", "", GAUGE, &one(), &[]), Name),
        (gauge(fields(|out| put_double(out, 4, 1.0))), NoTime),
        (gauge(fields(|out| put_fixed64(out, 3, 1))), NoValue),
        (with(&[("", text("x"))]), AttributeKey),
        (with(&[("..", text("x"))]), AttributeKey),
        (
            with(&[("x", fields(|out| put_bytes(out, 1, b"\xff")))]),
            NotUtf8,
        ),
        (with(&[("x", nested(9))]), AttributeDepth),
        (
            with(&[("x", text("1")), ("y", text("2")), ("z", text("3"))]),
            AttributeCount,
        ),
        (with(&[("x", text(&"v".repeat(20)))]), AttributeBytes),
        (
            of(histogram(&[1.0, 2.0, 3.0], &[1, 2, 3, 4], None)),
            BucketCount,
        ),
        (of(histogram(&[1.0, 2.0], &[1, 2], None)), Bounds),
        (of(histogram(&[1.0], &[], None)), Bounds),
        (of(histogram(&[2.0, 1.0], &[1, 2, 3], None)), Bounds),
        (of(histogram(&[1.0, 1.0], &[1, 2, 3], None)), Bounds),
        (of(histogram(&[f64::NAN], &[1, 2], None)), Bounds),
    ] {
        assert_eq!(refusal(&metric, &limits), expected);
    }
    let deepest = with(&[("x", nested(8))]);
    assert_eq!(
        say(&request(&[], &deepest), &limits).0,
        ["__name__=t,x=[[[[[[[[\"x\"]]]]]]]] 1@2000<1000"]
    );
    // Others of the same metric count.
    let both = metric(
        "t",
        "",
        GAUGE,
        &[number(1, &[("", text(""))]), number(2, &[])],
        &[],
    );
    let (lines, counts) = say(&request(&[], &both), &limits);
    assert_eq!(lines, ["__name__=t 2@2000<1000"]);
    assert_eq!(
        (counts.unwrap().points, counts.unwrap().refused_points()),
        (1, 1)
    );
}

#[test]
fn the_answer_says_what_was_not_taken() {
    let (_, taken) = say(
        &request(&[], &metric("t", "", GAUGE, &[number(1, &[])], &[])),
        &OtlpLimits::default(),
    );
    let delta = metric("t", "", SUM, &[number(1, &[]), number(2, &[])], &[(2, 1)]);
    let (_, refused) = say(&request(&[], &delta), &OtlpLimits::default());
    let mut out = Vec::new();
    put_response(&mut out, &taken.unwrap());
    assert_eq!(out, b"");
    put_response(&mut out, &refused.unwrap());
    let message = "not taken: 2 data points: delta temporality (configure cumulative)";
    let expected = fields(|out| {
        put_message(out, 1, |out| {
            put_number(out, 1, 2);
            put_bytes(out, 2, message.as_bytes());
        });
    });
    assert_eq!(out, expected);
    for (content_type, expected) in [
        ("application/x-protobuf", true),
        ("Application/X-Protobuf; charset=x", true),
        ("application/json", false),
        ("", false),
    ] {
        assert_eq!(is_protobuf(content_type), expected, "{content_type}");
    }
}

#[test]
fn a_message_that_is_cut_is_refused() {
    let point = histogram(&[1.0], &[1, 2], Some(1.0));
    let metric = metric("t", "s", HISTOGRAM, &[point], &[(2, 2)]);
    let message = request(&[("service.name", "a"), ("x", "y")], &metric);
    assert_eq!(lines(&message).len(), 5);
    for end in 1..message.len() {
        let (_, counts) = say(&message[..end], &OtlpLimits::default());
        assert_eq!(counts, Err(BadOtlp), "{end}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end(bytes: Vec<u8>, resource: Vec<u8>, point: Vec<u8>, kind in 5u64..12) {
        for message in [
            bytes,
            request(&[("service.name", "a")], &metric("t", "", kind, &[point], &[(2, 2)])),
            fields(|out| put_message(out, 1, |out| put_bytes(out, 1, &resource))),
        ] {
            let (lines, _) = say(&message, &OtlpLimits::default());
            prop_assert!(lines.len() <= message.len() + 1);
        }
    }

    #[test]
    fn attributes_come_back(attributes in prop::collection::btree_map("[a-z]{1,4}", "\\PC{1,20}", 0..8), value: i32) {
        let encoded: Vec<(&str, Vec<u8>)> = attributes.iter().map(|(key, value)| (key.as_str(), text(value))).collect();
        let message = request(&[], &metric("t", "", GAUGE, &[number(value.into(), &encoded)], &[]));
        let mut found = Vec::new();
        let counts = read_metrics(&message, &OtlpLimits::default(), &mut |sample: &OtlpSample| {
            assert_eq!(sample.value, f64::from(value));
            found = sample.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        });
        prop_assert_eq!(counts.map(|counts| counts.points), Ok(1));
        let named = ("__name__".to_owned(), "t".to_owned());
        let expected: Vec<_> = [named].into_iter().chain(attributes).collect();
        prop_assert_eq!(found, expected);
    }
}
