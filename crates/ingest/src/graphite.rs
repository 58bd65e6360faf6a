//! The listener for Graphite's plaintext protocol: each line is a sample of a series, at its own time. `intake` finds the series
//! of a path and gives the samples of a round to the store in one write batch.

mod intake;

use std::io;

use kymo_store::Store;

use crate::common::LineSockets;
use crate::common::line_server::LineServer;
use crate::listener::{Listener, StopSignal};
use crate::log::Log;
use intake::GraphiteIntake;

/// The listener.
pub struct Graphite {
    /// Where lines come.
    pub sockets: LineSockets,
    /// Messages for the administrator.
    pub log: Log,
}

impl Listener for Graphite {
    fn name(&self) -> &'static str {
        "graphite"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let name = self.name();
        let Graphite { sockets, log } = *self;
        LineServer::new(name, GraphiteIntake::default(), sockets, log).run(store, stop)
    }
}
