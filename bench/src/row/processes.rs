//! Scans of all processes without pause, among 400 mostly idle ones.

use super::Row;
use super::day::against;
use crate::bench::Bench;
use crate::crowd;
use crate::fault::Result;
use crate::figures::significant;
use crate::peer::{Peer, Take, present};
use crate::procfs::process_count;
use crate::report::Outcome;
use crate::sides::{Sides, alternate};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "processes",
    work: "`-sZ -i0:1 -c100`, 400 mostly idle processes: CPU",
    bar: "≤ 1/20 of collectl, ≤ 1.6 × the floor",
    aim: "1/35, 1 ×",
    run,
};

const PEERS: [Peer; 3] = [Peer::Floor, Peer::Kymo, Peer::Collectl];
const LIMIT: Duration = Duration::from_secs(120);

fn run(bench: &Bench) -> Result<Outcome> {
    let (count, rounds) = (bench.pick(100, 10), bench.pick(bench.rounds.min(3), 1));
    let _crowd = crowd::start(bench, bench.pick(400, 60), Duration::from_secs(600))?;
    let there = process_count()?;
    let start_up = alternate(bench, rounds, take(1), &PEERS, LIMIT)?;
    let sides = alternate(bench, rounds, take(count), &PEERS, LIMIT)?;
    let mut outcome = Outcome::new(sides.describe());
    for peer in present(bench, &PEERS) {
        let each = each_us(&sides, &start_up, peer, f64::from(count - 1) * there as f64);
        outcome.figure(format!("{} {each} us a process", peer.name()));
    }
    outcome.figure(format!("{there} processes"));
    against(&mut outcome, &sides, Peer::Collectl, 1.0 / 20.0, 1.0 / 35.0);
    against(&mut outcome, &sides, Peer::Floor, 1.6, 1.0);
    Ok(outcome)
}

pub(super) fn take(count: u32) -> Take<'static> {
    Take {
        letters: "Z",
        interval: "0:1",
        count,
    }
}

/// CPU of one process in one scan, without start-up.
fn each_us(sides: &Sides, start_up: &Sides, peer: Peer, reads: f64) -> String {
    match (sides.cpu(peer), start_up.cpu(peer)) {
        (Some(all), Some(start)) => significant((all - start) * 1e6 / reads),
        _ => "n/a".into(),
    }
}
