//! Instructions of a sample outside of the kernel: a gate that does not depend on other load. Numbers change as they do on this
//! machine; one in sixty samples is a key.

use super::Row;
use crate::bench::Bench;
use crate::callgrind;
use crate::child::output_of;
use crate::fault::Result;
use crate::report::Outcome;
use std::path::Path;
use std::process::Command;

pub(super) const ROW: Row = Row {
    name: "instructions",
    work: "instructions of a sample by callgrind, all threads, without the kernel's, 660 samples less 60: `-scdnm`; `-sbcdfijmnsty`; `-sZ` of what runs here, a process",
    bar: "≤ 28,000; ≤ 95,000; ≤ 2,500 a process",
    aim: "",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        return Ok(outcome);
    };
    for (letters, bar) in [("cdnm", 28e3), ("bcdfijmnsty", 95e3)] {
        let each = of_a_sample(bench, kymo, letters, 600)?;
        outcome.figure(format!("{letters}: {each:.0}"));
        outcome.check(Some(each), bar, bar);
    }
    let processes = processes() as f64;
    let each = of_a_sample(bench, kymo, "Z", 120)? / processes;
    outcome.figure(format!("Z: {each:.0} a process of {processes}"));
    outcome.check(Some(each), 2500.0, 2500.0);
    Ok(outcome)
}

fn of_a_sample(bench: &Bench, kymo: &Path, letters: &str, samples: u32) -> Result<f64> {
    let samples = bench.pick(samples, 60);
    let of = |count: u32| -> Result<f64> {
        let [valgrind, switches @ ..] = callgrind::COMMAND;
        let mut command = Command::new(valgrind);
        command
            .args(switches)
            .arg(kymo)
            .args(["record", "-s", letters]);
        // Each sample has a scan of processes.
        command.args(["-i", "0:1", "-c", &count.to_string()]);
        command.arg("-f").arg(bench.new_dir("instructions")?);
        callgrind::collected(&output_of(&mut command)?)
    };
    Ok((of(60 + samples)? - of(60)?) / f64::from(samples))
}

fn processes() -> usize {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_number = |name: std::ffi::OsString| name.to_string_lossy().parse::<u32>().is_ok();
    names.filter(|entry| is_number(entry.file_name())).count()
}
