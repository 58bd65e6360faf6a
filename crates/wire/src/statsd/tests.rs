//! Lines with the exact values they give; any bytes; values read back.

use proptest::prelude::*;

use super::*;

/// A value as text: name, kind, tags, value, rate and time.
fn say(found: Result<SampleStep, BadSample>) -> String {
    let sample = match found {
        Err(bad) => return bad.why().to_string(),
        Ok(SampleStep::Event) => return "event".to_string(),
        Ok(SampleStep::ServiceCheck) => return "service check".to_string(),
        Ok(SampleStep::Sample(sample)) => sample,
    };
    let (name, kind) = (sample.name.escape_ascii(), sample.kind.word());
    let mut text = match sample.value {
        SampleValue::Text(member) => format!("{name} {kind} {}", member.escape_ascii()),
        SampleValue::Number(number) => format!("{name} {kind} {number}"),
    };
    if sample.signed {
        text += " signed";
    }
    if sample.rate != 1.0 {
        text += &format!(" @{}", sample.rate);
    }
    for (key, value) in sample.tags.iter() {
        text += &format!(" {}={}", key.escape_ascii(), value.escape_ascii());
    }
    let time = sample.timestamp.map(|seconds| format!(" at {seconds}"));
    text + &time.unwrap_or_default()
}

fn all(text: &[u8]) -> Vec<String> {
    Samples::of(text).map(say).collect()
}

fn check(table: &[(&[u8], &[&str])]) {
    for (text, expected) in table {
        assert_eq!(all(text), *expected, "{}", text.escape_ascii());
    }
}

#[test]
fn etsys_lines_are_values() {
    check(&[
        (b"", &[]),
        (b"\n\r\n\n", &[]),
        (b"gorets:1|c", &["gorets c 1"]),
        (b"gorets:1|c|@0.1\n", &["gorets c 1 @0.1"]),
        (b"glork:320|ms|@0.1\r\n", &["glork ms 320 @0.1"]),
        (
            b"g:333|g\ng:-10|g\ng:+4|g",
            &["g g 333", "g g -10 signed", "g g 4 signed"],
        ),
        (b"u:765|s\nu:a b|s", &["u s 765", "u s a b"]),
        (b"a:1|c:2|c", &["a c 1", "a c 2"]),
        (
            b"a:1|c|@0.5:2|ms:x|s:3|g",
            &["a c 1 @0.5", "a ms 2", "a s x", "a g 3"],
        ),
        (b"a:1|c:2|c|@0.5", &["a c 1", "a c 2 @0.5"]),
        (b"a:1|ms |@1", &["a ms 1"]),
        // A counter without a value adds 1; an empty member is `0`.
        (b"a|c", &["a c 1"]),
        (b"a:|c|@0.5", &["a c 1 @0.5"]),
        (b"a|c:2|g", &["a c 1", "a g 2"]),
        (b"u:|s", &["u s 0"]),
        // Unknown types count as counters, and are reported as unknown.
        (b"a:1|x\na:2|C\na:3|kv", &["a ? 1", "a ? 2", "a ? 3"]),
        (b"a/b c.\xff\x00:1e3|c", &["a/b c.\\xff\\x00 c 1000"]),
    ]);
}

#[test]
fn dogstatsds_lines_are_values() {
    check(&[
        (
            b"a:1|h\na:-1|h\na:2.5|d",
            &["a h 1", "a h -1 signed", "a d 2.5"],
        ),
        (
            b"a:1:2:-3|d|#t:v",
            &["a d 1 t=v", "a d 2 t=v", "a d -3 signed t=v"],
        ),
        (b"a:1::2:|c", &["a c 1", "a c 2"]),
        (b"a:1:2|c:3:4|g", &["a c 1", "a c 2", "a g 3", "a g 4"]),
        (b"u:a:b|s", &["u s a:b"]),
        (b"a:1|c|#", &["a c 1"]),
        (b"a:1|c|#t:v,w,,x:y:z|@0.5", &["a c 1 @0.5 t=v w= x=y:z"]),
        (b"a:1|c|@0.5|#t", &["a c 1 @0.5 t="]),
        (b"a:1|g|T1700000000|c:ab:cd|#t", &["a g 1 t= at 1700000000"]),
        (b"a:1|c|e:x|card:low|new:1||#t", &["a c 1 t="]),
        (b"a:1|c|c:2|@0.5", &["a c 1 @0.5"]),
        // Tags hold for the whole line, also for values before them.
        (b"a:1|c:2|g|#t:v|T5", &["a c 1 t=v at 5", "a g 2 t=v at 5"]),
        (b"a:1|c|#t|@0.5:2|g|#u", &["a c 1 @0.5 u=", "a g 2 u="]),
        (b"a:1|c|@0.5|@0.25|#t|#u|T1|T2", &["a c 1 @0.25 u= at 2"]),
        (b"_e{5,4}:title|text|d:1\na:1|c", &["event", "a c 1"]),
        (b"_sc|name|0|#t\n_sc:1|c", &["service check", "_sc c 1"]),
    ]);
}

#[test]
fn bad_lines_have_reasons() {
    let named = |name: &str| format!("{name}:1|c").into_bytes();
    let tagged = |tags: String| format!("a:1|c|#{tags}").into_bytes();
    for (line, bad) in [
        (named(&"n".repeat(LINE_MAX)), BadSample::LineLength),
        (named(""), BadSample::NoName),
        (b"|c".to_vec(), BadSample::NoName),
        (named(&"n".repeat(NAME_MAX + 1)), BadSample::NameLength),
        (b"a".to_vec(), BadSample::NoType),
        (b"GET / HTTP/1.1".to_vec(), BadSample::NoType),
        (b"a:1".to_vec(), BadSample::NoType),
        (b"a:1|".to_vec(), BadSample::NoType),
        (b"a:1||c".to_vec(), BadSample::NoType),
        (b"a:1| |@0.5".to_vec(), BadSample::NoType),
        (b"a.b 1 1700000000".to_vec(), BadSample::NoType),
        (b"a|g".to_vec(), BadSample::NoValue),
        (b"a:|ms".to_vec(), BadSample::NoValue),
        (b"a|x".to_vec(), BadSample::NoValue),
        (b"a:::|c".to_vec(), BadSample::NoValue),
        (b"a:x|c".to_vec(), BadSample::Number),
        (b"a: 1|c".to_vec(), BadSample::Number),
        (b"a:0x1|g".to_vec(), BadSample::Number),
        (b"a:+-1|g".to_vec(), BadSample::Number),
        (b"a:nan|g".to_vec(), BadSample::NotFinite),
        (b"a:-Infinity|g".to_vec(), BadSample::NotFinite),
        (b"a:1e999|c".to_vec(), BadSample::NotFinite),
        (b"a:-1|ms".to_vec(), BadSample::Negative),
        (b"a:1|c|@".to_vec(), BadSample::Rate),
        (b"a:1|c|@0".to_vec(), BadSample::Rate),
        (b"a:1|c|@-0.5".to_vec(), BadSample::Rate),
        (b"a:1|c|@1.01".to_vec(), BadSample::Rate),
        (b"a:1|c|@nan".to_vec(), BadSample::Rate),
        (b"a:1|g|@x".to_vec(), BadSample::Rate),
        (b"a:1|c|@1e-999".to_vec(), BadSample::Rate),
        (tagged("t,".repeat(TAGS_MAX + 1)), BadSample::TagCount),
        (tagged("t".repeat(TAG_MAX + 1)), BadSample::TagLength),
        (tagged("t:v,:w".to_string()), BadSample::TagKey),
        (b"a:1|c|T".to_vec(), BadSample::Timestamp),
        (b"a:1|c|T0".to_vec(), BadSample::Timestamp),
        (b"a:1|c|T-1".to_vec(), BadSample::Timestamp),
        (b"a:1|c|T1.5".to_vec(), BadSample::Timestamp),
        (b"a:1|c|T1700000000000".to_vec(), BadSample::Timestamp),
    ] {
        // A bad line does not affect its neighbours.
        let text = [b"x:1|c\n", line.as_slice(), b"\ny:2|c\n"].concat();
        let mut samples = Samples::of(&text);
        assert_eq!(samples.next().map(say).as_deref(), Some("x c 1"));
        assert_eq!(samples.next(), Some(Err(bad)), "{}", line.escape_ascii());
        assert_eq!(samples.line(), line);
        assert_eq!(samples.next().map(say).as_deref(), Some("y c 2"));
        assert_eq!(samples.next(), None);
    }
    for line in [
        named(&"n".repeat(NAME_MAX)),
        tagged("t,".repeat(TAGS_MAX)),
        tagged("t".repeat(TAG_MAX)),
    ] {
        assert!(Samples::of(&line).all(|found| found.is_ok()));
    }
}

#[test]
fn a_bad_value_costs_itself_alone() {
    let (number, rate) = (BadSample::Number.why(), BadSample::Rate.why());
    let no_type = BadSample::NoType.why();
    check(&[
        (b"a:1:x:2|c", &["a c 1", number, "a c 2"]),
        (b"a:1|c:x|g:2|g", &["a c 1", number, "a g 2"]),
        (b"a:1|c|@2:2|g", &[rate, "a g 2"]),
        (b"a:1|c:2", &["a c 1", no_type]),
    ]);
}

#[test]
fn faults_are_in_order() {
    for (at, bad) in BadSample::ALL.into_iter().enumerate() {
        assert_eq!(bad as usize, at);
    }
    assert!(BadSample::LineLength.why().contains(&LINE_MAX.to_string()));
    assert!(BadSample::NameLength.why().contains(&NAME_MAX.to_string()));
    assert!(BadSample::TagCount.why().contains(&TAGS_MAX.to_string()));
    assert!(BadSample::TagLength.why().contains(&TAG_MAX.to_string()));
}

#[test]
fn a_line_cut_off_anywhere_is_no_panic() {
    let line = b"a.b:1:-2.5e3|c|@0.5:x|s|#k:v,l|T1700000000|c:id\r\n";
    for end in 0..=line.len() {
        assert!(Samples::of(&line[..end]).count() <= 3);
    }
}

fn kind() -> impl Strategy<Value = SampleKind> {
    prop::sample::select(vec![
        SampleKind::Counter,
        SampleKind::Unknown,
        SampleKind::Gauge,
        SampleKind::Timer,
        SampleKind::Histogram,
        SampleKind::Distribution,
        SampleKind::Set,
    ])
}

proptest! {
    #[test]
    fn any_bytes_are_read(text in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Samples::of(&text).count() <= text.len());
    }

    #[test]
    fn nearly_right_lines_are_read(text in "(a?[:|0-9.e@#T,cgmsd+-]{0,20}\n?){0,9}") {
        prop_assert!(Samples::of(text.as_bytes()).count() <= text.len());
    }

    #[test]
    fn values_come_back(
        name in "[^_:|\n][^:|\n]{0,30}",
        kind in kind(),
        number in any::<f64>().prop_filter("finite", |number| number.is_finite()),
        plus in any::<bool>(),
        member in "[^|\n]{1,30}",
        rate in prop_oneof![Just(1.0), f64::MIN_POSITIVE..1.0],
        tags in prop::collection::vec("[^:,|\r\n]{1,9}(:[^,|\r\n]{1,9})?", 0..6),
        timestamp in prop::option::of(1..=crate::number::SECONDS_MAX),
    ) {
        let number = if kind == SampleKind::Timer { number.abs() } else { number };
        let (value, signed) = match kind {
            SampleKind::Set => (SampleValue::Text(member.as_bytes()), false),
            _ => (SampleValue::Number(number), plus || number.is_sign_negative()),
        };
        let tags = tags.join(",");
        let sample = Sample {
            name: name.as_bytes(),
            tags: Tags::of_statsd(tags.as_bytes()).unwrap(),
            kind,
            value,
            signed,
            rate,
            timestamp,
        };
        let mut line = Vec::new();
        put_sample(&mut line, &sample);
        let read: Vec<_> = Samples::of(&line).collect();
        prop_assert_eq!(read, [Ok(SampleStep::Sample(sample))]);
    }
}
