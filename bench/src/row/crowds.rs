//! Cost of a process among more and more processes: CPU of a scan, and memory.

use super::Row;
use super::processes::take;
use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::crowd;
use crate::fault::Result;
use crate::figures::{bytes, significant};
use crate::peer::{Peer, present};
use crate::procfs::process_count;
use crate::report::Outcome;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "crowds",
    work: "`-sZ -i0:1`, 400, 1,000, 5,000, 20,000 mostly idle processes: CPU a process and scan, peak memory",
    bar: "≤ 1.5 × the cost at 400; 25 MB at 5,000",
    aim: "1.1 ×, 20 MB",
    run,
};

const PEERS: [Peer; 2] = [Peer::Kymo, Peer::Collectl];
const COUNTS: [u32; 4] = [400, 1_000, 5_000, 20_000];
const LIMIT: Duration = Duration::from_secs(300);
const MB: f64 = 1e6;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut first_us = None;
    for count in COUNTS {
        let count = bench.pick(count, count / 40);
        let _crowd = crowd::start(bench, count, Duration::from_secs(900))?;
        let there = process_count()?;
        for peer in present(bench, &PEERS) {
            let (each_us, peak) = cost(bench, peer, there)?;
            let (shown, most) = (significant(each_us), bytes(peak));
            outcome.figure(format!("{there}: {} {shown} us, {most}", peer.name()));
            if peer == Peer::Kymo {
                let first_us = *first_us.get_or_insert(each_us);
                outcome.check(Some(each_us / first_us), 1.5, 1.1);
                if count == 5_000 {
                    outcome.check(Some(peak), 25.0 * MB, 20.0 * MB);
                }
            }
        }
    }
    Ok(outcome)
}

/// CPU in us of a process in a scan, without the start and the first scan, and the peak memory of the longer run.
fn cost(bench: &Bench, peer: Peer, there: usize) -> Result<(f64, f64)> {
    let scans = bench.pick(60, 5);
    let short = recorded(bench, peer, 1)?;
    let long = recorded(bench, peer, 1 + scans)?;
    let cpu = long.cpu.as_secs_f64() - short.cpu.as_secs_f64();
    let reads = f64::from(scans) * there as f64;
    Ok((cpu * 1e6 / reads, long.peak_bytes as f64))
}

fn recorded(bench: &Bench, peer: Peer, count: u32) -> Result<Usage> {
    let mut command = peer.command(bench, take(count), &bench.new_dir("crowds")?)?;
    Running::start(bench, &mut command)?.finish_watching_memory(LIMIT)
}
