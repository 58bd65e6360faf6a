//! The listener for Graphite's plaintext protocol: each line is a sample of a series, with its own time. `intake` finds the
//! series of a path and gives the samples of a round to the store in one write batch.

mod intake;

use std::io;

use kymo_store::Store;

use crate::common::line_server::LineServer;
use crate::common::{LineListener, LineSockets};
use crate::listener::{Listener, StopSignal};
use crate::log::Log;
use intake::GraphiteIntake;

/// The declaration of the listener.
pub(crate) const DECLARATION: LineListener = LineListener {
    name: "graphite",
    title: "Graphite",
    example: "127.0.0.1:2003",
    takes: "lines of Graphite's plaintext protocol",
    settings: &[],
    start: |_, sockets, log| Box::new(Graphite { sockets, log }),
};

/// The listener.
struct Graphite {
    sockets: LineSockets,
    log: Log,
}

impl Listener for Graphite {
    fn name(&self) -> &'static str {
        DECLARATION.name
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let name = self.name();
        let Graphite { sockets, log } = *self;
        LineServer::new(name, GraphiteIntake::default(), sockets, log).run(store, stop)
    }
}
