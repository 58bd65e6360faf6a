//! The commands of collectl's page on performance, which save by recording fewer parts of fewer processes.

use super::{Row, files_below};
use crate::bench::Bench;
use crate::child::Running;
use crate::crowd;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, ratio, seconds};
use crate::procfs;
use crate::report::Outcome;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "chosen",
    work: "collectl's page on performance among 400 mostly idle processes, kymo under collectl's name: a day of `-sc`, `-scdnm`, `-scdnm -P`, 100 scans of `-sZ`, without I/O, of 3 processes, of these without looking for new ones: CPU",
    bar: "≤ 1/8 of collectl each; of 3 processes ≤ 1/8 of the CPU and ≤ 1/50 of the bytes of all",
    aim: "1/16",
    run,
};

const LIMIT: Duration = Duration::from_secs(300);
const BAR: f64 = 1.0 / 8.0;
const AIM: f64 = 1.0 / 16.0;
const BYTES_BAR: f64 = 1.0 / 50.0;
/// A day, one sample in ten seconds.
const DAY: u32 = 8640;
const SCANS: u32 = 100;
/// Number of chosen processes.
const CHOSEN: usize = 3;

fn run(bench: &Bench) -> Result<Outcome> {
    let (Some(kymo), Some(collectl)) = (&bench.kymo, &bench.collectl) else {
        return Err(Fault::new("kymo or collectl is not here"));
    };
    let crowd = crowd::start(bench, bench.pick(400, 60), Duration::from_secs(1800))?;
    let members = procfs::descendants(crowd.pid())?;
    let members = members.iter().skip(1).take(CHOSEN);
    let chosen: Vec<String> = members.map(|each| format!("p{}", each.pid)).collect();
    let chosen = chosen.join(",");
    let lines: [(u32, &[&str]); 7] = [
        (DAY, &["-sc"]),
        (DAY, &["-scdnm"]),
        (DAY, &["-scdnm", "-P"]),
        (SCANS, &["-sZ"]),
        (SCANS, &["-sZ", "--procopts", "I"]),
        (SCANS, &["-sZ", "--procfilt", &chosen]),
        (SCANS, &["-sZ", "--procfilt", &chosen, "--procopts", "p"]),
    ];
    let mut outcome = Outcome::default();
    let mut of_kymo = Vec::new();
    for (count, words) in lines {
        let take = |program: &Path, name: &[&str]| recorded(bench, program, name, count, words);
        let ours = take(kymo, &["collectl"])?;
        let theirs = take(collectl, &[])?;
        outcome.figure(format!(
            "`{}` kymo {} s, collectl {} s, {}",
            words.join(" ").replace(&chosen, "p1,p2,p3"),
            seconds(ours.cpu_s),
            seconds(theirs.cpu_s),
            ratio(ours.cpu_s, theirs.cpu_s)
        ));
        outcome.check(Some(ours.cpu_s / theirs.cpu_s), BAR, AIM);
        of_kymo.push(ours);
    }
    let [all, some] = [&of_kymo[3], &of_kymo[5]];
    let (cpu, bytes) = (some.cpu_s / all.cpu_s, some.bytes / all.bytes);
    outcome.figure(format!(
        "3 of all processes: CPU {}, bytes {}",
        ratio(some.cpu_s, all.cpu_s),
        ratio(some.bytes, all.bytes)
    ));
    outcome.check(Some(cpu), BAR, AIM);
    outcome.check(Some(bytes), BYTES_BAR, BYTES_BAR);
    Ok(outcome)
}

/// A recording's CPU seconds, with its start, and bytes.
struct Recorded {
    cpu_s: f64,
    bytes: f64,
}

/// The median of some recordings of `count` samples.
fn recorded(
    bench: &Bench,
    program: &Path,
    name: &[&str],
    count: u32,
    words: &[&str],
) -> Result<Recorded> {
    let count = bench.pick(count, count / 50);
    let interval = if words[0] == "-sZ" { "-i0:1" } else { "-i0" };
    let mut cpu_s = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..bench.rounds.min(3) {
        let dir = bench.new_dir("chosen")?;
        let mut command = Command::new(program);
        command.args(name).args(words).arg(interval);
        command.arg(format!("-c{count}")).arg("-f").arg(&dir);
        command.stdout(Stdio::null());
        let usage = Running::start(bench, &mut command)?.finish(LIMIT)?;
        cpu_s.push(usage.cpu.as_secs_f64());
        sizes.push(block_bytes(&dir)?);
    }
    Ok(Recorded {
        cpu_s: median(&cpu_s),
        bytes: median(&sizes),
    })
}

/// Bytes of the blocks below a folder.
fn block_bytes(dir: &Path) -> Result<f64> {
    let mut all = 0;
    for path in files_below(dir)? {
        if path.extension().is_some_and(|end| end == "blk") {
            all += fs::metadata(&path).cannot("size up a recording")?.len();
        }
    }
    Ok(all as f64)
}
