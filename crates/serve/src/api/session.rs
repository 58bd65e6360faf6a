//! `/api/v1/session`: a token for who has the code of the URL, or the token of the file.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::Hub;
use crate::answer::{self, Answer, Refusal};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    code: Option<String>,
    token: Option<String>,
}

pub(super) async fn begin(State(hub): State<Arc<Hub>>, headers: HeaderMap, body: Bytes) -> Answer {
    // A form of a foreign page cannot send this type without asking first.
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(';').next() == Some("application/json"));
    if !is_json {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "cannot begin a session: Content-Type has to be application/json",
        ));
    }
    let asked: Asked = serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad(format!("cannot begin a session: {error}")))?;
    let token = hub
        .access
        .begin_session(asked.code.as_deref(), asked.token.as_deref())?;
    let body = serde_json::json!({ "token": token, "scopes": ["read", "texts"] });
    let mut response = answer::json(&HeaderMap::new(), body.to_string());
    let never = header::HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    Ok(response)
}
