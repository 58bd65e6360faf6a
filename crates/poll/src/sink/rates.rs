//! Computes the rates for thresholds where another process stores the values. It uses rrdtool's arithmetic on an archive of one
//! point for each target, so that thresholds see the same rates with every sink.

use super::{Rate, Series, index};
use crate::batch::seconds;
use kymo_rrd::cf::Cf;
use kymo_rrd::create::{Create, create};
use kymo_rrd::update::{Now, Scratch, Update, Written, update_with};
use kymo_rrd::{Header, Rrd};
use std::collections::HashMap;

/// Seconds from the start of a new file to its first value, as in MRTG.
pub(super) const BEGINS_BEFORE_S: i64 = 10;

/// The unfinished points of watched targets.
#[derive(Default)]
pub(super) struct Rates {
    watched: HashMap<u32, Watched>,
    scratch: Scratch,
    written: Vec<Written>,
}

/// A watched target.
struct Watched {
    name: Vec<u8>,
    sources: [Vec<u8>; 2],
    step_s: u32,
    /// Made by the first value.
    rrd: Option<Rrd>,
}

impl Rates {
    /// Replaces the watched targets; unchanged ones keep their state.
    pub(super) fn begin(&mut self, series: &[Series], watched: &[u32]) {
        let mut before: HashMap<Vec<u8>, Watched> = HashMap::new();
        for (_, watched) in self.watched.drain() {
            before.insert(watched.name.clone(), watched);
        }
        for &target in watched {
            let Some(series) = series.get(index(target)) else {
                continue;
            };
            let new = Watched {
                name: series.name.clone(),
                sources: series.sources(),
                step_s: series.step_s,
                rrd: None,
            };
            let same = before
                .remove(&series.name)
                .filter(|old| (&old.sources, old.step_s) == (&new.sources, new.step_s));
            self.watched.insert(target, same.unwrap_or(new));
        }
    }

    /// Adds a value; returns the point that it completes if its target is watched. A value that rrdtool refuses completes none.
    pub(super) fn add(&mut self, target: u32, argument: &[u8]) -> Option<Rate> {
        let watched = self.watched.get_mut(&target)?;
        if watched.rrd.is_none() {
            watched.rrd = blank(watched, seconds(argument));
        }
        let Rrd { header, cells } = watched.rrd.as_mut()?;
        self.written.clear();
        let seen = Some(&mut self.written);
        let done = update_with(&mut self.scratch, header, cells, &HOW, &[argument], seen);
        done.ok()?;
        completed(target, header, &self.written)
    }
}

fn blank(watched: &Watched, first_s: i64) -> Option<Rrd> {
    let [taken, sent] = &watched.sources;
    let request = Create {
        file_name: b"",
        step: watched.step_s.into(),
        start: Some(first_s.saturating_sub(BEGINS_BEFORE_S)),
        definitions: &[taken, sent, b"RRA:AVERAGE:0.5:1:1"],
    };
    create(&request, first_s, &mut 1, None, &[]).ok()
}

/// Options for the arguments of a batch, whose stamps are numbers.
pub(super) const HOW: Update<'static> = Update {
    file_name: b"",
    template: None,
    skip_past: false,
    now: Now { sec: 0, usec: 0 },
    at_time: &|_| Err(String::new()),
};

/// The point that an update completed, found as MRTG finds it in the output of updatev.
pub(super) fn completed(target: u32, header: &Header, written: &[Written]) -> Option<Rate> {
    let step = i64::try_from(header.pdp_step).ok()?;
    let time_s = header.last_up - header.last_up.rem_euclid(step);
    let mut rate = None;
    for cell in written.iter().filter(|cell| cell.time == time_s) {
        let archive = header.rra.get(cell.archive);
        let Some(archive) = archive.filter(|archive| archive.pdp_cnt == 1) else {
            continue;
        };
        let rate = rate.get_or_insert(Rate {
            target,
            time_s,
            rates: [f64::NAN; 2],
            failures: [f64::NAN; 2],
        });
        let place = match Cf::of(archive.cf()) {
            Some(Cf::Average) => &mut rate.rates,
            Some(Cf::Failures) => &mut rate.failures,
            _ => continue,
        };
        if let Some(place) = place.get_mut(cell.source) {
            *place = cell.value;
        }
    }
    rate
}
