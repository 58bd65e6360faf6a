//! All work of kymo at once, and for the same time as the peers that do it: a recording of the machine, polled devices, collectds
//! and clients of rrdcached that send, counted commands of PostgreSQL. Both sides work beside each other on one farm of agents,
//! one generator of collectd's values, and servers with the same load.

mod ours;
mod theirs;
mod work;

use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::{Row, Table};
use ours::Ours;
use std::thread::sleep;
use std::time::Duration;
use theirs::Theirs;
use work::Work;

/// The table of the costs of everything at once.
pub(crate) const TOGETHER: Table = Table {
    part: "What all of it costs at once",
    rows: &[&ROW],
};

const ROW: Row = Row {
    name: "together",
    work: "recording cdnmZ at 1:5 s; 16 devices with 512 interfaces polled each minute; 2,030 series of 29 collectds each 10 s; 200 series by rrdcached's protocol each 10 s; PostgreSQL's commands at 500 a second: CPU of all processes, in percent of one CPU",
    bar: "",
    aim: "",
    run,
};

/// Time until files and series exist and the pollers have their rhythm.
const SETTLES: Duration = Duration::from_secs(100);

/// CPU seconds by user.
type Spent = Vec<(&'static str, f64)>;

fn run(bench: &Bench) -> Result<Outcome> {
    let minutes = u64::from(bench.minutes.unwrap_or(bench.pick(10, 1)));
    let measured = Duration::from_secs(60 * minutes);
    let settles = bench.pick(SETTLES, Duration::from_secs(20));
    let work = Work::new(bench)?;
    let theirs = Theirs::start(bench, &work)?;
    let ours = Ours::start(bench, &work)?;
    let spent = || Ok([ours.spent()?, theirs.spent()?, work.servers.spent()?]);
    let (before, after) = std::thread::scope(|scope| {
        let clients = work.begin(scope, bench, settles + measured)?;
        sleep(settles);
        let before: [Spent; 3] = spent()?;
        sleep(measured);
        let after = spent()?;
        clients.have_worked().map(|()| (before, after))
    })?;
    let [mut kymo, mut peers, servers] = shares(before, after, measured);
    let [bare, statements, library] = [0, 1, 2].map(|n: usize| servers[n].1);
    kymo.push(("its library in PostgreSQL", library - bare));
    peers.push(("pg_stat_statements", statements - bare));
    let mut outcome = Outcome::new(vec![format!("{minutes} minutes")]);
    let kymo = describe(&mut outcome, "kymo", &kymo);
    let peers = describe(&mut outcome, "the peers", &peers);
    describe(&mut outcome, "PostgreSQL's three servers", &servers);
    outcome.figure(format!("kymo/peers {}", ratio(kymo, peers)));
    Ok(outcome)
}

/// Shares of one CPU, in percent.
fn shares(before: [Spent; 3], after: [Spent; 3], length: Duration) -> [Spent; 3] {
    let percent = |before: f64, after: f64| (after - before) / length.as_secs_f64() * 100.0;
    let mut all = after;
    for (after, before) in all.iter_mut().flatten().zip(before.iter().flatten()) {
        after.1 = percent(before.1, after.1);
    }
    all
}

/// Adds each part's share to the outcome; returns the sum.
fn describe(outcome: &mut Outcome, side: &str, shares: &Spent) -> f64 {
    let sum = shares.iter().map(|(_, share)| share).sum();
    let part = |(name, share): &(&str, f64)| format!("{name} {}", significant(*share));
    let parts: Vec<_> = shares.iter().map(part).collect();
    outcome.figure(format!(
        "{side} {} % ({})",
        significant(sum),
        parts.join(", ")
    ));
    sum
}
