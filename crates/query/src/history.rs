//! This machine's history: the values of the store from before the recording, and the values that the store gets from the
//! recording.
//!
//! The store gets the raw metrics of this machine under node_exporter's names, for PromQL, and the means of the page's fields,
//! which cannot be computed from raw counters: utilisations, maxima over devices, sums of the counted devices. Both have a step
//! of ten seconds.

mod begin;
mod feeder;
mod fields;
mod metrics;

use std::collections::BTreeSet;

use kymo_base::label_set::{Labels, is_set};
use kymo_base::labels;
use kymo_series::names;
use kymo_sys::machine;
use kymo_wire::keeper::{NAMES_MAX, Range, SeriesInfo};

use crate::series::Series;
use crate::sheet::{Line, Of, Pick, id};
use crate::stored::{SharedKeeper, points, seconds_of};

pub use begin::Begin;
pub use feeder::Feeder;
pub use metrics::KEPT;

const SECOND_NS: i64 = 1_000_000_000;
/// Seconds of a mean, and between two samples of a metric.
const STEP_S: u32 = 10;
/// [`STEP_S`] in nanoseconds.
const STEP_NS: i64 = 10 * SECOND_NS;
/// Seconds without one after which nothing is known.
const HEARTBEAT_S: u32 = 120;
/// The name of a series' only column.
const COLUMN: &[u8] = b"value";

/// The name of the series of a field's means.
fn name(host: &str, field: &str, instance: Option<&str>) -> Option<Labels> {
    let labels = [
        ("field", field.as_bytes()),
        ("host", host.as_bytes()),
        ("instance", instance.unwrap_or_default().as_bytes()),
        ("job", names::JOB_KYMO),
    ];
    Labels::new(labels).ok()
}

/// True if a series is of this machine's history.
pub fn is_own(name: &[u8], host: &str) -> bool {
    let is = |label: &str, value: &[u8]| *labels::value(name, label) == *value;
    let is_mean = || is("job", names::JOB_KYMO) && is("host", host.as_bytes());
    let is_metric = || is("job", names::JOB_NODE) && is("instance", host.as_bytes());
    is_set(name) && (is_mean() || is_metric())
}

/// The machine whose history a store has: this one, or else the only one.
pub(crate) fn host_of(stored: &[SeriesInfo]) -> String {
    let means = stored
        .iter()
        .filter(|info| is_set(&info.name) && *labels::value(&info.name, "job") == *names::JOB_KYMO);
    let hosts: BTreeSet<String> = means
        .map(|info| String::from_utf8_lossy(&labels::value(&info.name, "host")).into_owned())
        .filter(|host| !host.is_empty())
        .collect();
    let own = machine::host();
    match hosts.len() {
        1 => hosts.into_iter().next().unwrap_or(own),
        _ => own,
    }
}

/// Adds to points of the recording, up to where the recording begins, stored means of the same fields.
pub(crate) fn add(
    stored: &SharedKeeper,
    picks: &[Pick],
    host: &str,
    begins_ns: i64,
    series: &mut Series,
) -> Result<(), String> {
    let grid = series.grid;
    let (from, _) = seconds_of(&grid);
    let thru = begins_ns.min(grid.thru_ns()).div_euclid(SECOND_NS);
    if from >= thru {
        return Ok(());
    }
    let wanted = wanted(stored, picks, host)?;
    // As many rows as there are points before the recording.
    let rows = (thru - from)
        .saturating_mul(SECOND_NS)
        .div_euclid(grid.step_ns);
    for part in wanted.chunks(NAMES_MAX) {
        let names = part.iter().map(|(labels, _)| labels.text().to_vec());
        let answers = stored.keeper().range(&Range {
            names: names.collect(),
            from,
            thru,
            rows_max: u32::try_from(rows + 1).unwrap_or(u32::MAX),
        })?;
        for ((_, line), rows) in part.iter().zip(answers) {
            // One that is not stored has none.
            let Ok(rows) = rows else { continue };
            let Some(place) = series.place(line) else {
                return Ok(());
            };
            for (known, old) in series.points[place].iter_mut().zip(points(&rows, 0, &grid)) {
                if known.seconds == 0.0 {
                    *known = old;
                }
            }
        }
    }
    Ok(())
}

/// The series of these fields, and their lines.
fn wanted(
    stored: &SharedKeeper,
    picks: &[Pick],
    host: &str,
) -> Result<Vec<(Labels, Line)>, String> {
    let line = |pick: &Pick, n: usize, instance: Option<&str>| Line {
        id: id(pick.subsystem, pick.column, instance),
        unit: pick.column.unit,
        help: pick.column.help,
        pick: n,
    };
    let field = |pick: &Pick| id(pick.subsystem, pick.column, None);
    let mut wanted = Vec::new();
    for (n, pick) in picks.iter().enumerate() {
        let instance = match &pick.of {
            Of::Machine => None,
            Of::One(instance) => Some(instance.as_str()),
            Of::Each => {
                let listed = stored.all()?;
                let field = field(pick);
                let instances = instances(&listed, host, &field);
                wanted.extend(
                    instances.map(|(labels, instance)| (labels, line(pick, n, Some(&instance)))),
                );
                continue;
            }
        };
        let labels = name(host, &field(pick), instance);
        wanted.extend(labels.map(|labels| (labels, line(pick, n, instance))));
    }
    Ok(wanted)
}

/// The series of a field's instances, with their names.
fn instances<'a>(
    listed: &'a [SeriesInfo],
    host: &'a str,
    field: &'a str,
) -> impl Iterator<Item = (Labels, String)> + 'a {
    let mine = listed.iter().filter(move |info| {
        is_own(&info.name, host) && *labels::value(&info.name, "field") == *field.as_bytes()
    });
    mine.filter_map(|info| {
        let instance = labels::value(&info.name, "instance").into_owned();
        let instance = String::from_utf8(instance).ok()?;
        let labels = Labels::parse(&info.name).ok()?;
        (!instance.is_empty()).then_some((labels, instance))
    })
}
