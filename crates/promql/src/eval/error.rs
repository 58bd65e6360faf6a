//! Why an expression has no value.

use std::fmt;

use crate::eval::label_set::SetTooLong;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The question makes no sense, such as a range whose end is before its start.
    BadData(String),
    /// The expression cannot be evaluated over these series.
    Execution(String),
    /// The deadline has passed.
    Timeout,
    /// The one who asked no longer waits.
    Canceled,
    /// More samples would be in memory, or read, than the limits allow.
    TooManySamples,
    /// More series are selected than the limits allow.
    TooManySeries,
    /// A reader has failed.
    Unavailable(String),
}

impl fmt::Display for EvalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            EvalError::BadData(why) | EvalError::Execution(why) | EvalError::Unavailable(why) => {
                why
            }
            EvalError::Timeout => "query timed out in expression evaluation",
            EvalError::Canceled => "query was canceled in expression evaluation",
            EvalError::TooManySamples => {
                "query processing would load too many samples into memory in query execution"
            }
            EvalError::TooManySeries => "query selects too many series; narrow it",
        })
    }
}

impl std::error::Error for EvalError {}

impl From<SetTooLong> for EvalError {
    fn from(SetTooLong: SetTooLong) -> EvalError {
        EvalError::Execution("a label set would have more than 64 KiB".into())
    }
}
