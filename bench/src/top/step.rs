//! `kymo top` on a ring of 1 GiB: from the key that goes to a random sample to its picture, and from an arrow key to that of the
//! next sample. Strips of the day are read aside and drawn later.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::why::made_ring;
use crate::bench::Bench;
use crate::child::output_of;
use crate::family::Family;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, median, significant, spread};
use crate::report::Outcome;
use crate::row::Row;
use crate::serve::forget;
use crate::world::Chance;

pub(super) const ROW: Row = Row {
    name: "top-step",
    work: "a ring of 1 GiB with a sample and a scan of 400 processes each second, 80 × 24: from a key to the picture of a random sample, with its pages dropped and not, and of the next sample; median and worst, ms",
    bar: "≤ 25 ms",
    aim: "10 ms",
    run,
};

/// Days that are recorded: more than the ring has room for.
const DAYS: &str = "7";
const DAYS_QUICK: &str = "1";
const MIB: &str = "1024";
/// The last minutes that a full ring has for certain.
const MINUTES: f64 = 7000.0;
const MINUTES_QUICK: f64 = 1400.0;
/// Silence after which a picture is whole, and after which all is.
const PICTURE: Duration = Duration::from_millis(5);
const ALL: Duration = Duration::from_millis(1500);
/// Longest wait for a picture.
const LIMIT: Duration = Duration::from_secs(20);
const RIGHT: &[u8] = b"\x1b[C";

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let dir = bench.new_dir("gib")?;
    let days = bench.pick(DAYS, DAYS_QUICK);
    let ring = made_ring(bench, &dir, &["--days", days, "--mib", MIB])?;
    outcome.figure(bytes(forget(&dir)? as f64));
    let line = format!(
        "stty cols 80 rows 24; exec {} top {}",
        kymo.display(),
        ring.display()
    );
    let mut session = Session::start(bench, &line)?;
    let mut chance = Chance::new(25);
    let minutes = bench.pick(MINUTES, MINUTES_QUICK);
    let [mut cold, mut warm, mut next] = [const { Vec::new() }; 3];
    for round in 0..bench.pick(80, 6) {
        let seconds = 60.0 * (2.0 + chance.part() * (minutes - 2.0));
        session.press(format!("b-{seconds:.0}s").as_bytes(), PICTURE)?;
        let is_cold = round % 2 == 0;
        if is_cold {
            forget(&dir)?;
        }
        let took = session.press(b"\r", PICTURE)?;
        session.press(b"", ALL)?;
        match is_cold {
            true => cold.push(took),
            false => warm.push(took),
        }
        next.push(session.press(RIGHT, PICTURE)?);
    }
    session.family.end()?;
    for (name, all) in [
        ("pages dropped", &cold),
        ("in memory", &warm),
        ("the next sample", &next),
    ] {
        let [middle, worst] = [median(all), spread(all).1].map(significant);
        outcome.figure(format!("{name} {middle} ms, worst {worst} ms"));
        outcome.check(Some(median(all)), 25.0, 10.0);
        outcome.check(Some(spread(all).1), 25.0, 25.0);
    }
    Ok(outcome)
}

/// A program on a terminal, its keys, and its pictures.
struct Session {
    family: Family,
    keys: File,
    pictures: ChildStdout,
}

impl Session {
    fn start(bench: &Bench, line: &str) -> Result<Session> {
        let keys = bench.new_path("keys");
        output_of(Command::new("mkfifo").arg(&keys))?;
        let mut shell = Command::new("sh");
        let script = "exec script -qefc \"$1\" /dev/null <\"$2\"";
        shell.args(["-c", script, "sh", line]).arg(&keys);
        let shell = shell.env("TERM", "xterm-256color").stdout(Stdio::piped());
        let mut family = Family::start(bench, shell)?;
        let pictures = family.stdout();
        let pictures = pictures.ok_or_else(|| Fault::new("a terminal without an output"))?;
        let keys = OpenOptions::new().write(true).open(&keys);
        let keys = keys.cannot("type")?;
        let mut session = Session {
            family,
            keys,
            pictures,
        };
        session.press(b"", ALL)?;
        Ok(session)
    }

    /// Presses keys; milliseconds to the last byte that comes before a silence of this length.
    fn press(&mut self, keys: &[u8], silence: Duration) -> Result<f64> {
        self.keys.write_all(keys).cannot("type")?;
        let begun = Instant::now();
        let (mut last, mut wait) = (0.0, if keys.is_empty() { silence } else { LIMIT });
        let mut picture = [0; 1 << 16];
        loop {
            let limit = Timespec::try_from(wait).cannot("wait so long")?;
            let mut files = [PollFd::new(&self.pictures, PollFlags::IN)];
            let ready = poll(&mut files, Some(&limit)).cannot("wait for a picture")?;
            if ready == 0 && wait == silence {
                return Ok(last);
            }
            if ready == 0 || self.pictures.read(&mut picture).cannot("read a picture")? == 0 {
                let complaint = self.family.complaint();
                return Err(Fault::new(format!("no picture: {complaint}")));
            }
            last = begun.elapsed().as_secs_f64() * 1e3;
            wait = silence;
        }
    }
}
