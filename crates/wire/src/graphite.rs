//! Graphite's plaintext protocol as carbon reads it: a path with tags, a value and a time in each line of a datagram or of a TCP
//! stream. Nothing is allocated; paths and tags are borrowed from the line. This module has no clock, so the listener decides
//! what "now" is. Tags keep the sender's order and repeated keys (carbon sorts them, and of a repeated key keeps the last).

#[cfg(any(test, feature = "testing"))]
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;

use memchr::memchr;

#[cfg(any(test, feature = "testing"))]
pub use encode::put_point;

pub use crate::tags::{TAG_MAX, TAGS_MAX, Tags};

use crate::line_stream::next_line;
use crate::number::{SECONDS_MAX, Unreadable, decimal};
use crate::tags::BadTags;

/// Longest line, in bytes: carbon closes a connection for a longer one (Twisted's `LineOnlyReceiver.MAX_LENGTH`).
pub const LINE_MAX: usize = 16_384;
/// Longest path without its tags, in bytes. Whisper turns a path into folders, and file systems allow 4,096 bytes in total.
pub const PATH_MAX: usize = 1024;

/// A value with its path, tags and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point<'a> {
    /// 1 to [`PATH_MAX`] bytes without blanks and `;`.
    pub path: &'a [u8],
    /// The tags, each with a key and a value.
    pub tags: Tags<'a>,
    /// The value, finite.
    pub value: f64,
    /// Seconds since 1970 with a fraction, 0 to the year 5138. `None`: the line has -1 for the time of arrival.
    pub time: Option<f64>,
}

/// One step of [`Points`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GraphiteLine<'a> {
    /// A value.
    Point(Point<'a>),
    /// A valid line whose value is `nan`; carbon drops it silently. collectd sends `nan` for an unknown value.
    NotANumber,
}

/// Why a line is refused. Other lines still count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadPoint {
    /// The line has more than [`LINE_MAX`] bytes.
    LineLength,
    /// A line with more or fewer than three fields.
    Fields,
    /// No path before the first `;`.
    NoPath,
    /// The path has more than [`PATH_MAX`] bytes.
    PathLength,
    /// The value is not a decimal number.
    Value,
    /// The value is infinite, or more than an f64 can hold.
    Infinite,
    /// The time is neither -1 nor a decimal number of seconds from 0 to the year 5138.
    Time,
    /// The path has more than [`TAGS_MAX`] tags.
    TagCount,
    /// A tag has more than [`TAG_MAX`] bytes.
    TagLength,
    /// A tag without a key or without a value, or with a byte that carbon forbids.
    Tag,
}

impl BadPoint {
    /// All reasons, in the order of their numbers.
    pub const ALL: [BadPoint; 10] = [
        BadPoint::LineLength,
        BadPoint::Fields,
        BadPoint::NoPath,
        BadPoint::PathLength,
        BadPoint::Value,
        BadPoint::Infinite,
        BadPoint::Time,
        BadPoint::TagCount,
        BadPoint::TagLength,
        BadPoint::Tag,
    ];

    /// The reason as text for a message.
    pub fn why(self) -> &'static str {
        match self {
            BadPoint::LineLength => "a line of more than 16384 bytes",
            BadPoint::Fields => "not a path, a value and a timestamp",
            BadPoint::NoPath => "no path",
            BadPoint::PathLength => "a path of more than 1024 bytes",
            BadPoint::Value => "a value that is not a decimal number",
            BadPoint::Infinite => "a value that is not finite",
            BadPoint::Time => "a timestamp that is not in seconds since 1970",
            BadPoint::TagCount => "more than 64 tags",
            BadPoint::TagLength => "a tag of more than 1024 bytes",
            BadPoint::Tag => "a tag that is not key=value, or not as Graphite allows it",
        }
    }
}

impl fmt::Display for BadPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// The points of a datagram, or of one line of a stream, in order. Each step consumes bytes.
#[derive(Clone, Debug)]
pub struct Points<'a> {
    rest: &'a [u8],
    line: &'a [u8],
}

impl<'a> Points<'a> {
    /// Reads lines that end with `\n` or `\r\n`; the last line needs no end.
    pub fn of(text: &'a [u8]) -> Points<'a> {
        Points {
            rest: text,
            line: b"",
        }
    }

    /// The line of the last point or error, for a message.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }
}

impl<'a> Iterator for Points<'a> {
    type Item = Result<GraphiteLine<'a>, BadPoint>;

    /// Skips lines without a field; carbon logs them as bad.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.line = next_line(&mut self.rest)?;
            if let Some(found) = read(self.line).transpose() {
                return Some(found);
            }
        }
    }
}

/// `None`: the line has no field.
fn read(line: &[u8]) -> Result<Option<GraphiteLine<'_>>, BadPoint> {
    if line.len() > LINE_MAX {
        return Err(BadPoint::LineLength);
    }
    let mut fields = line
        .split(|&byte| is_blank(byte))
        .filter(|field| !field.is_empty());
    let Some(path) = fields.next() else {
        return Ok(None);
    };
    let (Some(value), Some(time), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(BadPoint::Fields);
    };
    let (path, tags) = path_and_tags(path)?;
    let time = seconds(time)?;
    let value = match decimal(value) {
        Ok(value) => value,
        Err(Unreadable::NotANumber) => return Ok(Some(GraphiteLine::NotANumber)),
        Err(Unreadable::Infinite) => return Err(BadPoint::Infinite),
        Err(Unreadable::NotDecimal) => return Err(BadPoint::Value),
    };
    Ok(Some(GraphiteLine::Point(Point {
        path,
        tags,
        value,
        time,
    })))
}

/// ASCII bytes at which Python's `split` separates: carbon splits a text, not bytes.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0x1c..=0x1f)
}

/// carbon logs a forbidden tag and keeps the value under the unchanged field, tags included. We refuse the line, because such a
/// field would be a second name of the same series.
fn path_and_tags(field: &[u8]) -> Result<(&[u8], Tags<'_>), BadPoint> {
    let end = memchr(b';', field);
    let path = &field[..end.unwrap_or(field.len())];
    match path.len() {
        0 => return Err(BadPoint::NoPath),
        1..=PATH_MAX => {}
        _ => return Err(BadPoint::PathLength),
    }
    let raw = end.map_or(&[][..], |end| &field[end + 1..]);
    let tags = Tags::of_graphite(raw).map_err(|bad| match bad {
        BadTags::Count => BadPoint::TagCount,
        BadTags::Length => BadPoint::TagLength,
        BadTags::NoKey => BadPoint::Tag,
    })?;
    // carbon forbids an empty tag, which [`Tags`] skips as DogStatsD does.
    let whole = end.is_none() || raw.split(|&byte| byte == b';').all(|tag| !tag.is_empty());
    match whole && tags.iter().all(|(key, value)| is_allowed(key, value)) {
        true => Ok((path, tags)),
        false => Err(BadPoint::Tag),
    }
}

/// The rules of carbon's `TaggedSeries.validateTagAndValue`; the parser leaves no `;` or `=` in a key.
fn is_allowed(key: &[u8], value: &[u8]) -> bool {
    let marked = key.iter().any(|byte| matches!(byte, b'!' | b'^'));
    !marked && !matches!(value.first(), None | Some(b'~'))
}

/// Parses a time. `None`: -1 or a number above -2 that carbon truncates to -1.
fn seconds(text: &[u8]) -> Result<Option<f64>, BadPoint> {
    let seconds = decimal(text).map_err(|_| BadPoint::Time)?;
    if seconds.trunc() == -1.0 {
        return Ok(None);
    }
    let fits = (0.0..=SECONDS_MAX as f64).contains(&seconds);
    fits.then_some(Some(seconds)).ok_or(BadPoint::Time)
}
