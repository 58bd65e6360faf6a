//! The cost of a value in collectd's form: one request, one reply, each at its own moment. On one CPU, so that the work
//! of the daemons is counted, not the kernel's waking of one CPU by another.

use super::intake::{Bars, Form, Intake, compare};
use super::series::Stamps;
use crate::bench::Bench;
use crate::daemon::side::on_one_cpu;
use crate::fault::Result;
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "drum-requests",
    work: "a value a request, `%.6f` stamps off the step, one connection, one CPU, 20,500 files × 2,400 steps, a sync \
           after each; stock × 300 with FLUSHALL each 30, and tuned (`-w 21600 -z 21600 -f 43200 -F`) to write once, \
           at its end: bytes and writes of the device, CPU",
    bar: "≤ 48 bytes, 1/2 of tuned stock's",
    aim: "36",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let intake = Intake {
        form: Form::Requests,
        stamps: Stamps::Unaligned,
        files: bench.series(20_500, 500),
        steps: bench.steps(2_400, 200),
    };
    on_one_cpu(|| {
        compare(
            bench,
            &intake,
            Bars {
                bytes: 48.0,
                aim: 36.0,
                of_all: false,
            },
        )
    })
}
