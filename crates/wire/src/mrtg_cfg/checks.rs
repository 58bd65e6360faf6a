//! The checks that MRTG makes of a value as soon as it has read it.

use super::files::Files;
use super::global::Global;
use super::keyword::Keyword;
use super::lines::is_space;
use super::perl::{is_digits, is_true, is_word, number};
use super::snmp_options::SnmpOptions;

type Checked = Result<(), String>;

fn must(is_so: bool, why: &str) -> Checked {
    match is_so {
        true => Ok(()),
        false => Err(why.to_string()),
    }
}

fn yes_or_no(text: &[u8]) -> Checked {
    let is_so = text.eq_ignore_ascii_case(b"yes") || text.eq_ignore_ascii_case(b"no");
    must(is_so, "must be yes or no")
}

fn folder(text: &[u8], files: &mut dyn Files) -> Checked {
    let is_dir = is_true(text) && files.is_dir(text);
    must(is_dir, "is not a directory")
}

/// `^[0-9]+(?:\.[0-9]+)?$`
fn decimal(text: &[u8]) -> Checked {
    let is_so = match text.iter().position(|byte| *byte == b'.') {
        Some(dot) => is_digits(&text[..dot]) && is_digits(&text[dot + 1..]),
        None => is_digits(text),
    };
    must(is_so, "must be a number xxx.xxx")
}

fn above_zero(text: &[u8]) -> Checked {
    let is_so = is_digits(text) && text.iter().any(|byte| *byte != b'0');
    must(is_so, "must be a whole number bigger than 0")
}

/// `\S+\@\S+`
fn mail_address(text: &[u8]) -> Checked {
    let is_so = text
        .windows(3)
        .any(|three| three[1] == b'@' && !is_space(three[0]) && !is_space(three[2]));
    must(is_so, "does not look like a mail address")
}

/// Minutes and seconds of `MM[:SS]`. As in MRTG, it may stand anywhere in the text.
pub(super) fn interval(text: &[u8]) -> Option<(f64, f64)> {
    let from = text.iter().position(u8::is_ascii_digit)?;
    let digits = |from: usize| {
        let rest = &text[from..];
        &rest[..rest.iter().take_while(|byte| byte.is_ascii_digit()).count()]
    };
    let minutes = digits(from);
    let colon = from + minutes.len();
    let seconds = match text.get(colon) {
        Some(b':') => digits(colon + 1),
        _ => b"",
    };
    Some((number(minutes), number(seconds)))
}

/// Checks the value of a global keyword.
pub(super) fn global(keyword: Global, text: &[u8], files: &mut dyn Files) -> Checked {
    match keyword {
        Global::WorkDir | Global::HtmlDir | Global::ImageDir | Global::LogDir => {
            folder(text, files)
        }
        Global::PathAdd | Global::LibAdd | Global::ThreshDir => folder(text, files),
        Global::Forks => must(number(text) >= 1.0, "must be 1 or more"),
        Global::Refresh => must(number(text).trunc() >= 300.0, "must be 300 seconds or more"),
        Global::EnableSnmpV3 | Global::EnableIpv6 => yes_or_no(text),
        Global::Interval => {
            let seconds = interval(text).map(|(minutes, seconds)| minutes * 60.0 + seconds);
            let is_so = seconds.is_some_and(|seconds| (1.0..=3600.0).contains(&seconds));
            must(
                is_so,
                "must be at least one second (0:01) and at most 60 minutes (60)",
            )
        }
        Global::IconDir | Global::LoadMibs | Global::ThreshMailServer => {
            must(is_true(text), "must not be 0")
        }
        Global::UseRrdtool => Err("is not valid any more: use LogFormat: rrdtool".into()),
        Global::LogFormat => must(
            matches!(text, b"rateup" | b"rrdtool"),
            "must be rateup or rrdtool",
        ),
        Global::MaxAge => above_zero(text),
        Global::NoSpaceChar => must(text.len() == 1, "must be one character"),
        Global::SnmpOptions => SnmpOptions::parse(text).map(drop),
        Global::ConversionCode => must(files.is_readable(text), "cannot be read"),
        Global::SendToGraphite => {
            let comma = text.iter().rposition(|byte| *byte == b',');
            let is_so = comma.is_some_and(|comma| is_digits(&text[comma + 1..]));
            must(is_so, "must be host,port")
        }
        Global::ThreshHyst | Global::HwThreshHyst => decimal(text),
        Global::ThreshMailSender => mail_address(text),
        Global::WriteExpires
        | Global::NoMib2
        | Global::SingleRequest
        | Global::Language
        | Global::RunAsDaemon
        | Global::NoDetach
        | Global::RrdCached => Ok(()),
    }
}

/// True if [`target`] checks values of this keyword.
pub(super) fn has_rule(keyword: Keyword) -> bool {
    !matches!(
        keyword,
        Keyword::Target | Keyword::Title | Keyword::PageTop | Keyword::Options
    )
}

/// Checks a target's value.
pub(super) fn target(keyword: Keyword, text: &[u8], files: &mut dyn Files) -> Checked {
    let at_least = |least: f64| number(text).trunc() >= least;
    match keyword {
        Keyword::SnmpOptions => SnmpOptions::parse(text).map(drop),
        Keyword::NoHc | Keyword::Ipv4Only => yes_or_no(text),
        Keyword::MaxBytes | Keyword::MaxBytes1 | Keyword::MaxBytes2 => above_zero(text),
        Keyword::AbsMax | Keyword::Kilo => must(is_digits(text), "must be a whole number"),
        Keyword::CloneDirectory => {
            let is_so = text.last().is_some_and(|byte| *byte != b',');
            must(is_so, "must have a second parameter behind the comma")
        }
        Keyword::RrdHwRras => must(are_hw_archives(text), "are not Holt-Winters archives"),
        Keyword::Unscaled | Keyword::WithPeak | Keyword::Suppress => {
            let is_so = text
                .iter()
                .any(|byte| b"ndwmy".contains(&byte.to_ascii_lowercase()));
            must(
                is_so,
                "must be letters of [n]one, [d]ay, [w]eek, [m]onth, [y]ear",
            )
        }
        Keyword::WeekFormat => {
            let is_so = text.iter().any(|byte| b"UVW".contains(byte));
            must(is_so, "must be W, V or U")
        }
        Keyword::XSize => {
            let is_so = at_least(30.0) && number(text).trunc() <= 600.0;
            must(is_so, "must be between 30 and 600 pixels")
        }
        Keyword::YSize => must(at_least(30.0), "must be 30 pixels or more"),
        Keyword::YTics => must(at_least(1.0), "must be 1 or more"),
        Keyword::Step => must(at_least(0.0), "must not be below 0"),
        Keyword::YTicsFactor | Keyword::Factor => {
            let is_so = text.iter().any(|byte| b"-+0123456789.efg".contains(byte));
            must(is_so, "must be a number")
        }
        Keyword::SetEnv => must(is_environment(text), "must be X=\"x\" Y=\"y\" ..."),
        Keyword::XZoom | Keyword::YZoom | Keyword::XScale | Keyword::YScale => decimal(text),
        Keyword::ThreshProgI
        | Keyword::ThreshProgO
        | Keyword::ThreshProgOkI
        | Keyword::ThreshProgOkO
        | Keyword::HwThreshProgI
        | Keyword::HwThreshProgO
        | Keyword::HwThreshProgOkI
        | Keyword::HwThreshProgOkO => {
            let is_so = is_true(text) && files.exists(text);
            must(is_so, "does not exist")
        }
        Keyword::ThreshMailAddress | Keyword::HwThreshMailAddress => mail_address(text),
        Keyword::TimeStrPos => {
            let mut places = [&b"no"[..], b"lu", b"ru", b"ll", b"rl"].into_iter();
            let is_so = places.any(|place| text.eq_ignore_ascii_case(place));
            must(is_so, "must be NO, LU, RU, LL or RL")
        }
        _ => Ok(()),
    }
}

/// `^RRA:(HWPREDICT|...):\S+(\s+RRA:(...):\S+)*$`
fn are_hw_archives(text: &[u8]) -> bool {
    let kinds = [
        &b"HWPREDICT"[..],
        b"SEASONAL",
        b"DEVPREDICT",
        b"DEVSEASONAL",
        b"FAILURES",
    ];
    let is_one = |word: &[u8]| {
        let rest = word.strip_prefix(b"RRA:").unwrap_or_default();
        kinds.iter().any(|kind| {
            let rest = rest.strip_prefix(*kind);
            rest.and_then(|rest| rest.strip_prefix(b":"))
                .is_some_and(|rest| !rest.is_empty())
        })
    };
    let is_framed = !text.first().is_none_or(|byte| is_space(*byte))
        && !text.last().is_none_or(|byte| is_space(*byte));
    let mut words = text
        .split(|byte| is_space(*byte))
        .filter(|word| !word.is_empty());
    is_framed && words.all(is_one)
}

/// `^(?:[-\w]+=\"[^"]*"(?:\s+|$))+$`
fn is_environment(mut text: &[u8]) -> bool {
    loop {
        let name = text
            .iter()
            .take_while(|byte| is_word(**byte) || **byte == b'-');
        let name = name.count();
        let Some(rest) = text[name..].strip_prefix(b"=\"").filter(|_| name > 0) else {
            return false;
        };
        let Some(quote) = memchr::memchr(b'"', rest) else {
            return false;
        };
        let behind = &rest[quote + 1..];
        text = super::lines::trim_start(behind);
        if text.is_empty() {
            return true;
        }
        if text.len() == behind.len() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_names_and_quotes() {
        for (text, expected) in [
            (r#"A="b""#, true),
            (r#"A="b c" -x_1="" "#, true),
            (r#"A="b"B="c""#, false),
            (r#"="b""#, false),
            (r#"A=b"#, false),
            (r#"A="b"#, false),
            ("", false),
        ] {
            assert_eq!(is_environment(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn archives_are_of_holt_and_winters() {
        for (text, expected) in [
            ("RRA:HWPREDICT:1440:0.1:0.0035:288", true),
            ("RRA:SEASONAL:1  RRA:FAILURES:2", true),
            ("RRA:AVERAGE:1", false),
            ("RRA:SEASONAL:", false),
            (" RRA:SEASONAL:1", false),
            ("", false),
        ] {
            assert_eq!(are_hw_archives(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn an_interval_may_stand_anywhere() {
        assert_eq!(interval(b"5"), Some((5.0, 0.0)));
        assert_eq!(interval(b"x 0:30y"), Some((0.0, 30.0)));
        assert_eq!(interval(b"x"), None);
    }
}
