//! Several servers at work at the same time: the cost of each over the last two thirds of a while.

use crate::bench::Bench;
use crate::disk::LoopDisk;
use crate::family::{Cost, disk_bytes};
use crate::fault::{Cannot, Result};
use crate::figures::{bytes, significant};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

const DAY_S: f64 = 86_400.0;
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A watched server.
pub(super) struct Side {
    pub name: &'static str,
    /// Root processes, each with all its descendants.
    pub roots: Vec<u32>,
    /// The folder of its history.
    pub place: Option<Rc<WatchedFolder>>,
}

/// A folder with one writer; for root on its own file system, whose device counts the writes.
pub(super) struct WatchedFolder {
    pub folder: PathBuf,
    disk: Option<LoopDisk>,
}

impl WatchedFolder {
    pub(super) fn new(bench: &Bench, name: &str) -> Result<Rc<WatchedFolder>> {
        let place = match LoopDisk::mount(bench, name) {
            Ok(disk) => WatchedFolder {
                folder: disk.dir().join("own"),
                disk: Some(disk),
            },
            // Not root, or no loop devices: the kernel's count for processes must do.
            Err(_) => WatchedFolder {
                folder: bench.new_path(name),
                disk: None,
            },
        };
        std::fs::create_dir(&place.folder).cannot("make a folder for a peer")?;
        Ok(Rc::new(place))
    }

    /// Bytes written to the device, after a sync so that
    /// all are included, and the folder's disk space.
    fn look(&self) -> Result<(Option<f64>, f64)> {
        let written = match &self.disk {
            Some(disk) => {
                disk.sync()?;
                Some(disk.written_bytes()? as f64)
            }
            None => None,
        };
        Ok((written, disk_bytes(&self.folder)? as f64))
    }
}

/// Cost of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// In percent of one CPU.
    pub cpu_percent: f64,
    /// The largest value seen.
    pub memory_bytes: f64,
    /// By the kernel's count, in whole folios.
    pub written_a_day: f64,
    /// By the device's count, if the server has its own device.
    pub device_a_day: Option<f64>,
    pub grown_a_day: f64,
    pub processes: usize,
}

impl Found {
    pub(super) fn describe(&self, name: &str) -> String {
        let (cpu, memory) = (significant(self.cpu_percent), bytes(self.memory_bytes));
        format!("{name} {cpu} % of a CPU, {memory}")
    }
}

/// Waits `length`, and measures after the first third of it.
pub(super) fn watch(sides: &[Side], length: Duration) -> Result<Vec<Found>> {
    std::thread::sleep(length / 3);
    let start = Instant::now();
    let before = look(sides)?;
    let mut most: Vec<f64> = vec![0.0; sides.len()];
    while start.elapsed() < length * 2 / 3 {
        let left = (length * 2 / 3).saturating_sub(start.elapsed());
        std::thread::sleep(left.min(LOOK_EVERY));
        for (most, side) in most.iter_mut().zip(sides) {
            *most = most.max(Cost::of(&side.roots)?.memory_bytes);
        }
    }
    let after = look(sides)?;
    let seconds = start.elapsed().as_secs_f64();
    let a_day = |before: f64, after: f64| (after - before) / seconds * DAY_S;
    let found = |n: usize| {
        let (was, is) = (before[n], after[n]);
        Found {
            cpu_percent: (is.cost.cpu_s - was.cost.cpu_s) / seconds * 100.0,
            memory_bytes: most[n],
            written_a_day: a_day(was.cost.written_bytes, is.cost.written_bytes),
            device_a_day: was.device.zip(is.device).map(|(was, is)| a_day(was, is)),
            grown_a_day: a_day(was.held, is.held),
            processes: is.cost.processes,
        }
    };
    Ok((0..sides.len()).map(found).collect())
}

/// Use of resources so far, and writes and size of its place.
#[derive(Clone, Copy)]
struct Look {
    cost: Cost,
    device: Option<f64>,
    held: f64,
}

fn look(sides: &[Side]) -> Result<Vec<Look>> {
    let look = |side: &Side| {
        let (device, held) = match &side.place {
            Some(place) => place.look()?,
            None => (None, 0.0),
        };
        let cost = Cost::of(&side.roots)?;
        Ok(Look { cost, device, held })
    };
    sides.iter().map(look).collect()
}
