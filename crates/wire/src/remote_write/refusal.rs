//! Why a message or one of its series is not taken.

use std::fmt;

use crate::protobuf::BadProtobuf;

/// Why a series is not taken. Other series count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadSeries {
    /// No `__name__`, or an empty one.
    NoName,
    /// A label without a name.
    EmptyLabelName,
    /// A label's name comes twice.
    Twice,
    /// A text that is not UTF-8.
    NotUtf8,
    /// More labels than the limit.
    LabelCount,
    /// More bytes of labels than the limit.
    LabelBytes,
    /// A reference to a symbol that the message does not have; 2.0 only.
    NoSymbol,
    /// A label's name without a value; 2.0 only.
    OddReferences,
    /// Neither samples nor histograms nor exemplars; 2.0 only.
    Empty,
}

impl BadSeries {
    /// All of them, in the order of their numbers.
    pub const ALL: [BadSeries; 9] = [
        BadSeries::NoName,
        BadSeries::EmptyLabelName,
        BadSeries::Twice,
        BadSeries::NotUtf8,
        BadSeries::LabelCount,
        BadSeries::LabelBytes,
        BadSeries::NoSymbol,
        BadSeries::OddReferences,
        BadSeries::Empty,
    ];

    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            BadSeries::NoName => "no label __name__",
            BadSeries::EmptyLabelName => "a label without a name",
            BadSeries::Twice => "a label comes twice",
            BadSeries::NotUtf8 => "a label that is not UTF-8",
            BadSeries::LabelCount => "too many labels",
            BadSeries::LabelBytes => "labels of too many bytes",
            BadSeries::NoSymbol => "a reference beyond the table of symbols",
            BadSeries::OddReferences => "a label's name without a value",
            BadSeries::Empty => "neither samples nor histograms",
        }
    }
}

impl fmt::Display for BadSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// Why a message cannot be read further. The caller may use the parts read before, or drop them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadWrite {
    /// The bytes are no protobuf message.
    Malformed,
    /// More samples than the limit.
    Samples,
    /// More symbols than the limit.
    Symbols,
}

impl BadWrite {
    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            BadWrite::Malformed => "not a protobuf message",
            BadWrite::Samples => "too many samples in one message",
            BadWrite::Symbols => "too many symbols in one message",
        }
    }
}

impl fmt::Display for BadWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl From<BadProtobuf> for BadWrite {
    fn from(_: BadProtobuf) -> BadWrite {
        BadWrite::Malformed
    }
}
