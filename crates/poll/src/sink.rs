//! Where the values of targets are kept: with the keeper of `kymo serve`, in .rrd files, or with an rrdcached.
//!
//! A sink learns the series of a configuration, and then gets batches of values. It makes and changes what a series needs when its
//! first value comes, as MRTG does. What goes wrong with one target stands in a [`Report`] and touches no other.

mod backlog;
mod cached;
mod files;
mod keeper;
mod rates;
mod report;
mod series;

pub use cached::Cached;
pub use files::Files;
#[cfg(any(test, feature = "testing"))]
pub use keeper::fuzz_keeper;
pub use keeper::{DeviceReading, Keeper, KeeperConnection};
pub use report::{Counts, Rate, Refusal, Report};
pub use series::{
    Archives, COLUMNS, Home, Kind, Layout, Layouts, POINTS_KEPT_S, Series, Spans, heartbeat_s,
    step_s,
};

use crate::batch::Batch;
use kymo_wire::keeper::Event;

/// Where values go.
pub enum Sink {
    /// .rrd files.
    Files(Files),
    /// The keeper.
    Keeper(Keeper),
    /// An rrdcached.
    Cached(Cached),
}

impl Sink {
    /// The series of a configuration, which has been read or read again: a batch's `target` is an index into them. Of targets in
    /// `watched` the rates are reported. Values of series that are there no more, and still wait, are forgotten.
    pub fn begin(&mut self, series: Vec<Series>, watched: &[u32]) {
        match self {
            Sink::Files(sink) => sink.begin(series, watched),
            Sink::Keeper(sink) => sink.begin(series, watched),
            Sink::Cached(sink) => sink.begin(series, watched),
        }
    }

    /// Keeps values, those that waited first. Adds to `report`, which the caller clears. A batch may be empty.
    pub fn write(&mut self, batch: &Batch, report: &mut Report) {
        match self {
            Sink::Files(sink) => sink.write(batch, report),
            Sink::Keeper(sink) => sink.write(batch, report),
            Sink::Cached(sink) => sink.write(batch, report),
        }
    }

    /// Keeps how devices did in a cycle of `interval_s`, where there is a place for that: with the keeper.
    pub fn write_devices(
        &mut self,
        readings: &[DeviceReading],
        interval_s: u32,
        report: &mut Report,
    ) {
        if let Sink::Keeper(sink) = self {
            sink.write_devices(readings, interval_s, report);
        }
    }

    /// Keeps what happened to devices, where there is a place for that: with the keeper.
    pub fn write_events(&mut self, events: &[Event], report: &mut Report) {
        if let Sink::Keeper(sink) = self {
            sink.write_events(events, report);
        }
    }

    /// What was done since it began.
    pub fn counts(&self) -> Counts {
        match self {
            Sink::Files(sink) => sink.counts(),
            Sink::Keeper(sink) => sink.counts(),
            Sink::Cached(sink) => sink.counts(),
        }
    }
}

/// A target's place in the list of series.
fn index(target: u32) -> usize {
    target as usize
}
