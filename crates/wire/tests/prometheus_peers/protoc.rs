//! Messages that Python's protobuf library encoded from Prometheus' own schemas, with fields that are not taken as
//! well.

use kymo_wire::remote_write::http::WriteOutcome;
use kymo_wire::remote_write::{
    FamilyMetadata, MetricType, SeriesMetadata, WriteEncoder, WriteLabel, WriteSample, WriteVersion,
};

use super::{hex, written};

#[test]
fn version_1() {
    let (lines, counts) = written(
        WriteVersion::V1,
        &hex(include_str!("../remote_write/v1.hex")),
    );
    let long = format!("{}={}", "z".repeat(130), "v".repeat(200));
    assert_eq!(
        lines,
        [
            format!(
                "__name__=http_requests_total,code=200,path=/\u{e4},{long} 12.5@1700000000000 stale@1700000015000"
            ),
            "__name__=native".to_owned(),
            "__name__=zero 0.0@0 -0.0@-1".to_owned(),
            "http_requests_total: counter \"Requests.\" \"requests\"".to_owned(),
            "state: stateset \"\" \"\"".to_owned(),
        ]
    );
    assert_eq!((counts.series, counts.samples, counts.metadata), (3, 4, 2));
    assert_eq!((counts.histograms, counts.exemplars), (1, 1));
    assert_eq!(WriteOutcome::of_counts(&counts), WriteOutcome::Invalid);
}

#[test]
fn version_2() {
    let (lines, counts) = written(
        WriteVersion::V2,
        &hex(include_str!("../remote_write/v2.hex")),
    );
    assert_eq!(
        lines,
        [
            "__name__=http_requests_total,code=200,s140=s150 12.5@1700000000000<1600000000000 counter \"Requests.\" \"requests\"",
            "__name__=native histogram \"\" \"\"",
            "__name__=native stale@-5",
        ]
    );
    assert_eq!((counts.series, counts.samples), (3, 2));
    assert_eq!((counts.histograms, counts.exemplars), (1, 1));
}

/// A message of two series as a sender makes it.
fn sent(version: WriteVersion) -> Vec<u8> {
    let long = "v".repeat(200);
    let labels = [
        ("__name__", "http_requests_total"),
        ("code", "200"),
        ("path", "/\u{e4}"),
        ("z", long.as_str()),
    ];
    let labels = labels.map(|(name, value)| WriteLabel { name, value });
    let metadata = SeriesMetadata {
        metric_type: MetricType::Counter,
        help: "Requests.",
        unit: "",
    };
    let mut encoder = WriteEncoder::new(version);
    for (labels, value) in [(&labels[..], 12.5), (&labels[..3], 13.5)] {
        let first = WriteSample {
            t_ms: 1_700_000_000_000,
            value,
            created_ms: Some(1_600_000_000_000),
        };
        let second = WriteSample {
            t_ms: -1,
            value: 0.0,
            created_ms: None,
        };
        encoder.push(labels, &[first, second], Some(&metadata));
    }
    encoder.push_family(&FamilyMetadata {
        family: "http_requests_total",
        metadata,
    });
    let mut message = Vec::new();
    encoder.finish(&mut message);
    message
}

#[test]
fn messages_are_encoded_as_protoc_does() {
    for (version, expected) in [
        (
            WriteVersion::V1,
            include_str!("../remote_write/sent_v1.hex"),
        ),
        (
            WriteVersion::V2,
            include_str!("../remote_write/sent_v2.hex"),
        ),
    ] {
        assert_eq!(sent(version), hex(expected), "{version:?}");
    }
}
