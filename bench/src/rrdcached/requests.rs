//! One request, one reply, on one connection: as collectd sends its values.

use super::batch::judge;
use super::files;
use super::side::{Side, in_turns, present};
use crate::bench::Bench;
use crate::fault::Result;
use crate::report::Outcome;
use crate::row::Row;
use std::time::Instant;

pub const ROW: Row = Row {
    name: "rrd-requests",
    work: "one request, one reply, one connection, journal on, 1,000 files, requests a second",
    bar: "≥ stock",
    aim: "2 × stock",
    run,
};

const FILES: usize = 1_000;

fn run(bench: &Bench) -> Result<Outcome> {
    let turns: u64 = bench.pick(100, 4);
    let mut sides = Vec::new();
    for who in present(bench) {
        let mut side = Side::prepare(bench, who, FILES)?;
        side.start(bench, &[])?;
        sides.push(side);
    }
    // The first round opens the files.
    let mut found = in_turns(bench.rounds + 1, &mut sides, |side, round| {
        once(side, round as u64 * turns, turns)
    })?;
    for (_, rates) in &mut found {
        rates.remove(0);
    }
    Ok(judge(&found, "requests/s", &[]))
}

fn once(side: &mut Side, from: u64, turns: u64) -> Result<f64> {
    let mut wire = side.connect()?;
    let before = side.values_written()?;
    let mut lines = Vec::new();
    for turn in from..from + turns {
        files::round(turn, FILES, &mut lines);
    }
    let start = Instant::now();
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        wire.send(line)?;
        wire.reply()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let values = turns * FILES as u64;
    side.flush_all(before + values)?;
    side.disk.sync()?;
    Ok(values as f64 / seconds)
}
