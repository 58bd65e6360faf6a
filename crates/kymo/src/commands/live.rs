//! Live on the terminal: the sampler's records straight to a view.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use kymo_query::live::Live;
use kymo_query::source::Source as _;
use kymo_recording::queue::Queue;
use kymo_sys::machine::Signals;

use crate::options::{RecordOptions, ViewOptions};
use crate::session::{Session, Setup, spawn};

/// Runs the command.
pub fn run(options: &RecordOptions, view: &ViewOptions) -> Result<ExitCode> {
    let signals = Signals::block();
    let setup = Setup::new(options, Some(view))?;
    let session = Session::start(&setup, Arc::default())?;
    let stop = session.stopper();
    spawn("signals", move || {
        super::record::wait_for_end(&signals, &stop)
    })?;
    let shown = show(&setup, view, session.queue.clone());
    (session.stopper())();
    session.join();
    shown.map(|()| ExitCode::SUCCESS)
}

/// Shows what comes out of `queue` until it is closed.
pub fn show(setup: &Setup, _view: &ViewOptions, queue: Arc<Queue>) -> Result<()> {
    let mut live = Live::new(queue, setup.context.clone());
    while live.next().map_err(anyhow::Error::msg)?.is_some() {}
    Ok(())
}
