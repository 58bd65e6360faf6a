//! The cost of a sample that is pushed, until it is at rest.

use super::engine::{Engine, Who};
use super::fleet::Fleet;
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::significant;
use crate::report::Outcome;
use crate::row::Row;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "push",
    work: "remote write 1.0 of 1,000 series × 720 samples each 5 s, a request a step: CPU of all processes and bytes written until \
           5 s later; bytes after the end, of samples in their final form and of the journal that the next checkpoint drops; a sample",
    bar: "≤ 1.2 us, ≤ 6 B written, ≤ 2.0 B kept",
    aim: "0.8, 3, 1.5",
    run,
};

pub(super) const SERIES: usize = 1000;
pub(super) const STEPS: u64 = 720;
pub(super) const STEP_S: u64 = 5;
/// Time for what an engine still does with the samples.
const REST: Duration = Duration::from_secs(5);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let steps = bench.steps(STEPS, 60);
    let samples = (SERIES as u64 * steps) as f64;
    let fleet = Fleet::new(SERIES);
    for who in Who::ALL {
        if !who.is_here(bench) {
            outcome.figure(format!("{} is not here", who.name()));
            continue;
        }
        let engine = Engine::start(bench, who)?;
        let before = engine.spent()?;
        engine.fill(&fleet, SERIES, steps, STEP_S)?;
        sleep(REST);
        let spent = engine.spent()?;
        let kept = engine.end()?;
        let [kept, journal] = [kept.samples, kept.journal].map(|bytes| bytes as f64 / samples);
        let micros = (spent.cpu_ns - before.cpu_ns) as f64 / 1e3 / samples;
        let written = (spent.written_bytes - before.written_bytes) / samples;
        outcome.figure(format!(
            "{}: {} us, {} B written, {} B kept and {} B of journal",
            who.name(),
            significant(micros),
            significant(written),
            significant(kept),
            significant(journal)
        ));
        if who == Who::Kymo {
            outcome.check(Some(micros), 1.2, 0.8);
            outcome.check(Some(written), 6.0, 3.0);
            outcome.check(Some(kept), 2.0, 1.5);
        }
    }
    Ok(outcome)
}
