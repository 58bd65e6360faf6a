//! Messages of both versions: they come back, rules are kept, and any bytes end.

use proptest::prelude::*;

use super::*;
use crate::protobuf::{put_bytes, put_double, put_message, put_number};

const LIMITS: WriteLimits = WriteLimits {
    labels: 4,
    label_bytes: 100,
    samples: 6,
    symbols: 20,
};

fn label<'a>(name: &'a str, value: &'a str) -> WriteLabel<'a> {
    WriteLabel { name, value }
}

/// A message as lines, and the counts.
fn say(version: WriteVersion, message: &[u8], limits: WriteLimits) -> (Vec<String>, WriteCounts) {
    let mut lines = Vec::new();
    let mut reader = match WriteReader::new(version, message, limits) {
        Ok(reader) => reader,
        Err(bad) => return (vec![bad.to_string()], WriteCounts::default()),
    };
    loop {
        match reader.read() {
            Ok(None) => return (lines, reader.counts()),
            Ok(Some(item)) => lines.push(say_item(&item)),
            Err(bad) => {
                lines.push(bad.to_string());
                assert_eq!(reader.read(), Ok(None), "more behind an error");
                return (lines, reader.counts());
            }
        }
    }
}

fn say_item(item: &WriteItem) -> String {
    let said = |metadata: &SeriesMetadata| {
        let word = metadata.metric_type.word();
        format!(" {word} {:?} {:?}", metadata.help, metadata.unit)
    };
    match item {
        WriteItem::Metadata(family) => format!("{}{}", family.family, said(&family.metadata)),
        WriteItem::Refused { why, samples, .. } => format!("refused {samples}: {why}"),
        WriteItem::Series(series) => {
            let labels = series.labels.iter();
            let labels: Vec<_> = labels.map(|l| format!("{}={}", l.name, l.value)).collect();
            let mut text = labels.join(",");
            for sample in series.samples {
                text += &format!(" {}@{}", sample.value, sample.t_ms);
                text += &sample.created_ms.map_or(String::new(), |t| format!("<{t}"));
            }
            text + &series.metadata.as_ref().map_or(String::new(), said)
        }
    }
}

/// A series of 1.0 by its labels, with one sample of 1 at 2.
fn v1(labels: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, 1, |out| {
        for (name, value) in labels {
            put_message(out, 1, |out| {
                put_bytes(out, 1, name);
                put_bytes(out, 2, value);
            });
        }
        put_message(out, 2, |out| {
            put_double(out, 1, 1.0);
            put_number(out, 2, 2);
        });
    });
    out
}

/// A message of 2.0 with these symbols, and one series by its references, with one sample of 1 at 2.
fn v2(symbols: &[&[u8]], references: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for symbol in symbols {
        put_bytes(&mut out, 4, symbol);
    }
    put_message(&mut out, 5, |out| {
        for &reference in references {
            put_number(out, 1, reference);
        }
        put_message(out, 2, |out| {
            put_double(out, 1, 1.0);
            put_number(out, 2, 2);
        });
    });
    out
}

#[test]
fn labels_of_1_0_keep_the_rules() {
    const LONG: [u8; 93] = [b'v'; 93];
    const LONGEST: &[u8] = &[b'v'; 92];
    type Pairs = &'static [(&'static [u8], &'static [u8])];
    let table: &[(Pairs, &str)] = &[
        (&[(b"__name__", b"up")], "__name__=up 1@2"),
        (&[(b"__name__", b"up"), (b"a", b"b")], "__name__=up,a=b 1@2"),
        // Prometheus sorts, and so do we.
        (
            &[(b"b", b"2"), (b"__name__", b"up"), (b"a", b"1")],
            "__name__=up,a=1,b=2 1@2",
        ),
        (&[(b"__name__", b"up"), (b"a", b"")], "__name__=up 1@2"),
        (
            &[(b"__name__", b"\xc3\xbcp"), (b"a.b", b"\0")],
            "__name__=\u{fc}p,a.b=\0 1@2",
        ),
        (&[], "refused 1: no label __name__"),
        (&[(b"a", b"b")], "refused 1: no label __name__"),
        (&[(b"__name__", b"")], "refused 1: no label __name__"),
        (
            &[(b"", b"x"), (b"__name__", b"up")],
            "refused 1: a label without a name",
        ),
        (
            &[(b"__name__", b"up"), (b"a", b"1"), (b"a", b"2")],
            "refused 1: a label comes twice",
        ),
        (
            &[(b"a", b"1"), (b"__name__", b"up"), (b"a", b"2")],
            "refused 1: a label comes twice",
        ),
        (
            &[(b"__name__", b"\xff")],
            "refused 1: a label that is not UTF-8",
        ),
        (
            &[(b"__name__", b"up"), (b"\xc3", b"x")],
            "refused 1: a label that is not UTF-8",
        ),
        (
            &[
                (b"__name__", b"u"),
                (b"a", b"1"),
                (b"b", b"2"),
                (b"c", b"3"),
                (b"d", b"4"),
            ],
            "refused 1: too many labels",
        ),
        (
            &[(b"__name__", &LONG)],
            "refused 1: labels of too many bytes",
        ),
        (&[(b"__name__", LONGEST)], ""),
    ];
    for (labels, expected) in table {
        let (lines, counts) = say(WriteVersion::V1, &v1(labels), LIMITS);
        assert_eq!(lines.len(), 1, "{expected}");
        assert!(
            lines[0].starts_with(expected),
            "{} for {expected}",
            lines[0]
        );
        let refused = u64::from(lines[0].starts_with("refused"));
        assert_eq!(
            (counts.refused_series, counts.refused_samples),
            (refused, refused)
        );
        assert_eq!((counts.series, counts.samples), (1 - refused, 1 - refused));
    }
    let (_, counts) = say(
        WriteVersion::V1,
        &v1(&[(b"b", b"2"), (b"__name__", b"up")]),
        LIMITS,
    );
    assert_eq!(counts.unsorted, 1);
}

#[test]
fn references_of_2_0_are_within_the_table() {
    let symbols: &[&[u8]] = &[b"", b"__name__", b"up", b"a", b"b", b"\xff"];
    let table: &[(&[u64], &str)] = &[
        (&[1, 2], "__name__=up 1@2"),
        (&[1, 2, 3, 4], "__name__=up,a=b 1@2"),
        (&[3, 4, 1, 2], "__name__=up,a=b 1@2"),
        (&[1, 2, 3, 0], "__name__=up 1@2"),
        (&[], "refused 1: no label __name__"),
        (&[1, 2, 0, 4], "refused 1: a label without a name"),
        (&[1, 2, 3], "refused 1: a label's name without a value"),
        (
            &[1, 6],
            "refused 1: a reference beyond the table of symbols",
        ),
        (
            &[1, u64::MAX],
            "refused 1: a reference beyond the table of symbols",
        ),
        (&[1, 2, 5, 4], "refused 1: a label that is not UTF-8"),
        (&[1, 2, 3, 4, 3, 2], "refused 1: a label comes twice"),
    ];
    for (references, expected) in table {
        let (lines, _) = say(WriteVersion::V2, &v2(symbols, references), LIMITS);
        assert_eq!(lines, [*expected], "{references:?}");
    }
    // Symbols behind the series count as well.
    let mut swapped = v2(&[], &[1, 2]);
    for symbol in symbols {
        put_bytes(&mut swapped, 4, symbol);
    }
    let (lines, _) = say(WriteVersion::V2, &swapped, LIMITS);
    assert_eq!(lines, ["__name__=up 1@2"]);
    let (lines, _) = say(WriteVersion::V2, &v2(&[&b"x"[..]; 21], &[]), LIMITS);
    assert_eq!(lines, ["too many symbols in one message"]);
}

#[test]
fn a_series_of_2_0_has_something() {
    for (field, expected) in [
        (3, "__name__=up gauge \"\" \"\""),
        (4, "__name__=up gauge \"\" \"\""),
        (7, "refused 0: neither samples nor histograms"),
    ] {
        let mut message = Vec::new();
        for symbol in ["", "__name__", "up"] {
            put_bytes(&mut message, 4, symbol.as_bytes());
        }
        put_message(&mut message, 5, |out| {
            put_bytes(out, 1, b"\x01\x02");
            put_bytes(out, field, b"");
            put_bytes(out, 5, b"\x08\x02\x18\x00");
        });
        let (lines, counts) = say(WriteVersion::V2, &message, LIMITS);
        assert_eq!(lines, [expected]);
        assert_eq!(counts.histograms, u64::from(field == 3));
        assert_eq!(counts.exemplars, u64::from(field == 4));
    }
    // A metric's help beyond the table.
    let mut message = v2(&[b"", b"__name__", b"up"], &[1, 2]);
    put_message(&mut message, 5, |out| {
        put_bytes(out, 1, b"\x01\x02");
        put_bytes(out, 2, b"");
        put_bytes(out, 5, b"\x18\x09");
    });
    let (lines, _) = say(WriteVersion::V2, &message, LIMITS);
    assert_eq!(
        lines[1],
        "refused 1: a reference beyond the table of symbols"
    );
}

#[test]
fn samples_have_a_limit_by_message() {
    let mut message = Vec::new();
    for _ in 0..7 {
        message.extend(v1(&[(b"__name__", b"up")]));
    }
    let (lines, counts) = say(WriteVersion::V1, &message, LIMITS);
    assert_eq!((lines.len(), counts.samples), (7, 6));
    assert_eq!(lines[6], "too many samples in one message");
}

#[test]
fn unknown_fields_are_passed_over() {
    let mut message = b"\x10\x05\x7a\x01x".to_vec();
    put_message(&mut message, 1, |out| {
        out.extend_from_slice(b"\x2a\x00\x33\x34\x3d\0\0\0\0");
        put_message(out, 1, |out| {
            put_bytes(out, 1, b"overwritten");
            put_bytes(out, 2, b"up");
            put_bytes(out, 3, b"?");
            put_bytes(out, 1, b"__name__");
        });
        put_message(out, 2, |_| ());
        // Another wire type than the field's makes it unknown.
        put_number(out, 2, 7);
    });
    let (lines, counts) = say(WriteVersion::V1, &message, LIMITS);
    assert_eq!(lines, ["__name__=up 0@0"]);
    assert_eq!(counts.samples, 1);
    // The other version has these fields reserved, so that a message of the wrong one is empty.
    assert_eq!(say(WriteVersion::V2, &message, LIMITS).0, [""; 0]);
    let other = v2(&[b"", b"__name__", b"up"], &[1, 2]);
    assert_eq!(say(WriteVersion::V1, &other, LIMITS).0, [""; 0]);
}

#[test]
fn metadata_of_1_0_stand_alone() {
    let mut encoder = WriteEncoder::new(WriteVersion::V1);
    let metadata = SeriesMetadata {
        metric_type: MetricType::Counter,
        help: "Requests.",
        unit: "",
    };
    encoder.push_family(&FamilyMetadata {
        family: "http_requests",
        metadata,
    });
    encoder.push_family(&FamilyMetadata {
        family: "",
        metadata,
    });
    let mut message = Vec::new();
    encoder.finish(&mut message);
    put_message(&mut message, 3, |out| put_bytes(out, 2, b"\xff"));
    let (lines, counts) = say(WriteVersion::V1, &message, LIMITS);
    assert_eq!(lines, ["http_requests counter \"Requests.\" \"\""]);
    assert_eq!(counts.metadata, 1);
}

#[test]
fn a_message_that_is_cut_is_refused_or_shorter() {
    let (labels, samples) = (
        [label("__name__", "up"), label("job", "x")],
        [sample(1.5, 1_700_000_000_000), sample(f64::NAN, 0)],
    );
    for version in [WriteVersion::V1, WriteVersion::V2] {
        let mut encoder = WriteEncoder::new(version);
        encoder.push(&labels, &samples, None);
        encoder.push(&labels, &samples, None);
        let mut message = Vec::new();
        encoder.finish(&mut message);
        let (whole, _) = say(version, &message, LIMITS);
        assert_eq!(whole.len(), 2);
        let mut cut_short = 0;
        for end in 0..message.len() {
            let (lines, _) = say(version, &message[..end], LIMITS);
            match lines
                .last()
                .is_some_and(|last| last == BadWrite::Malformed.why())
            {
                true => cut_short += 1,
                false => assert!(whole.starts_with(&lines), "{end}: {lines:?}"),
            }
        }
        assert!(
            cut_short > message.len() / 2,
            "{cut_short} of {}",
            message.len()
        );
    }
}

#[test]
fn blocks_have_limits() {
    let (mut block, mut out) = (Vec::new(), vec![1]);
    let message = [b'x'; 1000];
    compress(&message, &mut block).unwrap();
    assert_eq!(decompress(&block, 1000, &mut out), Ok(()));
    assert_eq!(out, message);
    assert_eq!(decompress(&block, 999, &mut out), Err(BadSnappy::Size));
    for end in 0..block.len() {
        assert_eq!(
            decompress(&block[..end], 1000, &mut out),
            Err(BadSnappy::Malformed),
            "{end}"
        );
        assert!(out.is_empty());
    }
    // A length that so few bytes cannot have takes no memory.
    let mut out = Vec::new();
    let lie = b"\xff\xff\xff\x7f\x00x";
    assert_eq!(
        decompress(lie, 1 << 30, &mut out),
        Err(BadSnappy::Malformed)
    );
    assert_eq!(out.capacity(), 0);
}

fn sample(value: f64, t_ms: i64) -> WriteSample {
    WriteSample {
        t_ms,
        value,
        created_ms: None,
    }
}

type Made = (
    std::collections::BTreeMap<String, String>,
    Vec<(u64, i64, Option<i64>)>,
    u8,
);

fn made() -> impl Strategy<Value = Vec<Made>> {
    let labels = prop::collection::btree_map("[a-c\u{e4}]{1,3}", "[a-z\\PC]{1,140}", 0..6);
    let created = prop::option::of(any::<i64>().prop_filter("0 means none", |t| *t != 0));
    let samples = prop::collection::vec((any::<u64>(), any::<i64>(), created), 1..5);
    prop::collection::vec((labels, samples, 0u8..8), 0..5)
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(made in made()) {
        for version in [WriteVersion::V1, WriteVersion::V2] {
            let (mut encoder, mut message, mut block) = (WriteEncoder::new(version), Vec::new(), Vec::new());
            let series: Vec<(Vec<WriteLabel>, Vec<WriteSample>, Option<SeriesMetadata>)> = made
                .iter()
                .map(|(labels, samples, number)| {
                    let labels = labels.iter().map(|(name, value)| label(name, value));
                    let labels = [label("__name__", "metric")].into_iter().chain(labels).collect();
                    let samples = samples.iter().map(|&(bits, t_ms, created_ms)| WriteSample {
                        t_ms,
                        value: f64::from_bits(bits),
                        created_ms: created_ms.filter(|_| version == WriteVersion::V2),
                    });
                    let metadata = (version == WriteVersion::V2).then(|| SeriesMetadata {
                        metric_type: MetricType::of_number(u64::from(*number)),
                        help: "Help.",
                        unit: "",
                    });
                    (labels, samples.collect(), metadata)
                })
                .collect();
            for (labels, samples, metadata) in &series {
                encoder.push(labels, samples, metadata.as_ref());
            }
            encoder.finish(&mut message);
            compress(&message, &mut block).unwrap();
            let mut unpacked = Vec::new();
            prop_assert_eq!(decompress(&block, message.len(), &mut unpacked), Ok(()));
            prop_assert_eq!(&unpacked, &message);
            let mut reader = WriteReader::new(version, &unpacked, WriteLimits::default()).unwrap();
            for (labels, samples, metadata) in &series {
                let item = reader.read().unwrap();
                let Some(WriteItem::Series(found)) = item else {
                    return Err(TestCaseError::fail(format!("{item:?}")));
                };
                prop_assert_eq!(found.labels, &labels[..]);
                prop_assert_eq!(&found.metadata, metadata);
                // NaN is not itself, but its bits are.
                let bits = |samples: &[WriteSample]| {
                    let samples = samples.iter();
                    samples.map(|s| (s.value.to_bits(), s.t_ms, s.created_ms)).collect::<Vec<_>>()
                };
                prop_assert_eq!(bits(found.samples), bits(samples));
            }
            prop_assert_eq!(reader.read(), Ok(None));
            prop_assert_eq!(reader.counts().unsorted, 0);
        }
    }

    #[test]
    fn any_bytes_end(bytes: Vec<u8>) {
        let _ = decompress(&bytes, 1 << 20, &mut Vec::new());
        for version in [WriteVersion::V1, WriteVersion::V2] {
            let (lines, _) = say(version, &bytes, WriteLimits::default());
            prop_assert!(lines.len() <= bytes.len() + 1);
        }
    }
}
