//! A generated machine, recorded: weeks at one sample a second, a scan of its processes each 5 s, in
//! minutes. For rows that need a full ring: a process table of any age, a day's graph.
//!
//! The machine's texts are this one's, whose numbers then change by themselves; its processes come, work
//! and go at random with a fixed seed. Records go through the recorder's own tracks and writer.

mod chance;
mod people;
mod texts;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kymo_kernel::facts;
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_sys::clock::{Clock, RealClock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::kernel_file::Root;
use kymo_sys::sim_clock::SimClock;

use crate::args::Args;
use crate::fault::{Cannot, Fault, Result};
pub(crate) use chance::Chance;
use people::People;
use texts::Texts;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: u64 = 86_400;
/// Seconds between scans of processes, unless the command line sets them.
const SCAN_EACH: u64 = 5;
const KEY_EACH: u64 = 60;
/// Uptime that gives the numbers the slopes of a machine that has been up for a while.
const UP_S: u64 = 100_000;
/// Another boot id than this machine's: a recorder that continues in the folder has its own.
const BOOT_ID: &str = "0badcafe-0000-4000-8000-000000000000";

/// `world --dir DIR [--days N] [--mib N] [--processes N] [--scan N]`: makes the ring; it ends now.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let days: u64 = args.value("--days")?.unwrap_or(1);
    let mib: u64 = args.value("--mib")?.unwrap_or(1024);
    let processes: usize = args.value("--processes")?.unwrap_or(200);
    let scan_each: u64 = args.value("--scan")?.unwrap_or(SCAN_EACH).max(1);
    let dir: Option<PathBuf> = args.value("--dir")?;
    args.done()?;
    let dir = dir.ok_or_else(|| Fault::new("no folder is given: --dir DIR"))?;
    let mut world = World::new(dir, days, mib << 20, processes)?;
    world.scan_each = scan_each;
    for second in 0..days * DAY_S {
        world.second(second)?;
    }
    let bytes = world.writer.allocated_bytes();
    let counters = world.writer.close().cannot("close the ring")?;
    crate::say(&format!(
        "bytes {bytes} seals {} unlinks {} record_bytes {}\n",
        counters.seals, counters.unlinks, counters.record_bytes
    ))
}

struct World {
    texts: Texts,
    people: People,
    writer: Writer,
    clock: Arc<SimClock>,
    out: Vec<u8>,
    since_key: u64,
    scan_each: u64,
}

impl World {
    fn new(dir: PathBuf, days: u64, cap_bytes: u64, processes: usize) -> Result<World> {
        let root = Root::open("/".as_ref()).cannot("open /")?;
        let context = facts::gather(&root);
        let start = Stamp {
            real_ns: RealClock.now().real_ns - (days * DAY_S * SECOND_NS) as i64,
            mono_ns: UP_S * SECOND_NS,
            boot_ns: UP_S * SECOND_NS,
        };
        let clock = Arc::new(SimClock::new(start));
        let place = Destination {
            dir,
            host: context.get("host").unwrap_or("localhost").into(),
            boot_id: BOOT_ID.into(),
            context: context.text(),
        };
        // Each sync would wait for the disk; the syncs of sealing stay.
        let options = Options {
            cap_bytes,
            sync_interval: Duration::from_secs(u32::MAX.into()),
            ..Options::default()
        };
        let writer = Writer::open(Arc::new(RealDisk), clock.clone(), place, options)
            .cannot("open the ring")?;
        Ok(World {
            texts: Texts::of(&root)?,
            people: People::new(processes, UP_S),
            writer,
            clock,
            out: Vec::new(),
            since_key: 0,
            scan_each: SCAN_EACH,
        })
    }

    fn second(&mut self, second: u64) -> Result<()> {
        let wanted = self.writer.key_wanted().load(Ordering::Relaxed);
        let key = second == 0 || wanted || self.since_key >= KEY_EACH;
        self.since_key = if key { 1 } else { self.since_key + 1 };
        self.sample(key, second);
        self.writer
            .append(&mut self.out)
            .cannot("append a sample")?;
        self.writer.tick(self.clock.now());
        self.clock.advance_ns(SECOND_NS);
        Ok(())
    }

    fn sample(&mut self, key: bool, second: u64) {
        self.out.clear();
        let head = Head::sample(self.clock.now(), key, 0);
        let mut open = record::begin(&mut self.out, &head);
        let mut put = |kind: u8, section: &[u8]| {
            open.section(kind, 0, |out| out.extend_from_slice(section));
        };
        self.texts.sample(key, &mut put);
        if second.is_multiple_of(self.scan_each) {
            self.people.scan(key, UP_S + second, &mut put);
        } else if key {
            self.people.state(&mut put);
        }
        open.end();
    }
}
