//! Real time: each host sends its values each 10 s at its own moment, so that the hub does little often.

use super::contender::{Hub, Spent, Who};
use super::fleet::{Fleet, STEP_S};
use super::pace::Sender;
use super::{SERIES_OF_THE_CASE, SERIES_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "hub-real",
    work: "20,510 series, a value each 10 s of real time, 10 minutes: CPU share, writes of the device",
    bar: "≤ 1 % of a core, ≤ 3 writes a second",
    aim: "0.3 %, 2.5",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let minutes = u64::from(bench.minutes.unwrap_or(bench.pick(10, 1)));
    let steps = minutes * 60 / STEP_S;
    let series = bench.series(SERIES_OF_THE_CASE, SERIES_QUICK);
    let mut outcome = Outcome::new(vec![format!("{minutes} minutes")]);
    let mut all = Vec::new();
    for who in [Who::Collectd, Who::Kymo] {
        if who.is_here(bench) {
            let spent = once(bench, who, series, steps)?;
            describe(&mut outcome, who, &spent, (minutes * 60) as f64);
            all.push((who, spent));
        }
    }
    let (ours, theirs): (Vec<_>, Vec<_>) = all.iter().partition(|(who, _)| who.is_ours());
    if let ([(_, ours)], [(_, theirs)]) = (&ours[..], &theirs[..]) {
        outcome.figure(format!(
            "of collectd: CPU {}, writes {}, bytes {}",
            ratio(ours.own_seconds, theirs.own_seconds),
            ratio(ours.writes, theirs.writes),
            ratio(ours.bytes, theirs.bytes),
        ));
    }
    Ok(outcome)
}

fn once(bench: &Bench, who: Who, series: usize, steps: u64) -> Result<Spent> {
    let mut fleet = Fleet::new(series, 2 * STEP_S);
    let count = fleet.len();
    let hub = Hub::start(bench, who, count, steps * count as u64)?;
    let mut sender = Sender::to(&hub, &fleet)?;
    sender.step(&mut fleet, 0)?;
    hub.await_files(count)?;
    hub.await_rest()?;
    let before = hub.spent()?;
    sender.in_real_time(&mut fleet, 1, steps)?;
    let spent = hub.spent()?.since(&before);
    hub.lost_nothing()?;
    if who.is_ours() {
        hub.await_rest()?;
        hub.has_all(&fleet)?;
    }
    Ok(spent)
}

fn describe(outcome: &mut Outcome, who: Who, spent: &Spent, seconds: f64) {
    let percent = |cpu_seconds: f64| significant(cpu_seconds * 100.0 / seconds);
    let all = match who.is_ours() {
        true => format!(" (all processes {})", percent(spent.all_seconds)),
        false => String::new(),
    };
    outcome.figure(format!(
        "{}: {} % of a CPU{all}, {} writes and {} kB a second",
        who.name(),
        percent(spent.own_seconds),
        significant(spent.writes / seconds),
        significant(spent.bytes / 1e3 / seconds),
    ));
    if who.is_ours() {
        outcome.check(Some(spent.own_seconds * 100.0 / seconds), 1.0, 0.3);
        outcome.check(Some(spent.writes / seconds), 3.0, 2.5);
    }
}
