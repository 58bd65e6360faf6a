//! `/kymo/v1/session`: a token for an asker with the code of the URL, or the token of the
//! file.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use serde::Deserialize;

use super::{Hub, RequestHead};
use crate::answer::{Answer, Made, Refusal};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    code: Option<String>,
    token: Option<String>,
}

pub(super) async fn begin(State(hub): State<Arc<Hub>>, head: RequestHead, body: Bytes) -> Answer {
    // A form of another site's page cannot send this type without a preflight request.
    let is_json = head
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(';').next() == Some("application/json"));
    if !is_json {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "cannot begin a session: Content-Type has to be application/json",
        ));
    }
    let keys: Keys = serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad(format!("cannot begin a session: {error}")))?;
    let origin = head.visitor.asker.origin;
    let begun = hub
        .access
        .begin_session(keys.code.as_deref(), keys.token.as_deref(), origin);
    let token = match begun {
        Ok(token) => token,
        Err(denied) => {
            tokio::time::sleep(denied.wait).await;
            return Err(denied.refusal);
        }
    };
    let body = serde_json::json!({ "token": token, "scopes": ["read", "texts"] });
    let made = Made::plain("application/json", body.to_string().into_bytes());
    let mut response = made.response(&hub.room, &head.visitor)?;
    let never = header::HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    Ok(response)
}
