//! Power cuts under `kymo record`, on a file system that loses unsynced bytes (`kymo_tests::power_disk`): samples are
//! there up to the last sync, no wrong ones are read, and the next recorder continues without repair.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::power_disk::{Faults, PowerDisk};
use kymo_tests::rrd_stream::Random;
use kymo_tests::{Scratch, kymo, parse_dump, run};

/// A recorder, and the numbers of its samples with the time of each acknowledgement.
struct Recorder {
    child: Child,
    acknowledged: Receiver<(Instant, u64)>,
}

impl Recorder {
    fn start(dir: &Path, sync: &str) -> Recorder {
        let (acks, child_end) = std::io::pipe().expect("a pipe");
        kymo_tests::inherit(&child_end);
        let dir = dir.to_string_lossy();
        let child = Command::new(kymo())
            .args(["record", "-s", "c", "-i", ".004", "-f", &dir])
            .args(["--cap", "1M", "--seal-bytes", "16K", "--sync", sync])
            .arg("--ack-fd")
            .arg(child_end.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        drop(child_end);
        let (sender, acknowledged) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(acks).lines().map_while(Result::ok) {
                let number = line.parse().expect("a number");
                if sender.send((Instant::now(), number)).is_err() {
                    return;
                }
            }
        });
        Recorder {
            child: child.expect("kymo starts"),
            acknowledged,
        }
    }

    fn kill(mut self) -> Vec<(Instant, u64)> {
        self.child.kill().expect("kill -9");
        self.child.wait().expect("the end");
        self.acknowledged.iter().collect()
    }
}

/// Samples that must be on the disk: those acknowledged before the last
/// sync but one ended, or, if each is synced, before the power went.
fn certain(disk: &PowerDisk, acknowledged: &[(Instant, u64)], each_synced: bool) -> Vec<u64> {
    let off = disk.off_since().expect("the power is off");
    let syncs = disk.syncs_of("tail");
    let before = match each_synced {
        true => Some(off),
        false => syncs.len().checked_sub(2).map(|index| syncs[index]),
    };
    let known = acknowledged.iter();
    let known = known.filter(|(at, _)| before.is_some_and(|before| *at < before));
    known.map(|(_, number)| *number).collect()
}

/// All certain samples are read, in whole texts, without a report of damage. Returns the samples read, which are certain
/// from now on.
fn check(dir: &Path, certain: &BTreeSet<u64>, story: &str) -> BTreeSet<u64> {
    let dump = run(&["dump", &dir.to_string_lossy(), "--source", "proc/loadavg"]);
    let stderr = String::from_utf8_lossy(&dump.stderr);
    let frames = parse_dump(&dump.stdout);
    let found: BTreeSet<u64> = frames.iter().map(|frame| frame.seq).collect();
    // Retention may have removed records older than the oldest one left.
    let oldest = found.first().copied().unwrap_or(0);
    let lost = certain.iter().filter(|number| !found.contains(number));
    let lost: Vec<_> = lost.filter(|&&number| number >= oldest).collect();
    assert!(
        lost.is_empty(),
        "{story}: lost {lost:?}; kept {oldest}..: {stderr}"
    );
    assert!(certain.is_empty() || !found.is_empty(), "{story}: {stderr}");
    assert!(!stderr.contains("damage"), "{story}: {stderr}");
    for frame in &frames {
        let text = String::from_utf8_lossy(&frame.text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let numbers = words.iter().take(3).all(|word| word.parse::<f64>().is_ok());
        let whole = words.len() == 5 && numbers && words[3].contains('/');
        assert!(whole, "{story}: {text:?} was never there");
    }
    found
}

fn cut_again_and_again(sync: &str) {
    let first = first_seed(1);
    let (mut kept, mut lost) = (0, 0);
    for seed in first..first + effort(2) {
        eprintln!("SEED={seed}");
        let mut random = Random(seed);
        let scratch = Scratch::new("power-cut-record");
        let Some(mut disk) = PowerDisk::mount(&scratch.path("disk"), seed) else {
            return;
        };
        let dir = disk.path().join("ring");
        let mut known = BTreeSet::new();
        for round in 0..4 {
            disk.set_faults(Faults {
                cut_at: Some(5 + random.below(800)),
                ..Faults::default()
            });
            let recorder = Recorder::start(&dir, sync);
            let (begun, length) = (
                Instant::now(),
                Duration::from_millis(300 + random.below(1500)),
            );
            while begun.elapsed() < length && disk.off_since().is_none() {
                std::thread::sleep(Duration::from_millis(3));
            }
            disk.cut();
            let acknowledged = recorder.kill();
            let certain = certain(&disk, &acknowledged, sync == "0");
            disk.restart();
            kept += certain.len();
            known.extend(certain);
            known = check(&dir, &known, &format!("SEED={seed} round {round}"));
        }
        lost += disk.counts().lost_at_cuts;
    }
    assert!(
        kept > 50,
        "SEED={first}: hardly anything was recorded: {kept}"
    );
    assert!(lost > 0, "SEED={first}: no cut took anything");
}

#[test]
fn samples_are_there_up_to_the_last_sync() {
    cut_again_and_again(".1s");
}

#[test]
fn samples_that_are_synced_one_by_one_are_all_there() {
    cut_again_and_again("0");
}
