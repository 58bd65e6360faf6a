//! `--durable`: 64 connections, each with one request in flight; a reply means that the value is on the device. Beside
//! it, in the same run: the median fdatasync of a 4 KiB append on the same disk, and the rate without `--durable`.

use crate::bench::Bench;
use crate::daemon::side::{Side, Who, in_turns, of, present};
use crate::daemon::{describe, files};
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "rrd-durable",
    work: "`--durable`, 64 connections, one request under way on each, values a second",
    bar: "≥ 0.8 × the lower of 64 / (median fdatasync) and the rate without `--durable`",
    aim: "1 ×",
    run,
};

const CONNECTIONS: usize = 64;
const SYNCS: usize = 100;
const SYNCED_BYTES: usize = 4096;

fn run(bench: &Bench) -> Result<Outcome> {
    let turns: u64 = bench.pick(400, 10);
    let mut sides = Vec::new();
    for who in present(bench) {
        let mut side = Side::prepare(bench, who, CONNECTIONS)?;
        side.start(bench, &[])?;
        sides.push(side);
    }
    // Stock has no such option: its rate is part of the comparison without it.
    let plain = in_turns(bench.rounds, &mut sides, |side, round| {
        once(side, round as u64 * turns, turns)
    })?;
    let mut outcome = Outcome::default();
    for (who, rates) in &plain {
        outcome.figure(describe(
            &format!("{} without", who.name()),
            "values/s",
            rates,
        ));
    }
    let Some(ours) = sides.iter_mut().find(|side| side.who == Who::Ours) else {
        return Ok(outcome);
    };
    ours.start(bench, &["--durable"])?;
    let (mut rates, mut syncs) = (Vec::new(), Vec::new());
    for round in bench.rounds..bench.rounds * 2 {
        syncs.extend(sync_seconds(ours)?);
        rates.push(once(ours, round as u64 * turns, turns)?);
    }
    let floor = CONNECTIONS as f64 / median(&syncs);
    let without = of(&plain, Who::Ours).map_or(f64::INFINITY, median);
    let bound = floor.min(without);
    outcome.figure(describe("durable", "values/s", &rates));
    outcome.figure(format!(
        "median fdatasync {} ms",
        significant(median(&syncs) * 1e3)
    ));
    outcome.figure(format!(
        "{} the lower of {} and {}",
        ratio(median(&rates), bound),
        significant(floor),
        significant(without)
    ));
    outcome.check(Some(bound / median(&rates)), 1.0 / 0.8, 1.0);
    Ok(outcome)
}

/// Seconds of each sync after an append to an existing file, as a journal does it.
fn sync_seconds(side: &Side) -> Result<Vec<f64>> {
    let path = side.disk.dir().join("synced");
    let file = File::create(&path).cannot("create a file to sync")?;
    let zeros = vec![0u8; SYNCED_BYTES * SYNCS];
    file.write_all_at(&zeros, 0).cannot("fill it")?;
    file.sync_all().cannot("sync it")?;
    let bytes = [b'x'; SYNCED_BYTES];
    let mut found = Vec::new();
    for index in 0..SYNCS {
        let start = Instant::now();
        let at = (index * SYNCED_BYTES) as u64;
        file.write_all_at(&bytes, at).cannot("write it")?;
        file.sync_data().cannot("sync it")?;
        found.push(start.elapsed().as_secs_f64());
    }
    std::fs::remove_file(&path).cannot("remove it")?;
    Ok(found)
}

/// Each connection has its own file and sends its next value after the reply to the last.
fn once(side: &mut Side, from: u64, turns: u64) -> Result<f64> {
    let before = side.values_written()?;
    let connect = |_| UnixStream::connect(side.socket()).cannot("connect to the daemon");
    let mut streams = (0..CONNECTIONS)
        .map(connect)
        .collect::<Result<Vec<UnixStream>>>()?;
    let mut sent = [0u64; CONNECTIONS];
    let start = Instant::now();
    for (index, stream) in streams.iter_mut().enumerate() {
        send(stream, index, from)?;
        sent[index] = 1;
    }
    let mut answered = 0;
    while answered < turns * CONNECTIONS as u64 {
        for index in ready(&streams)? {
            hear(&mut streams[index])?;
            answered += 1;
            if sent[index] < turns {
                send(&mut streams[index], index, from + sent[index])?;
                sent[index] += 1;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    side.flush_all(before + answered)?;
    side.disk.sync()?;
    Ok(answered as f64 / seconds)
}

fn ready(streams: &[UnixStream]) -> Result<Vec<usize>> {
    let mut polled: Vec<PollFd> = streams
        .iter()
        .map(|stream| PollFd::new(stream, PollFlags::IN))
        .collect();
    poll(&mut polled, None).cannot("wait for the daemon")?;
    let ready = polled
        .iter()
        .enumerate()
        .filter(|(_, each)| !each.revents().is_empty());
    Ok(ready.map(|(index, _)| index).collect())
}

fn send(stream: &mut UnixStream, index: usize, turn: u64) -> Result<()> {
    let line = format!(
        "UPDATE {} {}\n",
        files::name(index),
        files::value(turn, index)
    );
    stream
        .write_all(line.as_bytes())
        .cannot("write to the daemon")
}

/// Reads a reply. Replies are short: one read gets all of it.
fn hear(stream: &mut UnixStream) -> Result<()> {
    let mut bytes = [0u8; 256];
    let len = stream.read(&mut bytes).cannot("read from the daemon")?;
    match bytes.starts_with(b"0 errors") && bytes[..len].ends_with(b"\n") {
        true => Ok(()),
        false => Err(Fault::because(
            "have it",
            String::from_utf8_lossy(&bytes[..len]).trim(),
        )),
    }
}
