//! Time from the start of the program to its first recorded sample: kymo and the
//! floor report it on a descriptor, collectl's first stamp is read from its file.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::collectl_raw;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, significant, spread};
use crate::peer::{Peer, Take, present};
use crate::report::Outcome;
use crate::ticks::wall_ns;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "start",
    work: "start to first sample",
    bar: "≤ 20 ms",
    aim: "5 ms",
    run,
};

const PEERS: [Peer; 3] = [Peer::Floor, Peer::Kymo, Peer::Collectl];
const COLLECTL_ROUNDS: usize = 3;
const LIMIT: Duration = Duration::from_secs(20);

fn run(bench: &Bench) -> Result<Outcome> {
    let rounds = bench.pick(20, 5);
    let mut outcome = Outcome::default();
    for peer in present(bench, &PEERS) {
        let times = match peer {
            Peer::Collectl => times(COLLECTL_ROUNDS, || first_stamp_ms(bench))?,
            _ => times(rounds, || first_word_ms(bench, peer))?,
        };
        let (middle, (low, high)) = (median(&times), spread(&times));
        let [middle_text, low, high] = [middle, low, high].map(significant);
        outcome.figure(format!("{} {middle_text} ms [{low}-{high}]", peer.name()));
        if peer == Peer::Kymo {
            outcome.check(Some(middle), 20.0, 5.0);
        }
    }
    Ok(outcome)
}

fn times(rounds: usize, mut once: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    (0..rounds).map(|_| once()).collect()
}

/// Milliseconds until the first line on standard
/// output, which acknowledges the first sample.
fn first_word_ms(bench: &Bench, peer: Peer) -> Result<f64> {
    let take = Take {
        letters: "cdnm",
        // With an interval, the first sample would wait for its beat.
        interval: "0",
        count: 10,
    };
    let mut command = peer.command(bench, take, &bench.new_dir("start")?)?;
    match peer {
        Peer::Kymo => command.args(["--ack-fd", "1"]),
        _ => command.arg("--ack"),
    };
    let mut running = Running::start(bench, command.stdout(Stdio::piped()))?;
    let pipe = running
        .stdout()
        .ok_or_else(|| Fault::new("a pipe is missing"))?;
    let mut word = String::new();
    BufReader::new(pipe)
        .read_line(&mut word)
        .cannot("read the first word")?;
    let since = running.started().elapsed();
    match word.is_empty() {
        false => Ok(since.as_secs_f64() * 1e3),
        true => match running.finish(LIMIT) {
            Err(fault) => Err(fault),
            Ok(_) => Err(Fault::new(format!("{} acknowledged nothing", peer.name()))),
        },
    }
}

fn first_stamp_ms(bench: &Bench) -> Result<f64> {
    let take = Take {
        letters: "cdnm",
        interval: "0",
        count: 1,
    };
    let dir = bench.new_dir("start")?;
    let mut command = Peer::Collectl.command(bench, take, &dir)?;
    let started = wall_ns() as f64 / 1e9;
    Running::start(bench, &mut command)?.finish(LIMIT)?;
    let stamps = collectl_raw::stamps(&collectl_raw::find(&dir)?)?;
    match stamps.first() {
        Some(first) => Ok((first - started) * 1e3),
        None => Err(Fault::new("collectl took no sample")),
    }
}
