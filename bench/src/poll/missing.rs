//! Interfaces in a configuration that a device does not have.

use super::INTERVAL_S;
use super::poller::{Daemon, Who};
use super::site::{Globals, Site};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::fmt::Write;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "poll-missing",
    work: "20 targets whose names a device of 99 interfaces does not have: requests of a cycle that they cost, the mean of the cycles after the first two",
    bar: "≤ 1/20 of MRTG",
    aim: "1/20",
    run,
};

const INTERFACES: u32 = 99;
const MISSING: u32 = 20;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let site = Site::new(bench, 1, bench.pick(INTERFACES, 10))?;
    let mut cost = [None; 2];
    for (who, cost) in [Who::Mrtg, Who::KymoFiles].into_iter().zip(&mut cost) {
        if !who.is_here(bench) {
            continue;
        }
        // kymo tries again after 1, 2, 4 ... 12 cycles;
        // MRTG tries in each cycle.
        let cycles = match who {
            Who::Mrtg => bench.pick(3, 1),
            _ => bench.pick(24, 2),
        };
        let without = requests(bench, &site, who, cycles, "")?;
        let with = requests(bench, &site, who, cycles, &targets(&site)?)?;
        *cost = Some((with - without).max(0.0));
        outcome.figure(format!(
            "{}: {} requests a cycle with them, {} without",
            who.name(),
            significant(with),
            significant(without)
        ));
    }
    if let [Some(of_mrtg), Some(of_kymo)] = cost {
        outcome.figure(format!("they cost {} of MRTG's", ratio(of_kymo, of_mrtg)));
        outcome.check(Some(of_kymo / of_mrtg), 0.05, 0.05);
    }
    Ok(outcome)
}

fn targets(site: &Site) -> Result<String> {
    let mut text = String::new();
    for n in 0..MISSING {
        let agent = site.agent(0);
        let _ = write!(
            text,
            "\nTarget[missing_{n}]: #NoSuch{n}:{agent}\nMaxBytes[missing_{n}]: 125000000\nTitle[missing_{n}]: t\nPageTop[missing_{n}]: t\n"
        );
    }
    Ok(text)
}

fn requests(bench: &Bench, site: &Site, who: Who, cycles: u64, more: &str) -> Result<f64> {
    let globals = Globals {
        interval_s: INTERVAL_S,
        is_daemon: true,
    };
    let configuration = site.configure(bench, globals, more)?;
    site.farm.forget_counts();
    let daemon = Daemon::start(bench, who, &configuration)?;
    daemon.settle(site, INTERVAL_S)?;
    site.farm.forget_counts();
    sleep(Duration::from_secs(INTERVAL_S * cycles));
    let requests = site.farm.counts().requests;
    daemon.is_alive()?;
    daemon.end()?;
    Ok(requests as f64 / cycles as f64)
}
