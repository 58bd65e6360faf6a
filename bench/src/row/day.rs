//! A day of samples without pause: the measurement of collectl's own author.

use super::Row;
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::ratio;
use crate::peer::{Peer, Take};
use crate::report::Outcome;
use crate::sides::{Sides, alternate};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "day",
    work: "`-scdnm -i0 -c8640`, recorded: CPU",
    bar: "≤ 1/20 of collectl, ≤ 1.35 × the floor",
    aim: "1/35, 1.15 ×",
    run,
};

const PEERS: [Peer; 3] = [Peer::Floor, Peer::Kymo, Peer::Collectl];
const LIMIT: Duration = Duration::from_secs(60);

fn run(bench: &Bench) -> Result<Outcome> {
    let take = Take {
        letters: "cdnm",
        interval: "0",
        count: bench.pick(8640, 300),
    };
    let sides = alternate(bench, bench.rounds, take, &PEERS, LIMIT)?;
    let mut outcome = Outcome::new(sides.describe());
    against(&mut outcome, &sides, Peer::Collectl, 1.0 / 20.0, 1.0 / 35.0);
    against(&mut outcome, &sides, Peer::Floor, 1.35, 1.15);
    Ok(outcome)
}

/// Judges kymo's median CPU against another peer's, if both were here.
pub(super) fn against(outcome: &mut Outcome, sides: &Sides, other: Peer, bar: f64, aim: f64) {
    if let (Some(kymo), Some(theirs)) = (sides.cpu(Peer::Kymo), sides.cpu(other)) {
        outcome.figure(format!("kymo/{} {}", other.name(), ratio(kymo, theirs)));
        outcome.check(Some(kymo / theirs), bar, aim);
    }
}
