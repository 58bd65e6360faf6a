//! `/api/v1/events`: what happened, beside the numbers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use kymo_query::marks::{Mark, Origin};
use serde_json::{Value, json};

use super::{Hub, Params};
use crate::answer::{self, Answer, Refusal};
use crate::number::seconds;

/// Marks in one answer; the latest are kept.
const MARKS_MAX: usize = 2000;
const SECOND_NS: i64 = 1_000_000_000;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, uri: Uri, headers: HeaderMap) -> Answer {
    let (from_ns, thru_ns) = Params::of(&uri).range()?;
    let body = hub
        .ask(move |hub| {
            let mut marks = hub
                .archive
                .marks(from_ns, thru_ns)
                .map_err(Refusal::unavailable)?;
            if let Some(stored) = &hub.stored {
                let range = (from_ns / SECOND_NS, (thru_ns - 1) / SECOND_NS + 1);
                // A keeper that does not answer leaves what is known of this machine.
                marks.extend(stored.marks(range, Vec::new()).unwrap_or_default());
                marks.sort_by_key(|mark| mark.from_ns);
            }
            Ok(json!({ "marks": list(&marks) }).to_string())
        })
        .await?;
    Ok(answer::json(&headers, body))
}

/// Marks as the API has them.
pub(super) fn list(marks: &[Mark]) -> Value {
    let late = &marks[marks.len().saturating_sub(MARKS_MAX)..];
    late.iter().map(one).collect()
}

/// One mark as the API has it.
pub(super) fn one(mark: &Mark) -> Value {
    let mut one = json!({
        "time": seconds(mark.from_ns),
        "until": seconds(mark.until_ns),
        "kind": mark.kind.name(),
        "text": mark.text,
    });
    match &mark.origin {
        Origin::Host(host) if !host.is_empty() => one["host"] = json!(host),
        Origin::Device(device) => one["device"] = json!(device),
        Origin::Host(_) | Origin::Machine => {}
    }
    one
}
