//! The process table at moments of any age in a full ring, by the page's requests.

use super::request::{Form, get_ok};
use super::rings::{forget, ring};
use super::served::Served;
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{bytes, median, significant, spread};
use crate::report::Outcome;
use crate::row::Row;
use crate::world::Chance;

pub(super) const ROW: Row = Row {
    name: "cursor",
    work: "cursor → process table at any age in a 1 GiB ring, server side",
    bar: "≤ 100 ms",
    aim: "20 ms",
    run,
};

/// Moments this close to the ends are left out:
/// the oldest block may be removed meanwhile.
const MARGIN_S: f64 = 3600.0;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let folder = ring(bench)?;
    let served = Served::start(bench, kymo, &folder)?;
    let (from, thru) = served.extent()?;
    let held = forget(&folder)?;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    let mut chance = Chance::new(17);
    let (mut rows, span) = (0, thru - from - 2.0 * MARGIN_S);
    for _ in 0..bench.pick(50, 5) {
        let at = from + MARGIN_S + chance.part() * span;
        let path = format!("/kymo/v1/processes?at={at:.1}");
        forget(&folder)?;
        cold.push(get_ok(served.port, &path, Form::Gzip)?.wall.as_secs_f64() * 1e3);
        warm.push(get_ok(served.port, &path, Form::Gzip)?.wall.as_secs_f64() * 1e3);
        let plain = get_ok(served.port, &path, Form::Plain)?.body;
        rows = rows.max(
            plain
                .windows(2)
                .filter(|two| two == b",[" || two == b"[[")
                .count(),
        );
    }
    served.end()?;
    let days = significant((thru - from) / 86_400.0);
    outcome.figure(format!(
        "{} of {days} days, {rows} processes",
        bytes(held as f64)
    ));
    for (name, times) in [("warm", &warm), ("pages dropped", &cold)] {
        let [middle, worst] = [median(times), spread(times).1].map(significant);
        outcome.figure(format!("{name} {middle} ms, worst {worst} ms"));
        outcome.check(Some(median(times)), 100.0, 20.0);
        outcome.check(Some(spread(times).1), 100.0, 100.0);
    }
    Ok(outcome)
}
