//! Measures the cost of a cycle that goes to the keeper of a running `kymo serve`: here, and in the keeper's process.
//!
//!     cargo run --release -p kymo-poll --example keeper_speed -- DATA/keeper-write.sock KEEPER_PID [TARGETS] [CYCLES]

#![allow(clippy::print_stdout)]

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_poll::batch::Batch;
use kymo_poll::sink::{
    Keeper, KeeperConnection, Kind, Layout, Layouts, POINTS_KEPT_S, Report, Series, Sink, Spans,
};
use kymo_sys::clock::RealClock;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let socket = PathBuf::from(arguments.next().expect("a socket"));
    let keeper = arguments.next().expect("the keeper's process");
    let mut number = |default: usize| {
        let number = arguments.next();
        number.map_or(default, |number| number.parse().expect("a number"))
    };
    let (targets, cycles) = (number(3164), number(100));
    let mut layouts = Layouts::default();
    let series = (0..targets).map(|at| series(at, &mut layouts)).collect();
    let mut sink = Sink::Keeper(Keeper::on(KeeperConnection::to(
        socket,
        Arc::new(RealClock),
    )));
    sink.begin(series, &[]);
    let now = clock_gettime(ClockId::Realtime).tv_sec.unsigned_abs();
    let begin = now - 300 * (cycles as u64 + 1);
    let (mut batch, mut report) = (Batch::default(), Report::default());
    fill(&mut batch, targets, begin);
    let first = Instant::now();
    sink.write(&batch, &mut report);
    println!("{targets} series in {:.1?}", first.elapsed());
    let (before, theirs, wall) = (own_cpu(), cpu_of(&keeper), Instant::now());
    for cycle in 1..=cycles as u64 {
        fill(&mut batch, targets, begin + 300 * cycle);
        sink.write(&batch, &mut report);
    }
    let each = |total: Duration| total / cycles as u32;
    println!(
        "a cycle: {:.2?} CPU here (with making the batch), {:.2?} in the keeper, {:.2?} wall",
        each(own_cpu() - before),
        each(cpu_of(&keeper) - theirs),
        each(wall.elapsed())
    );
    println!("{:?}", sink.counts());
    assert!(report.refused.is_empty(), "{:?}", report.refused.first());
}

fn series(at: usize, layouts: &mut Layouts) -> Series {
    let name = format!("mrtg/speed/127.0.1.{}_{}.rrd", at / 99 + 1, at % 99 + 1);
    Series {
        path: PathBuf::new(),
        folder_bytes: 0,
        name: name.into_bytes(),
        step_s: 300,
        heartbeat_s: 600,
        kind: Kind::Counter,
        max: [Some(1_250_000_000); 2],
        archives: layouts.archives(Layout {
            interval_s: 300,
            spans: Spans::Rrd,
            rows: [None; 4],
            seasonal: Vec::new(),
        }),
        points_kept_s: POINTS_KEPT_S,
        log: Default::default(),
        max_age_s: None,
    }
}

fn fill(batch: &mut Batch, targets: usize, stamp: u64) {
    batch.clear();
    for (at, number) in (0u64..).take(targets).enumerate() {
        let (taken, sent) = (stamp * (1000 + number), stamp * (2000 + number));
        batch.push(at, |out| {
            write!(out, "{stamp}.123456:{taken}:{sent}").expect("memory");
        });
    }
}

fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// CPU time of a process, the sum of its threads' schedstat, to the nanosecond.
fn cpu_of(pid: &str) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let run = threads.filter_map(|thread| {
        let path = thread.ok()?.path().join("schedstat");
        let text = std::fs::read_to_string(path).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(run.sum())
}
