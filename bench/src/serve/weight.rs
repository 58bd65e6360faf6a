//! Bytes that the browser loads for the first view, by its own count: bodies as received, compressed;
//! their headers are a figure of their own. The endless live stream is left out.

use super::browser::Browser;
use super::served::Served;
use crate::bench::Bench;
use crate::fault::{Fault, Result};
use crate::figures::bytes;
use crate::report::Outcome;
use crate::row::Row;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "weight",
    work: "page weight, gzipped: all that the first view of the last 15 minutes loads",
    bar: "≤ 150 kB",
    aim: "100 kB",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let served = Served::start(bench, kymo, &bench.new_dir("weight")?)?;
    std::thread::sleep(Duration::from_secs(bench.pick(60, 3)));
    let mut browser = Browser::start(bench, "weight", &[served.url()])?;
    let sizes = browser.expect("weight")?;
    browser.end()?;
    served.end()?;
    let &[files, file_count, numbers, number_count, heads] = &sizes[..] else {
        return Err(Fault::new("the browser told something else"));
    };
    outcome.figure(format!("{} in all", bytes(files + numbers)));
    outcome.figure(format!("{file_count} files {}", bytes(files)));
    outcome.figure(format!("{number_count} answers {}", bytes(numbers)));
    outcome.figure(format!("heads of answers besides {}", bytes(heads)));
    outcome.check(Some(files + numbers), 150e3, 100e3);
    Ok(outcome)
}
