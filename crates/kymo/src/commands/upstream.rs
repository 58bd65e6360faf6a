//! `kymo upstream`: the part of `kymo serve` that asks another engine for series. The guardian starts it, not a person. The hub
//! and commands ask it on the guardian's socket.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kymo_scrape::ScrapeUrl;
use kymo_sys::machine;
use kymo_sys::privilege::{self, Memory, State};
use kymo_sys::talk;
use kymo_upstream::{MEMORY_BYTES, UpstreamOrder, serve};

use crate::process::notices::put_line;
use crate::process::order;
use crate::process::sandbox::{self, NAME_FILES, NAME_PORT};

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    // A flush signal to all of kymo is meant for the recorder.
    machine::ignore_flush();
    let order: UpstreamOrder = order::read("upstream")?;
    let limited = privilege::limit_memory(Memory::Own(MEMORY_BYTES));
    limited.context("cannot limit its memory")?;
    let listener = privilege::inherited(order.listener);
    let listener = listener.context("cannot take over a socket of kymo serve")?;
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    let words = own.words();
    let read = NAME_FILES.map(PathBuf::from);
    let url = ScrapeUrl::of_server(&order.target.url).map_err(anyhow::Error::msg)?;
    let files = sandbox::enter_with_ports(&read, &[], &[url.port(), NAME_PORT]);
    let calls = sandbox::Process::Upstream.confine();
    put_line(format_args!("upstream: {words}, {files}, {calls}"));
    serve(UnixListener::from(listener), &order.target).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}
