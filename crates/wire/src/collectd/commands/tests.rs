//! Answers that collectd 5.12 of Debian gives to the same lines; the end-to-end tests ask it again.

use super::*;
use crate::collectd::TypesDb;

fn refusal(line: &str) -> String {
    match Command::parse(line.as_bytes()) {
        Ok(command) => panic!("{line}: {command:?}"),
        Err(refusal) => refusal,
    }
}

#[test]
fn refusals_have_collectds_words() {
    let long = format!("PUTVAL {}/b/gauge N:1", "a".repeat(128));
    for (line, expected) in [
        (
            "PUTVAL h1/load/load",
            "Missing identifier and/or value-list.",
        ),
        ("PUTVAL", "Missing identifier and/or value-list."),
        ("PUTVAL h1/load x:1", "Cannot parse identifier `h1/load'."),
        (
            "PUTVAL h1//gauge N:1",
            "Cannot parse identifier `h1//gauge'.",
        ),
        (&long, "Identifier too long."),
        ("GETVAL h1/load", "Cannot parse identifier `h1/load'."),
        ("GETVAL", "Missing identifier."),
        ("getval a b", "Garbage after identifier: `b'."),
        ("LISTVAL x", "Garbage after end of command: `x'."),
        ("FOO bar", "Unknown command: FOO"),
        ("   ", "Internal error"),
        ("\"", "Unknown command: \""),
        ("a\\", "Unknown command: a\\"),
        ("\"GETVAL\" h1/load/load", "Unknown command: \"GETVAL\""),
        ("GETVAL \"a\\", "Backslash at end of string."),
        ("GETVAL \"a", "Unterminated quoted string."),
        ("FLUSH identifier=h", "Invalid identifier `h'."),
        ("FLUSH timeout=x", "Invalid value for option `timeout': x"),
        (
            "FLUSH timeout=inf",
            "Invalid value for option `timeout': inf",
        ),
        ("FLUSH x", "Invalid option string `x'."),
        ("FLUSH x=y", "Cannot parse option `x'."),
        ("PUTNOTIF", "Option `severity' missing."),
        ("PUTNOTIF severity=failure", "Option `time' missing."),
        (
            "PUTNOTIF severity=failure time=0 message=a",
            "Option `time' missing.",
        ),
        (
            "PUTNOTIF severity=failure time=1",
            "No message or message of length 0 given.",
        ),
        (
            "PUTNOTIF severity=failure time=1 message=\"\"",
            "No message or message of length 0 given.",
        ),
        (
            "PUTNOTIF severity=foo time=1 message=a",
            "Error parsing option `severity'",
        ),
        (
            "PUTNOTIF severity=failure time=1 message=",
            "Malformed option.",
        ),
        (
            "PUTNOTIF severity=failure time=x message=a",
            "Error parsing option `time'",
        ),
        (
            "PUTNOTIF severity=okay d:x=1.5 message=a",
            "Error parsing option `d:x'",
        ),
        (
            "PUTNOTIF severity=okay s:=b message=a",
            "Error parsing option `s:'",
        ),
        (
            "PUTNOTIF severity=okay foo=b message=a",
            "Error parsing option `foo'",
        ),
        ("PUTNOTIF severity=okay foo message=a", "Malformed option."),
        ("PUTNOTIF severity=okay \"a=b\"", "Malformed option."),
        ("PUTNOTIF severity=okay message=\"a", "Malformed option."),
        ("PUTNOTIF severity=okay message=\"a\"b", "Malformed option."),
        (
            "GETTHRESHOLD h/p/t",
            "No threshold found for identifier h/p/t",
        ),
        ("GETTHRESHOLD", "Cannot parse identifier."),
        ("GETTHRESHOLD h", "Cannot parse identifier `h'."),
        ("FOO\x1b[2J", "Unknown command: FOO?[2J"),
    ] {
        assert_eq!(refusal(line), expected, "{line}");
    }
}

#[test]
fn a_put_has_its_lists_with_their_intervals() {
    let line = "PUTVAL \"h b/load/load\" interval=10 foo=bar meta:a=\"b\" N:1 interval=x 2:2 interval=2.5 3:3";
    let Ok(Command::PutVal(put)) = Command::parse(line.as_bytes()) else {
        panic!("{line}");
    };
    assert_eq!(put.identifier().host, b"h b");
    let lists: Vec<_> = put
        .lists
        .iter()
        .map(|(every, text)| (every.0, text.as_slice()))
        .collect();
    let ten = 10 << 30;
    assert_eq!(
        lists,
        [(ten, &b"N:1"[..]), (ten, b"2:2"), (5 << 29, b"3:3")]
    );
}

#[test]
fn a_notification_has_its_texts() {
    let line = "putnotif severity=OKAY time=1.5 host=h type_instance=\"a \\\"b\" s:k=v message=\"down: \\\\\"";
    let Ok(Command::PutNotif(put)) = Command::parse(line.as_bytes()) else {
        panic!("{line}");
    };
    let identifier = put.identifier();
    assert_eq!(
        (identifier.host, identifier.type_instance),
        (&b"h"[..], &b"a \"b"[..])
    );
    assert_eq!((put.severity, put.time.0), (Severity::Okay, 3 << 29));
    assert_eq!(put.message, b"down: \\");
    let long = format!("PUTNOTIF severity=okay time=1 message={}", "x".repeat(400));
    let Ok(Command::PutNotif(put)) = Command::parse(long.as_bytes()) else {
        panic!("{long}");
    };
    assert_eq!(put.message.len(), MESSAGE_MAX);
}

#[test]
fn values_are_those_of_the_type() {
    let types = TypesDb::embedded();
    let now = Cdtime(7);
    for (type_name, text, expected) in [
        ("load", "N:1:2:U", Some(3)),
        ("load", "1.5:1:-2e3:.5", Some(3)),
        ("load", "N:1:2", None),
        ("load", "N:1:2:3:4", None),
        ("load", "N:1:2:x", None),
        ("load", "N:1:2:3x", None),
        ("load", "N:1:2:", None),
        ("load", "n:1:2:3", None),
        ("load", "0:1:2:3", None),
        ("load", "-1:1:2:3", None),
        ("load", "1e20:1:2:3", None),
        ("load", "1e-11:1:2:3", None),
        ("load", "", None),
        ("load", "N", None),
        ("counter", "N:18446744073709551615", Some(1)),
        ("counter", "N:18446744073709551616", None),
        ("counter", "N:-1", None),
        ("counter", "N:U", None),
        ("counter", "N:1.5", None),
        ("derive", "N:-9223372036854775808", Some(1)),
        ("derive", "N:9223372036854775808", None),
        ("derive", "N:--1", None),
        ("derive", "N:0x+1", None),
        ("gauge", "N:inf", Some(1)),
        ("gauge", "N:nan", Some(1)),
        ("gauge", "N:+", None),
        ("absolute", "N:0", Some(1)),
    ] {
        let sources = types.sources(type_name.as_bytes()).unwrap();
        let listed = ListedValues::parse(text.as_bytes(), sources, now);
        let count = listed.map(|(_, listed)| listed.raw().len());
        assert_eq!(count, expected, "{type_name} {text}");
    }
    let first = |type_name: &str, text: &str| {
        let sources = types.sources(type_name.as_bytes()).unwrap();
        let (time, listed) = ListedValues::parse(text.as_bytes(), sources, now).unwrap();
        (time.0, listed.raw().iter().next().unwrap())
    };
    assert_eq!(first("counter", "N:0x10"), (7, Value::Counter(16)));
    assert_eq!(first("counter", "1:010"), (1 << 30, Value::Counter(8)));
    assert_eq!(first("derive", "2.5:-3"), (5 << 29, Value::Derive(-3)));
}

#[test]
fn a_line_that_is_cut_anywhere_is_answered() {
    for line in [
        "PUTVAL \"h/p-i/load\" interval=10 N:1:2:3",
        "PUTNOTIF severity=okay time=1 message=\"a \\\" b\" s:k=v",
        "FLUSH plugin=a identifier=\"h/p/t\" timeout=1",
    ] {
        assert!(Command::parse(line.as_bytes()).is_ok(), "{line}");
        for end in 1..line.len() {
            let _ = Command::parse(&line.as_bytes()[..end]);
        }
    }
}
