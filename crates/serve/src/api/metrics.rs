//! `/metrics`: the newest sample for Prometheus, and the cost of
//! kymo.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use kymo_base::cost::decode;
use kymo_base::reading::Reading;
use kymo_kernel::source;
use kymo_kernel::subsystem::Subsystem;
use kymo_kernel::subsystem::exposed::Kind;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_view::prometheus::{self, Process};
use kymo_wire::backup_state::BackupState;
use kymo_wire::keeper::{RECEIVER_METRICS, ReceiverAccount};

use super::{Hub, RequestHead};
use crate::access::Scopes;
use crate::answer::{Answer, Refusal};
use crate::number::seconds;
use crate::turns::Lane;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    if hub.archive.what.ring().is_none() {
        return Err(Refusal::missing(
            "cannot expose metrics: a recording that was opened from a file has no newest sample",
        ));
    }
    let scopes = head.scopes;
    let text = move |hub: &Hub| text(hub, scopes);
    hub.answer(Lane::Short, &head, prometheus::CONTENT_TYPE, text)
        .await
}

fn text(hub: &Hub, scopes: Scopes) -> Result<Vec<u8>, Refusal> {
    let start = Instant::now();
    let (cost, tally) = hub.cost();
    let extent = hub.archive.extent().unwrap_or_default();
    let processes: Vec<Process> = cost
        .processes
        .iter()
        .map(|process| Process {
            name: process.name,
            cpu_seconds: process.cpu_seconds,
            memory_bytes: process.memory_bytes as f64,
        })
        .collect();
    let backup = hub.backup();
    let of_backup = |value: fn(&BackupState) -> u64| {
        backup
            .as_ref()
            .map_or(f64::NAN, |state| value(state) as f64)
    };
    let now_ms = RealClock.now().real_ns / 1_000_000;
    let backup_age = backup.as_ref().and_then(|state| state.age_s(now_ms));
    let mut out = Vec::with_capacity(32 << 10);
    let written = hub.now.newest(|newest| {
        let sources: Vec<(&str, f64)> = newest
            .costs
            .iter()
            .filter_map(|&(kind, code)| Some((source::of(kind)?.path, decode(code) as f64 / 1e9)))
            .collect();
        let own = prometheus::Cost {
            version: env!("CARGO_PKG_VERSION"),
            processes: &processes,
            sources: &sources,
            samples: tally.samples as f64,
            missed: tally.missed as f64,
            dropped: tally.dropped as f64,
            ring_bytes: cost.bytes_held as f64,
            oldest: seconds(extent.from_ns),
            lowest: match hub.stored {
                Some(_) => 0.0,
                None => seconds(extent.from_ns),
            },
            newest: seconds(newest.moment.real_ns),
            backup_age: backup_age.unwrap_or(f64::NAN),
            backups: of_backup(|state| state.backups),
            backup_failures: of_backup(|state| state.failures),
            backup_sent_bytes: of_backup(|state| state.sent_bytes),
            backup_left_out: of_backup(|state| state.left_out),
            scrape_seconds: start.elapsed().as_secs_f64(),
            ..prometheus::Cost::UNKNOWN
        };
        let is_shown =
            |(subsystem, _): &(&'static Subsystem, &Reading)| scopes.shows_instances(subsystem);
        let readings = newest.readings.iter().copied().filter(is_shown);
        if let Ok(mut floor) = hub.floor.lock() {
            prometheus::write(&mut out, &mut floor, readings, newest.context, &own);
        }
    });
    written.map_err(Refusal::unavailable)?;
    put_receivers(&mut out, &hub.receivers());
    Ok(out)
}

/// Appends the metrics of receivers of `[[forward]]`.
fn put_receivers(out: &mut Vec<u8>, receivers: &[ReceiverAccount]) {
    for metric in &RECEIVER_METRICS {
        let kind = match metric.is_counter() {
            true => Kind::Counter,
            false => Kind::Gauge,
        };
        let head = (metric.name, kind, metric.help);
        let samples = receivers.iter();
        let samples = samples.map(|receiver| (receiver.name.as_str(), (metric.value)(receiver)));
        prometheus::put_metric(out, head, "forward", samples);
    }
}
