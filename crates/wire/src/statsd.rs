//! statsd as etsy's daemon and DogStatsD read it: values in the lines of a datagram or of a TCP stream. Nothing is allocated;
//! names, tags and members of sets are borrowed from the line. The listener sums up the values.
//!
//! The parser accepts both dialects at once, because a line does not name its dialect: `a:1|c:2|g` has two values with a type
//! each, `a:1:2|c` two values of one type. Where the dialects contradict each other, a comment names the one that counts.

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

/// Longest line, in bytes; Datadog's agent reads packets of the same size.
pub const LINE_MAX: usize = 8192;
/// Longest name, in bytes. A part of it becomes the name of a file or a column, and storage backends accept a few hundred.
pub const NAME_MAX: usize = 1024;

/// Kinds of values, each with a different arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// `c`: a count; values add up.
    Counter,
    /// Any other type; etsy's daemon sums it up as a counter. The listener counts such values.
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
    /// The kind for the type in a line.
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

    /// The type to write into a line.
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
    /// A finite number, for each kind but sets.
    Number(f64),
    /// A member of a set, not empty.
    Text(&'a [u8]),
}

/// One value of one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// 1 to [`NAME_MAX`] bytes without `:`, `|` and line feeds.
    pub name: &'a [u8],
    /// Tags of the whole line.
    pub tags: Tags<'a>,
    /// The kind; sets have texts, all other kinds numbers.
    pub kind: SampleKind,
    /// The value, see [`SampleKind`].
    pub value: SampleValue<'a>,
    /// True if the number has a sign. etsy's daemon then adds it to a gauge whose value is not 0; DogStatsD sets the gauge.
    pub signed: bool,
    /// The share of events that the sender reports: above 0, at most 1.
    pub rate: f64,
    /// Seconds since 1970, above 0. DogStatsD stores a value with a timestamp unchanged, without summing up.
    pub timestamp: Option<u64>,
}

/// One step of [`Samples`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleStep<'a> {
    /// A value.
    Sample(Sample<'a>),
    /// A line with an event of DogStatsD; the parser skips it.
    Event,
    /// A line with a service check of DogStatsD; the parser skips it.
    ServiceCheck,
}

/// Why a line or one of its values is refused. Its other values and other lines still count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadSample {
    /// The line has more than [`LINE_MAX`] bytes.
    LineLength,
    /// No name.
    NoName,
    /// The name has more than [`NAME_MAX`] bytes.
    NameLength,
    /// A value without a type, as in a line of another protocol.
    NoType,
    /// The value is missing. Only a counter may omit it; the counter then adds 1.
    NoValue,
    /// The value is not a decimal number.
    Number,
    /// The value is `nan`, infinite, or more than an f64 can hold.
    NotFinite,
    /// A negative time, which etsy's daemon refuses as well.
    Negative,
    /// A rate that is not above 0 and at most 1.
    Rate,
    /// The line has more than [`TAGS_MAX`] tags.
    TagCount,
    /// A tag has more than [`TAG_MAX`] bytes.
    TagLength,
    /// A tag has a value but no key.
    TagKey,
    /// A timestamp that is not decimal seconds since 1970, above 0 and before the year 5138.
    Timestamp,
}

impl BadSample {
    /// All reasons, in the order of their numbers.
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

    /// The reason as text for a message.
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

/// The values of a datagram, or of one line of a stream, in order. Each step consumes bytes.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    rest: &'a [u8],
    line: &'a [u8],
    open: Option<SampleLine<'a>>,
}

impl<'a> Samples<'a> {
    /// Reads lines that end with `\n` or `\r\n`; the last line needs no end.
    pub fn of(text: &'a [u8]) -> Samples<'a> {
        Samples {
            rest: text,
            line: b"",
            open: None,
        }
    }

    /// The line of the last value or error, for a message.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }
}

impl<'a> Iterator for Samples<'a> {
    type Item = Result<SampleStep<'a>, BadSample>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.open.as_mut().and_then(Iterator::next) {
                return Some(found.map(SampleStep::Sample));
            }
            self.open = None;
            self.line = next_line(&mut self.rest)?;
            if self.line.is_empty() {
                continue;
            }
            match SampleLine::open(self.line) {
                Ok(Opening::Values(line)) => self.open = Some(line),
                Ok(Opening::Event) => return Some(Ok(SampleStep::Event)),
                Ok(Opening::ServiceCheck) => return Some(Ok(SampleStep::ServiceCheck)),
                Err(bad) => return Some(Err(bad)),
            }
        }
    }
}
