//! Remote write: any bytes as a block and as a message of either version; series that are read are written, and read
//! again as the same series.

use super::statsd::pieced;
use crate::remote_write::{
    SeriesMetadata, WriteEncoder, WriteItem, WriteLabel, WriteLimits, WriteReader, WriteSample,
    WriteSeries, WriteVersion, compress, decompress,
};

const LIMITS: WriteLimits = WriteLimits {
    labels: 8,
    label_bytes: 200,
    samples: 100,
    symbols: 100,
};

/// Pieces of messages: heads of fields, and their values.
const PIECES: [&[u8]; 20] = [
    b"\x0a\x1f\x0a\x0e\x0a\x08__name__\x12\x02up\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x02",
    b"\x0a\x10\x0a\x0e\x0a\x08__name__\x12\x02up",
    b"\x0a\x19",
    b"\x0a\x0e\x0a\x08__name__\x12\x02up",
    b"\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x02",
    b"\x1a\x09\x08\x01\x12\x02up\x22\x01h",
    b"\x22\x00",
    b"\x22\x08__name__",
    b"\x22\x02up",
    b"\x2a\x08\x0a\x02\x01\x02\x12\x02\x10\x01",
    b"\x2a\x06\x0a\x04\x01\x02\x03\x02",
    b"\x2a\x0c",
    b"\x2a\x04\x08\x01\x18\x02",
    b"\x0a\x02\x02\x01",
    b"\x0b\x0c",
    b"\x80",
    b"\xff",
    b"\x00",
    b"\x12\x00",
    b"\x0a\x00",
];

/// Any bytes as what a sender sends.
pub fn fuzz_remote_write(input: &[u8]) {
    let mut message = Vec::new();
    if decompress(input, 1 << 16, &mut message).is_ok() {
        assert!(message.len() <= 1 << 16, "a limit");
        read_both(&message);
    }
    read_both(input);
    read_both(&pieced(input, &PIECES));
}

fn read_both(message: &[u8]) {
    for version in [WriteVersion::V1, WriteVersion::V2] {
        read(version, message);
    }
}

fn read(version: WriteVersion, message: &[u8]) {
    let Ok(mut reader) = WriteReader::new(version, message, LIMITS) else {
        return;
    };
    let (mut samples, mut items) = (0, 0);
    while let Ok(Some(item)) = reader.read() {
        items += 1;
        assert!(items <= message.len(), "more series than bytes");
        if let WriteItem::Series(series) = item {
            samples += series.samples.len();
            look(&series);
            comes_back(version, &series);
        }
    }
    assert!(samples <= LIMITS.samples, "too many samples");
    assert_eq!(reader.read(), Ok(None), "more behind the end");
}

fn look(series: &WriteSeries) {
    let labels = series.labels;
    assert!(labels.len() <= LIMITS.labels, "too many labels");
    assert!(labels.is_sorted_by(|a, b| a.name < b.name), "an order");
    assert!(labels.iter().any(|label| label.name == "__name__"));
    assert!(
        labels
            .iter()
            .all(|label| !label.name.is_empty() && !label.value.is_empty())
    );
}

fn comes_back(version: WriteVersion, series: &WriteSeries) {
    // In 2.0 such a series is none without its exemplars.
    if series.samples.is_empty() {
        return;
    }
    let (mut encoder, mut message, mut block) =
        (WriteEncoder::new(version), Vec::new(), Vec::new());
    encoder.push(series.labels, series.samples, series.metadata.as_ref());
    let size = encoder.size_bytes();
    encoder.finish(&mut message);
    assert!((size..=size + 2).contains(&message.len()), "a size");
    assert_eq!(compress(&message, &mut block), Ok(()));
    let mut again = Vec::new();
    assert_eq!(decompress(&block, message.len(), &mut again), Ok(()));
    assert_eq!(again, message, "a block changed");
    let reader = WriteReader::new(version, &again, LIMITS);
    let mut reader = reader.unwrap_or_else(|bad| unreachable!("BUG: {bad}"));
    match reader.read() {
        Ok(Some(WriteItem::Series(read))) => assert_eq!(of(&read), of(series), "a series changed"),
        other => unreachable!("BUG: {other:?}"),
    }
}

type Parts<'a> = (
    Vec<WriteLabel<'a>>,
    Vec<(i64, u64)>,
    Option<SeriesMetadata<'a>>,
);

/// NaN is not itself, but its bits are; 1.0 sends no created timestamps.
fn of<'a>(series: &WriteSeries<'_, 'a>) -> Parts<'a> {
    let samples = series.samples.iter();
    let samples = samples.map(|sample: &WriteSample| (sample.t_ms, sample.value.to_bits()));
    (series.labels.to_vec(), samples.collect(), series.metadata)
}
