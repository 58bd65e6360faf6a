//! Recordings of a simulated machine, written as fast as the disk allows: its first CPU column is the same in
//! every interval, so that any other number is wrong.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kymo_kernel::facts;
use kymo_kernel::sampler::{Due, Plan, Sampler};
use kymo_kernel::source::kind;
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_sys::clock::{Clock as _, RealClock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::kernel_file::Root;
use kymo_sys::sim_clock::SimClock;

pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// The value of `cpu.user` at every moment.
pub(super) const USER: f64 = 25.0;

/// A simulated machine and its recorder.
pub(super) struct MadeUp {
    root: std::path::PathBuf,
    pub clock: Arc<SimClock>,
    sampler: Sampler,
    writer: Writer,
    ticks: u64,
    samples: u64,
}

impl MadeUp {
    /// Records a host into a folder, from `start_s` on; blocks are of `seal_bytes`.
    pub(super) fn new(
        scratch: &Path,
        dir: &Path,
        host: &str,
        start_s: u64,
        seal_bytes: u64,
    ) -> MadeUp {
        let root = scratch.join(format!("root-{host}"));
        fs::create_dir_all(root.join("proc/sys/kernel")).expect("a folder");
        fs::write(root.join("proc/sys/kernel/hostname"), host).expect("a file");
        write_stat(&root, 0);
        fs::create_dir_all(dir).expect("a folder");
        let opened = Arc::new(Root::open(&root).expect("its files"));
        let clock = Arc::new(SimClock::new(Stamp {
            real_ns: (start_s * SECOND_NS) as i64,
            mono_ns: 1000 * SECOND_NS,
            boot_ns: 1000 * SECOND_NS,
        }));
        let place = Destination {
            dir: dir.into(),
            host: host.into(),
            boot_id: "0123abcd-0000".into(),
            context: facts::gather(&opened).text(),
        };
        let options = Options {
            seal_bytes,
            tail_bytes: seal_bytes,
            ..Options::default()
        };
        let writer = Writer::open(Arc::new(RealDisk), clock.clone(), place, options);
        let plan = Plan {
            kinds: vec![kind::STAT],
            interval_ns: SECOND_NS,
            ..Plan::default()
        };
        MadeUp {
            sampler: Sampler::new(opened, plan, 64),
            writer: writer.expect("a recorder"),
            root,
            clock,
            ticks: 0,
            samples: 0,
        }
    }

    /// Records `samples` samples, `each_s` seconds apart.
    pub(super) fn record(&mut self, samples: u64, each_s: u64) {
        for _ in 0..samples {
            let wanted = self.writer.key_wanted();
            let key = self.samples.is_multiple_of(60)
                || wanted.swap(false, std::sync::atomic::Ordering::Relaxed);
            self.samples += 1;
            write_stat(&self.root, self.ticks);
            let mut out = Vec::new();
            let mut open = record::begin(&mut out, &Head::sample(self.clock.now(), key, 0));
            let add = |kind, cost, section: &[u8]| {
                open.section(kind, cost, |out| out.extend_from_slice(section));
            };
            self.sampler.sample(&RealClock, key, Due::Later, add);
            open.end();
            self.writer.append(&mut out).expect("recorded");
            self.writer.tick(self.clock.now());
            self.clock.advance_ns(each_s * SECOND_NS);
            self.ticks += each_s * 100;
        }
    }

    /// Sets the wall clock, and records the event as a recorder does.
    pub(super) fn set_clock(&mut self, step_s: i64) {
        self.clock.step_wall_ns(step_s * SECOND_NS as i64);
        let mut out = Vec::new();
        record::push_event(
            &mut out,
            self.clock.now(),
            &format!("clock step {step_s:+}.000 s"),
        );
        self.writer.append(&mut out).expect("recorded");
    }

    /// Closes the recording.
    pub(super) fn end(self) {
        self.writer.close().expect("closed");
    }
}

/// Writes the times of two CPUs: a quarter for users, a tenth for the kernel.
fn write_stat(root: &Path, ticks: u64) {
    let line = |name: &str, ticks: u64| {
        let (user, system) = (ticks / 4, ticks / 10);
        let idle = ticks - user - system;
        format!("{name} {user} 0 {system} {idle} 0 0 0 0 0 0\n")
    };
    let text = format!(
        "{}{}{}intr {ticks} 0\nctxt {ticks}\nbtime 1\nprocesses {ticks}\nprocs_running 1\nprocs_blocked 0\n",
        line("cpu ", 2 * ticks),
        line("cpu0", ticks),
        line("cpu1", ticks)
    );
    fs::write(root.join("proc/stat"), text).expect("a file");
}

/// The count of known values of the first series. Panics if one differs from [`USER`].
pub(super) fn known_users(answer: &serde_json::Value) -> usize {
    let values = answer["series"][0]["avg"].as_array().expect("values");
    let known: Vec<f64> = values
        .iter()
        .filter_map(serde_json::Value::as_f64)
        .collect();
    let wrong = known.iter().find(|value| (*value - USER).abs() > 0.01);
    assert_eq!(wrong, None, "in {answer}");
    known.len()
}
