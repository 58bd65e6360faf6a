//! `/api/v1/metadata` and `/api/v1/status/buildinfo`, and answers to questions for rules, alerts and their receivers, which
//! kymo does not have.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use kymo_series::{Kind, Metadata, Reader as _};
use serde_json::json;

use super::failure::{ErrorType, Failure};
use super::json::{Json, Remarks, success};
use super::{ANSWER_MAX, FormRequest, Hub, PATIENCE, Terms, answer, fixed};

/// The version of Prometheus whose API this is: clients choose their questions by it.
const VERSION: &str = "3.0.0";

pub(super) async fn metadata(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    let limit = number(&asking, "limit")?;
    // Each metric has one description.
    let _one_is_there = number(&asking, "limit_per_metric")?;
    let metric = asking.form.text("metric").to_string();
    let described = move |hub: &Hub, terms: &Terms| {
        let reader = terms.reader(hub, i64::MIN)?;
        let mut all = reader.metadata((!metric.is_empty()).then_some(&metric))?;
        all.retain(|of| metric.is_empty() || of.metric == metric);
        let most = limit.and_then(|limit| usize::try_from(limit).ok());
        all.truncate(most.unwrap_or(usize::MAX));
        let mut remarks = Remarks::default();
        remarks.warn(reader.missing());
        let each = all.iter().map(|of| (&*of.metric, of));
        success(&remarks, ANSWER_MAX, |json| {
            json.members(each, |json: &mut Json, of| {
                json.list([of], |json, of| {
                    json.object([("type", word(of)), ("help", &of.help), ("unit", &of.unit)]);
                });
            });
        })
    };
    answer(hub, &asking.head, PATIENCE, described).await
}

fn number(asking: &FormRequest, name: &str) -> Result<Option<i64>, Failure> {
    let text = asking.form.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = |_| Failure::new(ErrorType::BadData, format!("{name} must be a number"));
    text.parse().map(Some).map_err(wrong)
}

/// A type as Prometheus calls it.
fn word(of: &Metadata) -> &str {
    if !of.openmetrics_type.is_empty() {
        return &of.openmetrics_type;
    }
    match of.kind {
        Kind::Counter | Kind::Gauge | Kind::Histogram => of.kind.word(),
        Kind::Untyped => "unknown",
    }
}

pub(super) async fn build() -> Response {
    let data = json!({
        "version": VERSION,
        "revision": concat!("kymo ", env!("CARGO_PKG_VERSION")),
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    });
    fixed(&data.to_string())
}

pub(super) async fn no_rules(asking: FormRequest) -> Result<Response, Failure> {
    match asking.form.text("type") {
        "" | "alert" | "record" => Ok(fixed(r#"{"groups":[]}"#)),
        other => {
            let why = format!("not supported value {other:?}");
            Err(Failure::parameter("type", why))
        }
    }
}

pub(super) async fn no_alerts() -> Response {
    fixed(r#"{"alerts":[]}"#)
}

pub(super) async fn no_alertmanagers() -> Response {
    fixed(r#"{"activeAlertmanagers":[],"droppedAlertmanagers":[]}"#)
}

pub(super) async fn no_list() -> Response {
    fixed("[]")
}
