//! Simulated days: the live machine's texts, sampled as fast as they can be read, under stamps
//! one second apart, through the recorder's own sampler and writer. For costs that appear in days:
//! the CPU of sealing, and finding a minute in a long ring.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kymo_kernel::facts;
use kymo_kernel::sampler::{Due, Plan, Sampler};
use kymo_kernel::source::kind;
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_sys::clock::{self, Clock, RealClock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::kernel_file::Root;
use kymo_sys::sim_clock::SimClock;

use crate::args::Args;
use crate::fault::{Cannot, Fault, Result};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: u64 = 86_400;
const KEY_EACH: u64 = 60;
/// Samples a second apart in real time, for the cost of one with cold caches.
const COLD_SAMPLES: u64 = 20;
const KINDS: [u8; 6] = [
    kind::STAT,
    kind::LOADAVG,
    kind::MEMINFO,
    kind::VMSTAT,
    kind::DISKSTATS,
    kind::NET_DEV,
];

/// `ring --dir DIR [--days N] [--cold]`: makes the
/// ring and prints the costs of sampling and sealing.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let days: u64 = args.value("--days")?.unwrap_or(1);
    let cold = args.flag("--cold");
    let dir: Option<PathBuf> = args.value("--dir")?;
    args.done()?;
    let dir = dir.ok_or_else(|| Fault::new("no folder is given: --dir DIR"))?;
    let mut ring = Simulation::new(dir, days)?;
    if cold {
        let sample_ns = ring.cold_sample_ns();
        println(&format!("sampling_cpu_ns {}", sample_ns * DAY_S * days));
    }
    for second in 0..days * DAY_S {
        ring.second(second)?;
    }
    println(&format!("warm_sampling_cpu_ns {}", ring.sampling_ns));
    println(&format!("sealing_cpu_ns {}", ring.sealing_ns));
    println(&format!("appending_cpu_ns {}", ring.appending_ns));
    let counters = ring.writer.close().cannot("close the ring")?;
    println(&format!(
        "seals {} record_bytes {}",
        counters.seals, counters.record_bytes
    ));
    Ok(())
}

#[allow(clippy::print_stdout)]
fn println(line: &str) {
    println!("{line}");
}

struct Simulation {
    sampler: Sampler,
    writer: Writer,
    clock: Arc<SimClock>,
    out: Vec<u8>,
    since_key: u64,
    sampling_ns: u64,
    sealing_ns: u64,
    appending_ns: u64,
}

impl Simulation {
    fn new(dir: PathBuf, days: u64) -> Result<Simulation> {
        let root = Arc::new(Root::open("/".as_ref()).cannot("open /")?);
        let plan = Plan {
            kinds: KINDS.to_vec(),
            slow_ns: SECOND_NS,
            interval_ns: SECOND_NS,
            ..Plan::default()
        };
        let context = facts::gather(&root);
        // The simulated days end now.
        let now = RealClock.now();
        let start = Stamp {
            real_ns: now.real_ns - (days * DAY_S * SECOND_NS) as i64,
            ..now
        };
        let clock = Arc::new(SimClock::new(start));
        let place = Destination {
            dir,
            host: "simulated".into(),
            boot_id: context.get("boot_id").unwrap_or("00000000").into(),
            context: context.text(),
        };
        // Each sync would wait for the disk; the syncs of sealing stay.
        let options = Options {
            cap_bytes: 8 << 30,
            sync_interval: Duration::from_secs(u32::MAX.into()),
            ..Options::default()
        };
        let writer = Writer::open(Arc::new(RealDisk), clock.clone(), place, options)
            .cannot("open the ring")?;
        Ok(Simulation {
            sampler: Sampler::new(root, plan, 64),
            writer,
            clock,
            out: Vec::new(),
            since_key: 0,
            sampling_ns: 0,
            sealing_ns: 0,
            appending_ns: 0,
        })
    }

    /// Mean cost of a sample at one a second, without the writer.
    fn cold_sample_ns(&mut self) -> u64 {
        self.sample(true);
        let start = cpu_ns();
        for _ in 0..COLD_SAMPLES {
            std::thread::sleep(Duration::from_secs(1));
            self.sample(false);
        }
        (cpu_ns() - start) / COLD_SAMPLES
    }

    fn second(&mut self, second: u64) -> Result<()> {
        let wanted = self
            .writer
            .key_wanted()
            .load(std::sync::atomic::Ordering::Relaxed);
        let key = second == 0 || wanted || self.since_key >= KEY_EACH;
        self.since_key = if key { 1 } else { self.since_key + 1 };
        let start = cpu_ns();
        self.sample(key);
        let sampled = cpu_ns();
        let seals = self.writer.counters().seals;
        self.writer
            .append(&mut self.out)
            .cannot("append a sample")?;
        self.writer.tick(self.clock.now());
        let written = cpu_ns() - sampled;
        self.sampling_ns += sampled - start;
        match self.writer.counters().seals > seals {
            true => self.sealing_ns += written,
            false => self.appending_ns += written,
        }
        self.clock.advance_ns(SECOND_NS);
        Ok(())
    }

    fn sample(&mut self, key: bool) {
        self.out.clear();
        let mut open = record::begin(&mut self.out, &Head::sample(self.clock.now(), key, 0));
        self.sampler
            .sample(&RealClock, key, Due::Later, |kind, cost, section| {
                open.section(kind, cost, |out| out.extend_from_slice(section));
            });
        open.end();
    }
}

fn cpu_ns() -> u64 {
    clock::thread_cpu_ns()
}
