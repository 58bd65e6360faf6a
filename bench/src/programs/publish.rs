//! The cost of a command for the program that publishes it.

use super::writer::{Work, writers};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "programs-publish",
    work: "a command published: begin with 9 bytes, 6 counters, a value of a histogram, end; ns, instructions by callgrind, system calls of 50,000 by strace",
    bar: "≤ 25 ns, ≤ 90 instructions (of kymo.h), 0 system calls",
    aim: "13 ns, 60",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let count = bench.pick(50_000_000, 500_000);
    for writer in writers(bench)? {
        for text_bytes in [9, 100, 1000] {
            let work = Work {
                name: "command",
                text_bytes,
            };
            let nothing = Work {
                name: "nothing",
                text_bytes,
            };
            let mut rounds = Vec::new();
            for _ in 0..bench.rounds {
                let loops = writer.nanoseconds(nothing, count)?;
                rounds.push(writer.nanoseconds(work, count)? - loops);
            }
            let nanoseconds = median(&rounds);
            let instructions = writer.instructions(work)? - writer.instructions(nothing)?;
            let calls = writer.system_calls(work)?;
            outcome.figure(format!(
                "{}, {text_bytes} bytes: {} ns, {} instructions, {calls} system calls",
                writer.name,
                significant(nanoseconds),
                significant(instructions)
            ));
            if text_bytes == 9 {
                outcome.check(Some(nanoseconds), 25.0, 13.0);
                outcome.check(Some(calls), 0.0, 0.0);
                // The bar is a share of a statement's
                // instructions in a server that is written in C.
                let of_c = Some(instructions).filter(|_| writer.name == "C");
                outcome.check(of_c, 90.0, 60.0);
            }
        }
    }
    Ok(outcome)
}
