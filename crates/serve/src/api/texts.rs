//! `/kymo/v1/sources` and `/kymo/v1/text`: the kernel's own words at a moment.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use kymo_base::track::{Instance, State as Read, Track};
use kymo_kernel::source;
use kymo_query::source::{Moment, Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use serde_json::json;

use super::{Hub, Params, RequestHead};
use crate::answer::{Answer, Made, Refusal};
use crate::number::{self, seconds};
use crate::turns::Lane;

/// Distances from the moment within which a text is looked for, the shorter one first.
const REACHES_NS: [i64; 2] = [12_000_000_000, 900_000_000_000];

pub(super) async fn sources(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let at_ns = Params::of(&head.uri).time("at", "now")?;
    let scopes = head.scopes;
    let sources = move |hub: &Hub| {
        let names = |source: &dyn Source| {
            let mut names = Vec::new();
            let is_shown = |known: &&source::Source| scopes.lists(known);
            for known in source::ALL.iter().filter(is_shown) {
                let track = source.tracks().get(known.kind);
                let read = track.instances().filter(|(_, one)| has_text(one));
                names.extend(read.map(|(_, one)| {
                    known.path_of(&kymo_base::name::DisplayName(&one.name).text())
                }));
            }
            names
        };
        let found = covering(hub, Kinds::ALL, at_ns, &names, |_| true)?;
        let (moment, names) = found.ok_or_else(nothing)?;
        Ok(json!({ "at": seconds(moment.real_ns), "sources": names }).to_string())
    };
    hub.answer_json(Lane::Long, &head, sources).await
}

pub(super) async fn text(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let at_ns = params.time("at", "now")?;
    let name = params.text("source").unwrap_or_default().to_string();
    let (known, instance) = source::find(&name)
        .ok_or_else(|| Refusal::missing(format!("cannot find source {name:?}")))?;
    head.scopes.may_read(known)?;
    let (kind, instance) = (known.kind, instance.as_bytes().to_vec());
    let room = hub.room.clone();
    let read = move |hub: &Hub| {
        let render = |source: &dyn Source| {
            let track = source.tracks().get(kind);
            let mut text = Vec::new();
            if let Some(one) = of_name(track, &instance) {
                track.render(one, &mut text);
            }
            text
        };
        let is_there = |source: &dyn Source| {
            let track = source.tracks().get(kind);
            of_name(track, &instance).is_some_and(has_text)
        };
        let kinds = Kinds::from_iter([kind]);
        covering(hub, kinds, at_ns, &render, is_there)?.ok_or_else(nothing)
    };
    let (moment, text) = hub.ask(Lane::Long, head.visitor.asker, read).await?;
    let media_type = match std::str::from_utf8(&text) {
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    };
    let made = Made::plain(media_type, text);
    let mut response = made.response(&room, &head.visitor)?;
    let mut time = String::new();
    number::push_time(&mut time, moment.real_ns);
    if let Ok(time) = HeaderValue::from_str(&time) {
        response.headers_mut().insert("kymo-time", time);
    }
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    Ok(response)
}

fn nothing() -> Refusal {
    Refusal::missing("cannot show this: it was not recorded then")
}

fn has_text(one: &Instance) -> bool {
    matches!(one.state, Read::Changed | Read::Same)
}

fn of_name<'a>(track: &'a Track, name: &[u8]) -> Option<&'a Instance> {
    let mut instances = track.instances();
    instances.find_map(|(_, one)| (one.name == name).then_some(one))
}

/// Result of `take` for the first sample at or after a moment that has the text, or else for the
/// last one before.
fn covering<T>(
    hub: &Hub,
    kinds: Kinds,
    at_ns: i64,
    take: &dyn Fn(&dyn Source) -> T,
    is_there: impl Fn(&dyn Source) -> bool,
) -> Result<Option<(Moment, T)>, Refusal> {
    for reach_ns in REACHES_NS {
        let range = TimeRange {
            from_ns: at_ns.saturating_sub(reach_ns),
            thru_ns: at_ns.saturating_add(reach_ns),
        };
        let mut source = hub
            .archive
            .what
            .open(range, kinds)
            .map_err(Refusal::unavailable)?;
        let mut last = None;
        while let Some(step) = source.next().map_err(Refusal::unavailable)? {
            let Step::Sample(moment) = step else { continue };
            if is_there(&source) {
                last = Some((moment, take(&source)));
                if moment.real_ns >= at_ns {
                    break;
                }
            }
        }
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}
