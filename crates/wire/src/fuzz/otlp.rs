//! OTLP: any bytes as a request. Samples have sorted labels with usable names, and are as many as the count says.

use super::statsd::pieced;
use crate::otlp::response::put_response;
use crate::otlp::{OtlpCounts, OtlpLimits, OtlpSample, read_metrics};

const LIMITS: OtlpLimits = OtlpLimits {
    attributes: 4,
    attribute_bytes: 60,
    buckets: 4,
};

/// Bodies of points, of attributes and of values; the function below puts them into messages.
const PIECES: [&[u8]; 22] = [
    b"\x19\x00\x94\x35\x77\0\0\0\0",
    b"\x11\x00\xca\x9a\x3b\0\0\0\0",
    b"\x21\0\0\0\0\0\0\xf0\x3f",
    b"\x31\x05\0\0\0\0\0\0\0",
    b"\x29\0\0\0\0\0\0\xf0\x3f",
    b"\x31\0\0\0\0\0\0\xf0\x3f",
    b"\x39\0\0\0\0\0\0\xf0\x3f",
    b"\x39\0\0\0\0\0\0\0\x40",
    b"\x32\x08\x05\0\0\0\0\0\0\0",
    b"\x32\x12\x09\0\0\0\0\0\0\xe0\x3f\x11\0\0\0\0\0\0\xf0\x3f",
    b"\x3a\x08\x0a\x01a\x12\x03\x0a\x01b",
    b"\x4a\x08\x0a\x01a\x12\x03\x0a\x01c",
    b"\x3a\x07\x0a\x01.\x12\x02\x18\x07",
    b"\x3a\x0d\x0a\x02le\x12\x07\x2a\x05\x0a\x03\x0a\x01x",
    b"\x3a\x04\x0a\x02__",
    b"\x2a\x00",
    b"\x40\x01",
    b"\x50\x01",
    b"\x10\x02",
    b"\x18\x01",
    b"\xff",
    b"\x0a\x02",
];

/// Any bytes as what a program pushes.
pub fn fuzz_otlp(input: &[u8]) {
    read(input);
    let (&mode, rest) = input.split_first().unwrap_or((&0, &[]));
    // Most points have a time, and a number that is a value or a count of a bucket.
    let begin: &[u8] = match mode < 200 {
        true => b"\x19\x00\x94\x35\x77\0\0\0\0\x31\x05\0\0\0\0\0\0\0",
        false => b"",
    };
    let point = [begin, &pieced(rest, &PIECES)].concat();
    // A field of a metric for each kind of points, behind which are its temporality and a monotonic sum.
    let kind = [0x2a, 0x3a, 0x4a, 0x52, 0x5a][usize::from(mode) % 5];
    let points = [&field(0x0a, &point)[..], b"\x10\x02\x18\x01"].concat();
    let metric = [&b"\x0a\x03a.b\x1a\x02ms"[..], &field(kind, &points)].concat();
    let attribute = b"\x0a\x14\x0a\x0cservice.name\x12\x04\x0a\x02sn";
    let resource = [&attribute[..], &field(0x0a, rest.get(..20).unwrap_or(rest))].concat();
    let scope = field(0x12, &field(0x12, &metric));
    let resource_metrics = [field(0x0a, &resource), scope].concat();
    read(&field(0x0a, &resource_metrics));
}

fn field(head: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![head];
    kymo_base::varint::put_bytes(&mut field, bytes);
    field
}

fn read(message: &[u8]) {
    let mut samples = 0;
    let counts = read_metrics(message, &LIMITS, &mut |sample| {
        samples += 1;
        look(sample);
    });
    let Ok(counts) = counts else {
        return;
    };
    assert_eq!(samples, counts.samples, "samples");
    let most = u64::try_from(LIMITS.buckets + 4).unwrap_or_default();
    assert!(counts.samples <= most * counts.points, "samples of points");
    let points = counts.points + counts.refused_points();
    assert!(points <= u64::try_from(message.len()).unwrap_or_default());
    answer(&counts);
}

fn look(sample: &OtlpSample) {
    let labels: Vec<(&str, &str)> = sample.labels.iter().collect();
    assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "an order");
    assert!(labels.len() <= LIMITS.attributes + 4, "too many labels");
    assert!(labels.iter().any(|(name, _)| *name == "__name__"));
    for (name, value) in labels {
        assert!(!value.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
    }
}

fn answer(counts: &OtlpCounts) {
    let mut out = Vec::new();
    put_response(&mut out, counts);
    assert_eq!(out.is_empty(), counts.refused_points() == 0, "an answer");
}
