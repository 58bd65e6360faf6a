//! Like `drum-real`, with collectd between: its own rrdcached plugin makes the files and sends the values, which the
//! bench sends to its unix socket. Measured from the moment at which all files exist.

use super::real::{compare, options, paced};
use super::series::{Crowd, Stamps};
use crate::bench::{Bench, on_path};
use crate::child::Running;
use crate::daemon::cost::{Cost, Mark};
use crate::daemon::files;
use crate::daemon::side::{Side, Who};
use crate::daemon::wire::Wire;
use crate::fault::{Cannot, Fault, Result};
use crate::progress::Progress;
use crate::report::Outcome;
use crate::row::Row;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "drum-collectd",
    work: "as drum-real, the values sent by collectd's rrdcached plugin, one request each: CPU share, writes",
    bar: "≤ 2 % of a core, ≤ 3 writes a second",
    aim: "half",
    run,
};

/// Requests to collectd in flight at once.
const WINDOW: usize = 50;
const LIMIT: Duration = Duration::from_secs(600);
const AGAIN: Duration = Duration::from_millis(20);

fn run(bench: &Bench) -> Result<Outcome> {
    if on_path("collectd").is_none() {
        return Ok(Outcome::new(vec!["skipped: collectd is not here".into()]));
    }
    let count = bench.series(20_500, 500);
    compare(bench, 2.0, |who| once(bench, who, count))
}

fn once(bench: &Bench, who: Who, count: usize) -> Result<Cost> {
    let mut side = Side::with_room(bench, who, files::mb(count))?;
    side.start(bench, options(who))?;
    let mut source = Source::start(bench, &side, count)?;
    source.send(0..count)?;
    await_updates(&side, count as u64)?;
    let mark = Mark::now(&side)?;
    let mut steps = 0;
    paced(
        bench,
        &format!("collectd, {}", who.name()),
        count,
        |step, slice| {
            steps = step + 1;
            source.send(slice)
        },
    )?;
    await_updates(&side, (steps + 1) * count as u64)?;
    drop(source);
    mark.to_the_end(&mut side)
}

/// collectd, and the bench's connection to it.
struct Source {
    // Ended at drop, before the daemon to which it sends.
    _collectd: Running,
    wire: Wire,
    crowd: Crowd,
}

impl Source {
    fn start(bench: &Bench, side: &Side, count: usize) -> Result<Source> {
        let dir = bench.new_dir("collectd")?;
        let settings = dir.join("collectd.conf");
        fs::write(&settings, text(&dir, side)).cannot("write collectd's settings")?;
        let mut command = Command::new("collectd");
        command.arg("-f").arg("-C").arg(&settings);
        let collectd = Running::start(bench, command.stdout(Stdio::null()))?;
        let until = Instant::now() + LIMIT;
        let wire = loop {
            match Wire::connect(&dir.join("socket")) {
                Ok(wire) => break wire,
                Err(fault) if Instant::now() > until || !collectd.is_running()? => {
                    return Err(fault);
                }
                Err(_) => sleep(AGAIN),
            }
        };
        Ok(Source {
            _collectd: collectd,
            wire,
            crowd: Crowd::new(count, Stamps::Unaligned),
        })
    }

    /// Sends a value for each of some series, stamped by collectd.
    fn send(&mut self, some: Range<usize>) -> Result<()> {
        let end = some.end;
        for from in some.step_by(WINDOW) {
            let mut lines = Vec::new();
            for index in from..end.min(from + WINDOW) {
                let name = format!("bench/drum-{:03}/gauge-{:02}", index / 100, index % 100);
                lines.extend_from_slice(format!("PUTVAL {name} interval=10 N:").as_bytes());
                self.crowd.value(index, &mut lines);
                lines.push(b'\n');
            }
            self.wire.at_once(&lines)?;
        }
        Ok(())
    }
}

fn text(dir: &Path, side: &Side) -> String {
    let (dir, base) = (dir.display(), side.base());
    let (base, daemon) = (base.display(), side.socket().display());
    format!(
        "Hostname \"bench\"\nFQDNLookup false\nBaseDir \"{dir}\"\nPIDFile \"{dir}/pid\"\nInterval 10\n\
         LoadPlugin unixsock\nLoadPlugin rrdcached\n\
         <Plugin unixsock>\n SocketFile \"{dir}/socket\"\n SocketPerms \"0600\"\n</Plugin>\n\
         <Plugin rrdcached>\n DaemonAddress \"unix:{daemon}\"\n DataDir \"{base}\"\n CollectStatistics false\n\
         </Plugin>\n"
    )
}

/// Waits until the daemon has received `count` updates.
fn await_updates(side: &Side, count: u64) -> Result<()> {
    let until = Instant::now() + LIMIT;
    let mut progress = Progress::of("updates that came through collectd");
    loop {
        let came = side.statistic("UpdatesReceived")?;
        if came >= count {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(Fault::new(format!("{came} of {count} values came")));
        }
        progress.at(came, count);
        sleep(AGAIN);
    }
}
