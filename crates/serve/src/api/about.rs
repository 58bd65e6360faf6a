//! `/api/v1/status` and `/api/v1/cost`: what is shown here, and what it costs.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use kymo_sys::clock::{Clock as _, RealClock};
use serde_json::{Value, json};

use super::{Asker, Hub};
use crate::answer::{self, Answer};
use crate::cost::{self, Cost};
use crate::number::seconds;
use crate::tally::Tally;

pub(super) async fn status(
    State(hub): State<Arc<Hub>>,
    Extension(scopes): Asker,
    headers: HeaderMap,
) -> Answer {
    let body = hub
        .ask(move |hub| {
            // A recording that is not there yet is no reason not to answer.
            let (extent, error) = match hub.archive.extent() {
                Ok(extent) => (extent, None),
                Err(error) => (Default::default(), Some(error)),
            };
            let recorder = hub
                .archive
                .what
                .ring()
                .and_then(|ring| cost::recorder_pid(ring));
            let now_ns = RealClock.now().real_ns;
            Ok(json!({
                "version": env!("CARGO_PKG_VERSION"),
                "host": extent.context.get("host"),
                "kernel": extent.context.get("kernel"),
                "cpus": extent.context.number("cpus"),
                "mem_kb": extent.context.number("mem_kb"),
                "tz": extent.context.get("tz"),
                "mode": if hub.archive.what.ring().is_some() { "live" } else { "file" },
                "now": seconds(now_ns),
                "from": time(hub.begins_ns(extent.from_ns, now_ns)),
                "recorded_from": time(extent.from_ns),
                "thru": time(extent.thru_ns),
                "interval": span(extent.interval_ns),
                "scan_interval": span(extent.scan_interval_ns),
                "scopes": scopes.names(),
                "error": error,
                "path": hub.archive.what.name(),
                "recorder": {
                    "alive": recorder.is_some(),
                    "since": recorder.and_then(kymo_sys::procs::age_of)
                        .map(|age| seconds(now_ns - (age * 1e9) as i64)),
                },
            })
            .to_string())
        })
        .await?;
    Ok(answer::json(&headers, body))
}

pub(super) async fn cost(State(hub): State<Arc<Hub>>, headers: HeaderMap) -> Answer {
    let body = hub
        .ask(|hub| {
            let (cost, tally) = hub.cost();
            let mut body = serde_json::to_value(&cost).unwrap_or_default();
            body["missed"] = json!(tally.missed);
            body["dropped"] = json!(tally.dropped);
            Ok(body.to_string())
        })
        .await?;
    Ok(answer::json(&headers, body))
}

impl Hub {
    /// What kymo costs, and what its recorder has done.
    pub(crate) fn cost(&self) -> (Cost, Tally) {
        let extent = self.archive.extent().unwrap_or_default();
        let ring = self.archive.what.ring().map(PathBuf::as_path);
        let span_s = seconds(extent.thru_ns - extent.from_ns);
        (
            self.meter.read(ring, span_s),
            self.counter.count(&self.archive),
        )
    }
}

fn time(ns: i64) -> Value {
    match ns {
        0 => Value::Null,
        ns => json!(seconds(ns)),
    }
}

fn span(ns: i64) -> Value {
    match ns {
        0 => Value::Null,
        ns => json!(ns as f64 / 1e9),
    }
}
