//! The cost of a value until it is at its final place: step after step of simulated time, each side on its own disk. The
//! measurement starts when all series exist with a value each, and stops when no value waits: collectd has ended, which
//! writes all its values, and kymo has saved all values in blocks, since the steps are a multiple of a block's values.

use super::contender::{Hub, Spent, Who};
use super::fleet::Fleet;
use super::pace::Sender;
use super::{SERIES, SERIES_QUICK, oracle};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "hub",
    work: "a value of collectd's protocol, 290 hosts × 70 values, 2,432 steps of 10 s; collectd with its rrdtool plugin × \
           304, as packaged and with CacheTimeout 21600: CPU, bytes and writes of the device; 200 series equal to rrdtool's",
    bar: "CPU ≤ 1/16 of collectd, ≤ 40 bytes",
    aim: "1/35, 25",
    run,
};

/// Values of a series that are saved as one block.
const BLOCK_VALUES: u64 = 64;
/// Series whose rows are compared.
const COMPARED: usize = 200;
const DAY_S: u64 = 86_400;

/// One side's use of resources, and the number of values.
struct Taken {
    who: Who,
    spent: Spent,
    values: f64,
}

impl Taken {
    /// Microseconds a value, including all processes that were started beside the hub.
    fn micros(&self) -> f64 {
        self.spent.all_seconds * 1e6 / self.values
    }

    fn bytes(&self) -> f64 {
        self.spent.bytes / self.values
    }

    fn writes(&self) -> f64 {
        self.spent.writes * 1e3 / self.values
    }
}

fn run(bench: &Bench) -> Result<Outcome> {
    let series = bench.series(SERIES, SERIES_QUICK);
    let steps = bench
        .steps(2_400, BLOCK_VALUES)
        .next_multiple_of(BLOCK_VALUES);
    let mut outcome = Outcome::default();
    let mut all = Vec::new();
    for who in [Who::Collectd, Who::Tuned, Who::Kymo] {
        if who.is_here(bench) {
            let steps = if who.is_ours() { steps } else { steps / 8 };
            all.push(once(bench, who, series, steps, &mut outcome)?);
        }
    }
    let Some(ours) = all.iter().find(|taken| taken.who.is_ours()) else {
        return Ok(outcome);
    };
    for other in all.iter().filter(|taken| !taken.who.is_ours()) {
        outcome.figure(format!(
            "of {}: CPU {}, bytes {}, writes {}",
            other.who.name(),
            ratio(ours.micros(), other.micros()),
            ratio(ours.bytes(), other.bytes()),
            ratio(ours.writes(), other.writes()),
        ));
    }
    outcome.check(Some(ours.bytes()), 40.0, 25.0);
    if let Some(stock) = all.iter().find(|taken| taken.who == Who::Collectd) {
        let share = ours.micros() / stock.micros();
        outcome.check(Some(share), 1.0 / 16.0, 1.0 / 35.0);
    }
    Ok(outcome)
}

fn once(
    bench: &Bench,
    who: Who,
    series: usize,
    steps: u64,
    outcome: &mut Outcome,
) -> Result<Taken> {
    let mut fleet = Fleet::new(series, DAY_S);
    let count = fleet.len();
    let mut hub = Hub::start(bench, who, count, steps * count as u64)?;
    let mut sender = Sender::to(&hub, &fleet)?;
    fleet.keep(COMPARED);
    sender.step(&mut fleet, 0)?;
    hub.await_files(count)?;
    hub.await_rest()?;
    let before = hub.spent()?;
    if who.is_ours() {
        sender.steps(&mut fleet, 1..steps)?;
    } else {
        for step in 1..steps {
            sender.step(&mut fleet, step)?;
            // collectd's queues have no limit: the sender waits while it is behind.
            hub.await_breath()?;
        }
    }
    hub.await_rest()?;
    hub.lost_nothing()?;
    let (spent, compared, unsealed);
    if who.is_ours() {
        spent = hub.spent()?.since(&before);
        hub.has_all(&fleet)?;
        compared = oracle::compare(bench, &hub, &fleet)?;
        hub.end()?;
        unsealed = hub.unsealed(bench)?;
    } else {
        spent = hub.end()?.since(&before);
        compared = oracle::compare(bench, &hub, &fleet)?;
        unsealed = 0;
    }
    let values = ((steps - 1) * count as u64) as f64;
    let taken = Taken { who, spent, values };
    outcome.figure(format!(
        "{}, {count} series × {steps} steps at {} values a second: {} us{}, {} bytes ({} by /proc) a value, {} writes a 1,000; \
         {compared} series equal to rrdtool's; {unsealed} values in no block",
        who.name(),
        who.rate(),
        significant(taken.micros()),
        own_words(&taken),
        significant(taken.bytes()),
        significant(spent.by_proc_bytes / values),
        significant(taken.writes()),
    ));
    Ok(taken)
}

/// The CPU time of kymo's keeper alone.
fn own_words(taken: &Taken) -> String {
    let micros = taken.spent.own_seconds * 1e6 / taken.values;
    match taken.who.is_ours() {
        true => format!(" (the keeper {})", significant(micros)),
        false => String::new(),
    }
}
