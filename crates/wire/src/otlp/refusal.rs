//! Why a message or one of its points is not taken.

use std::fmt;

use crate::protobuf::BadProtobuf;

/// The bytes are no protobuf message. The caller may use the parts read before, or drop them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BadOtlp;

impl fmt::Display for BadOtlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a protobuf message")
    }
}

/// Why a data point is not taken. Other points count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadDataPoint {
    /// The sum or histogram has differences for points, not totals.
    Delta,
    /// The sum or histogram does not say which of both its points are.
    NoTemporality,
    /// An exponential histogram.
    Exponential,
    /// The metric has no name, or one of illegal characters only.
    Name,
    /// A text that is not UTF-8.
    NotUtf8,
    /// No time.
    NoTime,
    /// No value, though it is not said to be unknown.
    NoValue,
    /// An attribute without a key, or with one of illegal characters only.
    AttributeKey,
    /// An attribute whose value is nested too deeply.
    AttributeDepth,
    /// More attributes than the limit.
    AttributeCount,
    /// More bytes of attributes than the limit.
    AttributeBytes,
    /// More buckets or quantiles than the limit.
    BucketCount,
    /// Not one bucket more than bounds, or bounds that do not rise.
    Bounds,
}

impl BadDataPoint {
    /// All of them, in the order of their numbers.
    pub const ALL: [BadDataPoint; 13] = [
        BadDataPoint::Delta,
        BadDataPoint::NoTemporality,
        BadDataPoint::Exponential,
        BadDataPoint::Name,
        BadDataPoint::NotUtf8,
        BadDataPoint::NoTime,
        BadDataPoint::NoValue,
        BadDataPoint::AttributeKey,
        BadDataPoint::AttributeDepth,
        BadDataPoint::AttributeCount,
        BadDataPoint::AttributeBytes,
        BadDataPoint::BucketCount,
        BadDataPoint::Bounds,
    ];

    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            BadDataPoint::Delta => "delta temporality (configure cumulative)",
            BadDataPoint::NoTemporality => "no temporality",
            BadDataPoint::Exponential => "an exponential histogram (configure explicit buckets)",
            BadDataPoint::Name => "a metric without a usable name",
            BadDataPoint::NotUtf8 => "a text that is not UTF-8",
            BadDataPoint::NoTime => "no time",
            BadDataPoint::NoValue => "no value",
            BadDataPoint::AttributeKey => "an attribute without a usable key",
            BadDataPoint::AttributeDepth => "an attribute nested too deeply",
            BadDataPoint::AttributeCount => "too many attributes",
            BadDataPoint::AttributeBytes => "attributes of too many bytes",
            BadDataPoint::BucketCount => "too many buckets or quantiles",
            BadDataPoint::Bounds => "bounds that do not rise, or do not fit the buckets",
        }
    }
}

impl fmt::Display for BadDataPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// A point that is refused, or a message that cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Point(BadDataPoint),
    Message,
}

impl From<BadProtobuf> for Unread {
    fn from(_: BadProtobuf) -> Unread {
        Unread::Message
    }
}

impl From<BadDataPoint> for Unread {
    fn from(why: BadDataPoint) -> Unread {
        Unread::Point(why)
    }
}

impl From<BadProtobuf> for BadOtlp {
    fn from(_: BadProtobuf) -> BadOtlp {
        BadOtlp
    }
}
