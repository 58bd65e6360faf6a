//! Files of `kymo serve` beside its journal and segments. A turned bit is reported, costs one record, and makes no
//! rate; a file of a newer version stays as it is. `kymo verify` reads all these files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kymo_shm::{Description, Publisher, Schema, Slot};
use kymo_sys::disk::RealDisk;
use kymo_sys::kept_file::{KeptFile, Kind, Old, Sync};
use kymo_tests::served::{Served, eventually};
use kymo_tests::{Scratch, kymo};

/// A folder for `kymo serve`, and one for programs that publish.
struct Place {
    scratch: Scratch,
    published: String,
}

impl Place {
    fn new(name: &str) -> Place {
        Place {
            scratch: Scratch::new(name),
            published: format!("/dev/shm/kymo-{name}-{}", std::process::id()),
        }
    }

    fn data(&self) -> String {
        self.scratch.text("data")
    }

    fn start(&self) -> Served {
        let data = self.data();
        let words = ["--data", &data, "--listen", "127.0.0.1:0"];
        let mut served =
            Served::start_with(&words, |command| command.env("KYMO_DIR", &self.published));
        served.has_said("keeper: user");
        served
    }

    /// A running program that has counted `value`.
    fn count(&self, value: u64) -> (Publisher, Slot) {
        let mut schema = Schema::new("counting", 1).folder(Path::new(&self.published));
        let counter = schema.counter(Description::new("work_total", ""));
        let program = Publisher::create(&schema).expect("a publisher");
        let mut slot = program.take();
        slot.add(counter, value);
        (program, slot)
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(kymo())
            .args(words)
            .output()
            .expect("kymo runs");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// The sum of all counters of the programs. A request makes the keeper read them once a second.
    fn counted(&self) -> f64 {
        let (_, text) = self.run(&["programs", "--json", "--data", &self.data()]);
        let asked: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let publishers = asked["publishers"].as_array().cloned().unwrap_or_default();
        let values = publishers
            .iter()
            .map(|each| each["metrics"][0]["value"].as_f64());
        values.map(Option::unwrap_or_default).sum()
    }

    /// The stored rates.
    fn rates(&self) -> Vec<f64> {
        let data = self.data();
        let (_, listed) = self.run(&["series", "ls", "field=work_total", "--data", &data]);
        let Some(name) = listed
            .lines()
            .nth(1)
            .and_then(|line| line.split("  ").next())
        else {
            return Vec::new();
        };
        let (_, text) = self.run(&["series", "show", name, "--from", "-10min", "--data", &data]);
        let rate = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(rate)
            .collect()
    }

    fn verify(&self) -> (Option<i32>, String) {
        self.run(&["verify", &self.data()])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.published);
    }
}

fn flip(path: &Path, at: usize) -> Vec<u8> {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 1;
    fs::write(path, &bytes).expect("written");
    bytes
}

/// 1,200,000 became 10, rates of -104,600 a second were stored, and `verify` found no damage.
#[test]
fn a_turned_bit_in_what_ended_programs_counted_makes_no_rate() {
    let place = Place::new("kept-programs");
    let served = place.start();
    drop(place.count(1_200_000));
    let kept = place.scratch.path("data/store/programs");
    assert!(
        eventually(|| (kept.exists() && place.counted() == 1_200_000.0).then_some(())).is_some()
    );
    let alive = place.count(10);
    let known =
        eventually(|| (place.counted() == 1_200_010.0 && !place.rates().is_empty()).then_some(()));
    assert!(known.is_some(), "{:?}", place.rates());
    drop((served, alive));
    let (code, text) = place.verify();
    assert!(code == Some(0) && text.starts_with("no damage: "), "{text}");
    let length = fs::metadata(&kept).expect("a file").len();
    let damaged = flip(&kept, usize::try_from(length).expect("small") - 12);
    let (code, text) = place.verify();
    assert!(
        code == Some(1) && text.contains("data/store/programs byte "),
        "{text}"
    );
    let mut served = place.start();
    served.has_said("data/store/programs.bad");
    let _alive = place.count(10);
    // Longer than a row of the first series, so that a wrong rate would be stored by then.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(25) {
        place.counted();
        let rates = place.rates();
        assert!(
            rates.iter().all(|rate| (0.0..1e6).contains(rate)),
            "{rates:?}"
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(
        fs::read(&kept).expect("a file"),
        damaged,
        "it is written again when no rate can come of it"
    );
    assert_eq!(place.counted(), 10.0);
}

/// An older kymo started the file again with only its own totals.
#[test]
fn files_of_a_newer_version_are_left_as_they_are() {
    let place = Place::new("kept-newer");
    drop(place.start());
    let folder = place.scratch.path("data/store");
    let mut before = Vec::new();
    for (name, magic) in [("programs", b"KYMOPROG"), ("notifications-a", b"KYMONOTE")] {
        let kind = Kind {
            magic: *magic,
            version: 9,
            bytes_max: 1 << 20,
            old: Old {
                magic: *b"KYMONOT",
                newest: 0,
                has_generation: false,
            },
        };
        let path = folder.join(name);
        let _first = fs::remove_file(&path);
        let opened = KeptFile::open(std::sync::Arc::new(RealDisk), path.clone(), kind);
        let (mut kept, _) = opened.expect("no file");
        kept.replace(1, &mut |_| {}, Sync::Now).expect("written");
        before.push((path.clone(), fs::read(path).expect("a file")));
    }
    let (code, text) = place.verify();
    assert!(
        code == Some(2) && text.contains("it is of version 9"),
        "{text}"
    );
    let mut served = place.start();
    served.has_said("programs: it is of version 9");
    assert!(
        served
            .said
            .iter()
            .any(|line| line.contains("notifications-a: it is of version 9")),
        "{:?}",
        served.said
    );
    let (program, slot) = place.count(7);
    assert!(eventually(|| (place.counted() == 7.0).then_some(())).is_some());
    let path = program.path().expect("a file").to_path_buf();
    drop((slot, program));
    // The program has ended. Its counts are still part of the totals, and exist in no other place.
    assert!(
        eventually(|| place
            .run(&["programs", "--json", "--data", &place.data()])
            .1
            .contains("\"ended\"")
            .then_some(()))
        .is_some()
    );
    assert!(path.exists());
    drop(served);
    for (path, bytes) in before {
        assert_eq!(
            fs::read(&path).expect("a file"),
            bytes,
            "{}",
            path.display()
        );
    }
}

/// A recording and its roll-ups: `verify` had not read them.
#[test]
fn verify_reads_recordings_and_rollups() {
    let place = Place::new("kept-recorded");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-0");
    let mut folders = fs::read_dir(&fixture)
        .expect("a recording")
        .map_while(Result::ok);
    let folder = folders.find(|entry| entry.path().is_dir()).expect("a boot");
    let (from, to) = (
        folder.path(),
        place.scratch.path("data").join(folder.file_name()),
    );
    fs::create_dir_all(&to).expect("a folder");
    let mut files = Vec::new();
    for file in fs::read_dir(from).expect("a boot's folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("copied");
        files.push(to.join(file.file_name()));
    }
    let (code, text) = place.verify();
    assert!(
        code == Some(0) && text.starts_with("no damage: recording of "),
        "{text}"
    );
    for file in files {
        let whole = fs::read(&file).expect("a file");
        let used = whole
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        for part in 1..12 {
            let at = used * part / 12;
            flip(&file, at);
            let (code, text) = place.verify();
            assert!(
                code == Some(1) && text.contains(" damaged: "),
                "{} byte {at}: {text}",
                file.display()
            );
            fs::write(&file, &whole).expect("written");
        }
    }
    let rollups = place.scratch.path("data/rollups/host-00000000");
    fs::create_dir_all(&rollups).expect("a folder");
    fs::write(rollups.join("1-2-3.rol"), b"KYMOROL0 and no checksum").expect("written");
    let (code, text) = place.verify();
    assert!(
        code == Some(1) && text.contains("1-2-3.rol byte 0: it is damaged"),
        "{text}"
    );
}
