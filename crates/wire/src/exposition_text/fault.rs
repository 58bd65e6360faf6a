//! Why a text is read no further.

use std::fmt;

/// A line that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExpositionFault {
    /// From 1 on.
    pub line: usize,
    /// The fault.
    pub why: BadExposition,
}

impl fmt::Display for ExpositionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why.why())
    }
}

/// The fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadExposition {
    /// More than [`super::LINE_MAX`] bytes.
    LineLength,
    /// Not UTF-8.
    NotUtf8,
    /// Neither a name of a metric nor a comment in front.
    Start,
    /// Labels that are not `{NAME="VALUE",...}`.
    Labels,
    /// More than [`super::LABELS_MAX`] labels.
    LabelCount,
    /// A metric without a name, or with two.
    Name,
    /// No value, or not a number.
    Value,
    /// Not milliseconds (0.0.4) or seconds (OpenMetrics) since 1970.
    Timestamp,
    /// More behind a sample.
    Behind,
    /// HELP, TYPE or UNIT without a name; in OpenMetrics, another comment than these.
    Comment,
    /// A type that the format does not have.
    Type,
    /// A unit that the family's name does not end in.
    Unit,
    /// A line of OpenMetrics without an end, or a text without `# EOF`: the text was cut.
    NoEof,
    /// Bytes behind `# EOF`.
    BehindEof,
}

impl BadExposition {
    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            BadExposition::LineLength => "more than 65536 bytes",
            BadExposition::NotUtf8 => "not UTF-8",
            BadExposition::Start => "no metric name in front",
            BadExposition::Labels => "labels that are not {NAME=\"VALUE\",...}",
            BadExposition::LabelCount => "more than 128 labels",
            BadExposition::Name => "no metric name, or two of them",
            BadExposition::Value => "a value that is not a number",
            BadExposition::Timestamp => "a timestamp that is not a time since 1970",
            BadExposition::Behind => "more behind the sample",
            BadExposition::Comment => "a comment that is not HELP, TYPE or UNIT with a name",
            BadExposition::Type => "an unknown type",
            BadExposition::Unit => "a unit that the name does not end in",
            BadExposition::NoEof => "the text ends without # EOF",
            BadExposition::BehindEof => "more behind # EOF",
        }
    }
}
