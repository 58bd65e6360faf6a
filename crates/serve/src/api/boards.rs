//! `/kymo/v1/boards`: boards by name. Whoever may read numbers may read them; to keep or remove one needs the token.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use serde_json::json;

use super::{Hub, RequestHead};
use crate::answer::{Answer, Refusal};
use crate::boards::{Board, BoardError, Boards};
use crate::turns::Lane;

/// Lists names and titles.
pub(super) async fn list(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let may_keep = head.scopes.tells_of_people();
    let listed = move |hub: &Hub| {
        let all = match &hub.boards {
            Some(boards) => boards
                .list()
                .map_err(|error| refusal("list boards", error))?,
            None => Vec::new(),
        };
        let all = all.into_iter();
        let all: Vec<_> = all
            .map(|(name, title)| json!({ "name": name, "title": title }))
            .collect();
        let is_kept = may_keep && hub.boards.is_some();
        Ok(json!({ "boards": all, "may_keep": is_kept }).to_string())
    };
    hub.answer_json(Lane::Short, &head, listed).await
}

/// Answers with a board.
pub(super) async fn read(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: RequestHead,
) -> Answer {
    let read = move |hub: &Hub| {
        let board = boards(hub)?.read(&name);
        let board = board.map_err(|error| refusal(&format!("read board {name:?}"), error))?;
        Ok(board.json())
    };
    hub.answer_json(Lane::Short, &head, read).await
}

/// Keeps a board.
pub(super) async fn keep(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: RequestHead,
    body: Bytes,
) -> Answer {
    need_token(&head)?;
    let media_type = head.headers.get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    // A form of another site's page cannot send this type without a preflight request.
    if media_type.and_then(|text| text.split(';').next()) != Some("application/json") {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "cannot keep a board: Content-Type has to be application/json",
        ));
    }
    let kept = move |hub: &Hub| {
        let failed = |error| refusal(&format!("keep board {name:?}"), error);
        let board = Board::parse(&body).map_err(failed)?;
        boards(hub)?.write(&name, &board).map_err(failed)?;
        Ok(json!({ "name": name }).to_string())
    };
    hub.answer_json(Lane::Long, &head, kept).await
}

/// Removes a board.
pub(super) async fn remove(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: RequestHead,
) -> Answer {
    need_token(&head)?;
    let removed = move |hub: &Hub| {
        let removed = boards(hub)?.remove(&name);
        removed.map_err(|error| refusal(&format!("remove board {name:?}"), error))?;
        Ok(json!({ "name": name }).to_string())
    };
    hub.answer_json(Lane::Long, &head, removed).await
}

fn need_token(head: &RequestHead) -> Result<(), Refusal> {
    match head.scopes.tells_of_people() {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "cannot keep or remove a board: the request has no valid token",
        )),
    }
}

fn boards(hub: &Hub) -> Result<&Boards, Refusal> {
    let none =
        || Refusal::missing("cannot find boards: this kymo has no data folder to keep them in");
    hub.boards.as_ref().ok_or_else(none)
}

fn refusal(verb: &str, error: BoardError) -> Refusal {
    match error {
        BoardError::Missing => Refusal::missing(format!("cannot {verb}: there is no such board")),
        BoardError::Wrong(why) => Refusal::bad(format!("cannot {verb}: {why}")),
        BoardError::Full => {
            let why = "there are too many boards; remove some";
            Refusal::new(
                StatusCode::INSUFFICIENT_STORAGE,
                format!("cannot {verb}: {why}"),
            )
        }
        BoardError::Failed(why) => Refusal::unavailable(format!("cannot {verb}: {why}")),
    }
}
