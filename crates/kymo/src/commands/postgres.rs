//! `kymo postgres`: the part of `kymo serve` that asks PostgreSQL servers by SQL. The guardian starts it, not a person. Every ten
//! seconds it sends numbers to the keeper, which become series, and every second the sessions' activity, while one works or
//! somebody looks. A server that does not answer delays no other server.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kymo_base::limits;
use kymo_postgres::{Server, follow};
use kymo_sys::machine;
use kymo_sys::privilege::{self, Memory, State};
use kymo_sys::talk;
use serde::{Deserialize, Serialize};

use crate::process::notices::put_line;
use crate::process::{order, sandbox};

/// The guardian's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PostgresOrder {
    /// The keeper's socket for processes that write.
    pub keeper: PathBuf,
    /// The servers to ask.
    pub servers: Vec<Server>,
}

/// Memory of the process, with a part for each server, so that one server cannot take the others' part.
fn memory(servers: usize) -> Memory {
    let servers = u64::try_from(servers).unwrap_or(u64::MAX);
    let bytes = servers.saturating_mul(limits::PG_SERVER_MEMORY_MAX);
    Memory::Mapped(bytes.saturating_add(limits::PG_MEMORY_MAX))
}

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    // A flush signal to all of kymo is meant for the recorder.
    machine::ignore_flush();
    let order: PostgresOrder = order::read("postgres")?;
    let limited = privilege::limit_memory(memory(order.servers.len()));
    limited.context("cannot limit its memory")?;
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    let words = own.words();
    let files = sandbox::enter(&[], &[]);
    let calls = sandbox::Process::Postgres.confine();
    put_line(format_args!("postgres: {words}, {files}, {calls}"));
    let threads = order.servers.into_iter().map(|server| {
        let keeper = order.keeper.clone();
        let thread = std::thread::Builder::new().name("postgres".into());
        thread.spawn(move || follow(server, keeper))
    });
    let threads: std::io::Result<Vec<_>> = threads.collect();
    for thread in threads.context("cannot start a thread")? {
        match thread.join() {
            Ok(done) => done.context("cannot start")?,
            Err(_) => anyhow::bail!("cannot go on: a thread has ended"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
