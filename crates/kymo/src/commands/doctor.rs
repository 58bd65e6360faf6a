//! `kymo doctor`: the cost of reading each source on this kernel, its sum over a day, and the slow
//! sources, with the likely cause.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use kymo_base::{errno, scan};
use kymo_kernel::facts;
use kymo_kernel::source::{self, Reads, Scope, Source, kind};
use kymo_sys::kernel_file::Root;

use crate::output;
use crate::recorder::session;

mod probe;

use probe::{Probe, Spent};

/// Options of `kymo doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorOptions {
    /// Read the kernel's files below this folder
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Reads without pause, for the least cost of a read.
const WARM_READS: usize = 30;
/// Rounds with a pause before each, for the cost of a recorder's reads.
const COLD_ROUNDS: usize = 15;
const COLD_PAUSE: Duration = Duration::from_millis(40);
/// Cost of a read above which a source is called slow.
const SLOW_NS: u64 = 1_000_000;
/// Most processes that are measured, spread over all processes.
const PROCESSES_MAX: usize = 40;

/// Measurements of one kind of source.
struct Price {
    source: &'static Source,
    path: String,
    instances: usize,
    /// Number of files of all instances.
    files: usize,
    warm: Spread,
    cold: Spread,
    spent: Spent,
    bytes: usize,
    errno: u16,
}

#[derive(Clone, Copy, Default)]
struct Spread {
    min: u64,
    median: u64,
    max: u64,
}

impl Spread {
    fn of(mut ns: Vec<u64>) -> Spread {
        ns.sort_unstable();
        let at = |index: usize| ns.get(index).copied().unwrap_or(0);
        Spread {
            min: at(0),
            median: at(ns.len() / 2),
            max: at(ns.len().saturating_sub(1)),
        }
    }
}

/// Runs the command.
pub(crate) fn run(options: &DoctorOptions) -> Result<ExitCode> {
    let root = session::open_root(&options.root)?;
    let context = facts::gather(&root);
    let prices = measure(&root);
    let mut out = String::new();
    if options.json {
        json(&prices, context.cpus(), &mut out);
    } else {
        table(&prices, context.cpus(), &mut out);
    }
    output::put(&out)?;
    let slow = prices.iter().filter(|price| price.is_slow()).count();
    Ok(ExitCode::from(u8::from(slow > 0)))
}

fn measure(root: &Arc<Root>) -> Vec<Price> {
    let pids = some_processes(root);
    let mut prices: Vec<_> = source::ALL
        .iter()
        .filter_map(|source| Probe::new(root, source, &pids))
        .collect();
    for probe in &mut prices {
        for _ in 0..WARM_READS {
            probe.round(root, false);
        }
    }
    for _ in 0..COLD_ROUNDS {
        std::thread::sleep(COLD_PAUSE);
        for probe in &mut prices {
            probe.round(root, true);
        }
    }
    prices.into_iter().map(Probe::price).collect()
}

/// Some pids, spread over all processes, and the number of processes.
fn some_processes(root: &Root) -> (Vec<u64>, usize) {
    let mut pids = Vec::new();
    if let Ok(proc) = root.folder("proc") {
        // The names that a listing gives before an error are enough here.
        let _ = proc.list(|name| pids.extend(scan::number(name.to_bytes())));
    }
    let step = pids.len().div_ceil(PROCESSES_MAX).max(1);
    (pids.iter().copied().step_by(step).collect(), pids.len())
}

impl Price {
    /// True if a source is slow. A source that is read less often than each second may cost more.
    fn is_slow(&self) -> bool {
        let allowed_ns = match self.source.kind {
            kind::SLABINFO => SLOW_NS * self.age_s(),
            _ => SLOW_NS,
        };
        self.cold.median.max(self.warm.median) > allowed_ns
    }

    /// Shortest time between two reads of the source, in seconds.
    fn age_s(&self) -> u64 {
        match self.source.kind {
            kind::PID_STATUS
            | kind::SLABINFO
            | kind::INTERFACES
            | kind::CONNTRACK
            | kind::LIMITS => 10,
            kind::PID_CMDLINE | kind::PID_CGROUP => 60,
            _ => 1,
        }
    }

    /// Kernel memory of the kept files, approximately: a buffer for each, and a KiB for file, inode
    /// and name.
    fn kernel_bytes(&self) -> usize {
        let buffer = match self.source.reads {
            Reads::Whole => (self.bytes + 1).next_power_of_two().max(4096),
            Reads::Records | Reads::Bundle(_) | Reads::Digest(_) => 4096,
        };
        (buffer + 1024) * self.files
    }

    /// CPU seconds a day of a recorder that samples each `secs`. Identity and status of processes are
    /// read less often.
    fn day_s(&self, secs: u64) -> f64 {
        let reads = (86_400 / secs.max(self.age_s())) as f64 * self.instances as f64;
        reads * self.cold.median as f64 / 1e9
    }

    fn cause(&self) -> &'static str {
        match self.source.kind {
            kind::STAT => {
                "the kernel adds up the interrupts of every CPU at each read; many CPUs or IRQs, or a kernel that does it badly (as 2.6.32 on 48 cores)"
            }
            kind::VMSTAT | kind::MEMINFO => {
                "per-CPU and per-zone counters are added up at each read; many CPUs or NUMA nodes"
            }
            kind::DISKSTATS => {
                "a line for every block device; many disks, partitions or loop devices"
            }
            kind::NET_DEV => {
                "a line for every interface; many virtual interfaces, or a driver that asks its hardware"
            }
            kind::INTERRUPTS | kind::SOFTIRQS => {
                "a number of each interrupt on each CPU; many CPUs, or many queues of devices"
            }
            kind::SNMP | kind::NETSTAT | kind::SNMP6 => {
                "the kernel adds up every counter over all CPUs at each read; many CPUs"
            }
            kind::SLABINFO => {
                "the kernel counts the objects of all slabs that are not full at each read"
            }
            kind::MOUNTSTATS => "the kernel waits for a lock that mounting holds; many mounts",
            kind::PID_CMDLINE => {
                "the process's memory lock is held; it is mapping or faulting heavily"
            }
            _ => "the kernel has much to add up, or a hypervisor takes the CPU away",
        }
    }
}

fn reads_text(reads: Reads) -> &'static str {
    match reads {
        Reads::Whole => "whole",
        Reads::Records => "records",
        Reads::Bundle(_) => "files",
        Reads::Digest(_) => "digest",
    }
}

fn table(prices: &[Price], cpus: u64, out: &mut String) {
    let _ = writeln!(
        out,
        "{:<22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>9}{:>7}{:>10}{:>9}{:>8}{:>8}",
        "# ns a read",
        "min",
        "median",
        "max",
        "spaced",
        "per CPU",
        "bytes",
        "read",
        "files",
        "kernel kB",
        "day@1s",
        "@10s",
        "@60s"
    );
    for price in prices {
        if price.errno != 0 {
            let cause = errno::words(price.errno);
            let _ = writeln!(out, "{:<22}cannot read: {cause}", price.path);
            continue;
        }
        let _ = writeln!(
            out,
            "{:<22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>9}{:>7}{:>10}{:>8.2}s{:>7.2}s{:>7.2}s",
            price.path,
            price.warm.min,
            price.warm.median,
            price.warm.max,
            price.cold.median,
            price.warm.median / cpus,
            price.bytes,
            reads_text(price.source.reads),
            price.instances,
            price.kernel_bytes() / 1024,
            price.day_s(1),
            price.day_s(10),
            price.day_s(60)
        );
    }
    let total = |secs| prices.iter().map(|price| price.day_s(secs)).sum::<f64>();
    let share = |secs| total(secs) / 864.0;
    let _ = writeln!(
        out,
        "\nReading all of it: {:.1} s of CPU a day at 1 s ({:.3} %), {:.1} s at 10 s ({:.3} %), {:.1} s at 60 s ({:.4} %).",
        total(1),
        share(1),
        total(10),
        share(10),
        total(60),
        share(60)
    );
    let _ = writeln!(
        out,
        "Files that may be kept open: {}; those above would be {}.",
        session::files_to_keep(),
        kept(prices)
    );
    for price in prices.iter().filter(|price| price.is_slow()) {
        warn(price, out);
    }
}

fn warn(price: &Price, out: &mut String) {
    let worst = price.cold.median.max(price.warm.median) as f64 / 1e6;
    let (costs, cause) = match price.spent.is_asleep() {
        true => (
            "most of it without a CPU".to_string(),
            "a driver, a lock of the kernel or a tracer makes the reader wait",
        ),
        false => (
            format!("{:.1} s of CPU a day at 1 s", price.day_s(1)),
            price.cause(),
        ),
    };
    let _ = writeln!(
        out,
        "WARNING: {} is slow to read: {worst:.1} ms, {costs}. Likely cause: {cause}.",
        price.path
    );
}

fn kept(prices: &[Price]) -> usize {
    let keeps = |price: &&Price| {
        price.source.scope == Scope::Machine
            || [kind::PID_STAT, kind::PID_IO].contains(&price.source.kind)
    };
    prices
        .iter()
        .filter(keeps)
        .map(|price| price.instances)
        .sum()
}

/// The cause of a failed read as JSON: words, or null.
fn error_json(number: u16) -> String {
    match number {
        0 => "null".into(),
        number => format!("\"{}\"", errno::words(number)),
    }
}

fn json(prices: &[Price], cpus: u64, out: &mut String) {
    for price in prices {
        let Spread { min, median, max } = price.warm;
        let _ = writeln!(
            out,
            "{{\"source\":\"{}\",\"min_ns\":{min},\"median_ns\":{median},\"max_ns\":{max},\"spaced_median_ns\":{},\"per_cpu_ns\":{},\"bytes\":{},\"read\":\"{}\",\"files\":{},\"kernel_bytes\":{},\"day_1s_cpu_s\":{:.3},\"day_10s_cpu_s\":{:.3},\"day_60s_cpu_s\":{:.3},\"slow\":{},\"errno\":{},\"error\":{}}}",
            price.path,
            price.cold.median,
            median / cpus,
            price.bytes,
            reads_text(price.source.reads),
            price.instances,
            price.kernel_bytes(),
            price.day_s(1),
            price.day_s(10),
            price.day_s(60),
            price.is_slow(),
            price.errno,
            error_json(price.errno)
        );
    }
}
