//! Pauses before a request is sent again: they double, and no two senders have the same.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);
/// Longest time that a receiver may ask for.
const ASKED_MAX: Duration = Duration::from_secs(600);

/// Pauses of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delay {
    tries: u32,
}

impl Delay {
    /// The next pause: from the half of its time to all of it, by a random number, and not shorter than the receiver
    /// asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>, random: u32) -> Duration {
        let whole = FIRST.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX));
        let whole = whole.min(LONGEST);
        self.tries = self.tries.saturating_add(1).min(16);
        let part = f64::from(random) / f64::from(u32::MAX);
        let pause = whole.mul_f64(0.5 + part / 2.0);
        pause.max(asked.unwrap_or_default().min(ASKED_MAX))
    }
}

/// The time of a header Retry-After, which has a number of seconds or a date; `now_s`: seconds since 1970.
pub(crate) fn retry_after(header: &str, now_s: i64) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTimeParser::new().parse_timestamp(header).ok()?;
    let seconds = date.as_second().saturating_sub(now_s);
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let (mut long, mut short) = (Delay::default(), Delay::default());
        for expected_ms in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            assert_eq!(
                long.next(None, u32::MAX),
                Duration::from_millis(expected_ms)
            );
            let half = Duration::from_micros(expected_ms * 500);
            assert_eq!(short.next(None, 0), half);
        }
        for _ in 0..100 {
            assert_eq!(long.next(None, u32::MAX), LONGEST);
        }
        let mut asked = Delay::default();
        assert_eq!(asked.next(Some(Duration::from_secs(5)), 0).as_secs(), 5);
        assert_eq!(asked.next(Some(Duration::from_secs(5000)), 0), ASKED_MAX);
        assert_eq!(asked.next(Some(Duration::ZERO), u32::MAX).as_secs(), 1);
    }

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        for (header, seconds) in [
            ("5", Some(5)),
            (" 0 ", Some(0)),
            ("-1", None),
            ("", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(90)),
            ("Wed, 21 Oct 2026 07:26:00 GMT", Some(0)),
            ("Wed, 21 Oct 2026 25:26:00 GMT", None),
            ("tomorrow", None),
            ("99999999999999999999", None),
        ] {
            // 07:26:30
            let read = retry_after(header, 1_792_567_590);
            assert_eq!(read, seconds.map(Duration::from_secs), "{header}");
        }
    }
}
