//! Files made by CREATE, one request and one reply each, of three small archives.

use super::requests::one_at_a_time;
use crate::bench::Bench;
use crate::daemon::files;
use crate::daemon::side::{Side, Who, in_turns, present_with_before};
use crate::fault::{Cannot, Result};
use crate::report::Outcome;
use crate::row::Row;
use std::fs;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "rrd-create",
    work: "20,500 files CREATEd (1 DS, 3 RRA of 100 rows), files a second",
    bar: "≥ stock",
    aim: "2 × stock",
    run,
};

const DEFINITION: &str =
    "-s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.1:1:100 RRA:AVERAGE:0.1:10:100 RRA:MAX:0.1:10:100";

fn run(bench: &Bench) -> Result<Outcome> {
    let count: usize = bench.pick(20_500, 500);
    one_at_a_time("files/s", || rates(bench, count))
}

fn rates(bench: &Bench, count: usize) -> Result<Vec<(Who, Vec<f64>)>> {
    let mut sides = Vec::new();
    for who in present_with_before(bench) {
        let mut side = Side::prepare(bench, who, 0)?;
        side.start(bench, &[])?;
        sides.push(side);
    }
    in_turns(bench.rounds, &mut sides, |side, round| {
        once(side, round, count)
    })
}

fn once(side: &mut Side, round: usize, count: usize) -> Result<f64> {
    let folder = side.base().join(format!("c{round}"));
    for index in (0..count).step_by(100) {
        let below = folder.join(files::name(index));
        fs::create_dir_all(below.parent().unwrap_or(&folder)).cannot("make a folder")?;
    }
    let mut wire = side.connect()?;
    let line = |index| {
        format!(
            "CREATE c{round}/{} -b {} {DEFINITION}",
            files::name(index),
            files::BIRTH
        )
    };
    let lines: Vec<String> = (0..count).map(line).collect();
    let start = Instant::now();
    for line in &lines {
        wire.ask(line)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    side.disk.sync()?;
    fs::remove_dir_all(&folder).cannot("remove the files")?;
    side.disk.sync()?;
    Ok(count as f64 / seconds)
}
