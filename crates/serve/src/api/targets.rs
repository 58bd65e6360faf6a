//! `/kymo/v1/targets`: the poller's targets and devices as lists, and the graphs of one target.

mod graphs;
mod order;

use std::sync::Arc;

use axum::extract::State;
use kymo_base::name::DisplayName;
use kymo_query::targets::percent;
use kymo_sys::clock::{Clock as _, RealClock};
use serde_json::{Value as Json, json};

use super::{Hub, Params, RequestHead};
use crate::answer::{Answer, Refusal};
use crate::targets::{Known, ListedTarget, Targets};
use crate::turns::Lane;

pub(super) use graphs::answer as graphs;
use order::{DeviceLine, Sort};

/// Most targets of an answer.
const TARGETS_MAX: usize = 1000;
/// Most devices of an answer.
const DEVICES_MAX: usize = 10_000;

/// Answers with a part of the targets.
pub(super) async fn list(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let limit = params.count("limit", 200, TARGETS_MAX)?;
    let from = match params.text("first") {
        Some(_) => params.count("first", 1, usize::MAX >> 1)? - 1,
        None => 0,
    };
    let meant = Meant::of(&params)?;
    let device = params.text("device").map(String::from);
    let list = move |hub: &Hub| {
        let known = hub.known_targets()?;
        let found = meant.targets(&known, device.as_deref());
        let shown = found.iter().skip(from).take(limit);
        let shown: Vec<Json> = shown.map(|&at| target(&known, at)).collect();
        let mut body = opening(&known, found.len());
        body["first"] = (from + 1).into();
        body["units"] = known.listed.units.iter().map(graphs::unit).collect();
        body["targets"] = shown.into();
        Ok(body.to_string())
    };
    hub.answer_json(Lane::Keeper, &head, list).await
}

/// Answers with devices and the sums of their targets.
pub(super) async fn devices(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let meant = Meant::of(&params)?;
    let list = move |hub: &Hub| {
        let known = hub.known_targets()?;
        let lines = meant.devices(&known);
        let shown = lines.iter().take(DEVICES_MAX);
        let shown: Vec<Json> = shown.map(|line| device(&known, line)).collect();
        let mut body = opening(&known, lines.iter().map(|line| line.targets).sum());
        body["devices"] = shown.into();
        Ok(body.to_string())
    };
    hub.answer_json(Lane::Keeper, &head, list).await
}

impl Hub {
    /// The targets, if there is a store.
    fn targets(&self) -> Result<&Arc<Targets>, Refusal> {
        let none = || Refusal::missing("cannot find targets: there is no store");
        self.targets.as_ref().ok_or_else(none)
    }

    fn known_targets(&self) -> Result<Known, Refusal> {
        Ok(self.targets()?.known())
    }
}

/// Parameters of a list.
struct Meant {
    /// Words to search for, in lower case.
    words: Vec<String>,
    sort: Sort,
}

impl Meant {
    fn of(params: &Params) -> Result<Meant, Refusal> {
        let words = params.text("q").unwrap_or_default().to_lowercase();
        let sort = params.text("sort").unwrap_or("name");
        Ok(Meant {
            words: words.split_whitespace().map(String::from).collect(),
            sort: Sort::parse(sort).ok_or_else(|| {
                Refusal::bad(format!(
                    "cannot use sort {sort:?}: it is name, title, traffic, used or missing, with - the other way round"
                ))
            })?,
        })
    }

    /// Indexes of the matching targets, sorted.
    fn targets(&self, known: &Known, device: Option<&str>) -> Vec<usize> {
        let listed = &known.listed;
        let is_meant = |target: &ListedTarget| {
            let name = listed.devices[target.device].name.as_str();
            device.is_none_or(|device| device == name) && target.is_meant(name, &self.words)
        };
        let targets = listed.targets.iter().enumerate();
        let meant = targets.filter(|(_, target)| is_meant(target));
        self.sort.targets(known, meant.map(|(at, _)| at).collect())
    }

    /// Devices with their matching targets, sorted.
    fn devices(&self, known: &Known) -> Vec<DeviceLine> {
        let mut lines: Vec<DeviceLine> = (0..known.listed.devices.len())
            .map(DeviceLine::new)
            .collect();
        for (at, target) in known.listed.targets.iter().enumerate() {
            let device = &known.listed.devices[target.device];
            if target.is_meant(&device.name, &self.words) {
                lines[target.device].add(known, at);
            }
        }
        lines.retain(|line| line.targets > 0);
        self.sort.devices(known, &mut lines);
        lines
    }
}

/// The head of each list: the number of targets, the number of matching ones, and the time of the numbers.
fn opening(known: &Known, found: usize) -> Json {
    json!({
        "now": RealClock.now().real_ns / 1_000_000_000,
        "at": Some(known.numbers.at).filter(|&at| at > 0),
        "pending": known.is_asking,
        "total": known.listed.targets.len(),
        "found": found,
        "problems": known.listed.problems,
    })
}

fn target(known: &Known, at: usize) -> Json {
    let target = &known.listed.targets[at];
    let recent = known.recent(at);
    let used = [0, 1].map(|n| percent(recent.rates[n], target.max_bytes[n]));
    json!({
        "id": known.listed.id(target),
        "name": shown(&target.name),
        "title": shown(&target.title),
        "device": shown(&known.listed.devices[target.device].name),
        "unit": target.unit,
        "shown": target.shown,
        "rates": recent.rates.map(rounded),
        "used": used.map(rounded),
        "missing": recent.missing,
        "rows": recent.rows,
        "problem": known.reasons.why(&known.listed.id(target)).map(shown),
    })
}

fn device(known: &Known, line: &DeviceLine) -> Json {
    let state = known.device(line.device);
    json!({
        "device": known.listed.devices[line.device].name,
        "state": line.health(known).word(),
        "targets": line.targets,
        "rates": line.rates.map(rounded),
        "used": rounded(line.used),
        "missing": line.missing,
        "rows": line.rows,
        "seen": rounded(state.seen),
        "rtt": rounded(state.rtt_ms),
        "lost": rounded(state.lost),
        "retries": rounded(state.retries),
        "late": rounded(state.late_s),
    })
}

fn shown(text: &str) -> String {
    DisplayName(text.as_bytes()).to_string()
}

/// A number to the thousandth; `null`: unknown.
fn rounded(value: f64) -> Json {
    Json::from((value * 1e3).round() / 1e3)
}
