//! The listener for statsd and DogStatsD. It adds values up in memory, and each interval gives the store a sample of each series
//! in one write batch, all with one stamp.
//!
//! `intake` finds the metric of a line, `metrics` holds metrics and limits their number, `aggregate` is the arithmetic of each
//! kind, `histogram` has the buckets, `flush` writes.

mod aggregate;
mod flush;
mod histogram;
mod intake;
mod metrics;
mod part;

use std::io;

use kymo_store::Store;

use crate::common::LineSockets;
use crate::common::line_server::LineServer;
use crate::listener::{Listener, StopSignal};
use crate::log::Log;
use intake::StatsdIntake;

/// The listener.
pub struct Statsd {
    /// Seconds between two samples of a series.
    pub interval_s: u32,
    /// Where lines come.
    pub sockets: LineSockets,
    /// Messages for the administrator.
    pub log: Log,
}

impl Listener for Statsd {
    fn name(&self) -> &'static str {
        "statsd"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let name = self.name();
        let Statsd {
            interval_s,
            sockets,
            log,
        } = *self;
        LineServer::new(name, StatsdIntake::new(interval_s), sockets, log).run(store, stop)
    }
}
