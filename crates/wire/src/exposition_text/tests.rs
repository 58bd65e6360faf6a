//! Lines of both formats, exact; texts that are cut; any bytes.

use proptest::prelude::*;

use super::*;

const PROMETHEUS: ExpositionFormat = ExpositionFormat::Prometheus;
const OPEN: ExpositionFormat = ExpositionFormat::OpenMetrics;

/// A text as lines, the last of which may be a fault, and its exemplars.
fn say(format: ExpositionFormat, text: &[u8]) -> (Vec<String>, u64) {
    let (mut lines, mut reader) = (Vec::new(), ExpositionReader::new(format, text));
    loop {
        match reader.read() {
            Ok(None) => return (lines, reader.exemplars()),
            Ok(Some(line)) => lines.push(say_line(&line)),
            Err(fault) => {
                lines.push(fault.to_string());
                assert_eq!(reader.read(), Ok(None), "more behind a fault");
                return (lines, reader.exemplars());
            }
        }
    }
}

fn say_line(line: &ExposedLine) -> String {
    match line {
        ExposedLine::Help { family, help } => format!("help {} {:?}", family.text(), help.text()),
        ExposedLine::Unit { family, unit } => format!("unit {} {unit}", family.text()),
        ExposedLine::Type {
            family,
            metric_type,
        } => {
            format!("type {} {}", family.text(), metric_type.word())
        }
        ExposedLine::Sample(sample) => {
            let labels = sample.labels.iter();
            let label = |l: &ExposedLabel| format!("{}={:?}", l.name.text(), l.value.text());
            let labels: Vec<String> = labels.map(label).collect();
            let time = sample.t_ms.map_or(String::new(), |t| format!(" @{t}"));
            format!(
                "{}[{}] {}{time}",
                sample.name.text(),
                labels.join(","),
                sample.value
            )
        }
    }
}

#[test]
fn samples_of_0_0_4() {
    for (text, expected) in [
        ("up 1", "up[] 1"),
        ("up 1\n", "up[] 1"),
        ("  up\t 1 \t", "up[] 1"),
        (
            "a:b_9 -1.5e-3 1700000000000",
            "a:b_9[] -0.0015 @1700000000000",
        ),
        ("up 1 -5 ", "up[] 1 @-5"),
        ("up{} 1", "up[] 1"),
        ("up {a=\"b\"}1", "up[a=\"b\"] 1"),
        ("up{ a = \"b\" , c=\"\" , } 1", "up[a=\"b\",c=\"\"] 1"),
        ("up{a=\"{}=,\u{e4}# \"} 1", "up[a=\"{}=,\u{e4}# \"] 1"),
        (r#"up{a="q\"b\\s\nl\t"} 1"#, r#"up[a="q\"b\\s\nl\\t"] 1"#),
        (r#"{"my.name"} 1"#, "my.name[] 1"),
        (
            r#"{a="b","my.name","c d"="e"} 1"#,
            "my.name[a=\"b\",c d=\"e\"] 1",
        ),
        (r#"{"a\"b"} 1"#, "a\"b[] 1"),
        ("up NaN", "up[] NaN"),
        ("up +Inf", "up[] inf"),
        ("up -inf", "up[] -inf"),
        ("up infinity", "up[] inf"),
        ("up .5", "up[] 0.5"),
        ("up 5.", "up[] 5"),
        ("up 123456789012345", "up[] 123456789012345"),
        ("up 9007199254740993", "up[] 9007199254740992"),
        ("", ""),
        (" \t\n\n", ""),
        ("# a comment\n#another\n# HELP\n# UNIT a_b b\n# EOF", ""),
        ("# HELP up", "help up \"\""),
        (
            "# HELP up  It is\\n\\\\ \\\"up\\x.\t",
            "help up \" It is\\n\\\\ \\\\\\\"up\\\\x.\\t\"",
        ),
        ("#\tTYPE  up \t gauge ", "type up gauge"),
        ("# TYPE \"my.name\" untyped", "type my.name unknown"),
        ("up", "line 1: a value that is not a number"),
        ("up ", "line 1: a value that is not a number"),
        ("up 0x1p3", "line 1: a value that is not a number"),
        ("up 1_0", "line 1: a value that is not a number"),
        ("up 1e999", "line 1: a value that is not a number"),
        ("up 1\r\n", "line 1: a value that is not a number"),
        (
            "up 1 1.5",
            "line 1: a timestamp that is not a time since 1970",
        ),
        (
            "up 1 9223372036854775808",
            "line 1: a timestamp that is not a time since 1970",
        ),
        ("up 1 2 3", "line 1: more behind the sample"),
        (
            "up 1 # {a=\"b\"} 1",
            "line 1: a timestamp that is not a time since 1970",
        ),
        ("1up 1", "line 1: no metric name in front"),
        ("\u{e4} 1", "line 1: no metric name in front"),
        (
            "up{a=\"b\" c=\"d\"} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{a=b} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{a:b=\"\"} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{\"\"=\"\"} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{,} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{a} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{a=\"b\\\"} 1",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        (
            "up{a=\"b\"",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
        ),
        ("{} 1", "line 1: no metric name, or two of them"),
        ("{\"\"} 1", "line 1: no metric name, or two of them"),
        ("up{\"down\"} 1", "line 1: no metric name, or two of them"),
        (
            "\n# HELP  9up x",
            "line 2: a comment that is not HELP, TYPE or UNIT with a name",
        ),
        ("# TYPE up", "line 1: an unknown type"),
        ("# TYPE up info", "line 1: an unknown type"),
    ] {
        let (lines, _) = say(PROMETHEUS, text.as_bytes());
        assert_eq!(lines.join("; "), expected, "{text}");
    }
    assert_eq!(
        say(PROMETHEUS, b"up{a=\"\xff\"} 1").0,
        ["line 1: not UTF-8"]
    );
}

#[test]
fn samples_of_open_metrics() {
    for (text, expected, exemplars) in [
        ("# EOF", "", 0),
        ("# EOF\n", "", 0),
        ("up 1\n# EOF\n", "up[] 1", 0),
        ("up{a=\"b\",c=\"d\",} 1\n# EOF", "up[a=\"b\",c=\"d\"] 1", 0),
        ("{\"my.name\",a=\"b\"} 1\n# EOF", "my.name[a=\"b\"] 1", 0),
        ("up 1 1395066363.119\n# EOF", "up[] 1 @1395066363119", 0),
        ("up 1 1.7e9\n# EOF", "up[] 1 @1700000000000", 0),
        ("up 1 # {a=\"b\"} 0.5\n# EOF", "up[] 1", 1),
        ("up 1 2 # {a=\"b\"} 0.5 1.5\n# EOF", "up[] 1 @2000", 1),
        (
            "# TYPE a_s stateset\n# UNIT a_s s\n# HELP a_s x\\\"\n# EOF",
            "type a_s stateset; unit a_s s; help a_s \"x\\\"\"",
            0,
        ),
        ("# UNIT a \n# EOF", "unit a ", 0),
        (
            "# TYPE \"b.c_s\" unknown\n# UNIT \"b.c_s\" s\n# EOF",
            "type b.c_s unknown; unit b.c_s s",
            0,
        ),
        ("", "line 0: the text ends without # EOF", 0),
        ("up 1\n", "up[] 1; line 1: the text ends without # EOF", 0),
        ("up 1", "line 1: the text ends without # EOF", 0),
        ("# EOF\n\n", "line 1: more behind # EOF", 0),
        ("# EOF\nup 1\n", "line 1: more behind # EOF", 0),
        ("\n# EOF", "line 1: no metric name in front", 0),
        (" up 1\n# EOF", "line 1: no metric name in front", 0),
        ("up  1\n# EOF", "line 1: a value that is not a number", 0),
        ("up\t1\n# EOF", "line 1: a value that is not a number", 0),
        (
            "up 1 \n# EOF",
            "line 1: a timestamp that is not a time since 1970",
            0,
        ),
        ("up 1\t\n# EOF", "line 1: more behind the sample", 0),
        (
            "up 1 NaN\n# EOF",
            "line 1: a timestamp that is not a time since 1970",
            0,
        ),
        (
            "up 1 inf\n# EOF",
            "line 1: a timestamp that is not a time since 1970",
            0,
        ),
        ("up 1 2 3\n# EOF", "line 1: more behind the sample", 0),
        ("up{}1\n# EOF", "line 1: a value that is not a number", 0),
        (
            "up{a=\"b\", c=\"d\"} 1\n# EOF",
            "line 1: labels that are not {NAME=\"VALUE\",...}",
            0,
        ),
        (
            "up {a=\"b\"} 1\n# EOF",
            "line 1: a value that is not a number",
            0,
        ),
        (
            "# a comment\n# EOF",
            "line 1: a comment that is not HELP, TYPE or UNIT with a name",
            0,
        ),
        (
            "#EOF\n",
            "line 1: a comment that is not HELP, TYPE or UNIT with a name",
            0,
        ),
        (
            "# HELP up\n# EOF",
            "line 1: a comment that is not HELP, TYPE or UNIT with a name",
            0,
        ),
        ("# TYPE up untyped\n# EOF", "line 1: an unknown type", 0),
        ("# TYPE up  gauge\n# EOF", "line 1: an unknown type", 0),
        (
            "# UNIT a_seconds ms\n# EOF",
            "line 1: a unit that the name does not end in",
            0,
        ),
        (
            "# UNIT ams ms\n# EOF",
            "line 1: a unit that the name does not end in",
            0,
        ),
    ] {
        let (lines, found) = say(OPEN, text.as_bytes());
        assert_eq!(
            (lines.join("; ").as_str(), found),
            (expected, exemplars),
            "{text}"
        );
    }
}

#[test]
fn a_series_is_spelled_as_in_its_line() {
    for (text, series) in [
        (" up 1", "up"),
        ("up{a=\"b\\n\"} 1", "up{a=\"b\\n\"}"),
        ("up {a=\"b\"} 1", "up {a=\"b\"}"),
        ("{\"u p\"} 1", "{\"u p\"}"),
    ] {
        let mut reader = ExpositionReader::new(PROMETHEUS, text.as_bytes());
        match reader.read() {
            Ok(Some(ExposedLine::Sample(sample))) => assert_eq!(sample.series, series),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn lines_and_labels_have_limits() {
    let labels = |count: usize| {
        let labels: Vec<String> = (0..count).map(|at| format!("l{at}=\"\"")).collect();
        format!("up{{{}}} 1", labels.join(","))
    };
    assert!(!say(PROMETHEUS, labels(LABELS_MAX).as_bytes()).0[0].starts_with("line"));
    let too_many = say(PROMETHEUS, labels(LABELS_MAX + 1).as_bytes()).0;
    assert_eq!(too_many, ["line 1: more than 128 labels"]);
    let comment = |size: usize| format!("\n#{}\nup 1", " ".repeat(size - 1));
    assert_eq!(say(PROMETHEUS, comment(LINE_MAX).as_bytes()).0, ["up[] 1"]);
    let too_long = say(PROMETHEUS, comment(LINE_MAX + 1).as_bytes()).0;
    assert_eq!(too_long, ["line 2: more than 65536 bytes"]);
}

#[test]
fn content_types_say_the_format() {
    for (text, expected) in [
        ("text/plain; version=0.0.4; charset=utf-8", Some(PROMETHEUS)),
        ("text/plain", Some(PROMETHEUS)),
        (
            "Text/Plain;version=1.0.0;escaping=allow-utf-8",
            Some(PROMETHEUS),
        ),
        (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Some(OPEN),
        ),
        ("application/openmetrics-text;Version=\"0.0.1\"", Some(OPEN)),
        ("application/openmetrics-text", Some(OPEN)),
        ("application/openmetrics-text;version=2.0.0", None),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
            None,
        ),
        ("text/html", None),
        ("", None),
    ] {
        assert_eq!(ExpositionFormat::of_content_type(text), expected, "{text}");
    }
}

#[test]
fn a_text_that_is_cut_is_noticed_in_open_metrics() {
    let text = b"# TYPE a counter\na_total{b=\"c\\\"\"} 1.5 2 # {t=\"1\"} 3\n# EOF";
    let (whole, _) = say(OPEN, text);
    assert_eq!(whole, ["type a counter", "a_total[b=\"c\\\"\"] 1.5 @2000"]);
    for end in 0..text.len() {
        let (lines, _) = say(OPEN, &text[..end]);
        assert!(
            lines.last().unwrap().starts_with("line "),
            "{end}: {lines:?}"
        );
        say(PROMETHEUS, &text[..end]);
    }
}

fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        name in "\\PC{1,20}",
        labels in prop::collection::btree_map("[a-z_][a-z0-9_]{0,5}|\\PC{1,5}", "[\\PC\n]{0,20}", 0..6),
        bits: u64,
        t_ms in -100_000_000_000_000i64..100_000_000_000_000,
    ) {
        let value = f64::from_bits(bits);
        let written: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{}={}", quoted(name), quoted(value)))
            .collect();
        let series = [vec![quoted(&name)], written].concat().join(",");
        for (format, text) in [
            (PROMETHEUS, format!("{{{series}}} {value:?} {t_ms}\n")),
            (OPEN, format!("{{{series}}} {value:?} {}\n# EOF\n", t_ms as f64 / 1000.0)),
        ] {
            let mut reader = ExpositionReader::new(format, text.as_bytes());
            let line = reader.read();
            let Ok(Some(ExposedLine::Sample(sample))) = line else {
                return Err(TestCaseError::fail(format!("{line:?}: {text}")));
            };
            prop_assert_eq!(&*sample.name.text(), &*name);
            let read = sample.labels.iter();
            let read: Vec<_> = read.map(|l| (l.name.text().into_owned(), l.value.text().into_owned())).collect();
            prop_assert_eq!(read, labels.clone().into_iter().collect::<Vec<_>>());
            prop_assert!(sample.value == value || value.is_nan() && sample.value.is_nan());
            prop_assert_eq!(sample.t_ms, Some(t_ms));
            prop_assert_eq!(reader.read(), Ok(None));
        }
    }

    #[test]
    fn any_bytes_end(bytes: Vec<u8>, text in "[a{}=\",\\\\\n# 1\tHELPTYE]{0,60}") {
        for format in [PROMETHEUS, OPEN] {
            prop_assert!(say(format, &bytes).0.len() <= bytes.len() + 1);
            prop_assert!(say(format, text.as_bytes()).0.len() <= text.len() + 1);
        }
    }
}
