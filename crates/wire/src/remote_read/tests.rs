use proptest::prelude::*;

use super::*;

fn matcher(kind: MatcherKind) -> ReadMatcher<'static> {
    ReadMatcher {
        kind,
        name: "job",
        value: "node",
    }
}

fn query() -> ReadQuery<'static> {
    ReadQuery {
        from_ms: -1,
        thru_ms: 1_795_300_000_000,
        matchers: MatcherKind::ALL.map(matcher).into(),
        function: "rate",
    }
}

fn request(queries: &[ReadQuery], forms: &[ResponseForm]) -> Vec<u8> {
    let mut message = Vec::new();
    put_request(&mut message, queries, forms);
    message
}

#[test]
fn requests_come_back() {
    use ResponseForm::{Chunks, Samples};
    for (forms, form) in [
        (&[][..], Samples),
        (&[Samples], Samples),
        (&[Chunks], Chunks),
        (&[Chunks, Samples], Chunks),
        (&[Samples, Chunks], Samples),
    ] {
        for queries in [vec![], vec![query()], vec![query(), ReadQuery::default()]] {
            let message = request(&queries, forms);
            let read = ReadRequest::of(&message);
            assert_eq!(read, Ok(ReadRequest { queries, form }));
        }
    }
}

/// Debian's Prometheus sends such bytes; older ones do not pack the forms.
#[test]
fn forms_stand_alone_too() {
    for (forms, expected) in [
        (&b"\x10\x01\x10\x00"[..], Ok(ResponseForm::Chunks)),
        (b"\x10\x07\x10\x00", Ok(ResponseForm::Samples)),
        (b"\x12\x02\x07\x01", Ok(ResponseForm::Chunks)),
        (b"\x10\x07", Err(BadRead::Form)),
        (b"\x12\x01\x80", Err(BadRead::Malformed)),
    ] {
        let read = ReadRequest::of(forms).map(|request| request.form);
        assert_eq!(read, expected, "{forms:?}");
    }
}

#[test]
fn requests_have_limits() {
    let many = vec![ReadQuery::default(); 65];
    let matchers = ReadQuery {
        matchers: vec![matcher(MatcherKind::Equal); 65],
        ..ReadQuery::default()
    };
    for (message, expected) in [
        (request(&many, &[]), BadRead::TooMany),
        (request(&[matchers], &[]), BadRead::TooMany),
        (request(&[], &[ResponseForm::Samples; 65]), BadRead::TooMany),
        (b"\x0a\x04\x1a\x02\x08\x04".to_vec(), BadRead::Kind(4)),
        (b"\x0a\x05\x1a\x03\x12\x01\xff".to_vec(), BadRead::Malformed),
        (b"\x0a".to_vec(), BadRead::Malformed),
    ] {
        assert_eq!(ReadRequest::of(&message), Err(expected));
    }
    assert!(ReadRequest::of(&request(&many[..64], &[])).is_ok());
}

#[test]
fn a_request_that_is_cut_is_another_one_or_none() {
    let whole = request(&[query()], &[ResponseForm::Chunks]);
    let read = ReadRequest::of(&whole);
    for end in 0..whole.len() {
        assert_ne!(ReadRequest::of(&whole[..end]), read, "{end}");
    }
}

/// Samples with each kind of step of time and of value.
fn samples() -> Vec<(i64, f64)> {
    let steps = [
        0,
        1000,
        1000,
        1001,
        9192,
        8191,
        73_000,
        65_536,
        600_000,
        524_289,
        1,
        2_000_000_000,
    ];
    let values = [
        1.0,
        1.0,
        2.0,
        2.5,
        -0.0,
        0.0,
        f64::INFINITY,
        1e300,
        3.0,
        3.000_000_1,
        12.0,
        24.0,
    ];
    let mut t_ms = 1_795_300_000_137;
    let pairs = steps.iter().zip(values);
    pairs
        .map(|(step, v)| {
            t_ms += step;
            (t_ms, v)
        })
        .collect()
}

fn chunks(samples: &[(i64, f64)]) -> SeriesChunks {
    let mut chunks = SeriesChunks::default();
    for &(t_ms, v) in samples {
        chunks.push(t_ms, v);
    }
    chunks.finish();
    chunks
}

fn frames(samples: &[(i64, f64)]) -> Vec<u8> {
    let (mut labels, mut out) = (Vec::new(), Vec::new());
    put_labels(&mut labels, [("__name__", "up"), ("job", "node")]);
    put_frames(&mut out, 3, &labels, &chunks(samples));
    out
}

fn bits(samples: &[(i64, f64)]) -> Vec<(i64, u64)> {
    samples
        .iter()
        .map(|(t_ms, v)| (*t_ms, v.to_bits()))
        .collect()
}

/// All samples of an answer, and its number of frames.
fn read_all(mut answer: &[u8]) -> (Vec<(i64, f64)>, usize) {
    let (mut samples, mut count) = (Vec::new(), 0);
    while !answer.is_empty() {
        let series = take_frame(&mut answer).unwrap();
        assert_eq!((series.query, series.labels[1]), (3, ("job", "node")));
        for chunk in series.chunks {
            read_chunk(chunk, &mut samples).unwrap();
        }
        count += 1;
    }
    (samples, count)
}

#[test]
fn a_chunk_has_prometheus_bytes() {
    let mut answer = &frames(&samples())[..];
    let series = take_frame(&mut answer).unwrap();
    assert_eq!(series.chunks, [PROMETHEUS_CHUNK]);
}

#[test]
fn a_long_series_has_several_frames() {
    let value = |n: u32| f64::from(n.wrapping_mul(2_654_435_761)) * 1.1;
    let samples = (0..200_000).map(|n| (i64::from(n) * 1000, value(n)));
    let samples: Vec<(i64, f64)> = samples.collect();
    let answer = frames(&samples);
    let (read, count) = read_all(&answer);
    assert!(
        count > 1 && answer.len() / count <= FRAME_BYTES * 2,
        "{count}"
    );
    assert_eq!(bits(&read), bits(&samples));
    assert!(frames(&[]).is_empty());
}

#[test]
fn a_frame_that_is_cut_or_changed_is_refused() {
    let whole = frames(&samples());
    for end in 0..whole.len() {
        assert_eq!(
            take_frame(&mut &whole[..end]),
            Err(BadFrame::Length),
            "{end}"
        );
    }
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(take_frame(&mut &changed[..]), Err(BadFrame::Checksum));
    let mut long = &b"\x80\x80\x80\x80\x7f\0\0\0\0"[..];
    assert_eq!(take_frame(&mut long), Err(BadFrame::Length));
}

#[test]
fn a_chunk_that_is_cut_is_refused() {
    for end in 0..PROMETHEUS_CHUNK.len() {
        let read = read_chunk(&PROMETHEUS_CHUNK[..end], &mut Vec::new());
        assert_eq!(read, Err(BadChunk), "{end}");
    }
}

#[test]
fn results_are_in_the_order_of_queries() {
    let (mut out, mut labels, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    put_labels(&mut labels, [("a", "b")]);
    put_sample(&mut fields, 5, 0.5);
    let filled = put_result(&mut out, |out| put_series(out, &labels, &fields));
    assert_eq!(filled, Some(()));
    put_result(&mut out, |_| ());
    let series = b"\x0a\x06\x0a\x01a\x12\x01b\x12\x0b\x09\0\0\0\0\0\0\xe0\x3f\x10\x05";
    let expected = [&b"\x0a\x17\x0a\x15"[..], series, b"\x0a\x00"].concat();
    assert_eq!(out, expected);
}

proptest! {
    #[test]
    fn samples_come_back(samples: Vec<(i64, u64)>) {
        let samples: Vec<(i64, f64)> =
            samples.into_iter().map(|(t_ms, v)| (t_ms, f64::from_bits(v))).collect();
        let (read, _) = read_all(&frames(&samples));
        prop_assert_eq!(bits(&read), bits(&samples));
    }

    #[test]
    fn close_samples_come_back(steps: Vec<(u16, i8)>) {
        let mut t_ms = 0;
        let next = |(step, v): (u16, i8)| {
            t_ms += i64::from(step) * 16;
            (t_ms, f64::from(v) / 4.0)
        };
        let samples: Vec<(i64, f64)> = steps.into_iter().map(next).collect();
        let (read, _) = read_all(&frames(&samples));
        prop_assert_eq!(bits(&read), bits(&samples));
    }
}

/// The bytes that Prometheus 3.16's encoder makes of [`samples`].
const PROMETHEUS_CHUNK: &[u8] = &[
    0x00, 0x0c, 0x92, 0x86, 0xc0, 0x83, 0xc0, 0x68, 0x3f, 0xf0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xe8, 0x07, 0x30, 0x97, 0xff, 0xe0, 0x00, 0x76, 0x83, 0x9f, 0xff, 0xc0, 0x76, 0x00, 0x37, 0x82,
    0xf4, 0x00, 0x19, 0xfa, 0x53, 0x3f, 0xf9, 0x45, 0xb1, 0x9f, 0x7e, 0x3f, 0x21, 0xe4, 0x40, 0x03,
    0xac, 0xfe, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x4f, 0x81, 0x8b, 0xcf, 0x8f, 0xf9, 0x0f, 0x22,
    0x00, 0x1d, 0x67, 0xee, 0xd8, 0x41, 0xff, 0x08, 0x35, 0xaf, 0xe5, 0x37, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xfe, 0x00, 0x00, 0x35, 0x6d, 0x00, 0x00, 0x00, 0x6b, 0x5f, 0xca, 0x6f, 0x80, 0x00, 0x00,
    0x00, 0x3b, 0x9a, 0xc9, 0xff, 0xc8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
];
