use super::*;

fn sample(line: &str) -> Result<(String, f64, i64), BadDumpLine> {
    let DumpedSample {
        labels,
        value,
        time_ms,
    } = dumped_sample(line.as_bytes())?;
    Ok((String::from_utf8_lossy(labels).into_owned(), value, time_ms))
}

fn labels(text: &str) -> Result<Vec<(String, String)>, BadDumpLine> {
    let words = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let found = dumped_labels(text.as_bytes())?.into_iter();
    Ok(found
        .map(|(name, value)| (words(name), words(value)))
        .collect())
}

#[test]
fn lines_of_promtool() {
    for (line, labels, value, time_ms) in [
        (
            "{__name__=\"up\", job=\"node\"} 1 1700000000123",
            "{__name__=\"up\", job=\"node\"}",
            1.0,
            1_700_000_000_123,
        ),
        ("{a=\"}\\\"}\"} 1.25e+06 -5", "{a=\"}\\\"}\"}", 1.25e6, -5),
        ("{} +Inf 0", "{}", f64::INFINITY, 0),
        ("{} -Inf 0", "{}", f64::NEG_INFINITY, 0),
        ("{} 5e-324 0", "{}", 5e-324, 0),
    ] {
        assert_eq!(sample(line), Ok((labels.into(), value, time_ms)), "{line}");
    }
    assert!(sample("{} NaN 7").is_ok_and(|(_, value, _)| value.is_nan()));
}

#[test]
fn lines_that_are_not_taken() {
    use BadDumpLine::{Histogram, Labels, Number, Quotes};
    for (line, why) in [
        ("", Labels),
        ("up 1 1", Labels),
        ("{a=\"b\"", Labels),
        ("{a=\"b", Quotes),
        ("{a=\"b\\", Quotes),
        ("{}", Number),
        ("{} 1", Number),
        ("{} 1 ", Number),
        ("{} 1 1.5", Number),
        ("{} x 1", Number),
        ("{} infinity 1", Number),
        ("{} 1e999 1", Number),
        ("{} 1 9223372036854775808", Number),
        ("{}  1 1", Number),
        ("{} {count:3, sum:1, [-1,1]:3} 1", Histogram),
    ] {
        assert_eq!(sample(line), Err(why), "{line}");
    }
}

#[test]
fn labels_as_go_quotes_them() {
    for (text, expected) in [
        ("{}", &[][..]),
        ("{a=\"b\"}", &[("a", "b")]),
        (
            "{__name__=\"up\", path=\"C:\\\\x\\t\\\"y\\\"\\n\"}",
            &[("__name__", "up"), ("path", "C:\\x\t\"y\"\n")],
        ),
        (
            "{a=\"\\u00e4\\U0001f600\\x7f\"}",
            &[("a", "\u{e4}\u{1f600}\u{7f}")],
        ),
        ("{a=\"x, y={}\"}", &[("a", "x, y={}")]),
        (
            "{\"my.metric\", \"a.b\"=\"c\"}",
            &[("__name__", "my.metric"), ("a.b", "c")],
        ),
    ] {
        let expected = expected
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(labels(text), Ok(expected.collect()), "{text}");
    }
    for text in [
        "",
        "{",
        "a=\"b\"",
        "{a=b}",
        "{a=\"\\q\"}",
        "{a=\"\\x1\"}",
        "{a=\"\\x+1\"}",
        "{a=\"\\ud800\"}",
        "{a=\"b\" }",
        "{a=\"b\", }",
        "{a=\"b\",c=\"d\"}",
    ] {
        assert!(labels(text).is_err(), "{text}");
    }
}

/// No cut of a line is another line, but for digits of the time.
#[test]
fn cut_lines_are_refused() {
    let line = "{__name__=\"up\", job=\"a\\\"b\"} 12.5 1700000000123";
    let whole = line.rfind(' ').unwrap() + 1;
    for end in 0..=whole {
        assert!(sample(&line[..end]).is_err(), "{end}");
    }
    for end in 0..line.len() - 23 {
        assert!(labels(&line[..end]).is_err(), "{end}");
    }
}
