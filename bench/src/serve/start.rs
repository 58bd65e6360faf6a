//! Time from the start of a built program on an empty folder until the page shows graphs of the
//! present. The browser runs already, and tries the port repeatedly.

use super::browser::Browser;
use super::request::free_port;
use super::served::Served;
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{median, significant, spread};
use crate::report::Outcome;
use crate::row::Row;
use crate::ticks::wall_ns;

pub(super) const ROW: Row = Row {
    name: "start",
    work: "built tree, `make run` (`kymo serve` on an empty folder) until the page shows live graphs",
    bar: "≤ 2 s",
    aim: "1 s",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let rounds: usize = bench.pick(5, 1);
    let ports = (0..rounds)
        .map(|_| free_port())
        .collect::<Result<Vec<u16>>>()?;
    let urls: Vec<String> = ports
        .iter()
        .map(|port| format!("http://127.0.0.1:{port}/"))
        .collect();
    let mut browser = Browser::start(bench, "start", &urls)?;
    let (mut loaded, mut drawn) = (Vec::new(), Vec::new());
    for port in ports {
        browser.expect("ready")?;
        let folder = bench.new_dir("start")?;
        let start_ms = wall_ns() as f64 / 1e6;
        let mut served = Served::launch(bench, kymo, &folder, port)?;
        let times = browser.expect("drawn")?;
        loaded.push((times[0] - start_ms) / 1e3);
        drawn.push((times[1] - start_ms) / 1e3);
        served.await_answer()?;
        served.end()?;
    }
    browser.end()?;
    let (low, high) = spread(&drawn);
    let [middle, low, high] = [median(&drawn), low, high].map(significant);
    outcome.figure(format!("graphs after {middle} s [{low}-{high}]"));
    outcome.figure(format!(
        "the page's first byte after {} s",
        significant(median(&loaded))
    ));
    outcome.check(Some(median(&drawn)), 2.0, 1.0);
    Ok(outcome)
}
