//! The cost of a backlog: samples that were pushed while the receiver was away go out when it is back, by kymo's `[[forward]]`
//! and by vmagent.

use super::engine::{Engine, Who};
use super::fleet::Fleet;
use super::push::{SERIES, STEP_S, STEPS};
use super::sink::Sink;
use crate::bench::Bench;
use crate::fault::{Fault, Result};
use crate::figures::significant;
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "forward",
    work: "remote write 1.0 of 1,000 series × 720 samples each 5 s while the receiver answers 503, then it takes them: bytes of \
           the requests' bodies, CPU of all processes for the sending and for all of it; a sample",
    bar: "≤ 10 B, ≤ 0.3 us to send",
    aim: "7, 0.15",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let steps = bench.steps(STEPS, 60);
    let samples = SERIES as u64 * steps;
    let fleet = Fleet::new(SERIES);
    for who in Who::CARRIERS {
        if !who.is_here(bench) {
            outcome.figure(format!("{} is not here", who.name()));
            continue;
        }
        let sink = Sink::start()?;
        let engine = Engine::carrier(bench, who, &sink.url())?;
        let begun = engine.spent()?.cpu_ns;
        engine.fill(&fleet, SERIES, steps, STEP_S)?;
        let filled = engine.spent()?.cpu_ns;
        let received = sink.take(samples)?;
        let sent = engine.spent()?.cpu_ns;
        engine.end()?;
        if received.samples != samples {
            let why = format!("{} samples came and {samples} were sent", received.samples);
            return Err(Fault::because(format!("forward by {}", who.name()), why));
        }
        let each = |total: f64| total / samples as f64;
        let bytes = each(received.bytes as f64);
        let [micros, whole] = [filled, begun].map(|from| each((sent - from) as f64 / 1e3));
        outcome.figure(format!(
            "{}: {} B, {} us to send, {} us for all",
            who.name(),
            significant(bytes),
            significant(micros),
            significant(whole)
        ));
        if who == Who::Kymo {
            outcome.check(Some(bytes), 10.0, 7.0);
            outcome.check(Some(micros), 0.3, 0.15);
        }
    }
    Ok(outcome)
}
