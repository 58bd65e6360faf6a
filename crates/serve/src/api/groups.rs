//! `/api/v1/groups`: the control groups at a moment. All that is said of one tells of people.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use kymo_kernel::subsystem::cgroups::CGROUPS;

use super::table::Asked;
use super::{Asker, Hub, Params};
use crate::answer::{self, Answer};

pub(super) async fn answer(
    State(hub): State<Arc<Hub>>,
    Extension(scopes): Asker,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    scopes.need_texts()?;
    let asked = Asked::new(&Params::of(&uri), scopes, &CGROUPS, &["group"], &[])?;
    let body = hub
        .ask(move |hub| asked.read(hub, "cannot show control groups: none were recorded then"))
        .await?;
    Ok(answer::json(&headers, body))
}
