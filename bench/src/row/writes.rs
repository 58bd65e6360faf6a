//! Bytes that reach the device in a day at 1 Hz with processes each 5 s: half an
//! hour (with its seals) times 48, on an ext4 without other writers. collectl runs
//! beside it on a second one, with the flush of its packaged service.
//!
//! Times 48 counts start-up writes 48 times; a second figure leaves out the first
//! minute, the verdict is on the plain one.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::disk::LoopDisk;
use crate::fault::Result;
use crate::figures::bytes;
use crate::peer::{Peer, Take, present};
use crate::report::Outcome;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "writes",
    work: "device writes, `-scdnmZ -i1:5` (30 minutes × 48, own ext4)",
    bar: "≤ 500 MB a day",
    aim: "150 MB",
    run,
};

const PEERS: [Peer; 2] = [Peer::Kymo, Peer::Collectl];
const DAY_SECONDS: f64 = 86_400.0;
const SETTLE_SECONDS_MAX: u32 = 60;
const SLACK: Duration = Duration::from_secs(60);

struct Side {
    peer: Peer,
    disk: LoopDisk,
    running: Running,
    before_bytes: u64,
    settled_bytes: u64,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let seconds = match bench.minutes {
        Some(minutes) => minutes * 60,
        None => bench.pick(30 * 60, 6),
    };
    let settle = SETTLE_SECONDS_MAX.min(seconds / 4);
    let mut outcome = Outcome::new(vec![format!("of {seconds} s")]);
    for side in start_all(bench, seconds, settle)? {
        let peer = side.peer;
        let (all, settled) = end(side, Duration::from_secs(seconds.into()) + SLACK)?;
        let all = a_day(all, seconds);
        let settled = bytes(a_day(settled, seconds - settle));
        outcome.figure(format!(
            "{} {} a day ({settled} without the first {settle} s)",
            peer.name(),
            bytes(all)
        ));
        if peer == Peer::Kymo {
            outcome.check(Some(all), 500e6, 150e6);
        }
    }
    Ok(outcome)
}

fn a_day(written_bytes: u64, seconds: u32) -> f64 {
    written_bytes as f64 * DAY_SECONDS / f64::from(seconds.max(1))
}

fn start_all(bench: &Bench, seconds: u32, settle: u32) -> Result<Vec<Side>> {
    let mut sides = Vec::new();
    for peer in present(bench, &PEERS) {
        sides.push(start(bench, peer, seconds)?);
    }
    std::thread::sleep(Duration::from_secs(settle.into()));
    for side in &mut sides {
        // Without a sync, which would write bytes
        // that the recorder has not synced.
        side.settled_bytes = side.disk.written_bytes()?;
    }
    Ok(sides)
}

fn start(bench: &Bench, peer: Peer, seconds: u32) -> Result<Side> {
    let disk = LoopDisk::mount(bench, peer.name())?;
    disk.sync()?;
    let before_bytes = disk.written_bytes()?;
    let take = Take {
        letters: "cdnmZ",
        interval: "1:5",
        count: seconds,
    };
    let mut command = peer.command(bench, take, disk.dir())?;
    if peer == Peer::Collectl {
        command.arg("-F60");
    }
    let running = Running::start(bench, &mut command)?;
    Ok(Side {
        peer,
        disk,
        running,
        before_bytes,
        settled_bytes: before_bytes,
    })
}

/// Bytes written in all, and after settling.
fn end(side: Side, limit: Duration) -> Result<(u64, u64)> {
    side.running.finish(limit)?;
    side.disk.sync()?;
    let bytes = side.disk.written_bytes()?;
    Ok((bytes - side.before_bytes, bytes - side.settled_bytes))
}
