//! Costs of counting.

use super::writer::{Work, writers};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "programs-count",
    work: "a counter incremented, with its loop; ns",
    bar: "≤ 1 ns",
    aim: "0.4",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let work = Work {
        name: "counter",
        text_bytes: 0,
    };
    let count = bench.pick(500_000_000, 5_000_000);
    for writer in writers(bench)? {
        let mut rounds = Vec::new();
        for _ in 0..bench.rounds {
            rounds.push(writer.nanoseconds(work, count)?);
        }
        let nanoseconds = median(&rounds);
        outcome.figure(format!("{}: {} ns", writer.name, significant(nanoseconds)));
        outcome.check(Some(nanoseconds), 1.0, 0.4);
    }
    Ok(outcome)
}
