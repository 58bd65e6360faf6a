//! Cost of kymo: CPU and memory of its processes, bytes of the recording.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kymo_sys::procs;
use serde::Serialize;

/// Time over which the share of a CPU is computed.
const OVER: Duration = Duration::from_secs(60);
/// An answer of this age is good enough.
const FRESH: Duration = Duration::from_secs(2);

/// The cost of one process.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct ProcessCost {
    /// Role of the process.
    pub name: &'static str,
    /// Pid of the process.
    pub pid: u32,
    /// Share of one CPU over the last minute.
    pub cpu_percent: f64,
    /// CPU seconds since its start.
    pub cpu_seconds: f64,
    /// RssAnon and RssShmem.
    pub memory_bytes: u64,
}

/// Cost of all processes.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct Cost {
    /// Share of one CPU over the last minute.
    pub cpu_percent: f64,
    /// CPU seconds since their starts.
    pub cpu_seconds: f64,
    /// RssAnon and RssShmem.
    pub memory_bytes: u64,
    /// Bytes for a day of recording.
    pub bytes_a_day: Option<f64>,
    /// Bytes of the recording now.
    pub bytes_held: u64,
    /// Cost of each process.
    pub processes: Vec<ProcessCost>,
}

/// Measures the cost.
#[derive(Default)]
pub(crate) struct Meter(Mutex<State>);

#[derive(Default)]
struct State {
    /// CPU seconds of each process at moments of the last minute.
    past: VecDeque<(Instant, Vec<(u32, f64)>)>,
    last: Option<(Instant, Cost)>,
}

impl Meter {
    /// The cost now; `span_s`: seconds that the recording covers.
    pub(crate) fn read(&self, ring: Option<&Path>, span_s: f64) -> Cost {
        let Ok(mut state) = self.0.lock() else {
            return total(Vec::new(), ring, span_s);
        };
        if let Some((at, cost)) = &state.last
            && at.elapsed() < FRESH
        {
            return cost.clone();
        }
        let mut processes = found(ring);
        state.share(&mut processes);
        let cost = total(processes, ring, span_s);
        state.last = Some((Instant::now(), cost.clone()));
        cost
    }
}

impl State {
    /// Fills in the shares of the last minute, or since the first measurement if that is
    /// later.
    fn share(&mut self, processes: &mut [ProcessCost]) {
        let now = Instant::now();
        while self.past.len() > 1 && now - self.past[1].0 >= OVER {
            self.past.pop_front();
        }
        let base = self.past.front();
        for process in processes.iter_mut() {
            let then = base.and_then(|(at, past)| {
                let (_, cpu) = past.iter().find(|(pid, _)| *pid == process.pid)?;
                Some(((now - *at).as_secs_f64(), *cpu))
            });
            let (seconds, cpu) = match then {
                Some((seconds, cpu)) if seconds >= 1.0 => (seconds, process.cpu_seconds - cpu),
                _ => (
                    procs::age_of(process.pid).unwrap_or(f64::NAN),
                    process.cpu_seconds,
                ),
            };
            process.cpu_percent = if seconds > 0.0 {
                100.0 * cpu / seconds
            } else {
                0.0
            };
        }
        let seen = processes.iter().map(|p| (p.pid, p.cpu_seconds)).collect();
        self.past.push_back((now, seen));
    }
}

/// The hub, the recorder by the pid in its lock, and the guardian, which started both.
fn found(ring: Option<&Path>) -> Vec<ProcessCost> {
    let own = std::process::id();
    let recorder = ring.and_then(recorder_pid);
    let guardian = procs::parent().filter(|&pid| procs::name_of(pid).as_deref() == Some("kymo"));
    let named = [
        ("recorder", recorder),
        ("hub", Some(own)),
        ("guardian", guardian),
    ];
    named
        .into_iter()
        .filter_map(|(name, pid)| {
            let pid = pid?;
            let used = procs::usage_of(pid)?;
            Some(ProcessCost {
                name,
                pid,
                cpu_percent: 0.0,
                cpu_seconds: used.cpu_seconds,
                memory_bytes: used.memory_bytes,
            })
        })
        .collect()
}

/// The process that records into this folder, if it is there.
pub(crate) fn recorder_pid(ring: &Path) -> Option<u32> {
    let locks = std::fs::read_dir(ring).ok()?;
    let pids = locks.filter_map(|entry| {
        let path = entry.ok()?.path();
        if path.extension()? != "lock" {
            return None;
        }
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    });
    pids.filter(|&pid: &u32| procs::name_of(pid).as_deref() == Some("kymo"))
        .max()
}

fn total(processes: Vec<ProcessCost>, ring: Option<&Path>, span_s: f64) -> Cost {
    let bytes_held = ring.map_or(0, |ring| bytes_of(ring, 3));
    Cost {
        cpu_percent: processes.iter().map(|p| p.cpu_percent).sum(),
        cpu_seconds: processes.iter().map(|p| p.cpu_seconds).sum(),
        memory_bytes: processes.iter().map(|p| p.memory_bytes).sum(),
        // Less than ten minutes do not allow an estimate for a day: tails have their full
        // size from the start.
        bytes_a_day: (span_s > 600.0).then(|| bytes_held as f64 * 86_400.0 / span_s),
        bytes_held,
        processes,
    }
}

/// Bytes on the disk below a folder, down to `depth` more folders.
fn bytes_of(dir: &Path, depth: u32) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            Some(match about.is_dir() && depth > 0 {
                true => bytes_of(&entry.path(), depth - 1),
                false => about.blocks() * 512,
            })
        })
        .sum()
}
