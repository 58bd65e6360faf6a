//! Parses times like at(1), with rrdtool's extensions: `now-1h`, `end-24h`, `12:00 yesterday`, `20260131 noon`,
//! `1700000000`, `-1y6m`.
//!
//! The grammar is that of rrd_parsetime with its guesses: `m` is months after years, weeks, days or a number below 6, and
//! otherwise minutes. Any other word after a number is skipped, and the number counts as seconds.

use crate::calendar::{Calendar, Tm};
use crate::error::Error;

/// Numbers above this are seconds since the epoch: ten years.
const SECONDS_FROM: i64 = 10 * 365 * 86_400;
/// Values of fields that the text does not set.
const NO_HOUR: i32 = 30;
const NO_YEAR: i32 = 30_000;
/// Longest error text, bytes.
const TEXT_MAX: usize = 1023;
/// The clock while fuzzing.
#[cfg(feature = "testing")]
const NOW_FUZZED: i64 = 1_795_000_000;
/// Words that fuzzed texts consist of.
#[cfg(feature = "testing")]
const PIECES_FUZZED: [&str; 32] = [
    "0", "1", "2", "3", "5", "7", "9", "+", "-", " ", ":", "/", ".", "\n", "now", "start", "end",
    "noon", "am", "pm", "jan", "oct", "mon", "sun", "today", "tomorrow", "h", "m", "d", "y",
    "2026", "epoch",
];

/// Reference of a relative time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The time is absolute.
    Nothing,
    /// The start of a range.
    Start,
    /// The end of a range.
    End,
    /// `epoch`: the last day of 1899, as in rrdtool.
    Epoch,
}

/// A parsed time: a date plus seconds, or days, months, years and seconds to add to a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtTime {
    /// The reference.
    pub from: From,
    /// Seconds to add.
    pub offset: i64,
    /// The date, or days, months and years to add to the reference.
    pub tm: Tm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Finish,
    Number,
    Plus,
    Minus,
    Dot,
    Colon,
    Slash,
    /// A word without a meaning here.
    Word,
    Am,
    Pm,
    Midnight,
    Noon,
    Teatime,
    Yesterday,
    Today,
    Tomorrow,
    Now,
    Start,
    End,
    Epoch,
    Month(i32),
    Weekday(i32),
    Unit(Unit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Minutes,
    Hours,
    Days,
    Weeks,
    Months,
    Years,
    /// `m`.
    MonthsOrMinutes,
}

/// Words of dates.
const WORDS: &[(&str, Token)] = &[
    ("midnight", Token::Midnight),
    ("noon", Token::Noon),
    ("teatime", Token::Teatime),
    ("am", Token::Am),
    ("pm", Token::Pm),
    ("tomorrow", Token::Tomorrow),
    ("yesterday", Token::Yesterday),
    ("today", Token::Today),
    ("now", Token::Now),
    ("n", Token::Now),
    ("start", Token::Start),
    ("s", Token::Start),
    ("end", Token::End),
    ("e", Token::End),
    ("epoch", Token::Epoch),
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];
/// Words of offsets.
const UNITS: &[(&str, Unit)] = &[
    ("second", Unit::Seconds),
    ("seconds", Unit::Seconds),
    ("sec", Unit::Seconds),
    ("s", Unit::Seconds),
    ("minute", Unit::Minutes),
    ("minutes", Unit::Minutes),
    ("min", Unit::Minutes),
    ("m", Unit::MonthsOrMinutes),
    ("hour", Unit::Hours),
    ("hours", Unit::Hours),
    ("hr", Unit::Hours),
    ("h", Unit::Hours),
    ("day", Unit::Days),
    ("days", Unit::Days),
    ("d", Unit::Days),
    ("week", Unit::Weeks),
    ("weeks", Unit::Weeks),
    ("wk", Unit::Weeks),
    ("w", Unit::Weeks),
    ("month", Unit::Months),
    ("months", Unit::Months),
    ("mon", Unit::Months),
    ("year", Unit::Years),
    ("years", Unit::Years),
    ("yr", Unit::Years),
    ("y", Unit::Years),
];

/// Parses a time. The error text is that of rrd_parsetime.
pub fn parse(text: &[u8], now: i64, calendar: &mut Calendar) -> Result<AtTime, Error> {
    let text = crate::header::until_nul(text);
    let mut parser = Parser {
        rest: text,
        token: Token::Finish,
        word: Vec::new(),
        in_offset: false,
        from: From::Nothing,
        offset: 0,
        tm: Tm {
            isdst: -1,
            ..calendar.local(now)
        },
    };
    parser.reference(calendar)?;
    parser.offsets()?;
    if parser.token != Token::Finish {
        return Err(parser.unparsable("trailing text: '...", "'"));
    }
    let mut at = AtTime {
        from: parser.from,
        offset: parser.offset,
        tm: parser.tm,
    };
    if at.from == From::Nothing && calendar.seconds(&mut at.tm).is_none() {
        return Err(Error::new(
            "the specified time is incorrect (out of range?)",
        ));
    }
    Ok(at)
}

impl AtTime {
    /// True if the time refers to an end of a range.
    pub fn is_relative(&self) -> bool {
        matches!(self.from, From::Start | From::End)
    }

    /// Seconds since the epoch.
    pub fn seconds(&self, calendar: &mut Calendar) -> i64 {
        make(&mut self.tm.clone(), calendar).wrapping_add(self.offset)
    }

    /// Seconds since the epoch of a time relative to `other`.
    fn seconds_from(&self, other: i64, calendar: &mut Calendar) -> i64 {
        let mut tm = calendar.local(other);
        tm.mday = tm.mday.wrapping_add(self.tm.mday);
        tm.mon = tm.mon.wrapping_add(self.tm.mon);
        tm.year = tm.year.wrapping_add(self.tm.year);
        make(&mut tm, calendar).wrapping_add(self.offset)
    }
}

fn make(tm: &mut Tm, calendar: &mut Calendar) -> i64 {
    calendar.seconds(tm).unwrap_or(-1)
}

/// Start and end of a range; one may refer to the other (rrd_proc_start_end).
pub fn range(start: &AtTime, end: &AtTime, calendar: &mut Calendar) -> Result<(i64, i64), Error> {
    if start.from == From::End && end.from == From::Start {
        return Err(Error::new(
            "the start and end times cannot be specified relative to each other",
        ));
    }
    if start.from == From::Start {
        return Err(Error::new(
            "the start time cannot be specified relative to itself",
        ));
    }
    if end.from == From::End {
        return Err(Error::new(
            "the end time cannot be specified relative to itself",
        ));
    }
    let first = if start.from == From::End {
        let end = end.seconds(calendar);
        start.seconds_from(end, calendar)
    } else {
        start.seconds(calendar)
    };
    let last = if end.from == From::Start {
        let start = start.seconds(calendar);
        end.seconds_from(start, calendar)
    } else {
        end.seconds(calendar)
    };
    Ok((first, last))
}

struct Parser<'a> {
    /// The unread text.
    rest: &'a [u8],
    token: Token,
    /// The token's text.
    word: Vec<u8>,
    /// True if words are units.
    in_offset: bool,
    from: From,
    offset: i64,
    tm: Tm,
}

/// A position to return to.
type Mark<'a> = (&'a [u8], Token);

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token {
        self.word.clear();
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r' | b'_' | b',');
        let skipped = self.rest.iter().take_while(blank).count();
        self.rest = &self.rest[skipped..];
        let Some(&first) = self.rest.first() else {
            self.token = Token::Finish;
            return self.token;
        };
        let alike = match first {
            b'0'..=b'9' => self.run(u8::is_ascii_digit),
            b'a'..=b'z' | b'A'..=b'Z' => self.run(u8::is_ascii_alphabetic),
            _ => 1,
        };
        let (word, rest) = self.rest.split_at(alike);
        self.word.extend_from_slice(word);
        self.token = match first {
            b'0'..=b'9' => Token::Number,
            b':' => Token::Colon,
            b'.' => Token::Dot,
            b'+' => Token::Plus,
            b'-' => Token::Minus,
            b'/' => Token::Slash,
            _ if first.is_ascii_alphabetic() => self.meaning(),
            _ => {
                // The text is not consumed, so that the error shows it twice, as in rrdtool.
                self.token = Token::Finish;
                return self.token;
            }
        };
        self.rest = rest;
        self.token
    }

    fn run(&self, alike: impl Fn(&u8) -> bool) -> usize {
        self.rest.iter().take_while(|&byte| alike(byte)).count()
    }

    fn meaning(&self) -> Token {
        let word = self.word.to_ascii_lowercase();
        let is = |name: &&str| name.as_bytes() == word;
        let begins = |name: &&str| is(name) || name.as_bytes()[..3] == word;
        if self.in_offset {
            let unit = UNITS.iter().find(|(name, _)| is(name));
            return unit.map_or(Token::Word, |&(_, unit)| Token::Unit(unit));
        }
        let named = WORDS.iter().find(|(name, _)| is(name)).map(|&(_, t)| t);
        let position = |names: &[&str]| names.iter().position(begins);
        named
            .or_else(|| position(&MONTHS).map(|i| Token::Month(i as i32)))
            .or_else(|| position(&WEEKDAYS).map(|i| Token::Weekday(i as i32)))
            .unwrap_or(Token::Word)
    }

    fn mark(&self) -> Mark<'a> {
        (self.rest, self.token)
    }

    /// Returns to a number that was read before.
    fn back(&mut self, mark: Mark<'a>, number: i32) {
        (self.rest, self.token) = mark;
        self.word = number.to_string().into_bytes();
    }

    fn expect_number(&mut self, complaint: impl Into<String>) -> Result<(), Error> {
        match self.next() {
            Token::Number => Ok(()),
            _ => Err(Error::new(complaint)),
        }
    }

    fn unparsable(&self, before: &str, after: &str) -> Error {
        let mut text = format!("unparsable {before}").into_bytes();
        text.extend_from_slice(&self.word);
        text.extend_from_slice(self.rest);
        text.extend_from_slice(after.as_bytes());
        text.truncate(TEXT_MAX);
        Error::new(String::from_utf8_lossy(&text))
    }

    /// Parses all that comes before the offsets.
    fn reference(&mut self, calendar: &Calendar) -> Result<(), Error> {
        match self.next() {
            Token::Plus | Token::Minus => Ok(()),
            Token::Epoch => self.relative(From::Epoch),
            Token::Start => self.relative(From::Start),
            Token::End => self.relative(From::End),
            Token::Now => match self.next() {
                Token::Plus | Token::Minus | Token::Finish => Ok(()),
                _ => Err(Error::new(
                    "if 'now' is followed by a token it must be +|- offset",
                )),
            },
            Token::Number => self.number_first(calendar),
            Token::Month(_) => {
                self.day(calendar)?;
                if self.token == Token::Number {
                    self.time_of_day()?;
                }
                Ok(())
            }
            Token::Teatime => self.named_hour(16, calendar),
            Token::Noon => self.named_hour(12, calendar),
            Token::Midnight => self.named_hour(0, calendar),
            _ => Err(self.unparsable("time: ", "")),
        }
    }

    fn relative(&mut self, from: From) -> Result<(), Error> {
        self.from = from;
        self.tm = Tm {
            wday: self.tm.wday,
            isdst: -1,
            ..Tm::default()
        };
        match self.next() {
            Token::Plus | Token::Minus => Ok(()),
            _ => Err(Error::new(
                "'start' or 'end' MUST be followed by +|- offset",
            )),
        }
    }

    /// Parses a time of day, a date, or both in either order.
    fn number_first(&mut self, calendar: &Calendar) -> Result<(), Error> {
        let Tm { hour, year, .. } = self.tm;
        (self.tm.hour, self.tm.year) = (NO_HOUR, NO_YEAR);
        self.time_of_day()?;
        self.day(calendar)?;
        if self.tm.hour == NO_HOUR && self.tm.year != NO_YEAR {
            self.time_of_day()?;
        }
        if self.tm.hour == NO_HOUR {
            self.tm.hour = hour;
        }
        if self.tm.year == NO_YEAR {
            self.tm.year = year;
        }
        Ok(())
    }

    fn named_hour(&mut self, hour: i32, calendar: &Calendar) -> Result<(), Error> {
        (self.tm.hour, self.tm.min, self.tm.sec) = (hour, 0, 0);
        self.next();
        self.day(calendar)
    }

    /// Parses `HH[:MM] [am|pm]`. A text that is no time of day is left for the date.
    fn time_of_day(&mut self) -> Result<(), Error> {
        if self.word.len() > 2 {
            return Ok(());
        }
        let (mark, mut hour, mut minute) = (self.mark(), int(&self.word), 0);
        match self.next() {
            Token::Slash | Token::Dot => {
                self.back(mark, hour);
                return Ok(());
            }
            Token::Colon => {
                self.expect_number("Parsing HH:MM syntax, expecting MM as number, got none")?;
                minute = int(&self.word);
                if minute > 59 {
                    let text = format!("parsing HH:MM syntax, got MM = {minute} (>59!)");
                    return Err(Error::new(text));
                }
                self.next();
            }
            _ => {}
        }
        if matches!(self.token, Token::Am | Token::Pm) {
            hour = hour_of_half_day(hour, self.token == Token::Pm)?;
            self.next();
        } else if hour > 23 {
            self.back(mark, hour);
            return Ok(());
        }
        (self.tm.hour, self.tm.min, self.tm.sec) = (hour, minute, 0);
        Ok(())
    }

    /// Parses a date in any form; leaves anything else unread.
    fn day(&mut self, calendar: &Calendar) -> Result<(), Error> {
        match self.token {
            Token::Yesterday => self.tm.mday -= 1,
            Token::Today => {}
            Token::Tomorrow => self.tm.mday += 1,
            Token::Weekday(wday) => self.tm.mday += wday - self.tm.wday,
            Token::Month(mon) => return self.month_first(mon),
            Token::Number => return self.date(calendar),
            _ => return Ok(()),
        }
        self.next();
        Ok(())
    }

    /// Parses `Jan 31 [2026]`.
    fn month_first(&mut self, mon: i32) -> Result<(), Error> {
        self.expect_number("the day of the month should follow month name")?;
        let mday = long(&self.word);
        let mut year = i64::from(self.tm.year);
        if self.next() == Token::Number {
            year = long(&self.word);
            self.next();
        }
        self.assign(mday, mon.into(), year)
    }

    /// Parses seconds since the epoch, `20260131`, `1/31/2026` or `31.1.2026`.
    fn date(&mut self, calendar: &Calendar) -> Result<(), Error> {
        let number = long(&self.word);
        if number > SECONDS_FROM {
            self.tm = calendar.local(number);
            self.next();
            return Ok(());
        }
        let (mut mon, mut mday, mut year) = (number, 0, i64::from(self.tm.year));
        if mon > 19_700_101 && mon < 24_000_101 {
            let digit = |range: std::ops::Range<usize>| long(&self.word[range]);
            (year, mon, mday) = (digit(0..4), digit(4..6), digit(6..8));
            self.next();
        } else {
            let separator = self.next();
            if mon <= 31 && matches!(separator, Token::Slash | Token::Dot) {
                (mday, year) = self.separated(separator, year)?;
                if separator == Token::Dot {
                    (mon, mday) = (mday, mon);
                }
            }
        }
        if !(1..=12).contains(&mon) {
            // Printed as a C int.
            let text = format!("did you really mean month {}?", mon as i32);
            return Err(Error::new(text));
        }
        if !(1..=31).contains(&mday) {
            let mday = mday as i32;
            let text = format!("I'm afraid that {mday} is not a valid day of the month");
            return Err(Error::new(text));
        }
        self.assign(mday, mon - 1, year)
    }

    /// Parses the part behind `31.` or `1/`: a number, and perhaps a year.
    fn separated(&mut self, separator: Token, year: i64) -> Result<(i64, i64), Error> {
        let (name, sign) = match separator {
            Token::Dot => ("month", '.'),
            _ => ("day", '/'),
        };
        self.expect_number(format!("there should be {name} number after '{sign}'"))?;
        let second = long(&self.word);
        if self.next() != separator {
            return Ok((second, year));
        }
        self.expect_number(format!("there should be year number after '{sign}'"))?;
        let year = long(&self.word);
        self.next();
        Ok((second, year))
    }

    fn assign(&mut self, mday: i64, mon: i64, year: i64) -> Result<(), Error> {
        let year = match year {
            1971.. => year - 1900,
            139..=1970 => {
                let year = year as i32;
                let text = format!("invalid year {year} (should be either 00-99 or >1900)");
                return Err(Error::new(text));
            }
            0..38 => year + 100,
            _ => year,
        };
        if year < 70 {
            return Err(Error::new(
                "won't handle dates before epoch (01/01/1970), sorry",
            ));
        }
        (self.tm.mday, self.tm.mon, self.tm.year) = (mday as i32, mon as i32, year as i32);
        Ok(())
    }

    /// Parses `+1d3h -5m ...`.
    fn offsets(&mut self) -> Result<(), Error> {
        if !matches!(self.token, Token::Plus | Token::Minus) {
            return Ok(());
        }
        self.in_offset = true;
        let (mut minus, mut unit) = (false, None);
        while matches!(self.token, Token::Plus | Token::Minus | Token::Number) {
            if self.token != Token::Number {
                minus = self.token == Token::Minus;
                let sign = if minus { '-' } else { '+' };
                self.expect_number(format!("There should be number after '{sign}'"))?;
                unit = None;
            }
            let number = int(&self.word);
            unit = Some(self.unit(number, unit));
            let number = if minus { number.wrapping_neg() } else { number };
            self.add(number, unit);
            self.next();
        }
        Ok(())
    }

    /// The unit behind a number; any other word is skipped and means seconds.
    fn unit(&mut self, number: i32, before: Option<Unit>) -> Unit {
        match self.next() {
            Token::Unit(Unit::MonthsOrMinutes) => match before {
                Some(Unit::Days | Unit::Weeks | Unit::Months | Unit::Years) => Unit::Months,
                Some(Unit::Seconds | Unit::Minutes | Unit::Hours) => Unit::Minutes,
                _ if number < 6 => Unit::Months,
                _ => Unit::Minutes,
            },
            Token::Unit(unit) => unit,
            // The next `m` is guessed by its number, which it would not be after `Seconds`.
            _ => Unit::MonthsOrMinutes,
        }
    }

    fn add(&mut self, number: i32, unit: Option<Unit>) {
        let field = match unit {
            Some(Unit::Years) => &mut self.tm.year,
            Some(Unit::Months) => &mut self.tm.mon,
            Some(Unit::Weeks | Unit::Days) => &mut self.tm.mday,
            _ => {
                let seconds: i32 = match unit {
                    Some(Unit::Hours) => 3600,
                    Some(Unit::Minutes) => 60,
                    _ => 1,
                };
                self.offset += i64::from(number.wrapping_mul(seconds));
                return;
            }
        };
        let days = if unit == Some(Unit::Weeks) { 7 } else { 1 };
        *field = field.wrapping_add(number.wrapping_mul(days));
    }
}

/// Converts an hour of a twelve-hour clock.
fn hour_of_half_day(hour: i32, pm: bool) -> Result<i32, Error> {
    match (hour, pm) {
        (13.., _) => Err(Error::new("there cannot be more than 12 AM or PM hours")),
        (12, false) => Ok(0),
        (12, true) | (_, false) => Ok(hour),
        (_, true) => Ok(hour + 12),
    }
}

/// C's `atol`; 0 for a word without digits.
fn long(word: &[u8]) -> i64 {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        number.saturating_mul(10).saturating_add(digit)
    })
}

/// C's `atoi`.
fn int(word: &[u8]) -> i32 {
    long(word) as i32
}

/// Fuzzes the parser with any text, and with texts of the grammar's words. A parsed time equals the time of its own
/// fields.
#[cfg(feature = "testing")]
pub fn fuzz_at_time(input: &[u8]) {
    fuzz_text(input);
    let spelled = input.iter().flat_map(|&byte| {
        let piece = PIECES_FUZZED[usize::from(byte) % PIECES_FUZZED.len()];
        piece.bytes()
    });
    fuzz_text(&spelled.collect::<Vec<u8>>());
}

#[cfg(feature = "testing")]
fn fuzz_text(text: &[u8]) {
    let rules = "CET-1CEST,M3.5.0,M10.5.0/3";
    let zone = jiff::tz::TimeZone::posix(rules).unwrap_or(jiff::tz::TimeZone::UTC);
    let mut calendar = Calendar::new(zone);
    let cut = text.iter().position(|&byte| byte == b'\n');
    let (start, end) = text.split_at(cut.unwrap_or(text.len()));
    let mut read = |text: &[u8]| parse(text, NOW_FUZZED, &mut calendar).ok();
    let (Some(start), Some(end)) = (read(start), read(end.get(1..).unwrap_or(b"now"))) else {
        return;
    };
    let Ok((first, _)) = range(&start, &end, &mut calendar) else {
        return;
    };
    if first != -1 && (-(1 << 40)..1 << 40).contains(&first) {
        let mut tm = calendar.local(first);
        assert_eq!(calendar.seconds(&mut tm), Some(first), "another time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    /// Thursday, 2026-01-15 12:34:56 UTC.
    const NOW: i64 = 1_768_480_496;

    /// Seconds from now to the parsed time, or the error text.
    fn seconds_of(text: &str) -> Result<i64, String> {
        let mut calendar = Calendar::new(TimeZone::UTC);
        let time = parse(text.as_bytes(), NOW, &mut calendar).map_err(|error| error.text)?;
        Ok(time.seconds(&mut calendar) - NOW)
    }

    #[test]
    fn times_are_read() {
        let midnight = -(12 * 3600 + 34 * 60 + 56);
        let day = 86_400;
        for (text, expected) in [
            ("now", 0),
            ("n", 0),
            ("now-1h", -3600),
            ("-1h", -3600),
            ("+5", 5),
            // The plus stands at the place of a unit, so it is skipped.
            ("-5min 3 +1s", -304),
            ("-1d", -day),
            ("-1w2d3h", -9 * day - 3 * 3600),
            // `m` after a number below 6, or after days and longer, is months.
            ("+1m", 31 * day),
            ("+6m", 360),
            ("+1h2m", 3720),
            ("+1d1m", 32 * day),
            ("midnight", midnight),
            ("noon yesterday", midnight + 12 * 3600 - day),
            ("teatime tomorrow", midnight + 16 * 3600 + day),
            ("9:30am", midnight + 9 * 3600 + 1800),
            ("12am", midnight),
            ("12pm", midnight + 12 * 3600),
            ("00:00 20260116", midnight + day),
            ("20260116 00:00", midnight + day),
            ("1/16/2026 00:00", midnight + day),
            ("16.1.26 00:00", midnight + day),
            ("jan 16 2026 00:00", midnight + day),
            ("January 16", day),
            ("midnight sunday", midnight - 4 * day),
            ("1768480497", 1),
            ("1768480497+1d", 1 + day),
            ("now+1y", 365 * day),
            ("NOW_-_1_DAY", -day),
        ] {
            assert_eq!(seconds_of(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (text, expected) in [
            ("", "unparsable time: "),
            ("soon", "unparsable time: soon"),
            ("%", "unparsable time: %%"),
            (
                "now now",
                "if 'now' is followed by a token it must be +|- offset",
            ),
            ("start", "'start' or 'end' MUST be followed by +|- offset"),
            ("now+", "There should be number after '+'"),
            ("noon x", "unparsable trailing text: '...x'"),
            (
                "12:",
                "Parsing HH:MM syntax, expecting MM as number, got none",
            ),
            ("12:60", "parsing HH:MM syntax, got MM = 60 (>59!)"),
            ("13pm", "there cannot be more than 12 AM or PM hours"),
            ("45", "did you really mean month 45?"),
            ("20261301", "did you really mean month 13?"),
            (
                "1/32/2026",
                "I'm afraid that 32 is not a valid day of the month",
            ),
            (
                "1/1/1969",
                "invalid year 1969 (should be either 00-99 or >1900)",
            ),
            (
                "1/1/60",
                "won't handle dates before epoch (01/01/1970), sorry",
            ),
            ("31.", "there should be month number after '.'"),
            ("1/2/x", "there should be year number after '/'"),
            ("jan x", "the day of the month should follow month name"),
        ] {
            assert_eq!(seconds_of(text), Err(expected.into()), "{text}");
        }
    }

    #[test]
    fn no_text_harms() {
        let long = "5".repeat(5000);
        let texts = [
            "noon jan 16 2026 +1y2m3w4d5h6min7sec",
            "12:30pm 31.12.2026-99999999999y",
            &long,
        ];
        for text in texts {
            for len in 0..text.len().min(200) {
                fuzz_at_time(&text.as_bytes()[..len]);
            }
            fuzz_at_time(text.as_bytes());
        }
        assert_eq!(
            seconds_of(&format!("x{}", "y".repeat(5000))).map_err(|text| text.len()),
            Err(TEXT_MAX)
        );
    }
}
