//! All of collectl's summary letters except those without
//! a source in this machine's kernel, without pause.

use super::Row;
use super::day::against;
use crate::bench::Bench;
use crate::fault::Result;
use crate::peer::{Peer, Take};
use crate::report::Outcome;
use crate::sides::alternate;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "letters",
    work: "`-sbcdfijmnsty -i0 -c864`, collectl's summary letters, recorded: CPU",
    bar: "≤ 1/15 of collectl, ≤ 1.6 × the floor",
    aim: "1.3 ×",
    run,
};

const PEERS: [Peer; 3] = [Peer::Floor, Peer::Kymo, Peer::Collectl];
const LIMIT: Duration = Duration::from_secs(120);

fn run(bench: &Bench) -> Result<Outcome> {
    let take = Take {
        letters: "bcdfijmnsty",
        interval: "0",
        count: bench.pick(864, 50),
    };
    let sides = alternate(bench, bench.rounds, take, &PEERS, LIMIT)?;
    let mut outcome = Outcome::new(sides.describe());
    against(&mut outcome, &sides, Peer::Collectl, 1.0 / 15.0, 1.0 / 15.0);
    against(&mut outcome, &sides, Peer::Floor, 1.6, 1.3);
    Ok(outcome)
}
