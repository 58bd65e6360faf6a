//! `kymo scrape`: the part of `kymo serve` that asks targets for their metrics over HTTP, and devices over SNMP. The guardian starts it, not a
//! person. Samples go to the keeper.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kymo_scrape::{ScrapeOrder, ScrapeUrl, memory_bytes, scrape};
use kymo_sys::machine;
use kymo_sys::privilege::{self, Memory, State};
use kymo_sys::talk;

use crate::process::notices::put_line;
use crate::process::order;
use crate::process::sandbox::{self, NAME_FILES, NAME_PORT};

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    // A flush signal to all of kymo is meant for the recorder.
    machine::ignore_flush();
    let order: ScrapeOrder = order::read("scrape")?;
    let limited = privilege::limit_memory(Memory::Own(memory_bytes(&order)));
    limited.context("cannot limit its memory")?;
    // A target takes a connection.
    machine::raise_open_files();
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    let words = own.words();
    let read = NAME_FILES.map(PathBuf::from);
    let files = sandbox::enter_with_ports(&read, &[], &ports(&order));
    let calls = sandbox::Process::Scraper.confine();
    put_line(format_args!("scrape: {words}, {files}, {calls}"));
    scrape(order).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// Ports of all targets, and of name services.
fn ports(order: &ScrapeOrder) -> Vec<u16> {
    let urls = order.jobs.iter().flat_map(|job| &job.urls);
    let urls = urls.filter_map(|url| ScrapeUrl::parse(url).ok());
    let ports = urls.map(|url| url.port()).chain([NAME_PORT]);
    ports.collect::<BTreeSet<u16>>().into_iter().collect()
}
