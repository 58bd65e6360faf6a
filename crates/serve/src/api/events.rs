//! `/kymo/v1/events`: events, as marks beside the numbers.

use std::sync::Arc;

use axum::extract::State;
use kymo_query::marks::{Mark, Origin};
use kymo_query::stored;
use serde_json::{Value, json};

use super::{Hub, Params, RequestHead};
use crate::answer::{Answer, Refusal};
use crate::number::seconds;
use crate::turns::Lane;

/// Most marks of an answer; the latest are kept.
const MARKS_MAX: usize = 2000;
const SECOND_NS: i64 = 1_000_000_000;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let (from_ns, thru_ns) = Params::of(&head.uri).range()?;
    let events = move |hub: &Hub| {
        let mut marks = hub
            .archive
            .marks(from_ns, thru_ns)
            .map_err(Refusal::unavailable)?;
        let mut problem = None;
        if let Some(stored) = &hub.stored {
            let range = (from_ns / SECOND_NS, (thru_ns - 1) / SECOND_NS + 1);
            // Without the keeper the answer has only this machine's events.
            let keeper = stored.keeper().for_addition();
            match stored::marks(keeper.keeper(), range, Vec::new()) {
                Ok(stored) => marks.extend(stored),
                Err(why) => problem = Some(format!("notifications of others are missing: {why}")),
            }
            marks.sort_by_key(|mark| mark.from_ns);
        }
        let mut body = json!({ "marks": list(&marks) });
        if let Some(problem) = problem {
            body["problem"] = problem.into();
        }
        Ok(body.to_string())
    };
    hub.answer_json(Lane::Long, &head, events).await
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
