//! Runs the same work with several peers in turns, so that the machine's
//! other load affects all of them, and takes medians.

use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::fault::{Cannot, Result};
use crate::figures::{median, seconds, spread};
use crate::peer::{Peer, Take, present};
use std::fs;
use std::time::Duration;

/// Use of resources by each peer, round by round.
pub(crate) struct Sides {
    taken: Vec<(Peer, Vec<Usage>)>,
}

/// Runs `take` by each of `peers` that is here, `rounds` times, with another
/// peer first in each round.
pub(crate) fn alternate(
    bench: &Bench,
    rounds: usize,
    take: Take,
    peers: &[Peer],
    limit: Duration,
) -> Result<Sides> {
    let peers = present(bench, peers);
    let mut taken: Vec<_> = peers.iter().map(|&peer| (peer, Vec::new())).collect();
    for round in 0..rounds {
        for turn in 0..peers.len() {
            let (peer, usages) = &mut taken[(round + turn) % peers.len()];
            usages.push(once(bench, *peer, take, limit)?);
        }
    }
    Ok(Sides { taken })
}

/// One recording by one peer, removed afterwards.
pub(crate) fn once(bench: &Bench, peer: Peer, take: Take, limit: Duration) -> Result<Usage> {
    let dir = bench.new_dir(peer.name())?;
    let mut command = peer.command(bench, take, &dir)?;
    let usage = Running::start(bench, &mut command)?.finish(limit)?;
    fs::remove_dir_all(&dir).cannot(format_args!("remove {}", dir.display()))?;
    Ok(usage)
}

impl Sides {
    /// Median CPU seconds of a peer; `None` if it was not here.
    pub(crate) fn cpu(&self, peer: Peer) -> Option<f64> {
        Some(median(&self.cpus(peer)?))
    }

    /// `kymo 0.15 s [0.14-0.16]` for each peer that ran.
    pub(crate) fn describe(&self) -> Vec<String> {
        let describe = |peer: &Peer| {
            let cpus = self.cpus(*peer).unwrap_or_default();
            let (low, high) = spread(&cpus);
            format!(
                "{} {} s [{}-{}]",
                peer.name(),
                seconds(median(&cpus)),
                seconds(low),
                seconds(high)
            )
        };
        self.taken.iter().map(|(peer, _)| describe(peer)).collect()
    }

    fn cpus(&self, peer: Peer) -> Option<Vec<f64>> {
        let (_, usages) = self.taken.iter().find(|(who, _)| *who == peer)?;
        Some(usages.iter().map(|usage| usage.cpu.as_secs_f64()).collect())
    }
}
