//! Metrics that are scraped: any bytes as a text of either format; a sample that is read is written, and read again as
//! the same sample.

use super::statsd::pieced;
use crate::exposition_text::{
    ExposedLabel, ExposedLine, ExposedSample, ExpositionFormat, ExpositionReader, LABELS_MAX,
    LINE_MAX,
};

/// Pieces of lines.
const PIECES: [&[u8]; 24] = [
    b"a",
    b"b_total",
    b"{",
    b"}",
    b"=",
    b"\"",
    b"\"c\"",
    b"a=\"b\"",
    b",",
    b"\\",
    b"n",
    b" ",
    b" ",
    b"\t",
    b"\n",
    b"\n",
    b"# ",
    b"HELP ",
    b"TYPE ",
    b"UNIT ",
    b" counter",
    b"1",
    b"-2.5",
    b"# EOF",
];

/// Any bytes as the answer to a scrape.
pub fn fuzz_exposition_text(input: &[u8]) {
    for format in [ExpositionFormat::Prometheus, ExpositionFormat::OpenMetrics] {
        read(format, input);
        let pieces = pieced(input, &PIECES);
        for begin in [&b""[..], b"a{a=\"b\",", b"a{} 1 ", b"# "] {
            read(format, &[begin, &pieces].concat());
        }
    }
}

fn read(format: ExpositionFormat, text: &[u8]) {
    let mut reader = ExpositionReader::new(format, text);
    let mut lines = 0;
    while let Ok(Some(line)) = reader.read() {
        lines += 1;
        assert!(lines <= text.len(), "more lines than bytes");
        if let ExposedLine::Sample(sample) = line {
            look(&sample);
            comes_back(&sample);
        }
    }
    assert_eq!(reader.read(), Ok(None), "more behind the end");
}

fn look(sample: &ExposedSample) {
    assert!(sample.series.len() <= LINE_MAX, "a line");
    assert!(!sample.name.text().is_empty(), "a name");
    assert!(sample.labels.len() <= LABELS_MAX, "too many labels");
    assert!(
        sample
            .labels
            .iter()
            .all(|label| !label.name.text().is_empty())
    );
    assert!(!sample.value.is_nan() || sample.value.to_bits() == f64::NAN.to_bits());
}

/// A sample's series begins a line as it is.
fn comes_back(sample: &ExposedSample) {
    let time = sample.t_ms.map_or(String::new(), |t_ms| format!(" {t_ms}"));
    let line = format!("{} {:?}{time}", sample.series, sample.value);
    if line.len() > LINE_MAX {
        return;
    }
    let mut again = ExpositionReader::new(ExpositionFormat::Prometheus, line.as_bytes());
    match again.read() {
        Ok(Some(ExposedLine::Sample(read))) => {
            assert_eq!(of(&read), of(sample), "a sample changed")
        }
        other => unreachable!("BUG: {other:?}"),
    }
}

type Parts<'a> = (&'a str, String, Vec<ExposedLabel<'a>>, u64, Option<i64>);

fn of<'a>(sample: &ExposedSample<'_, 'a>) -> Parts<'a> {
    let name = sample.name.text().into_owned();
    (
        sample.series,
        name,
        sample.labels.to_vec(),
        sample.value.to_bits(),
        sample.t_ms,
    )
}
