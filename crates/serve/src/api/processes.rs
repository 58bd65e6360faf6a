//! `/kymo/v1/processes`: the process table at a moment.

use std::sync::Arc;

use axum::extract::State;
use kymo_base::reading::MISSING;
use kymo_kernel::subsystem::process::{PROCESS, STARTTIME};

use super::table::{More, TableQuery};
use super::{Hub, Params, RequestHead};
use crate::answer::Answer;
use crate::number;

/// Columns whose texts are searched, if the asker may see them.
const SEARCHED: &[&str] = &["comm", "command", "user", "cgroup", "container"];

const MORE: &[More] = &[
    More {
        name: "key",
        unit: "",
        help: "Tells two processes of one pid apart",
        put: |_, row, out| out.push_str(&serde_json::Value::from(row.key.to_string()).to_string()),
    },
    More {
        name: "start",
        unit: "s",
        help: "When it was started, since 1970",
        put: |table, row, out| match row.values[STARTTIME] {
            MISSING => out.push_str("null"),
            ticks => number::push_time(out, table.started_ns(ticks)),
        },
    },
];

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let rows = TableQuery::new(&params, head.scopes, &PROCESS, SEARCHED, MORE)?;
    let lane = rows.lane();
    let rows = move |hub: &Hub| rows.read(hub, "cannot show processes: none were recorded then");
    hub.answer_json(lane, &head, rows).await
}
