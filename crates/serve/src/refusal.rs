//! Refusals of requests: a status and a line of JSON.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kymo_base::errno::without_numbers;

/// Seconds after which a client with too many wrong tokens may
/// try again.
const RETRY: HeaderValue = HeaderValue::from_static("10");

/// A refusal.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// A line: `cannot ...: ...`.
    pub text: String,
}

impl Refusal {
    /// A refusal with a status and a line, without the system's numbers of errors.
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal {
            status,
            text: without_numbers(text.into()),
        }
    }

    /// 400: a parameter makes no sense.
    pub(crate) fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, text)
    }

    /// 404: nothing was found.
    pub(crate) fn missing(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, text)
    }

    /// 503: the recording cannot be read.
    pub(crate) fn unavailable(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.text }).to_string();
        let mut response = (self.status, body).into_response();
        set_type(&mut response, "application/json");
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, bearer);
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY);
        }
        response
    }
}

/// Sets the type of a body.
pub(crate) fn set_type(response: &mut Response, media_type: &'static str) {
    let value = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
}
