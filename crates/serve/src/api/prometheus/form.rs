//! Parameters of Prometheus' clients, from the URL and the form of a POST.

use std::time::Duration;

use axum::http::{HeaderMap, Uri, header};
use jiff::{SignedDuration, Timestamp};
use kymo_promql::parse_selector;
use kymo_series::{Matcher, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};

use super::failure::{ErrorType, Failure};

/// Type of a form's body.
const FORM: &str = "application/x-www-form-urlencoded";
/// Names of the first and the last time there is, which no calendar has.
const FIRST: &str = "-292273086-05-16T16:47:06Z";
const LAST: &str = "292277025-08-18T07:12:54.999999999Z";
/// Matchers `match[]` of a question at most.
const SETS_MAX: usize = 256;
/// Units of a duration, the longest first, in milliseconds.
const UNITS: [(&str, f64); 7] = [
    ("y", 31_536_000_000.0),
    ("w", 604_800_000.0),
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("m", 60_000.0),
    ("s", 1000.0),
    ("ms", 1.0),
];
/// Most milliseconds of a duration: 2^63 nanoseconds.
const DURATION_MAX_MS: f64 = 9_223_372_036_854.0;

/// Parameters of a question.
pub(super) struct Form {
    given: Vec<(String, String)>,
    now_ms: i64,
}

impl Form {
    /// Reads the form of a POST, then the query of the URL: the first of a name counts.
    pub(super) fn of(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Form {
        let media_type = headers.get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|of| of.to_str().ok()).unwrap_or("");
        let media_type = media_type.split(';').next().unwrap_or("").trim();
        let form = match media_type.eq_ignore_ascii_case(FORM) {
            true => body,
            false => &[],
        };
        let query = uri.query().unwrap_or_default().as_bytes();
        let given = [form, query].map(|text| form_urlencoded::parse(text).into_owned());
        Form {
            given: given.into_iter().flatten().collect(),
            now_ms: RealClock.now().real_ns.div_euclid(1_000_000),
        }
    }

    /// Text of a parameter; empty: it is not given.
    pub(super) fn text(&self, name: &str) -> &str {
        let found = self.given.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The time of the question.
    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// A time in milliseconds since 1970.
    pub(super) fn time(&self, name: &str) -> Result<i64, Failure> {
        let text = self.text(name);
        parse_time(text).ok_or_else(|| {
            let why = format!("cannot parse {text:?} to a valid timestamp");
            Failure::parameter(name, why)
        })
    }

    /// A time that may be left out.
    pub(super) fn time_or(&self, name: &str, default_ms: i64) -> Result<i64, Failure> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(default_ms);
        }
        parse_time(text).ok_or_else(|| {
            let why = format!(
                "invalid time value for '{name}': cannot parse {text:?} to a valid timestamp"
            );
            Failure::parameter(name, why)
        })
    }

    /// `start` and `end` of a list, each of which may be left out.
    pub(super) fn range(&self) -> Result<TimeRange, Failure> {
        Ok(TimeRange {
            from_ms: self.time_or("start", i64::MIN)?,
            thru_ms: self.time_or("end", i64::MAX)?,
        })
    }

    /// A duration in milliseconds, below 0 too.
    pub(super) fn duration_ms(&self, name: &str) -> Result<f64, Failure> {
        let text = self.text(name);
        let duration = parse_duration(text);
        duration.map_err(|why| Failure::parameter(name, why))
    }

    /// `limit`; `None`: there is none.
    pub(super) fn limit(&self) -> Result<Option<usize>, Failure> {
        let text = self.text("limit");
        if text.is_empty() {
            return Ok(None);
        }
        let limit: Option<i64> = text.parse().ok();
        let limit =
            limit.ok_or_else(|| Failure::parameter("limit", format!("{text:?} is no number")))?;
        let limit = usize::try_from(limit)
            .map_err(|_| Failure::parameter("limit", "limit must be non-negative"))?;
        Ok((limit > 0).then_some(limit))
    }

    /// `timeout`, at most `most`.
    pub(super) fn timeout(&self, most: Duration) -> Result<Duration, Failure> {
        if self.text("timeout").is_empty() {
            return Ok(most);
        }
        let milliseconds = self.duration_ms("timeout")?;
        if milliseconds <= 0.0 {
            let why = format!("timeout must be positive, got {}", self.text("timeout"));
            return Err(Failure::parameter("timeout", why));
        }
        let timeout = Duration::try_from_secs_f64(milliseconds / 1000.0);
        Ok(timeout.map_or(most, |timeout| timeout.min(most)))
    }

    /// `lookback_delta` in milliseconds; `None`: the default.
    pub(super) fn lookback_ms(&self) -> Result<Option<i64>, Failure> {
        if self.text("lookback_delta").is_empty() {
            return Ok(None);
        }
        let lookback = parse_duration(self.text("lookback_delta")).map_err(|why| {
            let text = format!("error parsing lookback delta duration: {why}");
            Failure::new(ErrorType::BadData, text)
        })?;
        let lookback_ms = whole(lookback);
        Ok((lookback_ms > 0).then_some(lookback_ms))
    }

    /// The sets of matchers of `match[]`; a set that can pick nothing is left out.
    pub(super) fn matchers(&self) -> Result<Option<Vec<Vec<Matcher>>>, Failure> {
        let given: Vec<&str> = (self.given.iter())
            .filter(|(name, _)| name == "match[]")
            .map(|(_, value)| value.as_str())
            .collect();
        if given.is_empty() {
            return Ok(None);
        }
        if given.len() > SETS_MAX {
            let why = format!("there are more than {SETS_MAX}");
            return Err(Failure::parameter("match[]", why));
        }
        let mut sets = Vec::new();
        for text in given {
            let selector =
                parse_selector(text).map_err(|error| Failure::parameter("match[]", error))?;
            sets.extend(selector.kept_matchers());
        }
        Ok(Some(sets))
    }
}

/// Milliseconds without their fraction; NaN is 0, and others are limited to what fits.
pub(super) fn whole(milliseconds: f64) -> i64 {
    match SignedDuration::try_from_secs_f64(milliseconds) {
        // A duration of as many seconds has them as a whole number.
        Ok(seconds) => seconds.as_secs(),
        Err(_) if milliseconds > 0.0 => i64::MAX,
        Err(_) if milliseconds < 0.0 => i64::MIN,
        Err(_) => 0,
    }
}

/// A step in milliseconds, as the API takes it: seconds, or numbers with units. `None`: it is none, or not above 0.
pub fn step_ms(text: &str) -> Option<i64> {
    let step_ms = whole(parse_duration(text).ok()?);
    (step_ms > 0).then_some(step_ms)
}

/// A time in milliseconds since 1970, of seconds or of RFC 3339.
fn parse_time(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        let milliseconds = (seconds * 1000.0).round();
        let is_time = milliseconds.is_finite() && milliseconds.abs() < 9.3e18;
        return is_time.then(|| whole(milliseconds));
    }
    match text {
        FIRST => return Some(i64::MIN),
        LAST => return Some(i64::MAX),
        _ => {}
    }
    // Other forms of ISO 8601 than that of RFC 3339 are refused.
    let is_time =
        text.as_bytes().get(10) == Some(&b'T') && text.starts_with(|c: char| c.is_ascii_digit());
    let time: Timestamp = is_time.then(|| text.parse().ok())??;
    Some(time.as_millisecond())
}

/// A duration in milliseconds: seconds, or numbers with units, the longest first.
fn parse_duration(text: &str) -> Result<f64, String> {
    let wrong = || format!("cannot parse {text:?} to a valid duration");
    let in_bounds = |milliseconds: f64| match milliseconds.abs() < DURATION_MAX_MS {
        true => Ok(milliseconds),
        false => Err(format!("{}. It overflows int64", wrong())),
    };
    if let Ok(seconds) = text.parse::<f64>() {
        return in_bounds(seconds * 1000.0);
    }
    let (mut left, mut units, mut sum) = (text, UNITS.iter(), 0.0);
    if left.is_empty() {
        return Err(wrong());
    }
    while !left.is_empty() {
        let digits = left.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, rest) = left.split_at(digits);
        let unit_end = rest.find(|c: char| c.is_ascii_digit());
        let (unit, rest) = rest.split_at(unit_end.unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let length = units.find(|(known, _)| *known == unit).ok_or_else(wrong)?.1;
        sum += number * length;
        left = rest;
    }
    in_bounds(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(query: &str) -> Form {
        let uri = Uri::try_from(format!("/x?{query}")).unwrap();
        Form::of(&uri, &HeaderMap::new(), b"ignored=1")
    }

    #[test]
    fn times_are_seconds_or_of_rfc3339() {
        for (text, expect) in [
            ("0", Some(0)),
            ("1435781451.781", Some(1_435_781_451_781)),
            ("-1.5", Some(-1500)),
            ("1e3", Some(1_000_000)),
            ("2015-07-01T20:10:51.781Z", Some(1_435_781_451_781)),
            ("2015-07-01T22:10:51.781+02:00", Some(1_435_781_451_781)),
            (FIRST, Some(i64::MIN)),
            (LAST, Some(i64::MAX)),
            ("2015-07-01", None),
            ("2015-07-01 20:10:51Z", None),
            ("now", None),
            ("NaN", None),
            ("+Inf", None),
            ("1e300", None),
            ("", None),
        ] {
            assert_eq!(parse_time(text), expect, "{text}");
        }
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        for (text, expect) in [
            ("15", Some(15_000.0)),
            ("0.5", Some(500.0)),
            ("-1", Some(-1000.0)),
            ("1m", Some(60_000.0)),
            ("1h30m", Some(5_400_000.0)),
            ("1d500ms", Some(86_400_500.0)),
            ("1y", Some(31_536_000_000.0)),
            ("5x", None),
            ("1m1h", None),
            ("1m1m", None),
            ("m", None),
            ("1h 5m", None),
            ("-1m", None),
            ("", None),
            ("NaN", None),
            ("1e30", None),
            ("1000000y", None),
        ] {
            assert_eq!(parse_duration(text).ok(), expect, "{text}");
        }
    }

    #[test]
    fn a_form_comes_before_the_url() {
        let uri = Uri::from_static("/x?query=url&limit=3&match[]=a");
        let mut headers = HeaderMap::new();
        let form_type = "application/x-www-form-urlencoded; charset=utf-8";
        headers.insert(header::CONTENT_TYPE, form_type.parse().unwrap());
        let form = Form::of(&uri, &headers, b"query=a%2Bb+c&match[]=b");
        assert_eq!(form.text("query"), "a+b c");
        assert_eq!(form.limit(), Ok(Some(3)));
        assert_eq!(form.matchers().unwrap().unwrap().len(), 2);
        let other = Form::of(&uri, &HeaderMap::new(), b"query=form");
        assert_eq!(other.text("query"), "url");
    }

    #[test]
    fn limits_and_timeouts() {
        let most = Duration::from_secs(30);
        assert_eq!(form("").limit(), Ok(None));
        assert_eq!(form("limit=0").limit(), Ok(None));
        assert!(form("limit=-1").limit().is_err() && form("limit=x").limit().is_err());
        assert_eq!(form("timeout=1m").timeout(most), Ok(most));
        assert_eq!(form("timeout=2").timeout(most), Ok(Duration::from_secs(2)));
        assert!(form("timeout=0").timeout(most).is_err());
        assert_eq!(form("lookback_delta=1m").lookback_ms(), Ok(Some(60_000)));
        assert_eq!(form("lookback_delta=-1").lookback_ms(), Ok(None));
        assert!(form("lookback_delta=x").lookback_ms().is_err());
    }

    #[test]
    fn matchers_are_selectors() {
        assert_eq!(form("").matchers(), Ok(None));
        for wrong in [
            "match[]=",
            "match[]={}",
            "match[]={a=\"\"}",
            "match[]=a%2Bb",
            "match[]=sum(a)",
        ] {
            let uri = wrong
                .replace('"', "%22")
                .replace('{', "%7B")
                .replace('}', "%7D");
            assert!(form(&uri).matchers().is_err(), "{wrong}");
        }
        let many = "match[]=a&".repeat(SETS_MAX + 1);
        assert!(form(&many).matchers().is_err());
    }
}
