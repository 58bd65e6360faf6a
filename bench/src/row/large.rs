//! A generated machine with 256 CPUs and 2,000 interrupts, 5.8 MB of text, below a
//! folder: numbers stay, or those of a second change between two samples. Reading such a
//! file is a copy, while a kernel formats each number: the floor is as low as possible.

use super::Row;
use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::fault::{Cannot, Result};
use crate::figures::{bytes, median, ratio};
use crate::report::Outcome;
use crate::world::Chance;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "large",
    work: "`-scJ` of 256 CPUs and 2,000 interrupts, generated: CPU of 600 samples, nothing moving / 256 × 6 rows and 500 cells moving",
    bar: "≤ 1.6 / 2.5 × its reads; memory ≤ 12 MB + 5 × the text",
    aim: "",
    run,
};

const CPUS: usize = 256;
const INTERRUPTS: usize = 2000;
const NAMED: [&str; 6] = ["NMI", "LOC", "RES", "CAL", "TLB", "IWI"];
const MOVING_CELLS: usize = 500;
/// Number of texts, which follow one another in a cycle.
const STATES: u64 = 4;
const MOVES_EVERY: Duration = Duration::from_millis(2);
const LIMIT: Duration = Duration::from_secs(120);
const SEED: u64 = 20_261_124;
const FILES: [&str; 3] = ["interrupts", "softirqs", "stat"];

fn run(bench: &Bench) -> Result<Outcome> {
    let root = bench.new_dir("large")?;
    let text = generate(&root)?;
    let mut outcome = Outcome::default();
    outcome.figure(format!("{} of text", bytes(text as f64)));
    let sides = [("nothing moving", false, 1.6), ("moving", true, 2.5)];
    for (name, is_moving, bar) in sides {
        let mut cpu = [Vec::new(), Vec::new()];
        let mut peak = 0;
        for _ in 0..bench.rounds {
            let usages = moving(&root, is_moving, || round(bench, &root))??;
            for (cpu, usage) in cpu.iter_mut().zip(&usages) {
                cpu.push(usage.cpu.as_secs_f64());
            }
            peak = peak.max(usages.get(1).map_or(0, |kymo| kymo.peak_bytes));
        }
        let [floor, kymo] = cpu.map(|cpu| (!cpu.is_empty()).then(|| median(&cpu)));
        if let (Some(floor), Some(kymo)) = (floor, kymo) {
            outcome.figure(format!(
                "{name}: {} of the floor, {floor:.3} s",
                ratio(kymo, floor)
            ));
            outcome.check(Some(kymo / floor), bar, bar);
            let most = 12e6 + 5.0 * text as f64;
            outcome.figure(format!("peak {}", bytes(peak as f64)));
            outcome.check(Some(peak as f64), most, most);
        }
    }
    Ok(outcome)
}

/// The floor, and kymo if it is here.
fn round(bench: &Bench, root: &Path) -> Result<Vec<Usage>> {
    let count = bench.pick(600, 30).to_string();
    let mut floor = Command::new(&bench.own);
    floor
        .arg("floor")
        .args(["-s", "cj", "-i", "0", "-c", &count]);
    let mut commands = vec![floor];
    if let Some(kymo) = &bench.kymo {
        let mut recorder = Command::new(kymo);
        recorder.args(["record", "-s", "cJ", "-i", "0", "-c", &count]);
        recorder.arg("-f").arg(bench.new_dir("large-ring")?);
        commands.push(recorder);
    }
    let run = |mut command: Command| {
        command.arg("--root").arg(root).stdout(Stdio::null());
        Running::start(bench, &mut command)?.finish_watching_memory(LIMIT)
    };
    commands.into_iter().map(run).collect()
}

/// Runs `work`; if `is_moving`, the files are replaced meanwhile.
fn moving<T>(root: &Path, is_moving: bool, work: impl FnOnce() -> T) -> Result<T> {
    let done = AtomicBool::new(!is_moving);
    thread::scope(|scope| {
        let mover = scope.spawn(|| -> Result<()> {
            let mut state = 0;
            while !done.load(Ordering::Relaxed) {
                state = (state + 1) % STATES;
                put(root, state)?;
                thread::sleep(MOVES_EVERY);
            }
            Ok(())
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        match mover.join() {
            Ok(moved) => moved.map(|()| worked),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Puts one state of all files in the place of the previous one.
fn put(root: &Path, state: u64) -> Result<()> {
    for name in FILES {
        let place = root.join("proc").join(name);
        let new = root.join(format!("{name}.new"));
        let link = fs::hard_link(kept(root, name, state), &new);
        link.and_then(|()| fs::rename(&new, &place))
            .cannot(format_args!("replace {}", place.display()))?;
        // A rename onto a link to the same file removes neither.
        let _gone = fs::remove_file(&new);
    }
    Ok(())
}

fn kept(root: &Path, name: &str, state: u64) -> PathBuf {
    root.join(format!("{name}.{state}"))
}

/// Writes all states of all files; returns the bytes of one state.
fn generate(root: &Path) -> Result<usize> {
    for folder in ["proc/sys/kernel/random", "proc/1/net"] {
        fs::create_dir_all(root.join(folder)).cannot("make the machine's folders")?;
    }
    let boot = "0badcafe-0000-4000-8000-000000000000\n";
    fs::write(root.join("proc/sys/kernel/random/boot_id"), boot).cannot("write a boot id")?;
    fs::write(root.join("proc/loadavg"), "1.00 2.00 3.00 4/2000 70000\n").cannot("write loads")?;
    let mut length = 0;
    for state in 0..STATES {
        length = 0;
        for (name, text) in FILES.iter().zip(texts(state)) {
            length += text.len();
            fs::write(kept(root, name, state), text).cannot(format_args!("write {name}"))?;
        }
    }
    put(root, 0)?;
    Ok(length)
}

/// Texts of interrupts, softirqs and stat; the same numbers for the same state.
fn texts(state: u64) -> [String; 3] {
    let mut chance = Chance::new(SEED);
    let mut rows = vec![[0; CPUS]; INTERRUPTS];
    for row in &mut rows {
        // Most interrupts occur on few CPUs.
        for _ in 0..3 {
            row[chance.below(CPUS as u64) as usize] = chance.below(1 << 31);
        }
    }
    for _ in 0..MOVING_CELLS {
        let row = &mut rows[chance.below(INTERRUPTS as u64) as usize];
        row[chance.below(CPUS as u64) as usize] += state * (1 + chance.below(2000));
    }
    let mut interrupts = head(5);
    let mut sums = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        interrupts += &format!("{number:4}:");
        cells(&mut interrupts, row);
        let (bus, queue) = (number % 256, number % 64);
        let device = number / 64;
        interrupts += &format!(
            "  IR-PCI-MSIX-0000:{bus:02x}:00.0 {number:4}-edge      nvme{device}q{queue}\n"
        );
        sums.push(row.iter().sum::<u64>());
    }
    let counted = |chance: &mut Chance| {
        [(); CPUS].map(|()| chance.below(1 << 31) + state * (1 + chance.below(500)))
    };
    for name in NAMED {
        interrupts += &format!("{name:>4}:");
        cells(&mut interrupts, &counted(&mut chance));
        interrupts += "   Interrupts of the processor\n";
    }
    interrupts += " ERR:          0\n MIS:          0\n";
    let mut softirqs = head(20);
    for name in [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ] {
        softirqs += &format!("{name:>12}:");
        cells(&mut softirqs, &counted(&mut chance));
        softirqs.push('\n');
    }
    [interrupts, softirqs, stat(&mut chance, state, &sums)]
}

fn stat(chance: &mut Chance, state: u64, interrupts: &[u64]) -> String {
    let mut total = [0; 10];
    let mut lines = String::new();
    for cpu in 0..CPUS {
        let mut row = [0; 10];
        for (number, total) in row.iter_mut().zip(&mut total).take(8) {
            *number = chance.below(10_000_000) + state * (1 + chance.below(100));
            *total += *number;
        }
        let row = row.map(|number| number.to_string()).join(" ");
        lines += &format!("cpu{cpu} {row}\n");
    }
    let total = total.map(|number| number.to_string()).join(" ");
    let each: Vec<String> = interrupts.iter().map(u64::to_string).collect();
    let sum: u64 = interrupts.iter().sum();
    format!(
        "cpu  {total}\n{lines}intr {sum} {}\nctxt {}\nbtime 1700000000\nprocesses {}\nprocs_running 3\nprocs_blocked 0\nsoftirq 55 1 2 3 4 5 6 7 8 9 10\n",
        each.join(" "),
        1_000_000_000 + 1000 * state,
        1_000_000 + state,
    )
}

fn head(indent: usize) -> String {
    let mut line = " ".repeat(indent);
    for cpu in 0..CPUS {
        line += &format!("{:>11}", format!("CPU{cpu}"));
    }
    line + "\n"
}

fn cells(out: &mut String, row: &[u64]) {
    for number in row {
        let _fits = write!(out, "{number:11}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_as_large_as_it_is_said_to_be() {
        let [interrupts, _, stat] = texts(0);
        assert!(interrupts.len() > 5_600_000 && interrupts.len() < 6_000_000);
        assert_eq!(interrupts.lines().count(), 1 + INTERRUPTS + NAMED.len() + 2);
        assert_eq!(
            stat.lines().filter(|line| line.starts_with("cpu")).count(),
            1 + CPUS
        );
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(0)[0], texts(1)[0]);
        assert_eq!(texts(0)[0].len(), texts(1)[0].len());
    }
}
