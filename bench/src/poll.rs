//! The cost of polling: the rows, one in each file, beside MRTG as Debian packages it, on one farm of agents and in one run.
//! The agents are a thread of the bench, so that their CPU counts for no side; the floors are a bare SNMP loop and a bare
//! loop over the files, children of the bench.

pub(crate) mod ask;
mod cron;
mod cycle;
mod dead;
mod files;
mod latency;
mod many;
mod missing;
mod native;
mod pages;
mod poller;
pub(crate) mod site;
mod start;
pub(crate) mod touch;
mod truth;

use crate::row::Table;

/// The table of polling's costs.
pub(crate) const POLLING: Table = Table {
    part: "What polling costs",
    rows: &[
        &cycle::ROW,
        &files::ROW,
        &cron::ROW,
        &native::ROW,
        &pages::ROW,
        &latency::ROW,
        &dead::ROW,
        &missing::ROW,
        &start::ROW,
        &many::ROW,
        &truth::ROW,
    ],
};

/// Devices and targets of the case.
const DEVICES: u32 = 32;
const TARGETS: u32 = 3164;
/// Devices and targets of a quick row.
const DEVICES_QUICK: u32 = 4;
const TARGETS_QUICK: u32 = 80;
/// Seconds of a cycle where cycles are counted: longer than one of MRTG's.
const INTERVAL_S: u64 = 10;
