//! A recording of this machine by both programs at once, a sample a second with 200 processes more, played again: the
//! tables of processes of all samples as text.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::{Bench, on_path};
use crate::child::Running;
use crate::crowd;
use crate::fault::Result;
use crate::figures::{median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "top-replay",
    work: "a recording with a sample a second and 200 processes more, played as the processes of all samples; CPU a sample",
    bar: "≤ 1/10 of atop",
    aim: "1/30",
    run,
};

const CROWD: u32 = 200;
const LIMIT: Duration = Duration::from_secs(600);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let samples = bench.pick(300, 5);
    let crowd = crowd::start(bench, CROWD, Duration::from_secs(samples + 60))?;
    let (ours, theirs) = (bench.new_dir("ring")?, bench.new_path("atop"));
    let mut recording = Command::new(kymo);
    recording.args([
        "record",
        "-s",
        "cmdnZ",
        "-i",
        "1:1",
        "-c",
        &samples.to_string(),
        "-f",
    ]);
    let recording = Running::start(bench, recording.arg(&ours).stdout(Stdio::null()))?;
    let atop = on_path("atop");
    if let Some(atop) = &atop {
        let mut command = Command::new(atop);
        command
            .arg("-w")
            .arg(&theirs)
            .args(["1", &samples.to_string()]);
        Running::start(bench, command.stdout(Stdio::null()))?.finish(LIMIT)?;
    }
    recording.finish(LIMIT)?;
    drop(crowd);
    let cost = |program: &std::path::Path, words: &[&std::ffi::OsStr]| -> Result<f64> {
        let mut all = Vec::new();
        for _ in 0..bench.rounds {
            let mut command = Command::new(program);
            let played = Running::start(bench, command.args(words).stdout(Stdio::null()))?;
            all.push(played.finish(LIMIT)?.cpu.as_secs_f64() * 1e3 / samples as f64);
        }
        Ok(median(&all))
    };
    let own = cost(
        kymo,
        &[
            "play".as_ref(),
            ours.as_ref(),
            "--top".as_ref(),
            "time,1000".as_ref(),
        ],
    )?;
    outcome.figure(format!("kymo {} ms", significant(own)));
    if let Some(atop) = &atop {
        let other = cost(atop, &["-r".as_ref(), theirs.as_ref(), "-a".as_ref()])?;
        outcome.figure(format!("atop {} ms", significant(other)));
        outcome.figure(ratio(own, other));
        outcome.check(Some(own / other), 0.1, 1.0 / 30.0);
    }
    Ok(outcome)
}
