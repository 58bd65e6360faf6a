//! The highest rate without a loss for a while: the rate is doubled until there is one, then the gap is halved. The
//! kernel's queue is small compared with the sent values. Sender and hub share the CPUs.

use super::contender::{Hub, Who};
use super::fleet::Fleet;
use super::pace::Sender;
use super::{SERIES, SERIES_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::significant;
use crate::report::Outcome;
use crate::row::Row;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "hub-rate",
    work: "the highest rate without a loss for 60 s, what was sent is what is stored",
    bar: "≥ 1 M values a second",
    aim: "2 M",
    run,
};

/// Rate of the first try, in values a second.
const FIRST: f64 = 250_000.0;
/// A sender that stays behind its rate by more than this part does not count as sending at it.
const BEHIND_MAX: f64 = 0.03;
/// How often the gap between a good rate and a bad one is halved.
const HALVINGS: usize = 2;
/// With more doublings the sender would be measured.
const DOUBLINGS: usize = 5;
const CATCH_UP: Duration = Duration::from_millis(20);
/// Stamps advance from try to try, and stay in the past.
const BACK_S: u64 = 10 * 86_400;

/// Result of a rate.
struct Try {
    /// Sent values a second.
    reached: f64,
    /// Dropped datagrams.
    dropped: u64,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if !Who::Kymo.is_here(bench) {
        return Ok(outcome);
    }
    let mut fleet = Fleet::new(bench.series(SERIES, SERIES_QUICK), BACK_S);
    let count = fleet.len();
    let length = Duration::from_secs(bench.pick(60, 10));
    let room = length.as_secs() * 10_000_000;
    let hub = Hub::start(bench, Who::Kymo, count, room)?;
    Sender::new(&fleet, hub.port, Who::Kymo.rate(), CATCH_UP)?.step(&mut fleet, 0)?;
    hub.await_rest()?;
    let (mut step, mut dropped) = (1, 0);
    let mut once = |rate: f64, outcome: &mut Outcome| -> Result<Try> {
        let mut sender = Sender::new(&fleet, hub.port, rate, CATCH_UP)?;
        let (begun, first) = (Instant::now(), step);
        while begun.elapsed() < length {
            sender.step(&mut fleet, step)?;
            step += 1;
        }
        let seconds = begun.elapsed().as_secs_f64();
        hub.await_rest()?;
        let (before, now) = (dropped, hub.dropped()?);
        dropped = now;
        let tried = Try {
            reached: (step - first) as f64 * count as f64 / seconds,
            dropped: now - before,
        };
        outcome.figure(format!(
            "{} a second: {} datagrams dropped",
            significant(tried.reached),
            tried.dropped
        ));
        if tried.dropped == 0 {
            hub.has_all(&fleet)?;
        }
        Ok(tried)
    };
    let best = search(|rate| once(rate, &mut outcome))?;
    outcome.figure(format!(
        "{count} series, {} s each; the highest without a loss {} a second",
        length.as_secs(),
        significant(best)
    ));
    // A check expects that smaller is better.
    outcome.check(Some(1e6 / best), 1.0, 0.5);
    Ok(outcome)
}

/// The highest rate without a loss.
fn search(mut once: impl FnMut(f64) -> Result<Try>) -> Result<f64> {
    let (mut good, mut bad) = (0.0, f64::INFINITY);
    let mut rate = FIRST;
    for _ in 0..=DOUBLINGS {
        let tried = once(rate)?;
        if tried.dropped > 0 {
            bad = rate;
            break;
        }
        good = tried.reached;
        if tried.reached < rate * (1.0 - BEHIND_MAX) {
            // The sender is slower than the hub.
            return Ok(good);
        }
        rate *= 2.0;
    }
    for _ in 0..HALVINGS {
        if bad.is_infinite() {
            break;
        }
        let rate = (good + bad) / 2.0;
        let tried = once(rate)?;
        match tried.dropped {
            0 => good = good.max(tried.reached),
            _ => bad = rate,
        }
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_found() {
        for (most, of_sender, want) in [
            (900_000.0, f64::INFINITY, 875_000.0),
            (900_000.0, 300_000.0, 300_000.0),
            (100_000.0, f64::INFINITY, 62_500.0),
        ] {
            let once = |rate: f64| {
                let reached = rate.min(of_sender);
                let dropped = u64::from(reached > most);
                Ok(Try { reached, dropped })
            };
            assert_eq!(search(once).unwrap(), want, "{most} {of_sender}");
        }
    }
}
