//! statsd: any bytes as a datagram; writing a value and reading it again must give the same value.

use crate::line_stream::LineStream;
use crate::statsd::{
    LINE_MAX, NAME_MAX, Sample, SampleKind, SampleStep, SampleValue, Samples, TAGS_MAX, put_sample,
};

/// Pieces of lines. Each byte of an input chooses one, so that more inputs pass the first checks.
const PIECES: [&[u8]; 28] = [
    b"a",
    b"b.c",
    b"/",
    b" ",
    b":",
    b":",
    b":",
    b"|",
    b"|",
    b"|",
    b"1",
    b"2.5",
    b"-3",
    b"+4",
    b"1e9",
    b"c",
    b"g",
    b"ms",
    b"s",
    b"h",
    b"d",
    b"@0.5",
    b"@",
    b"#",
    b",",
    b"T1700000000",
    b"_e{",
    b"\n",
];

/// Reads any bytes as a datagram, as a choice of pieces, and as a stream.
pub fn fuzz_statsd(input: &[u8]) {
    read(input);
    read(&pieced(input, &PIECES));
    streamed(input);
}

/// Joins the pieces that the bytes of `input` choose.
pub(super) fn pieced(input: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    let pieces = input
        .iter()
        .map(|&byte| pieces[usize::from(byte) % pieces.len()]);
    pieces.flatten().copied().collect()
}

fn read(text: &[u8]) {
    let mut samples = Samples::of(text);
    let (mut count, mut line) = (0, Vec::new());
    while let Some(found) = samples.next() {
        count += 1;
        assert!(count <= text.len(), "more values than bytes");
        if let Ok(SampleStep::Sample(sample)) = found {
            look(&sample);
            line.clear();
            put_sample(&mut line, &sample);
            comes_back(&sample, &line);
        }
        assert!(!samples.line().is_empty(), "a value without a line");
    }
}

fn look(sample: &Sample) {
    assert!((1..=NAME_MAX).contains(&sample.name.len()), "a name");
    assert!(sample.rate > 0.0 && sample.rate <= 1.0, "a rate");
    assert!(sample.tags.iter().count() <= TAGS_MAX, "too many tags");
    assert!(sample.tags.iter().all(|(key, _)| !key.is_empty()));
    assert!(sample.timestamp != Some(0), "a time of 0");
    match sample.value {
        SampleValue::Number(number) => {
            assert!(number.is_finite() && sample.kind != SampleKind::Set);
            assert!(number >= 0.0 || (sample.signed && sample.kind != SampleKind::Timer));
        }
        SampleValue::Text(member) => {
            assert!(!member.is_empty() && sample.kind == SampleKind::Set);
        }
    }
}

fn comes_back(sample: &Sample, line: &[u8]) {
    // A number written in full can be longer than its original, and the line too long.
    if line.len() > LINE_MAX {
        return;
    }
    let mut again = Samples::of(line);
    let Some(Ok(SampleStep::Sample(read))) = again.next() else {
        unreachable!("BUG: a value of our own is refused")
    };
    assert!(read.tags.iter().eq(sample.tags.iter()), "tags changed");
    let tags = sample.tags;
    assert_eq!(Sample { tags, ..read }, *sample, "a value changed");
    assert!(again.next().is_none(), "a value became two");
}

/// The lines of a stream do not depend on the sizes of the reads.
fn streamed(input: &[u8]) {
    let line_max = usize::from(input.first().copied().unwrap_or_default());
    let (mut whole, mut bitwise) = (LineStream::new(line_max), LineStream::new(line_max));
    let (mut rest, mut kept) = (input, Vec::new());
    for &byte in input {
        kept.push(byte);
        let mut behind = kept.as_slice();
        while let Some(line) = bitwise.take(&mut behind) {
            assert_eq!(whole.take(&mut rest), Some(line), "a line changed");
        }
        assert!(
            behind.len() <= line_max + 1,
            "a line without an end is kept"
        );
        kept = behind.to_vec();
    }
    assert!(whole.take(&mut rest).is_none(), "a line was lost");
}
