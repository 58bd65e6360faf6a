//! `/api/v1/status/config`, `flags` and `runtimeinfo`, `/-/healthy` and `/-/ready`: labels, limits and state of the server,
//! and whether it answers. Clients ask for these before anything else: Perses for its health, editors of expressions for the
//! flags.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use kymo_promql::Limits;
use kymo_sys::clock::{Clock as _, RealClock};
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

/// The part of a configuration of Prometheus that other engines read: the labels by which they tell its series from others'.
pub(super) async fn config(State(hub): State<Arc<Hub>>) -> Response {
    let mut yaml = String::from("global:\n  external_labels:");
    if hub.external_labels.is_empty() {
        yaml.push_str(" {}");
    }
    for (name, value) in &hub.external_labels {
        // A text of JSON is one of YAML.
        yaml.push_str(&format!(
            "\n    {name}: {}",
            serde_json::Value::from(value.as_str())
        ));
    }
    yaml.push('\n');
    fixed(&json!({ "yaml": yaml }).to_string())
}

/// State that clients show about a server. Of Go's runtime there is nothing to say, and times of starts are left out.
pub(super) async fn runtime() -> Response {
    let now = RealClock.now().real_ns;
    let now = jiff::Timestamp::from_nanosecond(i128::from(now)).unwrap_or_default();
    let data = json!({
        "CWD": "",
        "hostname": "",
        "serverTime": now.to_string(),
        "reloadConfigSuccess": true,
        "corruptionCount": 0,
        "goroutineCount": 0,
        "GOMAXPROCS": 0,
        "GOMEMLIMIT": 0,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": "",
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
        terms.own_reader(hub)?;
        Ok(Made::plain(MEDIA_TYPE, b"kymo is ready.\n".to_vec()))
    };
    Ok(answer_with(hub, &asking.head, PATIENCE, read).await?)
}

fn line(text: &str) -> Response {
    Made::plain(MEDIA_TYPE, text.as_bytes().to_vec()).unbounded()
}
