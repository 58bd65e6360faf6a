//! Backups of a `kymo serve` that runs, with its commands: restored values are those of one moment, bit for bit; a
//! backup sends what changed; whatever becomes of it, the backups before are whole.

mod repeated;
mod s3;

use std::fs;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kymo_base::label_set::Labels;
use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_tests::keeper_client::answer_of;
use kymo_tests::machine::{Tmpfs, must_skip, skipped};
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, eventually};
use kymo_tests::{Running, Scratch, kymo, run, stdout_of};
use kymo_wire::keeper::{
    ANSWER_MAX, Answer, HEAD, KeeperRequest, LabelledSeries, LabelledValues, body_bytes,
};

const CONFIG: &str =
    "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n[record]\nsubsystems = \"cm\"\n";
/// Series that the tests write.
const SERIES: u32 = 40;

/// A running `kymo serve`, and folders for its backups.
struct Place {
    scratch: Scratch,
    served: Option<Served>,
    begun_s: i64,
    config: String,
    /// Address of the page.
    address: String,
}

impl Place {
    fn new(name: &str) -> Place {
        Place::with(Scratch::new(name), "")
    }

    /// A kymo with one more table in its configuration.
    fn with(scratch: Scratch, table: &str) -> Place {
        let mut place = Place {
            scratch,
            served: None,
            config: format!("{CONFIG}{table}\n"),
            address: String::new(),
            begun_s: RealClock.now().real_ns / 1_000_000_000 - 3000,
        };
        place.start();
        place.define();
        place
    }

    fn start(&mut self) {
        let mut served =
            Served::configured(&self.scratch, &self.scratch.path("data"), &self.config);
        self.address = served.address();
        let socket = self.scratch.path("data/rrdcached.sock");
        eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper");
        self.served = Some(served);
    }

    fn text(&self, name: &str) -> String {
        self.scratch.text(name)
    }

    fn writer(&self) -> UnixStream {
        let socket = self.scratch.path("data/keeper-write.sock");
        eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper")
    }

    fn define(&self) {
        let series = (0..SERIES).map(|number| LabelledSeries {
            labels: labels(number),
            step: 1,
            heartbeat: 60,
            start: self.begun_s,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        });
        let mut stream = self.writer();
        for series in series {
            let define = KeeperRequest::Define(vec![series]);
            assert_eq!(answer_of(&mut stream, &define), Answer::Done);
        }
    }

    fn write(&self, stream: &mut UnixStream, range: Range<i64>) {
        write(stream, self.begun_s, range);
    }

    fn back_up(&self, more: &[&str]) -> String {
        let (data, to) = (self.text("data"), self.text("to"));
        let words = [&["backup", "--data", &data], more, &[&to]].concat();
        let output = run(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    fn restore(&self, name: &str) -> PathBuf {
        let (to, dir) = (self.text("to"), self.scratch.path(name));
        let output = run(&["restore", &to, &self.text(name)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        dir
    }

    fn verify(&self) -> (Option<i32>, String) {
        let output = run(&["verify", "--backup", &self.text("to")]);
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }
}

/// Writes a value of each series for each second of a range; all are acknowledged.
fn write(stream: &mut UnixStream, begun_s: i64, range: Range<i64>) {
    let series = (0..SERIES).map(|number| LabelledValues {
        labels: labels(number),
        stamps_ms: range.clone().map(|n| (begun_s + n) * 1000).collect(),
        cells: range.clone().map(|n| value(number, n)).collect(),
    });
    let write = KeeperRequest::Write(series.collect());
    stream.write_all(&write.frame()).expect("a request");
    for _ in 0..SERIES {
        let mut head = [0; HEAD];
        stream.read_exact(&mut head).expect("an answer's head");
        let mut body = vec![0; body_bytes(head, ANSWER_MAX).expect("a length")];
        stream.read_exact(&mut body).expect("an answer's body");
        assert_eq!(Answer::read(&body), Ok(Answer::Done));
    }
}

/// Sets a flag as it goes, also when a test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn labels(number: u32) -> Labels {
    let number = number.to_string();
    let labels = [
        ("__name__", &b"backed_up"[..]),
        ("number", number.as_bytes()),
    ];
    Labels::new(labels).expect("labels")
}

fn value(number: u32, n: i64) -> f64 {
    f64::from(number) + (n as f64).sqrt()
}

/// Samples of the tests' series of a folder, each series with its values.
fn samples(of: &str, folder: &Path) -> Vec<Vec<String>> {
    let folder = folder.display().to_string();
    let text = stdout_of(&[
        "series",
        "samples",
        "backed_up",
        "--from",
        "-2h",
        of,
        &folder,
    ]);
    let series = text.split("# backed_up").skip(1);
    let mut series: Vec<Vec<String>> = series
        .map(|text| text.lines().map(str::to_string).collect())
        .collect();
    series.sort();
    series
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Bytes of files that are in a folder alone.
fn own_bytes(folder: &Path) -> u64 {
    let stats = files(folder)
        .into_iter()
        .map(|path| fs::metadata(path).expect("a file"));
    stats
        .filter(|stat| stat.nlink() == 1)
        .map(|stat| stat.len())
        .sum()
}

#[test]
fn a_backup_beside_values_is_one_moment_bit_for_bit() {
    let place = Place::new("backup-moment");
    let (stop, acked) = (AtomicBool::new(false), AtomicI64::new(-1));
    let data = place.text("data");
    let is_recorded = || {
        let played = run(&["play", &data, "-s", "c", "-oT"]).stdout;
        (String::from_utf8_lossy(&played).lines().count() > 6).then_some(())
    };
    eventually(is_recorded).expect("a recording");
    let restored = thread::scope(|scope| {
        let (mut stream, begun_s) = (place.writer(), place.begun_s);
        let (stop, acked) = (&stop, &acked);
        scope.spawn(move || {
            // Later values would be of the future.
            for n in 0..2_800 {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                write(&mut stream, begun_s, n..n + 1);
                acked.store(n, Ordering::Release);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let is_far =
            |least: i64| eventually(|| (acked.load(Ordering::Acquire) >= least).then_some(()));
        let _stops = Stops(stop);
        let mut restored = Vec::new();
        for round in 0..3 {
            is_far(20 + 20 * round).expect("values");
            let before = acked.load(Ordering::Acquire);
            let said = place.back_up(&[]);
            assert!(
                said.starts_with("kymo: backed up ") && said.contains(" copied"),
                "{said}"
            );
            restored.push((before, place.restore(&format!("restored-{round}"))));
        }
        restored
    });
    let live = samples("--data", &place.scratch.path("data"));
    assert_eq!(live.len(), SERIES as usize);
    for (before, folder) in &restored {
        let then = samples("--open", folder);
        assert_eq!(then.len(), live.len());
        for (then, live) in then.iter().zip(&live) {
            let least = usize::try_from(before + 1).expect("a number") + 1;
            assert!(
                then.len() >= least && then.len() <= live.len(),
                "{} {least}",
                then.len()
            );
            assert_eq!(then[..], live[..then.len()]);
        }
    }
    let (_, last) = restored.last().expect("a backup");
    let checked = run(&["verify", &last.display().to_string()]);
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success() && text.starts_with("no damage"),
        "{text}"
    );
    // The recording is a part of the live one, and its store takes values again.
    let play = |folder: &str| stdout_of(&["play", folder, "-s", "c", "-oT"]);
    let (played, live) = (play(&place.text("restored-2")), play(&place.text("data")));
    assert!(played.lines().count() > 3, "{played}");
    let lines: Vec<&str> = played
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(
        lines.iter().all(|line| live.contains(line)),
        "{played}\n{live}"
    );
    let mut served = Served::configured(&place.scratch, last, CONFIG);
    served.address();
    let socket = last.join("keeper-write.sock");
    let mut stream = eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper");
    place.write(&mut stream, 2900..2901);
    assert_eq!(
        samples("--data", last)[0].len(),
        samples("--open", &place.scratch.path("restored-2"))[0].len()
    );
}

/// Bytes of the store's journal and segments, without room ahead.
fn stored_bytes(place: &Place) -> u64 {
    let folder = place.scratch.path("data/store");
    let pinned = Store::pin_at_rest(Arc::new(RealDisk), &folder).expect("a store");
    pinned.files.iter().map(|file| file.bytes).sum()
}

#[test]
fn a_second_backup_sends_what_changed() {
    let place = Place::new("backup-changes");
    let (mut stream, to) = (place.writer(), place.scratch.path("to"));
    place.write(&mut stream, 0..300);
    place.back_up(&[]);
    let (sent, stored) = (own_bytes(&to), stored_bytes(&place));
    assert!(sent >= stored, "{sent} {stored}");
    place.write(&mut stream, 300..900);
    place.back_up(&[]);
    let (sent, appended) = (own_bytes(&to) - sent, stored_bytes(&place) - stored);
    // The recording of some seconds, small files and the manifest come on top.
    let others = 200 << 10;
    assert!(sent <= appended * 12 / 10 + others, "{sent} for {appended}");
    assert!(sent >= appended / 2, "{sent} for {appended}");
    let before = own_bytes(&to);
    place.back_up(&[]);
    let sent = own_bytes(&to) - before;
    assert!(sent <= others, "{sent} for nothing");
    assert_eq!(place.verify().0, Some(0));
    assert_eq!(
        samples("--open", &place.restore("restored")),
        samples("--data", &place.scratch.path("data"))
    );
}

#[test]
fn a_killed_backup_changes_no_backup_before_it() {
    let place = Place::new("backup-kill");
    let mut stream = place.writer();
    place.write(&mut stream, 0..200);
    let begun = Instant::now();
    place.back_up(&[]);
    let mut longest = begun.elapsed();
    // `--at` names a second: the other backups come in later ones.
    thread::sleep(Duration::from_millis(1_100));
    let then = samples("--open", &place.restore("first"));
    let (data, to) = (place.text("data"), place.text("to"));
    let mut killed = 0;
    for round in 0..20u32 {
        let n = 200 + i64::from(round);
        place.write(&mut stream, n..n + 1);
        let child = Command::new(kymo())
            .args(["backup", "--data", &data, &to])
            .stderr(Stdio::null())
            .spawn()
            .expect("kymo runs");
        let mut child = Running(child);
        let pause = longest * (round % 7) / 7;
        thread::sleep(pause);
        child.signal("-KILL");
        let status = child.0.wait().expect("an end");
        match status.code() {
            None => killed += 1,
            // Later backups have less to do than the first.
            Some(_) => longest = pause,
        }
        let (code, text) = place.verify();
        assert_eq!(code, Some(0), "round {round}: {text}");
    }
    assert!(killed > 3, "{killed}");
    let oldest = fs::read_dir(place.scratch.path("to/backups")).expect("backups");
    let oldest = oldest
        .map(|entry| entry.expect("an entry").file_name())
        .min();
    let name = oldest.expect("a backup").to_string_lossy().into_owned();
    let at = format!(
        "{}-{}-{}T{}:{}:{}Z",
        &name[..4],
        &name[4..6],
        &name[6..8],
        &name[9..11],
        &name[11..13],
        &name[13..15]
    );
    let at: jiff::Timestamp = at.parse().expect("a time");
    let words = [
        "restore",
        "--at",
        &at.as_second().to_string(),
        &to,
        &place.text("again"),
    ];
    stdout_of(&words);
    let again = samples("--open", &place.scratch.path("again"));
    assert!(again == then, "other values than those of the first backup");
    place.back_up(&[]);
    assert_eq!(
        samples("--open", &place.restore("last")),
        samples("--data", &place.scratch.path("data"))
    );
}

#[test]
fn a_content_that_was_cut_is_named_and_sent_again() {
    let place = Place::new("backup-damage");
    let mut stream = place.writer();
    place.write(&mut stream, 0..50);
    place.back_up(&[]);
    let objects = files(&place.scratch.path("to/objects")).into_iter();
    let longest = objects.max_by_key(|path| fs::metadata(path).expect("a file").len());
    let longest = longest.expect("a content");
    let length = fs::metadata(&longest).expect("a file").len();
    let file = fs::File::options()
        .write(true)
        .open(&longest)
        .expect("a content");
    file.set_len(length / 2).expect("cut");
    let (code, text) = place.verify();
    let name = longest.display().to_string();
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with(&format!(
            "{name}: has {} bytes instead of {length}; it is part of ",
            length / 2
        )) && text.contains("\n1 place is damaged: backups 1,"),
        "{text}"
    );
    let output = run(&["restore", &place.text("to"), &place.text("restored")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains(&name) && said.contains("cannot restore "),
        "{said}"
    );
    assert!(
        files(&place.scratch.path("restored")).is_empty(),
        "half a folder"
    );
    place.back_up(&[]);
    assert_eq!(place.verify().0, Some(0));
    place.restore("restored");
}

#[test]
fn a_full_target_is_an_error_and_old_backups_make_room() {
    if must_skip(&["mount", "umount"]) {
        return;
    }
    let place = Place::new("backup-full");
    let Some(_disk) = Tmpfs::mount(&place.scratch.path("to"), "4m") else {
        return skipped("nothing can be mounted here");
    };
    let mut stream = place.writer();
    place.write(&mut stream, 0..1);
    place.back_up(&[]);
    let filler = place.scratch.path("to/filler");
    let full = fs::write(&filler, vec![1; 4 << 20]);
    assert!(full.is_err());
    place.write(&mut stream, 1..100);
    let output = run(&["backup", "--data", &place.text("data"), &place.text("to")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("cannot ")
            && said.contains(&place.text("to"))
            && said.contains("No space left on device"),
        "{said}"
    );
    assert_eq!(place.verify().0, Some(0));
    fs::remove_file(filler).expect("room");
    let said = place.back_up(&["--keep", "0h"]);
    assert!(said.contains("kymo: removed 1 old backup, "), "{said}");
    assert_eq!(
        fs::read_dir(place.scratch.path("to/backups"))
            .expect("backups")
            .count(),
        1
    );
    assert_eq!(place.verify().0, Some(0));
    assert_eq!(
        samples("--open", &place.restore("restored")),
        samples("--data", &place.scratch.path("data"))
    );
}

#[test]
fn nothing_secret_is_in_a_backup() {
    let place = Place::new("backup-secrets");
    let token = fs::read_to_string(place.scratch.path("data/token")).expect("a token");
    fs::write(place.scratch.path("data/store/key.pem"), "secret").expect("a file");
    place.back_up(&[]);
    for path in files(&place.scratch.path("to")) {
        let bytes = fs::read(&path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(token.trim()), "{}", path.display());
    }
    let restored = place.restore("restored");
    for path in files(&restored) {
        let below = path
            .strip_prefix(&restored)
            .expect("below")
            .display()
            .to_string();
        let name = below.rsplit('/').next().expect("a name");
        let known = [
            "journal-",
            "segment-",
            "tail-",
            "programs",
            "place",
            "families",
            "notifications-",
        ];
        let is_known = known.iter().any(|known| name.starts_with(known)) || name.ends_with(".blk");
        assert!(is_known, "{below}");
    }
}

/// An .rrd file that was there before the store knew it has rows that are nowhere else.
#[test]
fn rows_of_files_from_before_are_restored() {
    let mut place = Place::new("backup-rrd");
    let now = place.begun_s;
    let file = place.text("data/rrd/web1/old.rrd");
    fs::create_dir_all(place.scratch.path("data/rrd/web1")).expect("a folder");
    let begin = (now - 1000).to_string();
    stdout_of(&[
        "rrd",
        "create",
        &file,
        "-b",
        &begin,
        "-s",
        "10",
        "DS:x:GAUGE:60:U:U",
        "RRA:AVERAGE:0.5:1:500",
    ]);
    for n in 1..50 {
        let update = format!("{}:{n}", now - 1000 + 10 * n);
        stdout_of(&["rrd", "update", &file, &update]);
    }
    let mut client = Client::unix(&place.scratch.path("data/rrdcached.sock")).expect("a client");
    for n in 50..60 {
        let update = format!("UPDATE web1/old.rrd {}:{n}", now - 1000 + 10 * n);
        let reply = client.text(&update);
        assert!(reply.starts_with('0'), "{reply}");
    }
    place.back_up(&[]);
    // A backup of a folder without a running serve has the same.
    place.served = None;
    let restored = place.restore("restored");
    place.back_up(&[]);
    let at_rest = place.restore("at-rest");
    let export = |folder: &Path| {
        let (store, out) = (folder.join("store"), folder.join("out"));
        let base = folder.join("rrd");
        let [store, base, out] = [store, base, out].map(|path| path.display().to_string());
        run(&[
            "rrd", "export", "--all", "--store", &store, "-b", &base, "-o", &out,
        ]);
        let dumped = stdout_of(&["rrd", "dump", &format!("{out}/web1/old.rrd")]);
        dumped
            .lines()
            .filter(|line| line.contains("<row>"))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    let live = export(&place.scratch.path("data"));
    let known = live.iter().filter(|row| !row.contains("NaN")).count();
    assert!(known > 55, "{known}");
    assert_eq!(export(&restored), live);
    assert_eq!(export(&at_rest), live);
}

#[test]
fn wrong_words_are_explained() {
    let scratch = Scratch::new("backup-words");
    let (empty, to) = (scratch.text("empty"), scratch.text("to"));
    fs::create_dir(scratch.path("empty")).expect("a folder");
    let begun = scratch.text("begun");
    fs::create_dir_all(scratch.path("begun/backups")).expect("a folder");
    for (words, says) in [
        (
            &["backup", "--data", &empty, &to][..],
            "kymo serve has kept nothing in it",
        ),
        (
            &["backup", "--data", &empty, "ftp://bucket/a"],
            "backups are in a folder or in s3://BUCKET/PREFIX",
        ),
        (
            &["backup", "--data", &empty, "s3://bucket/a"],
            "give --credentials, a file with the keys",
        ),
        (
            &["backup", "--data", &empty, "--keep", "7y", &to],
            "7y: give numbers of hours, days, weeks, such as 24h,7d,8w",
        ),
        (
            &["restore", &empty, &to],
            "name the folder that kymo backup wrote",
        ),
        (
            &["verify", "--backup", &empty],
            "name the folder that kymo backup wrote",
        ),
        (
            &["verify", "--backup", &begun],
            "begun: the first one has not ended yet",
        ),
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(says),
            "{words:?}: {said}"
        );
    }
}
