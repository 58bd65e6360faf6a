//! The recorder while the hub beside it gets as much as it can receive: no load of the hub may delay a sample.

use super::contender::{Hub, Who};
use super::fleet::Fleet;
use super::pace::Sender;
use super::{SERIES, SERIES_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::significant;
use crate::report::Outcome;
use crate::row::Row;
use crate::row::lateness::{Lateness, kymo_stamps};
use crate::ticks::wall_ns;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "hub-beside",
    work: "the recorder's samples, one a second, while its hub is sent 1 M values a second for 10 minutes; sender and hub share the CPUs",
    bar: "none missed, p99.9 ≤ 50 ms late",
    aim: "",
    run,
};

/// Values a second.
const RATE: f64 = 1e6;
const CATCH_UP: Duration = Duration::from_millis(20);
/// Stamps advance step by step, and stay in the past.
const BACK_S: u64 = 10 * 86_400;
/// Interval of the recorder, in seconds.
const INTERVAL: f64 = 1.0;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if !Who::Kymo.is_here(bench) {
        return Ok(outcome);
    }
    let minutes = u64::from(bench.minutes.unwrap_or(bench.pick(10, 1)));
    let length = Duration::from_secs(minutes * 60);
    let mut fleet = Fleet::new(bench.series(SERIES, SERIES_QUICK), BACK_S);
    let room = length.as_secs() * RATE as u64;
    let mut hub = Hub::start(bench, Who::Kymo, fleet.len(), room)?;
    Sender::new(&fleet, hub.port, Who::Kymo.rate(), CATCH_UP)?.step(&mut fleet, 0)?;
    hub.await_rest()?;
    let mut sender = Sender::new(&fleet, hub.port, RATE, CATCH_UP)?;
    let (begun, mut steps) = (Instant::now(), 0);
    let from_ns = wall_ns();
    while begun.elapsed() < length {
        steps += 1;
        sender.step(&mut fleet, steps)?;
    }
    let thru_ns = wall_ns();
    let reached = steps as f64 * fleet.len() as f64 / begun.elapsed().as_secs_f64();
    hub.await_rest()?;
    let dropped = hub.dropped()?;
    hub.end()?;
    let mut stamps = kymo_stamps(bench, &hub.recordings())?;
    stamps.retain(|stamp| (from_ns..thru_ns).contains(stamp));
    let late = Lateness::of(&stamps, INTERVAL, 0.0);
    outcome.figure(late.describe(&format!(
        "{} samples beside {} values a second ({dropped} datagrams dropped):",
        stamps.len(),
        significant(reached)
    )));
    outcome.check(Some(late.p999_ms()), 50.0, 50.0);
    outcome.check(
        Some(late.missing((minutes * 60 - 1) as u32) as f64),
        0.0,
        0.0,
    );
    Ok(outcome)
}
