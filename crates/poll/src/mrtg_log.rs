//! MRTG's own log of a target, `TARGET.log`: read, updated and consolidated as MRTG's program rateup does, to the last byte.
//!
//! Pure: from the bytes of one state to those of the next. The format is in docs/formats/mrtg-log.md. Rows that no update changes,
//! nearly all of the 2,536, are copied as text.

mod convert;
mod parse;
mod perl;
mod rates;
mod roll;

pub use convert::Conversion;
pub use rates::{LogRule, RateKind, Unknown};
pub use roll::{Kept, Span, TimeWarp};

/// Seconds of a row, and number of rows, of each resolution.
pub(crate) const SPANS: [(i64, usize); 4] = [(300, 600), (1800, 600), (7200, 600), (86_400, 732)];
/// Value of a counter that is not known.
pub const UNKNOWN: &[u8] = b"-1";
/// Longest text of a counter in a file.
const VALUE_MAX: usize = 199;

/// The log of one target in memory, which is reused from target to target.
#[derive(Default)]
pub struct Log {
    /// Bytes of the file, to be filled before [`Log::parse`].
    pub text: Vec<u8>,
    /// Time of the last update, seconds since 1970.
    last_s: i64,
    /// Counters at the last update.
    last: [Vec<u8>; 2],
    /// Newest first. Those behind `valid` were read from a file that was refused afterwards; rateup sees them, too.
    rows: Vec<Row>,
    valid: usize,
    /// Rows of the last update, as many as it keeps, with rates that are not rounded yet.
    newest: Vec<Row>,
}

/// Rates in the time from the next row's `time_s` to this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Row {
    time_s: i64,
    rates: [f64; 2],
    maxima: [f64; 2],
    /// Begin and end of the row's line in the text, if a row of these values is written like that; otherwise empty.
    line: (usize, usize),
}

/// A new value of a target.
#[derive(Clone, Copy, Debug)]
pub struct LogUpdate<'a> {
    /// Seconds since 1970.
    pub now_s: i64,
    /// Counters as decimal numbers, or [`UNKNOWN`].
    pub values: [&'a [u8]; 2],
    /// How counters become rates.
    pub rule: LogRule,
    /// Rows that stay in memory.
    pub kept: Kept,
}

/// Reasons why a text is no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The first line is not a time and two counters.
    FirstLine,
    /// A row is newer than the one before.
    Order,
}

impl Log {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.rows.clear();
        self.newest.clear();
        self.valid = 0;
    }

    /// Begins a log without history for an update at this time.
    pub fn begin(&mut self, now_s: i64) {
        self.text.clear();
        self.last_s = now_s - SPANS[0].0;
        self.last[0] = rates::NO_VALUE.to_vec();
        let mut time_s = self.last_s;
        let mut at = 0;
        for (step, rows) in SPANS {
            time_s = time_s / step * step;
            for _ in 0..rows {
                let row = Row {
                    time_s,
                    ..Row::default()
                };
                self.put_row(at, row);
                at += 1;
                time_s -= step;
            }
        }
        // rateup counts one less than it makes.
        self.valid = at - 1;
    }

    fn put_row(&mut self, at: usize, row: Row) {
        match self.rows.get_mut(at) {
            Some(place) => *place = row,
            None => self.rows.push(row),
        }
    }
}

/// A number as C converts a double to a `long long` on this machine: a number that does not fit becomes the least one.
pub(crate) fn whole(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match (-LIMIT..LIMIT).contains(&number) {
        true => number as i64,
        false => i64::MIN,
    }
}

/// Fuzzes the parser and an update with any bytes as the log: an update of what the update wrote gives as many rows.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_log(input: &[u8]) {
    let mut log = Log::default();
    log.text.extend_from_slice(input);
    let parsed = log.parse();
    if parsed.is_err() {
        log.begin(1_700_000_000);
    }
    let rule = LogRule {
        bound: i64::MAX,
        ..LogRule::default()
    };
    let update = |now_s| LogUpdate {
        now_s,
        values: [b"1", UNKNOWN],
        rule,
        kept: Kept::All,
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    if log.update(&update(1 << 40), &mut first).is_err() {
        return;
    }
    let lines = |text: &[u8]| text.iter().filter(|&&byte| byte == b'\n').count();
    assert!((2533..=2538).contains(&lines(&first)), "{}", lines(&first));
    log.clear();
    log.text = first;
    assert_eq!(log.parse(), Ok(()));
    assert_eq!(log.update(&update((1 << 40) + 300), &mut second), Ok(()));
    assert!(
        log.newest_rates((1 << 40) + 300)
            .iter()
            .all(|rate| !rate.is_nan())
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log after some updates.
    fn written() -> Vec<u8> {
        let mut log = Log::default();
        log.begin(1_700_000_000);
        let mut text = Vec::new();
        for number in 0..20 {
            let value = (number * number * 1000).to_string();
            let update = LogUpdate {
                now_s: 1_700_000_000 + number * 297,
                values: [value.as_bytes(), b"7"],
                rule: LogRule {
                    bound: 1000,
                    ..LogRule::default()
                },
                kept: Kept::Newest,
            };
            text.clear();
            log.update(&update, &mut text).unwrap();
            log.clear();
            log.text = text.clone();
            log.parse().unwrap();
        }
        text
    }

    #[test]
    fn any_bytes_are_a_log_or_none() {
        let text = written();
        let begin = text.iter().take(300).enumerate();
        begin.for_each(|(cut, _)| fuzz_log(&text[..cut]));
        for (at, byte) in [
            (0, b'x'),
            (5, b'-'),
            (40, 0),
            (41, b'\n'),
            (60, b'9'),
            (80, 255),
        ] {
            let mut damaged = text.clone();
            damaged[at] = byte;
            fuzz_log(&damaged);
        }
        for text in [
            "",
            "\n\n\n",
            "1 2",
            "1 2 3",
            "9223372036854775807 1 1\n9223372036854775807 1 1 1 1\n-9223372036854775808 1 1 1 1\n",
            "5 9 9\n5 99999999999999999999 -99999999999999999999 1 1\n4 1 1 1 1\n4 1 1 1 1\n",
        ] {
            fuzz_log(text.as_bytes());
        }
    }

    #[test]
    fn most_lines_are_copied() {
        let mut log = Log {
            text: written(),
            ..Log::default()
        };
        log.parse().unwrap();
        assert!(log.rows.iter().all(|row| row.line.0 < row.line.1));
    }
}
