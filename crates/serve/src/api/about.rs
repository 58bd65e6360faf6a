//! `/kymo/v1/status` and `/kymo/v1/cost`: the recording and the store, and the cost of kymo.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::{Disk as _, OpenMode, RealDisk};
use kymo_wire::backup_state::{BYTES_MAX, BackupState, FILE, FOLDER};
use kymo_wire::keeper::ReceiverAccount;
use serde_json::{Value, json};

use super::hosts::receivers;
use super::{Hub, RequestHead};
use crate::access::Scopes;
use crate::answer::Answer;
use crate::cost::{self, Cost};
use crate::number::seconds;
use crate::tally::Tally;
use crate::turns::Lane;

/// Most senders of wrong tokens in an answer.
const GUESSERS_MAX: usize = 20;

pub(super) async fn status(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let scopes = head.scopes;
    let status = move |hub: &Hub| {
        // The status is answered even if there is no recording yet.
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
            "address": hub.address,
            "kernel": extent.context.get("kernel"),
            "cpus": extent.context.number("cpus"),
            "mem_kb": extent.context.number("mem_kb"),
            "tz": extent.context.get("tz"),
            "mode": if hub.archive.what.ring().is_some() { "live" } else { "file" },
            "now": seconds(now_ns),
            "from": time(hub.fields.begins_ns(now_ns)),
            "recorded_from": time(extent.from_ns),
            "thru": time(extent.thru_ns),
            "interval": span(extent.interval_ns),
            "scan_interval": span(extent.scan_interval_ns),
            "own_intervals": own_intervals(extent.context.get("own_intervals")),
            "scopes": scopes.names(),
            "error": error,
            "path": hub.archive.what.name(),
            "recorder": {
                "alive": recorder.is_some(),
                "since": recorder.and_then(kymo_sys::procs::age_of)
                    .map(|age| seconds(now_ns - (age * 1e9) as i64)),
            },
            "wrong_tokens": hub.wrong_tokens(scopes),
            "tails": hub.tails(),
            "receivers": receivers(&hub.receivers()),
            "backup": hub.backup().map(|state| backup(&state, scopes, now_ns / 1_000_000)),
        })
        .to_string())
    };
    hub.answer_json(Lane::Short, &head, status).await
}

/// Intervals of subsystems that are not read at each sample or scan, by name, in seconds.
fn own_intervals(fact: Option<&str>) -> Value {
    let words = fact.unwrap_or_default().split(' ');
    let pairs = words.filter_map(|word| {
        let (name, seconds) = word.split_once('=')?;
        Some((name.to_string(), json!(seconds.parse::<f64>().ok()?)))
    });
    Value::Object(pairs.collect())
}

/// Outcomes of the process of `[backup]`. A reason names places: it is for those who may see texts.
fn backup(state: &BackupState, scopes: Scopes, now_ms: i64) -> Value {
    let mut shown = json!({
        "newest": (state.newest_ms > 0).then(|| seconds(state.newest_ms.saturating_mul(1_000_000))),
        "age": state.age_s(now_ms),
        "every": state.every_s,
        "files": state.files,
        "bytes": state.bytes,
        "left_out": state.left_out,
        "duration": state.duration_s,
        "backups": state.backups,
        "failures": state.failures,
        "sent_bytes": state.sent_bytes,
        "failed": !state.error.is_empty(),
    });
    if scopes.tells_of_people() {
        shown["error"] = json!(state.error);
        shown["to"] = json!(state.to);
    }
    shown
}

pub(super) async fn cost(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let cost = |hub: &Hub| {
        let (cost, tally) = hub.cost();
        let mut body = serde_json::to_value(&cost).unwrap_or_default();
        body["missed"] = json!(tally.missed);
        body["dropped"] = json!(tally.dropped);
        Ok(body.to_string())
    };
    hub.answer_json(Lane::Short, &head, cost).await
}

impl Hub {
    /// Outcomes of the process of `[backup]`; `None`: there is none.
    pub(super) fn backup(&self) -> Option<BackupState> {
        let path = self.archive.what.ring()?.join(FOLDER).join(FILE);
        let file = RealDisk.open(&path, OpenMode::Read).ok()?;
        let size = usize::try_from(file.metadata().ok()?.size_bytes).ok()?;
        // One byte more than a state has: a longer file is none.
        let mut bytes = vec![0; size.min(BYTES_MAX + 1)];
        let count = file.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(count);
        BackupState::parse(&bytes)
    }

    /// Receivers of `[[forward]]`; none if the keeper does not answer.
    pub(super) fn receivers(&self) -> Vec<ReceiverAccount> {
        let stored = self.stored.as_ref();
        let receivers = stored.map(|stored| stored.keeper().for_addition().keeper().receivers());
        receivers.and_then(Result::ok).unwrap_or_default()
    }

    /// The store's registered tails; `null` if the keeper does not answer.
    fn tails(&self) -> Value {
        let tails = self
            .stored
            .as_ref()
            .map(|stored| stored.keeper().for_addition().keeper().tails());
        let Some(Ok(tails)) = tails else {
            return Value::Null;
        };
        let tails = tails.iter().map(|tail| {
            json!({
                "name": tail.name,
                "position": tail.position,
                "backlog_bytes": tail.backlog_bytes,
                "backlog_age": tail.backlog_age_s,
                "missed": tail.missed_values,
            })
        });
        json!(tails.collect::<Vec<_>>())
    }

    /// The number of wrong tokens. With the scope `texts` also their origins, because these name users.
    fn wrong_tokens(&self, scopes: Scopes) -> Value {
        let now_ns = RealClock.now().real_ns;
        let (total, guessed) = self.access.guesses.all();
        let from = guessed.iter().take(GUESSERS_MAX).map(|guessed| {
            let age_ns = i64::try_from(guessed.age.as_nanos()).unwrap_or(i64::MAX);
            json!({
                "from": guessed.origin.words(),
                "count": guessed.wrong,
                "last": seconds(now_ns.saturating_sub(age_ns)),
            })
        });
        match scopes.tells_of_people() {
            true => json!({ "count": total, "from": from.collect::<Vec<_>>() }),
            false => json!({ "count": total }),
        }
    }

    /// Cost of kymo, and counts of its recorder.
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
