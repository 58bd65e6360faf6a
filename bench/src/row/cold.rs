//! One sample a second, with the caches gone cold in between; CPU between the
//! 10th and the 110th sample, in ns, so that start-up is left out.
//!
//! Each peer has its own phase of the second; otherwise one would warm the
//! caches for the next. kymo and collectl both tick at the whole second
//! (collectl 1 ms after it, whatever its start), so they take turns: one pass
//! each, with the floor and sadc beside them in both.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::peer::{Peer, Take, present};
use crate::procfs::cpu_ns;
use crate::report::Outcome;
use crate::ticks::{nanos, wall_ns};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "cold",
    work: "1 Hz, CPU of samples 10-110, cold",
    bar: "≤ 1.4 × the floor, ≤ 1/4 of collectl, ahead of `sadc -S DISK 1`",
    aim: "1.2 × the floor",
    run,
};

const FLOOR_PHASE: f64 = 1.0 / 3.0;
const SADC_PHASE: f64 = 2.0 / 3.0;
/// A phase in which all peers sleep, which makes schedstat exact.
const LOOK_PHASE: f64 = 0.85;
/// Seconds until the slowest peer has begun:
/// collectl waits for a whole second twice.
const BEGIN_SECONDS: u64 = 3;
const SECOND_NS: u64 = 1_000_000_000;

/// Mean CPU of one sample, in ms, of each peer in one pass.
type Means = Vec<(Peer, f64)>;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if Peer::Kymo.is_here(bench) {
        let means = pass(bench, Peer::Kymo)?;
        describe(&mut outcome, &means);
        judge_near(&mut outcome, &means);
        if Peer::Collectl.is_here(bench) {
            let theirs = pass(bench, Peer::Collectl)?;
            describe(&mut outcome, &theirs);
            judge_collectl(&mut outcome, &means, &theirs);
        }
    } else {
        describe(&mut outcome, &pass(bench, Peer::Collectl)?);
    }
    Ok(outcome)
}

fn judge_near(outcome: &mut Outcome, means: &Means) {
    let kymo = of(means, Peer::Kymo);
    compare(outcome, kymo, means, Peer::Floor, (1.4, 1.2));
    compare(outcome, kymo, means, Peer::Sadc, (1.0, 1.0));
}

fn judge_collectl(outcome: &mut Outcome, ours: &Means, theirs: &Means) {
    let kymo = of(ours, Peer::Kymo);
    compare(outcome, kymo, theirs, Peer::Collectl, (0.25, 0.25));
}

fn compare(
    outcome: &mut Outcome,
    kymo: Option<f64>,
    means: &Means,
    other: Peer,
    (bar, aim): (f64, f64),
) {
    if let (Some(kymo), Some(theirs)) = (kymo, of(means, other)) {
        outcome.figure(format!("kymo/{} {}", other.name(), ratio(kymo, theirs)));
        outcome.check(Some(kymo / theirs), bar, aim);
    }
}

fn of(means: &Means, peer: Peer) -> Option<f64> {
    means
        .iter()
        .find(|(who, _)| *who == peer)
        .map(|(_, mean)| *mean)
}

fn describe(outcome: &mut Outcome, means: &Means) {
    for (peer, mean) in means {
        outcome.figure(format!("{} {} ms", peer.name(), significant(*mean)));
    }
}

/// One pass: `leader` on the whole second, floor and sadc at their thirds.
fn pass(bench: &Bench, leader: Peer) -> Result<Means> {
    let (first, last) = bench.pick((10, 110), (1, 3));
    let peers = present(bench, &[leader, Peer::Floor, Peer::Sadc]);
    let zero = second_from_now(1);
    let mut running = Vec::new();
    for peer in peers {
        running.push((peer, start(bench, peer, zero, last as u32)?));
    }
    let begin = zero + BEGIN_SECONDS;
    let before = look(&running, begin + first)?;
    let after = look(&running, begin + last)?;
    let samples = (last - first) as f64;
    let mean = |n: usize| (after[n] - before[n]) as f64 / samples / 1e6;
    Ok(running
        .iter()
        .enumerate()
        .map(|(n, (peer, _))| (*peer, mean(n)))
        .collect())
}

fn start(bench: &Bench, peer: Peer, zero: u64, last: u32) -> Result<Running> {
    let dir = bench.new_dir(peer.name())?;
    let take = Take {
        letters: "cdnm",
        interval: "1",
        count: last + 30,
    };
    let mut command = peer.command(bench, take, &dir)?;
    match peer {
        Peer::Floor => {
            command.args(["--phase", &FLOOR_PHASE.to_string()]);
        }
        // sadc ticks from its start on.
        Peer::Sadc => sleep_until(zero, SADC_PHASE),
        _ => {}
    }
    Running::start(bench, &mut command)
}

/// CPU of each peer in the given second, when all of them sleep.
fn look(running: &[(Peer, Running)], second: u64) -> Result<Vec<u64>> {
    sleep_until(second, LOOK_PHASE);
    running
        .iter()
        .map(|(_, child)| cpu_ns(child.pid()))
        .collect()
}

fn second_from_now(seconds: u64) -> u64 {
    wall_ns() / SECOND_NS + seconds
}

fn sleep_until(second: u64, phase: f64) {
    let due_ns = second * SECOND_NS + nanos(phase);
    std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(wall_ns())));
}
