//! `kymo top` and atop on terminals of their own, live, each for itself with 200 processes more than there are.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::{Bench, on_path};
use crate::crowd;
use crate::family::Family;
use crate::fault::{Fault, Result};
use crate::figures::{ratio, significant};
use crate::procfs::{cpu_ns, descendants, process_count, words};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "top-live",
    work: "live with 1 s on a terminal of 80 × 24, 200 processes more; share of a core after start",
    bar: "≤ 0.3 % of a core, ≤ 1/5 of atop",
    aim: "0.15 %, 1/10",
    run,
};

const CROWD: u32 = 200;
/// Start of the program, which is left out.
const BEGIN: Duration = Duration::from_secs(4);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let seconds = bench.pick(60, 5);
    let limit = Duration::from_secs(4 * (seconds + 20));
    let _crowd = crowd::start(bench, CROWD, limit)?;
    outcome.figure(format!("{} processes", process_count()?));
    let kymo = bench.kymo.as_deref();
    let kymo = kymo.map(|kymo| share(bench, kymo, "top", seconds));
    let kymo = kymo.transpose()?;
    let atop = on_path("atop").map(|atop| share(bench, &atop, "1", seconds));
    let atop = atop.transpose()?;
    for (name, share) in [("kymo", kymo), ("atop", atop)] {
        if let Some(share) = share {
            outcome.figure(format!("{name} {} %", significant(share * 100.0)));
        }
    }
    outcome.check(kymo, 0.003, 0.0015);
    if let (Some(kymo), Some(atop)) = (kymo, atop) {
        outcome.figure(ratio(kymo, atop));
        outcome.check(Some(kymo / atop), 0.2, 0.1);
    }
    Ok(outcome)
}

/// CPU of a program on a terminal, as a share of the time.
fn share(bench: &Bench, program: &Path, word: &str, seconds: u64) -> Result<f64> {
    let line = format!("stty cols 80 rows 24; exec {} {word}", program.display());
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]);
    let script = script.env("TERM", "xterm-256color").stdout(Stdio::null());
    let family = Family::start(bench, script)?;
    std::thread::sleep(BEGIN);
    let is_it = |pid: u32| {
        let words = words(pid);
        let named = words
            .first()
            .is_some_and(|first| Path::new(first) == program);
        named && words.get(1).is_some_and(|second| second == word)
    };
    let found = descendants(family.root())?;
    let found = found.iter().find(|process| is_it(process.pid));
    let Some(found) = found else {
        return Err(Fault::new(format!("{line}: {}", family.complaint())));
    };
    let before = cpu_ns(found.pid)?;
    std::thread::sleep(Duration::from_secs(seconds));
    let spent = cpu_ns(found.pid)? - before;
    family.end()?;
    Ok(spent as f64 / (seconds as f64 * 1e9))
}
