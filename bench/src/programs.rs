//! What it costs programs to say what they do, and what it costs to read them: the rows, one file each. The writer in C is
//! `bench/programs/publish.c`, the one in Rust a child of the bench.

mod count;
mod postgres;
mod publish;
mod read;
pub(crate) mod writer;

use crate::row::Table;

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
