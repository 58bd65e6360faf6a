//! Requests of a page of graphs: all series of one type, and their rows of an hour, through the keeper's socket as the
//! hub sends them. Warm requests repeat earlier ones; a cold one is the first to a new keeper, without pages of its store
//! in the page cache.

use super::contender::{Hub, Who};
use super::fleet::{Fleet, STEP_S};
use super::pace::Sender;
use super::{SERIES, SERIES_QUICK};
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, significant};
use crate::procfs;
use crate::report::Outcome;
use crate::row::Row;
use kymo_base::labels::Matcher;
use kymo_keeper_client::Keeper;
use kymo_wire::keeper::Range;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "hub-select",
    work: "names of 1,000 of 20,300 series by matchers, then their rows of 1 h at 10 s, asked of the keeper: again and again, and first of all with nothing in the page cache; ms",
    bar: "≤ 50, ≤ 200",
    aim: "15, 80",
    run,
};

const DAY_S: u64 = 86_400;
const HOUR_S: u64 = 3600;
/// A little more than the hour.
const STEPS: u64 = 400;
const STEPS_QUICK: u64 = 40;
/// Four series of each of 250 hosts.
const WANTED: [&str; 9] = [
    "type=gauge",
    "type_instance=0",
    "plugin_instance!=0",
    "plugin_instance!=1",
    "plugin_instance!=2",
    "host!=web25*",
    "host!=web26*",
    "host!=web27*",
    "host!=web28*",
];

/// Milliseconds of a pair of requests.
struct Took {
    select: f64,
    range: f64,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if !Who::Kymo.is_here(bench) {
        return Ok(outcome);
    }
    let mut fleet = Fleet::new(bench.series(SERIES, SERIES_QUICK), DAY_S);
    let steps = bench.steps(STEPS, STEPS_QUICK);
    let hub = Hub::start(bench, Who::Kymo, fleet.len(), steps * fleet.len() as u64)?;
    let mut sender = Sender::to(&hub, &fleet)?;
    sender.steps(&mut fleet, 0..steps)?;
    hub.await_rest()?;
    hub.lost_nothing()?;
    let (mut cold, mut cold_cpu) = (Vec::new(), 0.0);
    for _ in 0..bench.pick(5, 2) {
        hub.start_keeper_again()?;
        hub.await_rest()?;
        hub.disk.drop_caches()?;
        let before = cpu_ms(&hub)?;
        cold.push(ask(&Keeper::at(hub.keeper_socket()), &fleet, steps)?);
        cold_cpu += cpu_ms(&hub)? - before;
    }
    let (keeper, before) = (Keeper::at(hub.keeper_socket()), cpu_ms(&hub)?);
    let again = (0..bench.pick(51, 5)).map(|_| ask(&keeper, &fleet, steps));
    let warm: Vec<Took> = again.collect::<Result<_>>()?;
    let warm_cpu = cpu_ms(&hub)? - before;
    let count = fleet.len();
    outcome.figure(format!("{count} series, {steps} values each"));
    for (name, took, cpu, bar, aim) in [
        ("again", warm, warm_cpu, 50.0, 15.0),
        ("first", cold, cold_cpu, 200.0, 80.0),
    ] {
        let of = |part: fn(&Took) -> f64| median(&took.iter().map(part).collect::<Vec<_>>());
        let all = of(|took| took.select + took.range);
        outcome.figure(format!(
            "{name} {} ms: names {}, rows {}; CPU of the keeper {} ms",
            significant(all),
            significant(of(|took| took.select)),
            significant(of(|took| took.range)),
            significant(cpu / took.len() as f64),
        ));
        outcome.check(Some(all), bar, aim);
    }
    Ok(outcome)
}

/// CPU time of the keeper so far, including ended threads.
fn cpu_ms(hub: &Hub) -> Result<f64> {
    let process = procfs::descendants(hub.own_pid()?)?.into_iter().next();
    let process = process.ok_or_else(|| Fault::new("the keeper has ended"))?;
    Ok(process.ticks as f64 * 1e3 / procfs::TICKS_A_SECOND)
}

/// Sends requests as the hub does; a fault if a series or row is missing.
fn ask(keeper: &Keeper, fleet: &Fleet, steps: u64) -> Result<Took> {
    let matchers = WANTED
        .iter()
        .map(|text| Matcher::parse(text).cannot("read a matcher"));
    let matchers: Vec<Matcher> = matchers.collect::<Result<_>>()?;
    let thru = (0..fleet.len()).map(|series| fleet.last(series)).min();
    let thru = thru.unwrap_or(0) / STEP_S * STEP_S;
    let rows = (HOUR_S / STEP_S).min(steps - 2);
    let begun = Instant::now();
    let found = keeper.select(&matchers).cannot("ask for names")?;
    let select = begun.elapsed();
    let names: Vec<Vec<u8>> = found.into_iter().map(|series| series.name).collect();
    let count = names.len();
    let range = Range {
        names,
        from: (thru - rows * STEP_S) as i64,
        thru: thru as i64,
        rows_max: rows as u32 + 1,
    };
    let begun = Instant::now();
    let answers = keeper.range(&range).cannot("ask for rows")?;
    let took = begun.elapsed();
    let hosts = fleet.hosts().min(250);
    if count != 4 * hosts {
        return Err(Fault::new(format!(
            "{count} series were picked, not 4 of each of {hosts} hosts"
        )));
    }
    for (name, answer) in range.names.iter().zip(answers) {
        let name = String::from_utf8_lossy(name);
        let found = answer.cannot(format_args!("read {name}"))?;
        let known = found.mean.iter().filter(|mean| !mean.is_nan()).count() as u64;
        if known < rows || u64::from(found.step) != STEP_S {
            let what = format!("{name} has {known} rows of {} s, not {rows}", found.step);
            return Err(Fault::new(what));
        }
    }
    Ok(Took {
        select: select.as_secs_f64() * 1e3,
        range: took.as_secs_f64() * 1e3,
    })
}
