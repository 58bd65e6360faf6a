//! The cost of publishing for programs, and of reading them: the rows, one in each file. The writer in C is
//! `bench/programs/publish.c`, the one in Rust a child of the bench.

mod count;
mod postgres;
mod publish;
mod read;
pub(crate) mod writer;

use crate::row::Table;

/// The table of the costs of programs that publish.
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
