//! Errors as Prometheus has them: a status, a type and a text.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kymo_base::errno::without_numbers;
use kymo_promql::EvalError;
use kymo_series::ReadError;

use crate::answer::Refusal;
use crate::refusal::set_type;

/// Type of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorType {
    /// A parameter makes no sense.
    BadData,
    /// The question has no answer over these series, or one that is too large.
    Execution,
    /// The time is over.
    Timeout,
    /// The client has gone.
    Canceled,
    /// There is no turn, or nothing can be read.
    Unavailable,
}

impl ErrorType {
    fn word(self) -> &'static str {
        match self {
            ErrorType::BadData => "bad_data",
            ErrorType::Execution => "execution",
            ErrorType::Timeout => "timeout",
            ErrorType::Canceled => "canceled",
            ErrorType::Unavailable => "unavailable",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            ErrorType::BadData => StatusCode::BAD_REQUEST,
            ErrorType::Execution => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorType::Timeout | ErrorType::Canceled | ErrorType::Unavailable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }
}

/// An error of a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Type.
    pub(super) kind: ErrorType,
    /// Text for people.
    pub(super) text: String,
}

impl Failure {
    /// An error of a type.
    pub(super) fn new(kind: ErrorType, text: impl Into<String>) -> Failure {
        Failure {
            kind,
            text: without_numbers(text.into()),
        }
    }

    /// A parameter that makes no sense.
    pub(super) fn parameter(name: &str, why: impl std::fmt::Display) -> Failure {
        let text = format!("invalid parameter {name:?}: {why}");
        Failure::new(ErrorType::BadData, text)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::new(ErrorType::Unavailable, refusal.text)
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Failure {
        let text = error.to_string();
        match error {
            EvalError::BadData(_) => Failure::parameter("query", text),
            EvalError::Execution(_) | EvalError::TooManySamples | EvalError::TooManySeries => {
                Failure::new(ErrorType::Execution, text)
            }
            EvalError::Timeout => Failure::new(ErrorType::Timeout, text),
            EvalError::Canceled => Failure::new(ErrorType::Canceled, text),
            EvalError::Unavailable(_) => Failure::new(ErrorType::Unavailable, text),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        let kind = match error {
            ReadError::TooMuch { .. } => ErrorType::Execution,
            ReadError::Silent { .. } | ReadError::Failed(_) => ErrorType::Unavailable,
        };
        Failure::new(kind, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (word, text) = (self.kind.word(), serde_json::Value::from(self.text));
        let body = format!("{{\"status\":\"error\",\"errorType\":\"{word}\",\"error\":{text}}}");
        let mut response = (self.kind.status(), body).into_response();
        set_type(&mut response, "application/json");
        response
    }
}

/// An error as a line of text: what Prometheus answers where its answers are no JSON.
#[derive(Debug)]
pub(in crate::api) struct PlainFailure(Failure);

impl From<Failure> for PlainFailure {
    fn from(failure: Failure) -> PlainFailure {
        PlainFailure(failure)
    }
}

impl IntoResponse for PlainFailure {
    fn into_response(self) -> Response {
        let status = match self.0.kind {
            // A scraper or a reader that asks for less has an answer.
            ErrorType::Execution => StatusCode::BAD_REQUEST,
            kind => kind.status(),
        };
        let mut response = (status, self.0.text + "\n").into_response();
        set_type(&mut response, "text/plain; charset=utf-8");
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_prometheus_words_and_statuses() {
        for (error, status, word) in [
            (EvalError::BadData("x".into()), 400, "bad_data"),
            (EvalError::Execution("x".into()), 422, "execution"),
            (EvalError::TooManySamples, 422, "execution"),
            (EvalError::Timeout, 503, "timeout"),
            (EvalError::Canceled, 503, "canceled"),
            (EvalError::Unavailable("x".into()), 503, "unavailable"),
        ] {
            let kind = Failure::from(error).kind;
            assert_eq!((kind.status().as_u16(), kind.word()), (status, word));
        }
        let failure = Failure::parameter("step", "it is too small");
        assert_eq!(failure.text, "invalid parameter \"step\": it is too small");
    }
}
