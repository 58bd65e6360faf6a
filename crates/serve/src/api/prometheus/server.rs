//! `/api/v1/status/flags`, `/-/healthy` and `/-/ready`: limits of the server, and whether it answers. Clients ask
//! for these before anything else: Perses for its health, editors of expressions for the flags.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use kymo_promql::Limits;
use serde_json::json;

use super::failure::PlainFailure;
use super::{FormRequest, Hub, PATIENCE, Terms, answer_with, fixed};
use crate::answer::Made;
use crate::turns::SERIES_TURNS_MAX;

/// Type of a line for people.
const MEDIA_TYPE: &str = "text/plain; charset=utf-8";

/// Limits, under the names of Prometheus' flags. No feature that Prometheus has off is on.
pub(super) async fn flags() -> Response {
    let limits = Limits::default();
    let data = json!({
        "enable-feature": "",
        "query.lookback-delta": format!("{}s", limits.lookback_ms / 1000),
        "query.max-concurrency": SERIES_TURNS_MAX.to_string(),
        "query.max-samples": limits.samples.to_string(),
        "query.timeout": format!("{}s", PATIENCE.as_secs()),
        "web.enable-otlp-receiver": "true",
        "web.enable-remote-write-receiver": "true",
    });
    fixed(&data.to_string())
}

/// The server answers.
pub(in crate::api) async fn healthy() -> Response {
    line("kymo is healthy.\n")
}

/// An expression has an answer: there is a turn, and the recording can be read.
pub(in crate::api) async fn ready(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, PlainFailure> {
    let read = |hub: &Hub, terms: &Terms| {
        terms.reader(hub, i64::MIN)?;
        Ok(Made::plain(MEDIA_TYPE, b"kymo is ready.\n".to_vec()))
    };
    Ok(answer_with(hub, &asking.head, PATIENCE, read).await?)
}

fn line(text: &str) -> Response {
    Made::plain(MEDIA_TYPE, text.as_bytes().to_vec()).unbounded()
}
