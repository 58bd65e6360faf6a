//! What reaches the device in a day at 1 Hz with processes each 5 s: half an hour
//! (with its seals) times 48, on an ext4 nobody else writes to. collectl runs
//! beside it on a second one, with the flush of its packaged service.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::disk::LoopDisk;
use crate::fault::Result;
use crate::figures::bytes;
use crate::peer::{Peer, Take, present};
use crate::report::Outcome;
use std::time::Duration;

pub const ROW: Row = Row {
    name: "writes",
    work: "device writes, `-scdnmZ -i1:5` (30 minutes × 48, own ext4)",
    bar: "≤ 500 MB a day",
    aim: "150 MB",
    run,
};

const PEERS: [Peer; 2] = [Peer::Kymo, Peer::Collectl];
const DAY_SECONDS: f64 = 86_400.0;
const SLACK: Duration = Duration::from_secs(60);

struct Side {
    peer: Peer,
    disk: LoopDisk,
    before: u64,
    running: Running,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let seconds = match bench.minutes {
        Some(minutes) => minutes * 60,
        None => bench.pick(30 * 60, 6),
    };
    let mut sides = Vec::new();
    for peer in present(bench, &PEERS) {
        sides.push(start(bench, peer, seconds)?);
    }
    let mut outcome = Outcome::new(vec![format!("of {seconds} s")]);
    for side in sides {
        let (peer, written) = end(side, Duration::from_secs(seconds.into()) + SLACK)?;
        let a_day = written as f64 * DAY_SECONDS / f64::from(seconds);
        outcome.figure(format!("{} {} a day", peer.name(), bytes(a_day)));
        if peer == Peer::Kymo {
            outcome.check(Some(a_day), 500e6, 150e6);
        }
    }
    Ok(outcome)
}

fn start(bench: &Bench, peer: Peer, seconds: u32) -> Result<Side> {
    let disk = LoopDisk::mount(bench, peer.name())?;
    let before = disk.written_bytes()?;
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
        before,
        running,
    })
}

fn end(side: Side, limit: Duration) -> Result<(Peer, u64)> {
    side.running.finish(limit)?;
    Ok((side.peer, side.disk.written_bytes()? - side.before))
}
