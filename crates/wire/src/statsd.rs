//! statsd as etsy's daemon takes it, and DogStatsD: values in the lines of a datagram or of a TCP stream. Nothing is allocated;
//! names, tags and members of sets are borrowed from the line. Adding values up is the listener's.
//!
//! Both dialects are read at once, for a line does not say which it is: `a:1|c:2|g` has two values with a type each, `a:1:2|c`
//! two of one type. Where they contradict each other a comment says whose word counts.

#[cfg(any(test, feature = "testing"))]
mod encode;
mod line;
#[cfg(test)]
mod tests;

use std::fmt;

#[cfg(any(test, feature = "testing"))]
pub use encode::put_sample;

pub use crate::tags::{TAG_MAX, TAGS_MAX, Tags};

use crate::line_stream::next_line;
use line::{Opening, SampleLine};

/// Longest line, in bytes: Datadog's agent reads packets of as many.
pub const LINE_MAX: usize = 8192;
/// Longest name, in bytes. A part of it becomes a file's or a column's name, and systems behind take a few hundred.
pub const NAME_MAX: usize = 1024;

/// Kinds of values, each with its own arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// `c`: adds up.
    Counter,
    /// Any other word: etsy's daemon adds it up as a counter. The listener counts these.
    Unknown,
    /// `g`: holds until the next one.
    Gauge,
    /// `ms`: a time in milliseconds, not below 0.
    Timer,
    /// `h`: DogStatsD treats it as a timer without a unit.
    Histogram,
    /// `d`: DogStatsD makes a sketch of it.
    Distribution,
    /// `s`: a member of a set.
    Set,
}

impl SampleKind {
    /// The kind that a line's type means.
    pub fn of_word(word: &[u8]) -> SampleKind {
        match word {
            b"c" => SampleKind::Counter,
            b"g" => SampleKind::Gauge,
            b"ms" => SampleKind::Timer,
            b"h" => SampleKind::Histogram,
            b"d" => SampleKind::Distribution,
            b"s" => SampleKind::Set,
            _ => SampleKind::Unknown,
        }
    }

    /// The type in a line.
    pub fn word(self) -> &'static str {
        match self {
            SampleKind::Counter => "c",
            SampleKind::Unknown => "?",
            SampleKind::Gauge => "g",
            SampleKind::Timer => "ms",
            SampleKind::Histogram => "h",
            SampleKind::Distribution => "d",
            SampleKind::Set => "s",
        }
    }
}

/// One value as a sender wrote it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleValue<'a> {
    /// Finite; of each kind but sets.
    Number(f64),
    /// A set's member, not empty.
    Text(&'a [u8]),
}

/// One value of one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Any bytes but `:`, `|` and line feeds, 1 to [`NAME_MAX`].
    pub name: &'a [u8],
    /// Tags of the whole line.
    pub tags: Tags<'a>,
    /// Text for sets, numbers for all other kinds.
    pub kind: SampleKind,
    /// See [`SampleKind`].
    pub value: SampleValue<'a>,
    /// The number has a sign. etsy's daemon moves a gauge by such a number, if the gauge has a value that is not 0;
    /// DogStatsD sets it.
    pub signed: bool,
    /// Above 0, at most 1: the share of events that the sender sends.
    pub rate: f64,
    /// Seconds since 1970, above 0: DogStatsD takes such a value as it is, without adding up.
    pub timestamp: Option<u64>,
}

/// One step of [`Samples`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard<'a> {
    /// A value.
    Sample(Sample<'a>),
    /// A line with an event of DogStatsD, which is passed over.
    Event,
    /// A line with a service check of DogStatsD, which is passed over.
    ServiceCheck,
}

/// Why a line or one of its values is not used. Other values of the line and other lines count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadSample {
    /// The line has more than [`LINE_MAX`] bytes.
    LineLength,
    /// No name.
    NoName,
    /// The name has more than [`NAME_MAX`] bytes.
    NameLength,
    /// A value without a type; a line of any other protocol has none.
    NoType,
    /// No value, and not a counter's, whose value is 1 then.
    NoValue,
    /// Not a decimal number.
    Number,
    /// `nan`, infinite, or more than an f64 can hold.
    NotFinite,
    /// A time below 0, which etsy's daemon refuses as well.
    Negative,
    /// Not above 0 and at most 1.
    Rate,
    /// More than [`TAGS_MAX`] tags.
    TagCount,
    /// A tag has more than [`TAG_MAX`] bytes.
    TagLength,
    /// A tag has a value but no key.
    TagKey,
    /// Not seconds since 1970 in decimal digits, above 0 and before the year 5138.
    Timestamp,
}

impl BadSample {
    /// All of them, in the order of their numbers.
    pub const ALL: [BadSample; 13] = [
        BadSample::LineLength,
        BadSample::NoName,
        BadSample::NameLength,
        BadSample::NoType,
        BadSample::NoValue,
        BadSample::Number,
        BadSample::NotFinite,
        BadSample::Negative,
        BadSample::Rate,
        BadSample::TagCount,
        BadSample::TagLength,
        BadSample::TagKey,
        BadSample::Timestamp,
    ];

    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            BadSample::LineLength => "a line of more than 8192 bytes",
            BadSample::NoName => "no name",
            BadSample::NameLength => "a name of more than 1024 bytes",
            BadSample::NoType => "a value without a type",
            BadSample::NoValue => "no value",
            BadSample::Number => "a value that is not a decimal number",
            BadSample::NotFinite => "a value that is not finite",
            BadSample::Negative => "a time below 0",
            BadSample::Rate => "a sample rate that is not above 0 and at most 1",
            BadSample::TagCount => "more than 64 tags",
            BadSample::TagLength => "a tag of more than 1024 bytes",
            BadSample::TagKey => "a tag without a key",
            BadSample::Timestamp => "a timestamp that is not in seconds since 1970",
        }
    }
}

impl fmt::Display for BadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// The values of a datagram, or of one line of a stream, in order. Each step uses up bytes.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    rest: &'a [u8],
    line: &'a [u8],
    open: Option<SampleLine<'a>>,
}

impl<'a> Samples<'a> {
    /// Lines parted by `\n` or `\r\n`; the last one need not end.
    pub fn of(text: &'a [u8]) -> Samples<'a> {
        Samples {
            rest: text,
            line: b"",
            open: None,
        }
    }

    /// The line that the last value or fault came from, for a message.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }
}

impl<'a> Iterator for Samples<'a> {
    type Item = Result<Heard<'a>, BadSample>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.open.as_mut().and_then(Iterator::next) {
                return Some(found.map(Heard::Sample));
            }
            self.open = None;
            self.line = next_line(&mut self.rest)?;
            if self.line.is_empty() {
                continue;
            }
            match SampleLine::open(self.line) {
                Ok(Opening::Values(line)) => self.open = Some(line),
                Ok(Opening::Event) => return Some(Ok(Heard::Event)),
                Ok(Opening::ServiceCheck) => return Some(Ok(Heard::ServiceCheck)),
                Err(bad) => return Some(Err(bad)),
            }
        }
    }
}
