//! `/kymo/v1/programs`: publishers and their activity, now or at a moment.

use std::sync::Arc;

use axum::extract::State;
use kymo_base::name::DisplayName;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_view::programs::state_words;
use kymo_wire::activity::Recorded;
use kymo_wire::keeper::{
    ActiveSlot, Latency, Life, Limited, Metric, MetricKind, Programs, Publisher,
};
use serde_json::{Map, Value as Json, json};

use super::{Hub, Params, RequestHead};
use crate::access::Scopes;
use crate::answer::{Answer, Refusal};
use crate::guarded::Guarded;
use crate::guarded::UNTOLD;
use crate::turns::Lane;

const QUANTILES: [&str; 3] = ["0.5", "0.9", "0.99"];

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let scopes = head.scopes;
    let at_ns = match params.text("at") {
        None | Some("now") => None,
        Some(_) => Some(params.time("at", "now")?),
    };
    let lane = match (at_ns, &hub.stored) {
        (None, Some(_)) => Lane::Keeper,
        _ => Lane::Long,
    };
    let programs = move |hub: &Hub| {
        let stored = match (at_ns, &hub.stored) {
            (None, Some(stored)) => stored,
            (Some(at_ns), _) => return recorded(hub, at_ns, scopes),
            // Without a recorder, the newest moment is the end of the recording.
            (None, None) => {
                let extent = hub.archive.extent().map_err(Refusal::unavailable)?;
                return recorded(hub, extent.thru_ns, scopes);
            }
        };
        let programs = stored.programs(scopes);
        let programs = programs.map_err(Refusal::unavailable)?;
        Ok(body(&programs, RealClock.now().real_ns).to_string())
    };
    hub.answer_json(lane, &head, programs).await
}

/// Programs of the recording at that moment.
fn recorded(hub: &Hub, at_ns: i64, scopes: Scopes) -> Result<String, Refusal> {
    let recorded = hub
        .archive
        .programs(at_ns)
        .map_err(Refusal::unavailable)?
        .map(Guarded::new);
    let recorded = recorded
        .ok_or_else(|| Refusal::missing("cannot show programs: none were recorded then"))?;
    Ok(recorded_body(&recorded.seen_by(scopes)).to_string())
}

/// Recorded programs as JSON: as [`body`], with `now` at the time of the sample, and the same
/// time as `at`.
pub fn recorded_body(recorded: &Recorded) -> Json {
    let at_ns = i64::try_from(recorded.at_ns).unwrap_or(0);
    let mut body = body(&recorded.programs, at_ns);
    body["at"] = seconds(recorded.at_ns);
    body
}

/// Programs as JSON.
pub fn body(programs: &Programs, now_ns: i64) -> Json {
    let publishers: Vec<Json> = programs.publishers.iter().map(publisher).collect();
    let limited: Vec<Json> = programs.limited.iter().map(limited).collect();
    json!({
        "now": seconds(u64::try_from(now_ns).unwrap_or(0)),
        "publishers": publishers,
        "limited": limited,
        "left_out": programs.left_out,
        "dropped": programs.dropped,
    })
}

fn publisher(publisher: &Publisher) -> Json {
    let metrics: Vec<Json> = publisher.metrics.iter().map(metric).collect();
    let slots: Vec<Json> = publisher.slots.iter().map(slot).collect();
    json!({
        "name": shown(&publisher.name),
        "labels": labels(&publisher.labels),
        "user": shown(&publisher.user),
        "uid": Some(publisher.uid).filter(|&uid| uid != UNTOLD),
        "pid": publisher.pid,
        "started": seconds(publisher.started_ns),
        "life": match publisher.life {
            Life::Ended => "ended",
            Life::Alive => "alive",
            Life::Retired => "retired",
        },
        "slots_used": publisher.slots_used,
        "cells": publisher.cells,
        "refused": publisher.refused,
        "metrics": metrics,
        "slots": slots,
        "slots_left_out": publisher.slots_left_out,
    })
}

fn metric(metric: &Metric) -> Json {
    let Latency { samples, quantiles } = metric.latency;
    let quantiles = QUANTILES.into_iter().zip(quantiles);
    let quantiles: Map<String, Json> = quantiles
        .map(|(name, value)| (name.to_string(), Json::from(value)))
        .collect();
    let mut shown_metric = json!({
        "name": shown(&metric.name),
        "unit": shown(&metric.unit),
        "help": shown(&metric.help),
        "labels": labels(&metric.labels),
        "kind": match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        },
        "value": metric.value,
        "rate": metric.rate,
    });
    if metric.kind == MetricKind::Histogram {
        shown_metric["samples"] = samples.into();
        shown_metric["quantiles"] = quantiles.into();
    }
    shown_metric
}

fn slot(slot: &ActiveSlot) -> Json {
    json!({
        "slot": slot.number,
        "pid": slot.pid,
        "xid": slot.xid,
        "leader": slot.leader,
        "state": state_words(slot.state),
        "kind": kind_words(slot.kind),
        "since": seconds(slot.since_ns),
        "commands": slot.commands,
        "labels": labels(&slot.labels),
        "text": shown(&slot.text),
        "cut": slot.is_cut,
        "wait": shown(&slot.wait),
        "blocked_by": slot.blocked_by,
        "blocked_by_xids": slot.blocked_by_xids,
    })
}

fn limited(limited: &Limited) -> Json {
    let [files, cells, series, texts, bad] = limited.counts;
    json!({
        "user": shown(&limited.user),
        "uid": limited.uid,
        "files": files,
        "cells": cells,
        "series": series,
        "texts": texts,
        "bad": bad,
    })
}

fn kind_words(kind: u8) -> &'static str {
    match kind {
        1 => "sql",
        2 => "plain",
        3 => "secret",
        _ => "",
    }
}

fn labels(labels: &[(Vec<u8>, Vec<u8>)]) -> Json {
    let labels = labels.iter().map(|(key, value)| (shown(key), shown(value)));
    let labels: Map<String, Json> = labels.map(|(key, value)| (key, value.into())).collect();
    labels.into()
}

fn shown(name: &[u8]) -> String {
    DisplayName(name).to_string()
}

/// Seconds of a time; `null`: unknown.
fn seconds(ns: u64) -> Json {
    match ns {
        0 => Json::Null,
        ns => Json::from((ns as f64 / 1e6).round() / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_null_and_names_are_safe_to_show() {
        let metric = Metric {
            name: b"a\n<b>".to_vec(),
            unit: Vec::new(),
            help: Vec::new(),
            labels: vec![(b"k".to_vec(), b"\x1b[2J".to_vec())],
            kind: MetricKind::Counter,
            value: 7.0,
            rate: f64::NAN,
            latency: Latency::NONE,
        };
        let shown = super::metric(&metric).to_string();
        assert_eq!(
            shown,
            r#"{"help":"","kind":"counter","labels":{"k":"\\x1b[2J"},"name":"a\\x0a<b>","rate":null,"unit":"","value":7.0}"#
        );
        let programs = Programs {
            left_out: 3,
            ..Programs::default()
        };
        assert_eq!(
            body(&programs, 1_500_000_000).to_string(),
            r#"{"dropped":0,"left_out":3,"limited":[],"now":1.5,"publishers":[]}"#
        );
    }
}
