//! Measures the cost of a cycle that writes .rrd files, beside the system calls that it needs at least: open, lock, fstat, three
//! pwrites and close for each file. The two take turns on separate files.
//!
//!     cargo run --release -p kymo-poll --example files_speed -- FOLDER [FILES] [CYCLES]

#![allow(clippy::print_stdout)]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_poll::batch::Batch;
use kymo_poll::sink::{
    Files, Kind, Layout, Layouts, POINTS_KEPT_S, Report, Series, Sink, Spans, heartbeat_s,
};
use kymo_sys::disk::RealDisk;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::time::{ClockId, clock_gettime};

const INTERVAL_S: u32 = 300;
const BEGIN_S: u64 = 1_700_000_000;
/// MRTG's file: length of the header, of its part that changes, and of a row; number of rows; length of the file.
const HEADER_BYTES: u64 = 2912;
const LIVE_BYTES: usize = 1584;
const ROW_BYTES: u64 = 16;
const ROWS: u64 = 800;
const FILE_BYTES: u64 = 105_312;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder"));
    let mut number = |default: usize| {
        let number = arguments.next();
        number.map_or(default, |number| number.parse().expect("a number"))
    };
    let (files, cycles) = (number(3164), number(30));
    let mut layouts = Layouts::default();
    let series: Vec<Series> = (0..files)
        .map(|at| series(&folder, at, &mut layouts))
        .collect();
    let paths: Vec<PathBuf> = series
        .iter()
        .map(|series| bare_path(&series.path))
        .collect();
    let mut sink = Sink::Files(Files::new(Arc::new(RealDisk), 1)?);
    sink.begin(series, &[]);
    let (mut batch, mut report) = (Batch::default(), Report::default());
    fill(&mut batch, files, 0);
    let (made, _) = timed(|| sink.write(&batch, &mut report));
    println!("{files} files made in {made:.1?} CPU");
    for path in &paths {
        std::fs::write(path, vec![0; FILE_BYTES as usize])?;
    }
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for cycle in 1..=cycles {
        bare.push(timed(|| {
            for path in &paths {
                bare_update(path, cycle as u64).expect("a file");
            }
        }));
        fill(&mut batch, files, cycle as u64);
        ours.push(timed(|| sink.write(&batch, &mut report)));
    }
    assert!(report.refused.is_empty(), "{:?}", report.refused.first());
    let (bare, ours) = (middle(bare), middle(ours));
    println!("bare loop {:.2?} CPU, {:.2?} wall", bare.0, bare.1);
    println!("sink      {:.2?} CPU, {:.2?} wall", ours.0, ours.1);
    let ratio = ours.0.as_secs_f64() / bare.0.as_secs_f64();
    println!("ratio {ratio:.3}, {:?}", sink.counts());
    Ok(())
}

fn series(folder: &Path, at: usize, layouts: &mut Layouts) -> Series {
    let name = format!("127.0.1.{}_{}.rrd", at / 99 + 1, at % 99 + 1);
    Series {
        path: folder.join(&name),
        folder_bytes: 0,
        name: name.into_bytes(),
        step_s: INTERVAL_S,
        heartbeat_s: heartbeat_s(INTERVAL_S),
        kind: Kind::Counter,
        max: [Some(1_250_000_000); 2],
        archives: layouts.archives(Layout {
            interval_s: INTERVAL_S,
            spans: Spans::Rrd,
            rows: [None; 4],
            seasonal: Vec::new(),
        }),
        points_kept_s: POINTS_KEPT_S,
        log: Default::default(),
        max_age_s: None,
    }
}

fn fill(batch: &mut Batch, files: usize, cycle: u64) {
    use std::io::Write as _;
    batch.clear();
    let stamp = BEGIN_S + cycle * u64::from(INTERVAL_S);
    for (at, number) in (0u64..).take(files).enumerate() {
        let (taken, sent) = (stamp * (1000 + number), stamp * (2000 + number));
        batch.push(at, |out| {
            write!(out, "{stamp}.123456:{taken}:{sent}").expect("memory");
        });
    }
}

fn bare_path(path: &Path) -> PathBuf {
    path.with_extension("bare")
}

/// The cheapest possible update: it writes at the places of MRTG's layout, but no valid bytes.
fn bare_update(path: &Path, cycle: u64) -> std::io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    rustix::fs::fstat(&file)?;
    let row = cycle % ROWS * ROW_BYTES;
    let maxima = HEADER_BYTES + 4 * ROWS * ROW_BYTES;
    file.write_all_at(&[1; ROW_BYTES as usize], HEADER_BYTES + row)?;
    file.write_all_at(&[1; ROW_BYTES as usize], maxima + row)?;
    file.write_all_at(&[1; LIVE_BYTES], HEADER_BYTES - LIVE_BYTES as u64)
}

fn timed(work: impl FnOnce()) -> (Duration, Duration) {
    let cpu = || {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let (cpu_before, before) = (cpu(), Instant::now());
    work();
    (cpu() - cpu_before, before.elapsed())
}

fn middle(mut all: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    let mut of = |which: fn(&(Duration, Duration)) -> Duration| {
        all.sort_by_key(which);
        all.get(all.len() / 2).map(which).unwrap_or_default()
    };
    (of(|one| one.0), of(|one| one.1))
}
