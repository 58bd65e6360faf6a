//! Sinks store the values of targets: with the keeper of `kymo serve`, in .rrd files, in MRTG's own logs, or with an rrdcached.
//!
//! A sink gets the series of a configuration and then batches of values. As in MRTG, the first value of a series creates its file
//! or changes its definition. A problem with one target goes into the [`Report`] and affects no other target.

mod backlog;
mod cached;
mod files;
mod keeper;
mod leftovers;
mod logs;
mod owner;
mod rates;
mod report;
mod series;

pub use cached::Cached;
pub use files::Files;
#[cfg(any(test, feature = "testing"))]
pub use keeper::fuzz_keeper;
pub use keeper::{DeviceReading, Keeper, KeeperConnection};
pub use logs::{Logs, TargetClone, clone_folders};
pub use report::{Counts, Rate, Refusal, Report};
pub use series::{
    Archives, COLUMNS, Home, Kind, Layout, Layouts, POINTS_KEPT_S, Series, Spans, heartbeat_s,
    rrd_path, step_s,
};

use crate::batch::Batch;
use kymo_wire::keeper::Event;
use std::io;

/// A place where values are stored.
pub enum Sink {
    /// .rrd files.
    Files(Files),
    /// MRTG's own logs.
    Logs(Logs),
    /// The keeper.
    Keeper(Keeper),
    /// An rrdcached.
    Cached(Cached),
}

impl Sink {
    /// Sets the series after the configuration was read. A batch's `target` is an index into `series`. Rates of the targets in
    /// `watched` are reported. Waiting values of series that no longer exist are dropped.
    pub fn begin(&mut self, series: Vec<Series>, watched: &[u32]) {
        match self {
            Sink::Files(sink) => sink.begin(series, watched),
            Sink::Logs(sink) => sink.begin(series, watched),
            Sink::Keeper(sink) => sink.begin(series, watched),
            Sink::Cached(sink) => sink.begin(series, watched),
        }
    }

    /// Stores values, those first that wait. Appends to `report`, which the caller clears. The batch may be empty.
    pub fn write(&mut self, batch: &Batch, report: &mut Report) {
        match self {
            Sink::Files(sink) => sink.write(batch, report),
            Sink::Logs(sink) => sink.write(batch, report),
            Sink::Keeper(sink) => sink.write(batch, report),
            Sink::Cached(sink) => sink.write(batch, report),
        }
    }

    /// Stores statistics of devices in a cycle of `interval_s` seconds; only the keeper does.
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

    /// Stores events of devices; only the keeper does.
    pub fn write_events(&mut self, events: &[Event], report: &mut Report) {
        if let Sink::Keeper(sink) = self {
            sink.write_events(events, report);
        }
    }

    /// Counters since the sink was made.
    pub fn counts(&self) -> Counts {
        match self {
            Sink::Files(sink) => sink.counts(),
            Sink::Logs(sink) => sink.counts(),
            Sink::Keeper(sink) => sink.counts(),
            Sink::Cached(sink) => sink.counts(),
        }
    }
}

/// Passes on the error of a receiver that did not answer in time: on a new connection it would be waited for as long again.
/// Other errors may be those of a receiver that has ended.
fn give_up_if_silent(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(error),
        _ => Ok(()),
    }
}

/// Converts a target's number to an index into the list of series.
fn index(target: u32) -> usize {
    target as usize
}
