//! Full and slow disks, rings that wrap while they are read, damaged roll-ups.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::client::{LONG, Served, ask, eventually, pause};
use super::made_up::{MadeUp, known_users};
use kymo_tests::machine::{Tmpfs, must_skip, skipped};
use kymo_tests::served::kill;
use kymo_tests::{Running, Scratch, kymo, tail_first_seqs};
use serde_json::Value;

/// Panics if a number is absurd: shares of a CPU must be between 0 and 100, and sizes not negative.
/// Returns the count of numbers.
fn assert_sane(series: &Value, target: &str) -> usize {
    let mut known = 0;
    for line in series["series"].as_array().expect("series") {
        let most = match line["unit"].as_str() {
            Some("%") => 101.0,
            _ => 1e12,
        };
        for key in ["avg", "min", "max"] {
            for value in line[key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_f64)
            {
                assert!(
                    (0.0..=most).contains(&value),
                    "{target}: {key} of {}: {value}",
                    line["id"]
                );
                known += 1;
            }
        }
    }
    known
}

#[test]
fn a_full_disk_does_not_stop_the_answers() {
    if must_skip(&["mount", "umount"]) {
        return;
    }
    let scratch = Scratch::new("full");
    let dir = scratch.path("data");
    let Some(_disk) = Tmpfs::mount(&dir, "24m") else {
        return skipped("nothing can be mounted here");
    };
    // At this rate the preallocated space is soon used up.
    let often = "[record]\ncap = \"8M\"\ninterval = 0.01\nprocess_interval = 0.01\n";
    fs::write(scratch.path("kymo.toml"), often).expect("a file");
    let config = scratch.text("kymo.toml");
    let served = Served::start(&["--data", &scratch.text("data"), "--config", &config]);
    served.is_recording();
    let hub = served.hub();
    let thru = || {
        served.json("/kymo/v1/status")["thru"]
            .as_f64()
            .unwrap_or(0.0)
    };
    let filler = fill(&dir.join("filler"));
    let start = Instant::now();
    // A quiet machine fills the preallocated space slowly.
    let stopped = (0..30).any(|_| {
        let before = thru();
        // The known end of the recording is five seconds old at most.
        pause(6000);
        served.answers_promptly("on a full disk");
        fill(&dir.join("filler"));
        thru() == before
    });
    assert!(stopped, "never an end of the space");
    eprintln!(
        "{filler} bytes filled it; recording stopped after {:?}",
        start.elapsed()
    );
    assert!(filler > 1 << 20, "{filler} bytes filled it");
    for target in [
        "/metrics",
        "/kymo/v1/series?fields=cpu.user&from=-60",
        "/kymo/v1/processes",
        "/kymo/v1/events",
    ] {
        assert_eq!(served.get(target).status, 200, "{target}");
    }
    fs::remove_file(dir.join("filler")).expect("space");
    let now = served.json("/kymo/v1/status")["now"]
        .as_f64()
        .expect("a time");
    eventually("samples after there was space", || {
        (thru() > now).then_some(())
    });
    served.is_unharmed(hub);
}

/// Fills the disk to the last byte; returns the file's size.
fn fill(path: &Path) -> u64 {
    let append = fs::File::options().create(true).append(true).open(path);
    let mut file = append.expect("a file");
    for piece in [65_536, 4096, 1] {
        while file.write_all(&vec![b'x'; piece]).is_ok() {}
    }
    fs::metadata(path).expect("the file").len()
}

/// A ring so small that it is replaced every few seconds: no wrong value is ever read.
#[test]
fn a_ring_that_wraps_while_it_is_read() {
    let scratch = Scratch::new("wraps");
    let dir = scratch.text("data");
    let recorder = Command::new(kymo())
        .args([
            "record",
            "-s",
            "cdnmpZ",
            "-i",
            ".02:.1",
            "--cap",
            "512K",
            "--seal-bytes",
            "32K",
            "-f",
            &dir,
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _recorder = Running(recorder.expect("kymo starts"));
    eventually("a recording", || {
        (!tail_first_seqs(&dir).is_empty()).then_some(())
    });
    let served = Served::start(&["--data", &dir]);
    eventually("word of the recorder", || {
        served
            .output_text()
            .contains("is recording there already")
            .then_some(())
    });
    let hub = served.hub();
    let token = fs::read_to_string(scratch.path("data/token")).expect("a token");
    let first = oldest_block(&dir);
    let over = AtomicBool::new(false);
    let read: [Read; 3] = Default::default();
    std::thread::scope(|scope| {
        for (n, read) in read.iter().enumerate() {
            let (served, token, over) = (&served, token.trim(), &over);
            scope.spawn(move || hammer(served, token, n, read, over));
        }
        let _over = Over(&over);
        let start = Instant::now();
        // The ring has wrapped several times.
        let mut wraps = 0;
        let mut oldest = first;
        let is_enough = |wraps| wraps >= 4 && read.iter().all(Read::is_enough);
        while (!is_enough(wraps) || start.elapsed() < Duration::from_secs(6))
            && start.elapsed() < 15 * LONG
        {
            pause(50);
            let now = oldest_block(&dir);
            wraps += usize::from(now > oldest);
            oldest = now;
        }
        eprintln!("{wraps} times blocks went; answers and numbers read: {read:?}");
        assert!(
            is_enough(wraps) && oldest > first,
            "{wraps} blocks went, {read:?}"
        );
    });
    served.is_unharmed(hub);
}

/// Counts of one reader so far.
#[derive(Debug, Default)]
struct Read {
    answers: AtomicUsize,
    numbers: AtomicUsize,
}

impl Read {
    fn is_enough(&self) -> bool {
        self.answers.load(Ordering::Relaxed) > 5 && self.numbers.load(Ordering::Relaxed) > 0
    }
}

/// Ends the readers, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn oldest_block(dir: &str) -> u64 {
    let names = fs::read_dir(dir).expect("the folder").flatten();
    let folders = names.filter(|entry| entry.path().is_dir());
    let blocks = folders
        .filter_map(|folder| fs::read_dir(folder.path()).ok())
        .flatten()
        .flatten();
    blocks
        .filter_map(|block| {
            let name = block.file_name().to_string_lossy().into_owned();
            name.strip_suffix(".blk")?.split('-').next()?.parse().ok()
        })
        .min()
        .unwrap_or(0)
}

/// Requests old and new values until `over` is true; counts answers and their numbers.
fn hammer(served: &Served, token: &str, n: usize, read: &Read, over: &AtomicBool) {
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let mut round = n;
    while !over.load(Ordering::Relaxed) {
        round += 1;
        let back = [1, 3, 10, 100, 100_000][round % 5];
        let series = format!(
            "/kymo/v1/series?fields=cpu.user,cpu.user:*,cpu.sys,disk.read_kb:*,memory.free&from=-{back}&points=600"
        );
        let target = match (round / 5) % 4 {
            0 | 1 => series,
            2 => format!("/kymo/v1/processes?at=-{back}"),
            _ => format!("/kymo/v1/text?source=proc/stat&at=-{back}"),
        };
        let answer = ask(&served.address, "GET", &target, &bearer, "").expect("an answer");
        assert!(
            matches!(answer.status, 200 | 404 | 503),
            "{target}: {} {:.300}",
            answer.status,
            answer.text()
        );
        read.answers.fetch_add(1, Ordering::Relaxed);
        if answer.status != 200 {
            continue;
        }
        if target.contains("series") {
            let numbers = assert_sane(&answer.json(), &target);
            read.numbers.fetch_add(numbers, Ordering::Relaxed);
        } else if target.contains("text") {
            let text = answer.text();
            assert!(
                text.starts_with("cpu ") && text.contains("\nsoftirq "),
                "{target}: {text}"
            );
        } else {
            let table = answer.json();
            let rows = table["rows"].as_array().expect("rows");
            let width = table["columns"].as_array().map(Vec::len);
            assert!(
                rows.iter().all(|row| row.as_array().map(Vec::len) == width),
                "{target}"
            );
        }
    }
}

const HOUR_S: u64 = 3600;

/// Roll-ups below a folder.
fn rollups(dir: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(dir.join("rollups"))
        .into_iter()
        .flatten()
        .flatten();
    let files = folders
        .filter_map(|folder| fs::read_dir(folder.path()).ok())
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "rol"));
    files.sort();
    files
}

/// Changes the bytes of a file.
type Damage = fn(&mut Vec<u8>);

/// A roll-up that is damaged in any of these ways is ignored, and is made again.
#[test]
fn damaged_rollups_are_as_good_as_none() {
    let scratch = Scratch::new("rollups");
    let dir = scratch.path("data");
    let now_s = std::time::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let start_s = now_s - 8 * HOUR_S;
    let host = kymo_sys::machine::host();
    let mut machine = MadeUp::new(&scratch.path(""), &dir, &host, start_s, 16 << 10);
    machine.record(7 * HOUR_S / 5, 5);
    machine.end();
    let served = Served::recording(&scratch.text("data"));
    let made = |least: usize| {
        eventually("roll-ups", || {
            Some(rollups(&dir)).filter(|made| made.len() >= least)
        })
    };
    let all = eventually("all roll-ups", || {
        let before = made(2);
        pause(1500);
        (rollups(&dir) == before).then_some(before)
    });
    let target = format!(
        "/kymo/v1/series?fields=cpu.user,cpu.user:*,cpu.sys&from={start_s}&thru={}&points=480",
        start_s + 7 * HOUR_S
    );
    let whole = served.json(&target);
    assert_eq!(whole["resolution"], 60.0, "{whole}");
    assert!(known_users(&whole) > 400, "{whole}");
    let damages: [(&str, Damage); 6] = [
        ("removed", |bytes| bytes.clear()),
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("a byte short", |bytes| bytes.truncate(bytes.len() - 1)),
        ("a bit flipped", |bytes| {
            let at = bytes.len() / 3;
            bytes[at] ^= 1
        }),
        ("another version", |bytes| bytes[7] ^= 1),
        ("all zero", |bytes| bytes.fill(0)),
    ];
    let sound: Vec<Vec<u8>> = all
        .iter()
        .map(|path| fs::read(path).expect("a roll-up"))
        .collect();
    for (what, damage) in damages {
        for (path, sound) in all.iter().zip(&sound) {
            let mut bytes = sound.clone();
            damage(&mut bytes);
            fs::write(path, bytes).expect("damaged");
        }
        let answer = served.json(&target);
        assert_eq!(answer["series"], whole["series"], "{what}");
    }
    // The next hub makes the damaged roll-ups again.
    kill("-KILL", served.hub());
    eventually("sound roll-ups", || {
        let same =
            |(path, sound): (&PathBuf, &Vec<u8>)| fs::read(path).is_ok_and(|now| now == *sound);
        all.iter().zip(&sound).all(same).then_some(())
    });
    let answer = eventually("an answer", || ask(&served.address, "GET", &target, "", ""));
    assert_eq!(answer.json()["series"], whole["series"]);
    assert!(!served.output_text().contains("panicked"));
}

/// Each read of the hub is delayed: answers end, and live values arrive.
#[test]
fn a_slow_disk_ends_in_an_error_and_not_in_silence() {
    if must_skip(&["strace"]) {
        return;
    }
    let scratch = Scratch::new("slow");
    let dir = scratch.path("data");
    let now_s = std::time::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let host = kymo_sys::machine::host();
    let mut machine = MadeUp::new(&scratch.path(""), &dir, &host, now_s - 2 * HOUR_S, 4 << 10);
    machine.record(HOUR_S, 1);
    machine.end();
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let log = scratch.text("strace");
    let delay_us = 150_000;
    let mut strace = Command::new("strace")
        .args([
            "-f",
            "-p",
            &hub.to_string(),
            "-o",
            &log,
            "-e",
            "trace=pread64,read",
        ])
        .args(["-e", &format!("inject=pread64:delay_enter={delay_us}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace");
    let delays = || {
        fs::read_to_string(&log)
            .unwrap_or_default()
            .matches("pread64")
            .count()
    };
    let watched = || served.get("/kymo/v1/status").status == 200 && delays() > 0;
    eventually("delays", || watched().then_some(()));
    let slow = format!(
        "/kymo/v1/series?fields=cpu.user&from={}&thru={}",
        now_s - 7300,
        now_s - 3500
    );
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| ask(&served.address, "GET", &slow, "", "").expect("an answer")))
            .collect();
        pause(1000);
        served.is_prompt("/", "beside a slow disk");
        let lived =
            scope.spawn(|| super::deaths::samples_within(&served.address, Duration::from_secs(15)));
        for answer in asked {
            let answer = answer.join().expect("no panic");
            eprintln!("a slow answer: {} after {:?}", answer.status, answer.took);
            assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
            assert!(answer.took < LONG, "{:?}", answer.took);
        }
        let samples = lived.join().expect("no panic");
        eprintln!(
            "{samples} samples came meanwhile, {} reads waited",
            delays()
        );
        assert!(samples >= 3, "{samples} samples in 15 s");
    });
    assert!(delays() > 50, "{} delays", delays());
    strace.kill().expect("killed");
    strace.wait().expect("its end");
    served.is_unharmed(hub);
}
