//! Tables that can be long, on generated roots: each at a tenth of its length and at all of it. A row of the long one may cost as
//! much as one of the short table; a search of all rows for each row would show here.

use super::Row;
use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, median, ratio, significant};
use crate::peer::{Take, kymo};
use crate::report::Outcome;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "long",
    work: "2,000 control groups, 1,000 interfaces, 3,000 disks, 500 mounts, 5,000 interrupts × CPUs, made: CPU of a row and sample at this length, and at a tenth of it",
    bar: "≤ 1.5 × that at a tenth; memory ≤ 25 MB",
    aim: "",
    run,
};

const BAR: f64 = 1.5;
const MEMORY_BYTES: f64 = 25e6;
const LIMIT: Duration = Duration::from_secs(120);
/// CPUs of the table of interrupts.
const CPUS: usize = 50;

/// A table, its length, and the number of rows read in one measurement.
struct Table {
    name: &'static str,
    letter: &'static str,
    length: usize,
    rows_read: usize,
    make: fn(&Path, usize) -> Result<()>,
}

const TABLES: [Table; 5] = [
    Table {
        name: "control groups",
        letter: "G",
        length: 2000,
        rows_read: 20_000,
        make: groups,
    },
    Table {
        name: "interfaces",
        letter: "N",
        length: 1000,
        rows_read: 2_000_000,
        make: interfaces,
    },
    Table {
        name: "disks",
        letter: "D",
        length: 3000,
        rows_read: 2_000_000,
        make: disks,
    },
    Table {
        name: "mounts",
        letter: "W",
        length: 500,
        rows_read: 50_000,
        make: mounts,
    },
    Table {
        name: "interrupts × CPUs",
        letter: "J",
        length: 5000,
        rows_read: 20_000_000,
        make: interrupts,
    },
];

fn run(bench: &Bench) -> Result<Outcome> {
    let program = bench.kymo.as_deref();
    let program = program.ok_or_else(|| Fault::new("kymo is not here"))?;
    let mut outcome = Outcome::default();
    for table in &TABLES {
        let mut each_us = [0.0; 2];
        let mut peak_bytes = 0.0_f64;
        for (each_us, length) in each_us.iter_mut().zip([table.length / 10, table.length]) {
            let root = bench.new_dir("long")?;
            base(&root)?;
            (table.make)(&root, length)?;
            let count = bench.pick(table.rows_read, table.rows_read / 20) / length;
            let mut cpu_s = Vec::new();
            for _ in 0..bench.rounds {
                let start = recorded(bench, program, (table.letter, 1), &root)?;
                let all = recorded(bench, program, (table.letter, count + 1), &root)?;
                cpu_s.push(all.cpu.as_secs_f64() - start.cpu.as_secs_f64());
                peak_bytes = peak_bytes.max(all.peak_bytes as f64);
            }
            *each_us = median(&cpu_s) * 1e6 / (count * length) as f64;
        }
        let [short, long] = each_us;
        outcome.figure(format!(
            "{} {}: {} us a row, {} of a tenth, peak {}",
            table.length,
            table.name,
            significant(long),
            ratio(long, short),
            bytes(peak_bytes)
        ));
        outcome.check(Some(long / short), BAR, BAR);
        outcome.check(Some(peak_bytes), MEMORY_BYTES, MEMORY_BYTES);
    }
    Ok(outcome)
}

fn recorded(
    bench: &Bench,
    program: &Path,
    (letters, count): (&str, usize),
    root: &Path,
) -> Result<Usage> {
    let take = Take {
        letters,
        interval: "0:1",
        count: u32::try_from(count).unwrap_or(u32::MAX),
    };
    let mut command = kymo(program, take, &bench.new_dir("long-ring")?);
    command.arg("--no-backoff").arg("--root").arg(root);
    Running::start(bench, &mut command)?.finish_watching_memory(LIMIT)
}

fn put(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).cannot(format_args!("create {}", folder.display()))?;
    fs::write(&path, text).cannot(format_args!("write {}", path.display()))
}

fn base(root: &Path) -> Result<()> {
    put(root, "proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n")?;
    put(root, "proc/loadavg", "0.00 0.00 0.00 1/10 99\n")?;
    put(root, "proc/sys/kernel/hostname", "made\n")?;
    put(root, "proc/sys/kernel/random/boot_id", "aaaa\n")
}

fn groups(root: &Path, count: usize) -> Result<()> {
    let mount = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    put(root, "proc/1/mountinfo", mount)?;
    for n in 0..count {
        let folder = format!("sys/fs/cgroup/s{}.slice/c{n}.scope", n / 100);
        let file = |name: &str, text: String| put(root, &format!("{folder}/{name}"), &text);
        file(
            "cpu.stat",
            format!("usage_usec {n}00\nuser_usec {n}00\nsystem_usec {n}\n"),
        )?;
        file(
            "io.stat",
            format!("8:0 rbytes={n}512 wbytes={n}1024 rios={n} wios={n} dbytes=0 dios=0\n"),
        )?;
        file("memory.current", format!("{n}4096\n"))?;
        file("pids.current", format!("{n}\n"))?;
        file("cgroup.procs", String::new())?;
    }
    Ok(())
}

fn interfaces(root: &Path, count: usize) -> Result<()> {
    let mut text = "Inter-|   Receive  |  Transmit\n face |bytes |bytes\n".to_string();
    for n in 0..count {
        let _ = writeln!(
            text,
            "veth{n:05}: {n}11223 {n}44 0 0 0 0 0 0 {n}5566 {n}77 0 0 0 0 0 0"
        );
        let folder = format!("sys/class/net/veth{n:05}");
        put(
            root,
            &format!("{folder}/iflink"),
            &format!("{}\n", n + 9999),
        )?;
        put(root, &format!("{folder}/ifindex"), &format!("{}\n", n + 2))?;
        put(root, &format!("{folder}/speed"), "10000\n")?;
    }
    put(root, "proc/1/net/dev", &text)?;
    put(root, "proc/net/dev", &text)
}

fn disks(root: &Path, count: usize) -> Result<()> {
    let mut text = String::new();
    for n in 0..count {
        let _ = writeln!(
            text,
            "   8 {n} sd{n:04} {n}12 3 {n}456 78 {n}90 1 {n}23 45 0 67 89 0 0 0 0 0 0"
        );
        put(
            root,
            &format!("sys/block/sd{n:04}/dev"),
            &format!("8:{n}\n"),
        )?;
        put(root, &format!("sys/block/sd{n:04}/device/vendor"), "made\n")?;
    }
    put(root, "proc/diskstats", &text)
}

fn mounts(root: &Path, count: usize) -> Result<()> {
    let mut text = String::new();
    for n in 0..count {
        put(root, &format!("mnt/m{n}/file"), "")?;
        let _ = writeln!(
            text,
            "{} 23 8:{n} / /mnt/m{n} rw - ext4 /dev/sd{n} rw",
            n + 30
        );
    }
    put(root, "proc/1/mountinfo", &text)
}

fn interrupts(root: &Path, count: usize) -> Result<()> {
    let mut text = " ".repeat(5);
    for cpu in 0..CPUS {
        let _ = write!(text, "{:>11}", format!("CPU{cpu}"));
    }
    text.push('\n');
    for row in 0..count / CPUS {
        let _ = write!(text, "{row:4}:");
        for cpu in 0..CPUS {
            let _ = write!(text, " {:10}", row * cpu % 977);
        }
        let _ = writeln!(text, "  PCI-MSIX-0000:00:{row:02}.0   0-edge      q{row}");
    }
    put(root, "proc/interrupts", &text)
}
