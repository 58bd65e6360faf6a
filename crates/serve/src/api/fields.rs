//! `/kymo/v1/fields`: all recorded fields, from the tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use kymo_base::column::{Column, Value};
use kymo_base::name::DisplayName;
use kymo_base::reading::{MISSING, Reading};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::{self, Subsystem};
use kymo_query::source::{Source as _, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use serde_json::{Value as Json, json};

use super::{Hub, RequestHead};
use crate::access::Scopes;
use crate::answer::{Answer, Refusal};
use crate::turns::Lane;

/// Names of instances, by subsystem; a subsystem that is not recorded has none.
type Instances = BTreeMap<&'static str, Vec<String>>;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let scopes = head.scopes;
    // From a file the last minutes have to be read.
    let lane = match hub.archive.what.ring() {
        Some(_) => Lane::Short,
        None => Lane::Long,
    };
    let fields = move |hub: &Hub| {
        let instances = instances(hub).map_err(Refusal::unavailable)?;
        let subsystems: Vec<Json> = subsystem::ALL
            .iter()
            .map(|subsystem| {
                let named = instances.get(subsystem.name);
                let named = named.filter(|_| scopes.shows_instances(subsystem));
                json!({
                    "name": subsystem.name,
                    "letter": subsystem.letter.to_string(),
                    "help": subsystem.help,
                    "recorded": instances.contains_key(subsystem.name),
                    "instances": named.cloned().unwrap_or_default(),
                    "columns": columns(subsystem.columns, |column| !column.private),
                    "each": columns(subsystem.detail, |column| is_offered(subsystem, column, scopes)),
                })
            })
            .collect();
        Ok(json!({ "subsystems": subsystems }).to_string())
    };
    hub.answer_json(lane, &head, fields).await
}

/// True if a column is offered: columns of processes only if they need no token.
fn is_offered(subsystem: &Subsystem, column: &Column, scopes: Scopes) -> bool {
    !column.private || subsystem.is_private() && scopes.shows(column)
}

/// Columns with numbers, because texts cannot be drawn.
fn columns(columns: &[Column], is_offered: impl Fn(&Column) -> bool) -> Vec<Json> {
    columns
        .iter()
        .filter(|column| matches!(column.value, Value::Number(_)))
        .filter(|column| is_offered(column))
        .map(|column| json!({ "name": column.name, "unit": column.unit.symbol(), "help": column.help }))
        .collect()
}

/// The instances of the newest sample, without processes, which have a table of their own.
fn instances(hub: &Hub) -> Result<Instances, String> {
    if hub.archive.what.ring().is_some() {
        return hub.now.newest(|newest| {
            let named =
                |reading: &Reading| reading.rows.iter().map(|row| shown(&row.name)).collect();
            newest
                .readings
                .iter()
                .filter(|(_, reading)| says_something(reading))
                .map(|(subsystem, reading)| (subsystem.name, named(reading)))
                .collect()
        });
    }
    of_file(hub)
}

fn says_something(reading: &Reading) -> bool {
    !reading.rows.is_empty() || reading.globals.iter().any(|&number| number != MISSING)
}

/// The instances in the last minutes of a file: long enough to include sources that are read with the
/// scan of processes.
fn of_file(hub: &Hub) -> Result<Instances, String> {
    const LAST_NS: i64 = 150_000_000_000;
    let machine = subsystem::ALL
        .iter()
        .filter(|subsystem| !subsystem.is_of_processes());
    let kinds: Kinds = machine.clone().flat_map(|s| s.understood()).collect();
    let thru_ns = hub.archive.extent()?.thru_ns;
    let range = TimeRange {
        from_ns: thru_ns - LAST_NS,
        thru_ns: i64::MAX,
    };
    let mut source = hub.archive.what.open(range, kinds)?;
    let mut found = Instances::new();
    let mut interpreters: Vec<_> = machine
        .map(|&subsystem| (subsystem, Interpreter::new(subsystem), Reading::default()))
        .collect();
    while let Some(step) = source.next()? {
        let Step::Sample(moment) = step else { continue };
        if moment.real_ns < range.from_ns {
            continue;
        }
        for (subsystem, interpreter, reading) in &mut interpreters {
            if interpreter.read(source.tracks(), source.context(), reading)
                && says_something(reading)
            {
                let names = reading.rows.iter().map(|row| shown(&row.name)).collect();
                found.insert(subsystem.name, names);
            }
        }
    }
    Ok(found)
}

fn shown(name: &[u8]) -> String {
    DisplayName(name).text().into_owned()
}
