//! `/kymo/v1/live`: each sample as soon as it is recorded, as server-sent
//! events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use kymo_query::sheet::{Line, Of, Pick, id};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

use super::{Hub, Params, RequestHead, events, series};
use crate::answer::{Answer, Endless, Refusal};
use crate::guarded::Picks;
use crate::now::{News, Sample};
use crate::number;
use crate::turns::Lane;

const ALIVE: Duration = Duration::from_secs(15);

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    if hub.archive.what.ring().is_none() {
        return Err(Refusal::missing("cannot follow: a file does not go on"));
    }
    let mut wanted =
        Subscription::new(series::picks(&Params::of(&head.uri).fields(), head.scopes)?);
    let listens = |hub: &Hub| Ok(hub.now.listen());
    let news = hub.ask(Lane::Short, head.visitor.asker, listens).await?;
    let news = BroadcastStream::new(news);
    let events = news.filter_map(move |news| {
        Some(Ok::<Event, Infallible>(match news {
            Ok(News::Sample(sample)) => Event::default()
                .event("sample")
                .data(wanted.values(&sample)),
            Ok(News::Mark(mark)) => Event::default()
                .event("mark")
                .data(events::one(&mark).to_string()),
            // A listener that was too slow has missed samples: the page asks for
            // the missing ones.
            Err(_) => Event::default().event("lagged").data("{}"),
        }))
    });
    let keep = KeepAlive::new().interval(ALIVE).text("alive");
    let stream = Sse::new(events).keep_alive(keep);
    Ok((Extension(Endless), stream).into_response())
}

/// Fields that one listener wants.
struct Subscription {
    picks: Picks,
    /// True for each wanted line; computed again when there are more lines.
    lines: Vec<bool>,
}

impl Subscription {
    fn new(picks: Picks) -> Subscription {
        Subscription {
            picks,
            lines: Vec::new(),
        }
    }

    fn values(&mut self, sample: &Sample) -> String {
        if self.lines.len() != sample.lines.len() {
            let wants = |line: &Line| self.picks.iter().any(|pick| is_of(line, pick));
            self.lines = sample.lines.iter().map(wants).collect();
        }
        let mut out = String::with_capacity(1024);
        out.push_str("{\"time\":");
        number::push_time(&mut out, sample.moment.real_ns);
        let elapsed = sample.cells.first().map_or(0.0, |cell| cell.elapsed);
        out.push_str(",\"elapsed\":");
        number::push(&mut out, elapsed);
        out.push_str(&format!(
            ",\"missed\":{},\"values\":{{",
            sample.moment.missed
        ));
        let mut first = true;
        for cell in &sample.cells {
            if !self.lines.get(cell.line).copied().unwrap_or(false) {
                continue;
            }
            let id: serde_json::Value = sample.lines[cell.line].id.as_str().into();
            out.push_str(if first { "" } else { "," });
            out.push_str(&format!("{id}:"));
            number::push(&mut out, cell.value);
            first = false;
        }
        out.push_str("}}");
        out
    }
}

fn is_of(line: &Line, pick: &Pick) -> bool {
    let of = |instance| id(pick.subsystem, pick.column, instance);
    match &pick.of {
        Of::Machine => line.id == of(None),
        Of::One(name) => line.id == of(Some(name)),
        Of::Each => line.id.starts_with(&of(Some(""))),
    }
}
