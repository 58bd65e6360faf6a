//! Measures the cost of a cycle of the poller's own thread: packets, engine, values of targets; nothing is stored. The agents
//! have to run already (`agentfarm`). A short interval in the configuration makes the measurement quick.
//!
//!     cargo run --release -p kymo-poll --example cycle_speed -- MRTG.CFG [CYCLES] [--spread]

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kymo_poll::engine::{Cache, Pace, Stamps};
use kymo_poll::poller::{Keeping, Poller, PollerSettings};
use kymo_sys::clock::{Clock, RealClock};
use kymo_wire::mrtg_cfg::{self, Files};
use rustix::time::{ClockId, clock_gettime};

/// First cycles, which do not count: interfaces are looked up and PDUs grow.
const BEFORE: u32 = 12;

fn main() -> std::io::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_spread = arguments.iter().position(|word| word == "--spread");
    let is_spread = is_spread.map(|at| arguments.remove(at)).is_some();
    let file = arguments.first().expect("a configuration").as_bytes();
    let cycles = arguments
        .get(1)
        .map_or(10, |text| text.parse().expect("a number"));
    let config = mrtg_cfg::read(file, &mut Disk).unwrap_or_else(|problems| panic!("{problems:?}"));
    let interval_s = config.globals().interval_s;
    let settings = PollerSettings {
        pace: if is_spread { Pace::Spread } else { Pace::Burst },
        stamps: Stamps::Exact,
        polls_once: false,
        asks_names: false,
    };
    let keeping = Keeping {
        series: Vec::new(),
        pages: Vec::new(),
        clones: Vec::new(),
        watched: Vec::new(),
        graphite: None,
        interval_s,
        devices: Vec::new(),
    };
    let clock: Arc<dyn Clock> = Arc::new(RealClock);
    let config = Arc::new(config);
    let mut poller = Poller::start(
        config,
        settings,
        &Cache::default(),
        Vec::new(),
        keeping,
        clock,
    )?;
    let begun_ns = RealClock.mono_ns();
    let at_ns = |cycles: u32| begun_ns + u64::from(cycles) * u64::from(interval_s) * 1_000_000_000;
    poll_until(&mut poller, at_ns(BEFORE))?;
    let before = cpu();
    let turns = poll_until(&mut poller, at_ns(BEFORE + cycles))?;
    let spent = (cpu() - before) / cycles;
    let (targets, unknown) = poller.targets_done();
    println!(
        "{spent:.2?} CPU a cycle, {} turns; {targets} values, {unknown} of them unknown",
        turns / u64::from(cycles)
    );
    Ok(())
}

/// Polls until this time; returns the number of wake-ups.
fn poll_until(poller: &mut Poller, until_ns: u64) -> std::io::Result<u64> {
    let mut turns = 0;
    loop {
        let now_ns = RealClock.mono_ns();
        if now_ns >= until_ns {
            return Ok(turns);
        }
        poller.turn(&[], Duration::from_nanos(until_ns - now_ns))?;
        turns += 1;
    }
}

fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

struct Disk;

impl Files for Disk {
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        std::fs::read(text(path)).map_err(|error| error.to_string())
    }

    fn is_readable(&mut self, path: &[u8]) -> bool {
        std::fs::File::open(text(path)).is_ok()
    }

    fn names(&mut self, _: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn is_dir(&mut self, path: &[u8]) -> bool {
        Path::new(text(path)).is_dir()
    }

    fn exists(&mut self, path: &[u8]) -> bool {
        Path::new(text(path)).exists()
    }
}

fn text(path: &[u8]) -> &str {
    std::str::from_utf8(path).expect("a path")
}
