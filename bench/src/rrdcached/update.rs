//! Local updates, no daemon: lines through `rrdtool -` and `kymo rrd -`, one value each, to one file of 15 archives.

use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::daemon::side::{Side, Who, in_turns, of, present};
use crate::daemon::{describe, files};
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, ratio};
use crate::report::Outcome;
use crate::row::Row;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "rrd-update",
    work: "local `update` through a `-` pipe, 1 DS, 15 RRA, per value",
    bar: "≤ 1/2 of stock",
    aim: "1/4",
    run,
};

const LIMIT: Duration = Duration::from_secs(300);

fn run(bench: &Bench) -> Result<Outcome> {
    let count: u64 = bench.pick(50_000, 2_000);
    let whos = present(bench);
    let sides: Result<Vec<Side>> = whos
        .iter()
        .map(|&who| Side::prepare(bench, who, 1))
        .collect();
    let mut sides = sides?;
    let found = in_turns(bench.rounds, &mut sides, |side, round| {
        let usage = once(bench, side, round as u64 * count, count)?;
        Ok((usage.wall.as_secs_f64(), usage.cpu.as_secs_f64()))
    })?;
    let mut outcome = Outcome::new(vec![format!("{count} values a round")]);
    for (who, rounds) in &found {
        let each = |seconds: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            rounds
                .iter()
                .map(|round| seconds(round) * 1e6 / count as f64)
                .collect()
        };
        outcome.figure(describe(who.name(), "us", &each(|round| round.0)));
        outcome.figure(describe("of it CPU", "us", &each(|round| round.1)));
    }
    let wall = |who| {
        let rounds = of(&found, who)?;
        Some(median(
            &rounds.iter().map(|round| round.0).collect::<Vec<f64>>(),
        ))
    };
    if let (Some(stock), Some(ours)) = (wall(Who::Stock), wall(Who::Ours)) {
        outcome.figure(format!("{} of stock", ratio(ours, stock)));
        outcome.check(Some(ours / stock), 0.5, 0.25);
    }
    Ok(outcome)
}

/// One run of the pipe; the file's stamp shows that the updates were done.
fn once(bench: &Bench, side: &Side, from: u64, count: u64) -> Result<Usage> {
    let input = bench.new_path("lines");
    let mut lines = String::new();
    for turn in from..from + count {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "update {} {}", files::name(0), files::value(turn, 0));
    }
    lines.push_str("quit\n");
    fs::write(&input, lines).cannot("write the lines")?;
    let program = match (side.who, &bench.kymo) {
        (Who::Ours, Some(kymo)) => format!("'{}' rrd", kymo.display()),
        _ => "rrdtool".to_string(),
    };
    let script = format!("exec {program} - < '{}'", input.display());
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .current_dir(side.base())
        .stdout(Stdio::null());
    let usage = Running::start(bench, &mut command)?.finish(LIMIT)?;
    fs::remove_file(&input).cannot("remove the lines")?;
    let last = Command::new("rrdtool")
        .arg("last")
        .arg(side.base().join(files::name(0)))
        .output();
    let last = String::from_utf8_lossy(&last.cannot("run rrdtool")?.stdout)
        .trim()
        .to_string();
    let want = files::BIRTH + files::STEP * (from + count);
    match last == want.to_string() {
        true => Ok(usage),
        false => Err(Fault::new(format!(
            "the file ends at {last}, not at {want}"
        ))),
    }
}
