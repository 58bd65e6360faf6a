//! Several servers at work at the same time: what each costs over the last two thirds of a while.

use crate::family::{Cost, disk_bytes};
use crate::fault::Result;
use crate::figures::{bytes, significant};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const DAY_S: f64 = 86_400.0;
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Who is watched.
pub struct Side {
    pub name: &'static str,
    /// Each with all its descendants.
    pub roots: Vec<u32>,
    /// Where it keeps its past.
    pub folders: Vec<PathBuf>,
}

/// What it cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Of one CPU.
    pub cpu_percent: f64,
    /// The most that was seen.
    pub memory_bytes: f64,
    pub written_a_day: f64,
    pub grown_a_day: f64,
    pub processes: usize,
}

impl Found {
    pub fn tell(&self, name: &str) -> String {
        let (cpu, memory) = (significant(self.cpu_percent), bytes(self.memory_bytes));
        format!("{name} {cpu} % of a CPU, {memory}")
    }
}

/// Waits `length`, and measures after the first third of it.
pub fn watch(sides: &[Side], length: Duration) -> Result<Vec<Found>> {
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
    let found = |n: usize| {
        let ((was, held_before), (is, held)) = (before[n], after[n]);
        Found {
            cpu_percent: (is.cpu_s - was.cpu_s) / seconds * 100.0,
            memory_bytes: most[n],
            written_a_day: (is.written_bytes - was.written_bytes) / seconds * DAY_S,
            grown_a_day: (held - held_before) / seconds * DAY_S,
            processes: is.processes,
        }
    };
    Ok((0..sides.len()).map(found).collect())
}

/// What each has used, and what its folders hold.
fn look(sides: &[Side]) -> Result<Vec<(Cost, f64)>> {
    let look = |side: &Side| {
        let mut held_bytes = 0.0;
        for folder in &side.folders {
            held_bytes += disk_bytes(folder)? as f64;
        }
        Ok((Cost::of(&side.roots)?, held_bytes))
    };
    sides.iter().map(look).collect()
}
