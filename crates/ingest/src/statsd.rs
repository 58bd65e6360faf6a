//! The listener for statsd and DogStatsD. It adds values up in memory. In each interval it gives the store a sample of each
//! series, in one write batch with one time.
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

use crate::common::line_server::LineServer;
use crate::common::{LineListener, LineSockets, NumberSetting};
use crate::listener::{Listener, StopSignal};
use crate::log::Log;
use intake::StatsdIntake;

/// The declaration of the listener.
pub(crate) const DECLARATION: LineListener = LineListener {
    name: "statsd",
    title: "statsd",
    example: "127.0.0.1:8125",
    takes: "lines of statsd and DogStatsD",
    settings: &[NumberSetting {
        name: "interval",
        help: "Seconds between two samples of a series, from 1 to 3600.",
        unit: "seconds",
        default: 10,
        range: (1, 3600),
    }],
    start: |settings, sockets, log| {
        Box::new(Statsd {
            interval_s: settings.value(0),
            sockets,
            log,
        })
    },
};

/// The listener.
struct Statsd {
    /// Seconds between two samples of a series.
    interval_s: u32,
    sockets: LineSockets,
    log: Log,
}

impl Listener for Statsd {
    fn name(&self) -> &'static str {
        DECLARATION.name
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
