//! New series: the cost of the first value of each, until the wanted files exist.

use super::contender::{Hub, Who};
use super::fleet::Fleet;
use super::pace::Sender;
use super::{SERIES, SERIES_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::significant;
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "hub-new",
    work: "20,300 new series, a value each: CPU a series, as configured by default, and with .rrd files at once, as collectd",
    bar: "≤ 10 us each",
    aim: "3 us",
    run,
};

const DAY_S: u64 = 86_400;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for who in [Who::Collectd, Who::Kymo, Who::KymoWithFiles] {
        if !who.is_here(bench) {
            continue;
        }
        let mut fleet = Fleet::new(bench.series(SERIES, SERIES_QUICK), DAY_S);
        let count = fleet.len();
        let hub = Hub::start(bench, who, count, 0)?;
        hub.await_rest()?;
        let before = hub.spent()?;
        Sender::to(&hub, &fleet)?.step(&mut fleet, 0)?;
        hub.await_files(count)?;
        hub.await_rest()?;
        let spent = hub.spent()?.since(&before);
        hub.lost_nothing()?;
        if who.is_ours() {
            hub.has_all(&fleet)?;
        }
        let micros = spent.own_seconds * 1e6 / count as f64;
        outcome.figure(format!(
            "{}, {count} series: {} us, {} kB of the device each",
            who.name(),
            significant(micros),
            significant(spent.bytes / 1e3 / count as f64),
        ));
        if who == Who::Kymo {
            outcome.check(Some(micros), 10.0, 3.0);
        }
    }
    Ok(outcome)
}
