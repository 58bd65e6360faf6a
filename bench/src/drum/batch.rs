//! The cost of a value by BATCH, stamps on
//! the step, until it is at its final place.

use super::intake::{Bars, Form, Intake, compare};
use super::series::Stamps;
use crate::bench::Bench;
use crate::fault::Result;
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "drum-batch",
    work: "a value by BATCH, stamps on the step, 20,500 files × 2,400 steps, a sync after each; stock × 300 with \
           FLUSHALL each 30, and tuned (`-w 21600 -z 21600 -f 43200 -F`) to write once, at its end: bytes and writes \
           of the device, CPU",
    bar: "≤ 28 bytes, 1/2 of tuned stock's; CPU ≤ 1/4 of stock; ≤ 0.5 writes a 1,000",
    aim: "20",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let intake = Intake {
        form: Form::Batch,
        stamps: Stamps::Aligned,
        files: bench.series(20_500, 500),
        steps: bench.steps(2_400, 200),
    };
    compare(
        bench,
        &intake,
        Bars {
            bytes: 28.0,
            aim: 20.0,
            of_all: true,
        },
    )
}
