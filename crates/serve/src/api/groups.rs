//! `/kymo/v1/groups`: the control groups at a moment. All of their values tell of people.

use std::sync::Arc;

use axum::extract::State;
use kymo_kernel::subsystem::cgroups::CGROUPS;

use super::table::TableQuery;
use super::{Hub, Params, RequestHead};
use crate::answer::Answer;

/// Columns whose texts are searched.
const SEARCHED: &[&str] = &["group", "name", "image", "pod", "namespace"];

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    head.scopes.need_texts()?;
    let params = Params::of(&head.uri);
    let rows = TableQuery::new(&params, head.scopes, &CGROUPS, SEARCHED, &[])?;
    let lane = rows.lane();
    let rows =
        move |hub: &Hub| rows.read(hub, "cannot show control groups: none were recorded then");
    hub.answer_json(lane, &head, rows).await
}
