//! `kymo forward`: the part of `kymo serve` that sends values to receivers. The guardian starts it, not a person. Values
//! come from the keeper's tail.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kymo_forward::{ForwardOrder, ForwardWay, RrdcachedAddress, forward, memory_bytes};
use kymo_scrape::ScrapeUrl;
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
    let order: ForwardOrder = order::read("forward")?;
    let limited = privilege::limit_memory(Memory::Own(memory_bytes(order.targets.len())));
    limited.context("cannot limit its memory")?;
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    let words = own.words();
    let read = NAME_FILES.map(PathBuf::from);
    let files = sandbox::enter_with_ports(&read, &[], &ports(&order));
    let calls = sandbox::Process::Forwarder.confine();
    put_line(format_args!("forward: {words}, {files}, {calls}"));
    forward(order).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// Ports for connections to receivers, and to name services. Datagrams need none.
fn ports(order: &ForwardOrder) -> Vec<u16> {
    let port = |address: &RrdcachedAddress| match address {
        RrdcachedAddress::Tcp(address) => Some(address.port),
        RrdcachedAddress::Unix(_) => None,
    };
    let ports = order.targets.iter().flat_map(|target| match &target.way {
        ForwardWay::RemoteWrite(way) => {
            let url = ScrapeUrl::of_server(&way.url);
            [url.ok().map(|url| url.port()), None]
        }
        ForwardWay::Rrdcached(way) => [port(&way.address), way.own.as_ref().and_then(port)],
        ForwardWay::Collectd(_) => [None, None],
    });
    let ports = ports.flatten().chain([NAME_PORT]);
    ports.collect::<BTreeSet<u16>>().into_iter().collect()
}
