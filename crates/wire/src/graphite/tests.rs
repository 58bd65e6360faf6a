//! Lines with the exact points they give; any bytes; points read back.

use proptest::prelude::*;

use super::*;

/// A point as text: path, tags, value and time.
fn say(found: Result<GraphiteLine, BadPoint>) -> String {
    match found {
        Ok(GraphiteLine::NotANumber) => "nan".to_string(),
        Err(bad) => bad.why().to_string(),
        Ok(GraphiteLine::Point(point)) => {
            let mut text = point.path.escape_ascii().to_string();
            for (key, value) in point.tags.iter() {
                text += &format!(" {}={}", key.escape_ascii(), value.escape_ascii());
            }
            let time = point.time.map(|time| format!(" at {time}"));
            text + &format!(" is {}{}", point.value, time.unwrap_or_default())
        }
    }
}

fn all(text: &[u8]) -> Vec<String> {
    Points::of(text).map(say).collect()
}

#[test]
fn lines_are_points() {
    let table: &[(&[u8], &[&str])] = &[
        (b"", &[]),
        (b"\n \t\r\n\n", &[]),
        (b"a.b 1 1700000000\n", &["a.b is 1 at 1700000000"]),
        (b"a.b 1 1700000000", &["a.b is 1 at 1700000000"]),
        (b"a 1 2\r\nb 3 4\r\n", &["a is 1 at 2", "b is 3 at 4"]),
        (b"\t a \t -1.5e3 \x0b 0 \x1f\n", &["a is -1500 at 0"]),
        (b"a 1 1700000000.25\n", &["a is 1 at 1700000000.25"]),
        (b"a 1 1.7e9\n", &["a is 1 at 1700000000"]),
        (
            b"a 1 -1\na 2 -1.0\na 3 -1.5\n",
            &["a is 1", "a is 2", "a is 3"],
        ),
        (b"a 1 99999999999\n", &["a is 1 at 99999999999"]),
        (b"a;k=v;k2=v2=x 1 2\n", &["a k=v k2=v2=x is 1 at 2"]),
        (b"a;b=1;a=2;b=3 1 2\n", &["a b=1 a=2 b=3 is 1 at 2"]),
        (
            b"\xff\x00;\xfe=\x01 1 2\n",
            &["\\xff\\x00 \\xfe=\\x01 is 1 at 2"],
        ),
        (
            b"a nan 2\na -NaN -1\nb 1 2\n",
            &["nan", "nan", "b is 1 at 2"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(all(text), *expected, "{}", text.escape_ascii());
    }
}

#[test]
fn bad_lines_have_reasons() {
    let long = |count: usize| [b"a".repeat(count), b" 1 2".to_vec()].concat();
    let tags = |tags: String| format!("a{tags} 1 2").into_bytes();
    for (line, bad) in [
        (b"a".to_vec(), BadPoint::Fields),
        (b"a 1".to_vec(), BadPoint::Fields),
        (b"a 1 2 3".to_vec(), BadPoint::Fields),
        (b"a:1|c".to_vec(), BadPoint::Fields),
        (b";k=v 1 2".to_vec(), BadPoint::NoPath),
        (long(PATH_MAX + 1), BadPoint::PathLength),
        (long(LINE_MAX + 1), BadPoint::LineLength),
        (b"a x 2".to_vec(), BadPoint::Value),
        (b"a 1_0 2".to_vec(), BadPoint::Value),
        (b"a 0x1 2".to_vec(), BadPoint::Value),
        (b"a inf 2".to_vec(), BadPoint::Infinite),
        (b"a -1e999 2".to_vec(), BadPoint::Infinite),
        (b"a 1 x".to_vec(), BadPoint::Time),
        (b"a 1 N".to_vec(), BadPoint::Time),
        (b"a 1 nan".to_vec(), BadPoint::Time),
        (b"a 1 -2".to_vec(), BadPoint::Time),
        (b"a 1 -0.5".to_vec(), BadPoint::Time),
        (b"a 1 1700000000000".to_vec(), BadPoint::Time),
        (b"a nan x".to_vec(), BadPoint::Time),
        (b"a; 1 2".to_vec(), BadPoint::Tag),
        (b"a;k 1 2".to_vec(), BadPoint::Tag),
        (b"a;k= 1 2".to_vec(), BadPoint::Tag),
        (b"a;=v 1 2".to_vec(), BadPoint::Tag),
        (b"a;k=v; 1 2".to_vec(), BadPoint::Tag),
        (b"a;k=v;;l=w 1 2".to_vec(), BadPoint::Tag),
        (b"a;k!=v 1 2".to_vec(), BadPoint::Tag),
        (b"a;^k=v 1 2".to_vec(), BadPoint::Tag),
        (b"a;k=~v 1 2".to_vec(), BadPoint::Tag),
        (tags(";k=v".repeat(TAGS_MAX + 1)), BadPoint::TagCount),
        (
            tags(format!(";k={}", "v".repeat(TAG_MAX))),
            BadPoint::TagLength,
        ),
    ] {
        // A bad line does not affect its neighbours.
        let text = [b"x 1 2\n", line.as_slice(), b"\ny 3 4\n"].concat();
        let mut points = Points::of(&text);
        assert_eq!(points.next().map(say).as_deref(), Some("x is 1 at 2"));
        assert_eq!(points.next(), Some(Err(bad)), "{}", line.escape_ascii());
        assert_eq!(points.line(), line);
        assert_eq!(points.next().map(say).as_deref(), Some("y is 3 at 4"));
        assert_eq!(points.next(), None);
    }
    assert!(Points::of(&long(PATH_MAX)).all(|found| found.is_ok()));
    assert!(Points::of(&tags(";k=v".repeat(TAGS_MAX))).all(|found| found.is_ok()));
}

#[test]
fn faults_are_in_order() {
    for (at, bad) in BadPoint::ALL.into_iter().enumerate() {
        assert_eq!(bad as usize, at);
    }
    assert!(BadPoint::LineLength.why().contains(&LINE_MAX.to_string()));
    assert!(BadPoint::PathLength.why().contains(&PATH_MAX.to_string()));
    assert!(BadPoint::TagCount.why().contains(&TAGS_MAX.to_string()));
    assert!(BadPoint::TagLength.why().contains(&TAG_MAX.to_string()));
}

#[test]
fn a_line_cut_off_anywhere_is_no_panic() {
    let line = b"a.b;k=v;l=w -1.25e3 1700000000.5\r\n";
    for end in 0..=line.len() {
        assert!(Points::of(&line[..end]).count() <= 1);
    }
}

fn tag() -> impl Strategy<Value = String> {
    "[^\\s\\x1c-\\x1f;!^=]{1,9}=[^\\s\\x1c-\\x1f;~][^\\s\\x1c-\\x1f;]{0,9}"
}

proptest! {
    #[test]
    fn any_bytes_are_read(text in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Points::of(&text).count() <= text.len());
    }

    #[test]
    fn nearly_right_lines_are_read(text in "([ab.;=0-9e \t\r-]{0,20}\n?){0,9}") {
        prop_assert!(Points::of(text.as_bytes()).count() <= text.len());
    }

    #[test]
    fn points_come_back(
        path in "[^\\s\\x1c-\\x1f;]{1,30}",
        tags in prop::collection::vec(tag(), 0..6),
        value in any::<f64>().prop_filter("finite", |value| value.is_finite()),
        time in prop::option::of(0.0..99_999_999_999.0f64),
    ) {
        let tags = tags.join(";");
        let point = Point {
            path: path.as_bytes(),
            tags: Tags::of_graphite(tags.as_bytes()).unwrap(),
            value,
            time,
        };
        let mut line = Vec::new();
        put_point(&mut line, &point);
        let read: Vec<_> = Points::of(&line).collect();
        prop_assert_eq!(read, [Ok(GraphiteLine::Point(point))]);
    }
}
