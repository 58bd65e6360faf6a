//! `/kymo/v1/stored`: the store's series of other senders.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use kymo_base::labels::Matcher;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_wire::keeper::SeriesInfo;
use serde_json::{Value as Json, json};

use super::{Hub, Params, RequestHead};
use crate::answer::{Answer, Refusal};
use crate::number;
use crate::turns::Lane;
use kymo_query::history::is_own;
use kymo_query::stored::unit;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let matchers = params.all("match").map(Matcher::parse);
    let matchers: Vec<Matcher> = matchers.collect::<Result<_, _>>().map_err(Refusal::bad)?;
    let scopes = head.scopes;
    let list = move |hub: &Hub| {
        let Some(stored) = &hub.stored else {
            return Ok(body(&mut std::iter::empty(), &HashSet::new()));
        };
        let listed = stored.list().map_err(Refusal::unavailable)?;
        let listed = listed.seen_by(scopes);
        // The list of fields already has this machine's own series.
        let host = machine::host();
        let picked = |info: &&SeriesInfo| {
            let is_picked = matchers.iter().all(|matcher| matcher.picks(&info.name));
            is_picked && !is_own(&info.name, &host)
        };
        let targets = hub.targets.as_ref().map(|targets| targets.listed());
        let targets = targets.iter().flat_map(|listed| &listed.targets);
        let polled = targets.map(|target| target.series.as_bytes()).collect();
        Ok(body(&mut listed.iter().filter(picked), &polled))
    };
    hub.answer_json(Lane::Keeper, &head, list).await
}

/// The list as JSON: each definition once, and for each series its name, the number of its definition, the time of its last
/// value, and a mark if it is polled. Names that are not UTF-8 are left out, because nothing could ask for them.
fn body(series: &mut dyn Iterator<Item = &SeriesInfo>, polled: &HashSet<&[u8]>) -> String {
    let mut definitions: Vec<Json> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut out = String::from("{\"series\":[");
    for info in series {
        let Ok(name) = std::str::from_utf8(&info.name) else {
            continue;
        };
        let definition = definition(info);
        let number = *known.entry(definition.to_string()).or_insert_with(|| {
            definitions.push(definition);
            definitions.len() - 1
        });
        if !out.ends_with('[') {
            out.push(',');
        }
        out.push_str(&format!("[{},{number},", Json::from(name)));
        match info.last > 0.0 {
            true => number::push_time(&mut out, number::nanoseconds(info.last)),
            false => out.push_str("null"),
        }
        if polled.contains(&*info.name) {
            out.push_str(",true");
        }
        out.push(']');
    }
    out.push_str("],\"now\":");
    number::push_time(&mut out, RealClock.now().real_ns);
    out.push_str(&format!(",\"definitions\":{}}}", Json::from(definitions)));
    out
}

fn definition(info: &SeriesInfo) -> Json {
    let column = |(name, kind): &(Vec<u8>, Vec<u8>)| {
        json!({
            "name": String::from_utf8_lossy(name),
            "kind": String::from_utf8_lossy(kind),
            "unit": unit(&info.name, kind).symbol(),
        })
    };
    let columns: Vec<Json> = info.columns.iter().map(column).collect();
    json!({ "step": info.step, "columns": columns })
}
