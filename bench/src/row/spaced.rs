//! Samples 10 ms apart while a compile runs: without pause nearly every text
//! equals the last, which flatters any recorder that looks for changes.

use super::Row;
use super::day::against;
use crate::bench::Bench;
use crate::fault::Result;
use crate::load::{self, Kind};
use crate::peer::{Peer, Take};
use crate::report::Outcome;
use crate::sides::alternate;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "spaced",
    work: "10 ms apart, 3,000 samples, a compile running: CPU",
    bar: "≤ 1.8 × the floor",
    aim: "1.3 ×",
    run,
};

const PEERS: [Peer; 2] = [Peer::Floor, Peer::Kymo];
const ROUNDS_MAX: usize = 3;
const LIMIT: Duration = Duration::from_secs(90);

fn run(bench: &Bench) -> Result<Outcome> {
    let take = Take {
        letters: "cdnm",
        interval: "0.01",
        count: bench.pick(3000, 100),
    };
    let rounds = bench.rounds.min(ROUNDS_MAX);
    let _load = load::start(bench, Kind::Compile, LIMIT * 2 * rounds as u32)?;
    let sides = alternate(bench, rounds, take, &PEERS, LIMIT)?;
    let mut outcome = Outcome::new(sides.describe());
    against(&mut outcome, &sides, Peer::Floor, 1.8, 1.3);
    Ok(outcome)
}
