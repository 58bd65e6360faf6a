//! Power cuts under `kymo rrdcached`, on a file system that loses unsynced bytes (`kymo_tests::power_disk`): acknowledged
//! values are there after a start without repair, and no number is wrong. The oracle is stock's `rrdtool update` with
//! the values that came back.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::power_disk::{Faults, PowerDisk};
use kymo_tests::rrd_client::{Client, Reply};
use kymo_tests::rrd_daemon::{Daemon, Side};
use kymo_tests::rrd_stream::Random;
use kymo_tests::rrdtool::{Pipe, rrdtool};
use kymo_tests::{Scratch, run};

const FILES: usize = 5;
const BIRTH: u64 = 1_000_000_000;
const DEFINITION: &str = "-b 1000000000 -s 10 DS:g:GAUGE:600:U:U DS:c:COUNTER:600:0:U \
     RRA:AVERAGE:0.5:1:4000 RRA:MAX:0.5:6:600 RRA:LAST:0.5:30:100";
const FUNCTIONS: [&str; 3] = ["AVERAGE", "MAX", "LAST"];

/// For events that take milliseconds on an idle machine.
const LONG: Duration = Duration::from_secs(60);

/// Longest time without a sync on a busy machine; the promise is one sync a second.
const SYNC_REST_MAX: Duration = Duration::from_secs(15);

fn name(index: usize) -> String {
    format!("f{index}.rrd")
}

fn stamp(turn: u64) -> u64 {
    BIRTH + 7 * (turn + 1)
}

fn value(turn: u64) -> String {
    format!("{}:{}.5:{}", stamp(turn), turn % 1000, turn * 13)
}

/// Updates of one file: sent, acknowledged, and known to be on the disk.
#[derive(Default, Clone)]
struct Told {
    sent: u64,
    /// Time of each turn's acknowledgement.
    acknowledged: Vec<Instant>,
    /// Turns that are on the disk.
    floor: u64,
}

/// One machine: a disk, a base of files, a journal.
struct Machine {
    seed: u64,
    scratch: Scratch,
    disk: PowerDisk,
    durable: bool,
    told: Vec<Told>,
    random: Random,
}

impl Machine {
    fn new(seed: u64, durable: bool) -> Option<Machine> {
        let scratch = Scratch::new("power-cut");
        let disk = PowerDisk::mount(&scratch.path("disk"), seed)?;
        fs::create_dir(disk.path().join("journal")).expect("a folder");
        for folder in [disk.path().join("base"), scratch.path("oracle")] {
            fs::create_dir(&folder).expect("a folder");
            let mut pipe = Pipe::start(&folder);
            for index in 0..FILES {
                pipe.must(&format!("create {} {DEFINITION}", name(index)));
            }
        }
        disk.settle();
        Some(Machine {
            seed,
            scratch,
            disk,
            durable,
            told: vec![Told::default(); FILES],
            random: Random(seed),
        })
    }

    fn start(&self) -> Daemon {
        let journal = self.disk.path().join("journal");
        let journal = journal.to_string_lossy();
        let options = ["-B", "-w", "1", "-j", &journal, "--durable"];
        let count = options.len() - usize::from(!self.durable);
        let [unshare, words @ ..] = self.disk.machine();
        let mut command = Command::new(unshare);
        command
            .args(words)
            .arg(Side::Ours.program(&self.scratch.path("")));
        command
            .args(["-g", "-b"])
            .arg(self.disk.path().join("base"));
        command.args(&options[..count]);
        Daemon::spawn(command, &self.scratch.path(""))
    }

    /// Sends until the power goes, kills the daemon, and notes the values that must be there.
    fn load_and_cut(&mut self) {
        let daemon = self.start();
        let operations = 10 + self.random.below(1500);
        self.disk.set_faults(Faults {
            cut_at: Some(operations),
            ..Faults::default()
        });
        let length = Duration::from_millis(200 + self.random.below(2400));
        let begun = Instant::now();
        let mut client = daemon.connect();
        while begun.elapsed() < length && self.disk.off_since().is_none() {
            if self.send(&mut client).is_none() {
                break;
            }
        }
        self.cut(daemon, begun);
    }

    /// Cuts the power, kills the daemon, and notes the values that are on the disk for certain.
    fn cut(&mut self, daemon: Daemon, begun: Instant) {
        self.disk.cut();
        let off = self.disk.off_since().expect("the power is off");
        let syncs = self.disk.syncs_of("journal-");
        drop(daemon);
        // A sync that began before a value's acknowledgement may not contain the value: the next sync does.
        let certain = match self.durable {
            true => Some(off),
            false => syncs.len().checked_sub(2).map(|index| syncs[index]),
        };
        for told in &mut self.told {
            let times = told.acknowledged.iter();
            let known = times.filter(|&&at| certain.is_some_and(|certain| at < certain));
            told.floor = told.floor.max(known.count() as u64);
        }
        let last = syncs.iter().rev().find(|&&at| at < off).copied();
        let rest = off.duration_since(last.unwrap_or(begun));
        assert!(
            rest < SYNC_REST_MAX,
            "SEED={}: no sync for {rest:?}",
            self.seed
        );
    }

    /// Sends one value of each file at a time, until the faults are over and the daemon takes values again; then the power
    /// goes. Returns the number of refused values.
    fn go_through(&mut self, faults: Faults) -> u64 {
        let daemon = self.start();
        let full_until = faults.full.map_or(0, |(_, end)| end);
        self.disk.set_faults(faults);
        let begun = Instant::now();
        let (mut client, mut refused, mut taken_since) = (daemon.connect(), 0, 0);
        while taken_since < 100 {
            let said = daemon.output_text();
            assert!(
                begun.elapsed() < LONG,
                "SEED={}: nothing is taken: {said}",
                self.seed
            );
            let counts = self.disk.counts();
            let is_over = counts.faults > 0 && counts.operations >= full_until;
            if self.random.once_in(4) {
                client.text(self.random.pick(&["FLUSHALL", "FLUSH f1.rrd"]));
            }
            for index in 0..FILES {
                let told = &mut self.told[index];
                let turn = told.acknowledged.len() as u64;
                told.sent = told.sent.max(turn + 1);
                let answer = client.text(&format!("UPDATE {} {}", name(index), value(turn)));
                if answer.starts_with("0 errors") {
                    told.acknowledged.push(Instant::now());
                    taken_since += u64::from(is_over);
                } else {
                    let seed = self.seed;
                    assert!(answer.contains("cannot"), "SEED={seed}: {answer}: {said}");
                    refused += 1;
                }
            }
        }
        self.cut(daemon, begun);
        refused
    }

    /// Sends a few values, and now and then a command that writes files. `None`: the daemon takes no more.
    fn send(&mut self, client: &mut Client) -> Option<()> {
        if self.random.once_in(8) {
            let command = self
                .random
                .pick(&["FLUSHALL", "FLUSH f1.rrd", "FETCH f2.rrd AVERAGE"]);
            client.ask(command.as_bytes()).ok()?;
        }
        for _ in 0..1 + self.random.below(20) {
            let told = &mut self.told[self.random.below(FILES as u64) as usize];
            told.sent += 1;
        }
        let mut lines = Vec::new();
        for (index, told) in self.told.iter().enumerate() {
            for turn in told.acknowledged.len() as u64..told.sent {
                lines.push((index, format!("UPDATE {} {}\n", name(index), value(turn))));
            }
        }
        let bytes: String = lines.iter().map(|(_, line)| line.as_str()).collect();
        client.send(bytes.as_bytes()).ok()?;
        for (index, _) in lines {
            match client.reply(false) {
                Ok(Reply::Bytes(bytes)) if bytes.starts_with(b"0 errors") => {
                    self.told[index].acknowledged.push(Instant::now());
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The machine starts again: certain values are there, and all that are there are right.
    fn come_up(&mut self) {
        self.disk.restart();
        let verified = self.verify();
        let daemon = self.start();
        let mut client = daemon.connect();
        for index in 0..FILES {
            self.flush(&mut client, index, &daemon);
            let turns = self.turns_of(index);
            let told = &mut self.told[index];
            let seed = self.seed;
            assert!(
                (told.floor..=told.sent).contains(&turns),
                "SEED={seed}: {} has {turns} values, not {} to {}: {verified}{}",
                name(index),
                told.floor,
                told.sent,
                daemon.output_text()
            );
            // Values present now are on the disk: the start has written them, or the journal holds them.
            told.sent = turns;
            told.acknowledged.truncate(turns as usize);
            while (told.acknowledged.len() as u64) < turns {
                told.acknowledged.push(Instant::now());
            }
            self.compare(index, turns, &format!("{verified}{}", daemon.output_text()));
        }
    }

    fn flush(&self, client: &mut Client, index: usize, daemon: &Daemon) {
        let flushed = client.text(&format!("FLUSH {}", name(index)));
        let said = daemon.output_text();
        assert!(
            flushed.starts_with("0 "),
            "SEED={}: {flushed}: {said}",
            self.seed
        );
    }

    /// The number of values in a file, computed from its last stamp.
    fn turns_of(&self, index: usize) -> u64 {
        let last = rrdtool(&self.disk.path().join("base"), &["last", &name(index)]);
        let last = text(&last.stdout).trim().parse::<u64>();
        let last = last.unwrap_or_else(|_| panic!("SEED={}: no file {}", self.seed, name(index)));
        (last - BIRTH) / 7
    }

    /// Each row equals stock's for the values that came back; it may be unknown where earlier values may have been lost.
    fn compare(&self, index: usize, turns: u64, said: &str) {
        let oracle = self.scratch.path("oracle");
        let mut pipe = Pipe::start(&oracle);
        pipe.must(&format!("create {} {DEFINITION}", name(index)));
        let updates: Vec<String> = (0..turns).map(value).collect();
        for updates in updates.chunks(200) {
            pipe.must(&format!("update {} {}", name(index), updates.join(" ")));
        }
        let end = stamp(turns).to_string();
        for function in FUNCTIONS {
            let words = [
                "fetch",
                &name(index),
                function,
                "-s",
                "1000000000",
                "-e",
                &end,
            ];
            let right = rrdtool(&oracle, &words);
            let here = rrdtool(&self.disk.path().join("base"), &words);
            let (right, here) = (text(&right.stdout), text(&here.stdout));
            assert_eq!(right.lines().count(), here.lines().count());
            for (right, here) in right.lines().zip(here.lines()) {
                let lost = !self.durable && here.contains("nan");
                assert!(
                    right == here || lost,
                    "SEED={}: {} {function}, {turns} values: {here:?} is not {right:?}: {said}",
                    self.seed,
                    name(index)
                );
            }
        }
    }

    /// Messages of `kymo verify`, which must never report damage.
    fn verify(&self) -> String {
        let store = self.disk.path().join("journal").join("kymo");
        if !store.exists() {
            return String::new();
        }
        let verified = run(&["verify", &store.to_string_lossy()]);
        let said = text(&verified.stdout) + &text(&verified.stderr);
        assert!(verified.status.success(), "SEED={}: {said}", self.seed);
        said
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn cut_again_and_again(durable: bool) {
    let first = first_seed(1);
    let mut lost = 0;
    for seed in first..first + effort(2) {
        eprintln!("SEED={seed}");
        let Some(mut machine) = Machine::new(seed, durable) else {
            return;
        };
        for _ in 0..4 {
            machine.load_and_cut();
            machine.come_up();
        }
        lost += machine.disk.counts().lost_at_cuts;
        let turns: u64 = machine.told.iter().map(|told| told.sent).sum();
        assert!(turns > 50, "SEED={seed}: hardly anything was kept: {turns}");
    }
    assert!(lost > 0, "SEED={first}: no cut took anything");
}

/// A failed write or sync, or a full disk: acknowledged values are still there after a power cut.
#[test]
fn a_disk_that_fails_once_costs_what_was_refused_and_nothing_else() {
    let first = first_seed(1);
    let mut refused = 0;
    for seed in first..first + effort(3) {
        eprintln!("SEED={seed}");
        let Some(mut machine) = Machine::new(seed, seed.is_multiple_of(2)) else {
            return;
        };
        for round in 0..3 {
            let at = 1 + machine.random.below(80);
            let faults = match round {
                0 => Faults {
                    broken_write: Some(at),
                    ..Faults::default()
                },
                1 => Faults {
                    broken_sync: Some(1 + at / 30),
                    ..Faults::default()
                },
                _ => Faults {
                    full: Some((at, at + 40)),
                    ..Faults::default()
                },
            };
            refused += machine.go_through(faults);
            machine.come_up();
        }
    }
    assert!(refused > 0, "SEED={first}: nothing failed");
}

#[test]
fn what_is_acknowledged_as_durable_outlives_power_cuts() {
    cut_again_and_again(true);
}

#[test]
fn a_power_cut_takes_what_was_not_synced_and_makes_no_number_wrong() {
    cut_again_and_again(false);
}
