//! What it costs programs to say what they do, and what it costs to read them: the rows, one file each. The writer in C is
//! `bench/programs/publish.c`, the one in Rust a child of the bench.

mod count;
mod postgres;
mod publish;
mod read;
pub(crate) mod writer;

use crate::fault::{Cannot, Fault, Result};
use crate::row::Table;
use std::process::{Command, Output};

/// What programs that publish cost.
pub(crate) const PROGRAMS: Table = Table {
    part: "What programs that publish cost",
    rows: &[
        &publish::ROW,
        &count::ROW,
        &read::ROW,
        &postgres::INSTRUCTIONS,
        &postgres::CLOCKS,
        &postgres::PSQL,
        &postgres::PGBENCH,
    ],
};

/// The output of a command that succeeds.
fn output_of(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().cannot(format_args!("start {name}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(Fault::new(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}
