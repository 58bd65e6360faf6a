//! `/api/v1/processes`: the process table at a moment.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use kymo_base::reading::MISSING;
use kymo_kernel::subsystem::process::{PROCESS, STARTTIME};

use super::table::{Asked, More};
use super::{Asker, Hub, Params};
use crate::answer::{self, Answer};
use crate::number;

/// Columns whose texts are searched, of those that the asker may see.
const SEARCHED: &[&str] = &["comm", "command", "user", "cgroup"];

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

pub(super) async fn answer(
    State(hub): State<Arc<Hub>>,
    Extension(scopes): Asker,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let asked = Asked::new(&Params::of(&uri), scopes, &PROCESS, SEARCHED, MORE)?;
    let body = hub
        .ask(move |hub| asked.read(hub, "cannot show processes: none were recorded then"))
        .await?;
    Ok(answer::json(&headers, body))
}
