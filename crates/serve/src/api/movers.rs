//! `/kymo/v1/movers`: processes that changed most in the minute before a moment, that were born, and that ended.

use std::sync::Arc;

use axum::extract::State;
use kymo_kernel::subsystem::process::PROCESS;
use kymo_query::movers::{Fate, Measure, Mover, Movers, Process};
use serde_json::{Value, json};

use super::{Hub, Params, RequestHead};
use crate::access::Scopes;
use crate::answer::{Answer, Refusal};
use crate::number::seconds;
use crate::turns::Lane;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let at_ns = Params::of(&head.uri).time("at", "now")?;
    let scopes = head.scopes;
    let movers = move |hub: &Hub| {
        let recordings = hub
            .archive
            .what
            .recordings()
            .map_err(Refusal::unavailable)?;
        let movers = Movers::read(&recordings, at_ns).map_err(Refusal::unavailable)?;
        let movers = movers.ok_or_else(|| {
            Refusal::missing("cannot compare processes: none were recorded a minute before")
        })?;
        Ok(body(&movers, scopes).to_string())
    };
    hub.answer_json(Lane::Long, &head, movers).await
}

fn body(movers: &Movers, scopes: Scopes) -> Value {
    let lists = Measure::ALL.iter().zip(&movers.lists);
    let lists = lists.map(|(measure, changes)| {
        json!({
            "columns": measure.columns(),
            "title": measure.title(),
            "unit": measure.unit(),
            "changes": changes.iter().map(|mover| change(mover, scopes)).collect::<Vec<_>>(),
        })
    });
    let named = |(processes, count): &(Vec<Process>, usize)| {
        let processes = processes.iter().map(|process| described(process, scopes));
        json!({ "count": count, "processes": processes.collect::<Vec<_>>() })
    };
    json!({
        "at": seconds(movers.at_ns),
        "before": seconds(movers.before_ns),
        "lists": lists.collect::<Vec<_>>(),
        "born": named(&movers.born),
        "ended": named(&movers.ended),
    })
}

fn change(mover: &Mover, scopes: Scopes) -> Value {
    let mut described = described(&mover.process, scopes);
    described["was"] = mover.was.into();
    described["is"] = mover.is.into();
    described["fate"] = match mover.fate {
        Fate::Stayed => Value::Null,
        Fate::Born => "born".into(),
        Fate::Ended => "ended".into(),
    };
    described
}

/// A process; its command line only for those who may see it.
fn described(process: &Process, scopes: Scopes) -> Value {
    let mut described = json!({
        "pid": process.pid,
        "comm": process.comm,
        "start": process.started_ns.map(seconds),
        "pct": Some(process.pct).filter(|pct| !pct.is_nan()),
    });
    let command = PROCESS
        .detail
        .iter()
        .find(|column| column.name == "command");
    if command.is_some_and(|column| scopes.shows(column)) && !process.command.is_empty() {
        described["command"] = process.command.as_str().into();
    }
    described
}
