//! This machine's history: `kymo serve` keeps it in the store after the recording is gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_base::label_set::Labels;
use kymo_tests::keeper_client::ask_at;
use kymo_tests::served::{Served, eventually, get, kill};
use kymo_tests::{Scratch, kymo};
use kymo_wire::keeper::{Answer, KeeperRequest, LabelledSeries};
use serde_json::Value;

fn start(dir: &Path, config: &str) -> (Served, String) {
    let mut served = Served::of_file(config, dir);
    let address = served.address();
    served.has_said("rrdcached's protocol on");
    (served, address)
}

fn config(scratch: &Scratch) -> String {
    let file = scratch.text("kymo.toml");
    fs::write(&file, "user = \"\"\n[listen]\ncollectd = []\n").expect("a configuration");
    file
}

/// stdout of a `kymo series` command.
fn series(dir: &Path, words: &[&str]) -> String {
    let mut command = Command::new(kymo());
    command.arg("series").args(words).arg("--data").arg(dir);
    let output = command.env("TZ", "UTC").output().expect("kymo runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The series' name of a field of the whole machine.
fn name_of(dir: &Path, field: &str) -> Option<String> {
    let listed = series(
        dir,
        &["ls", "job=kymo", &format!("field={field}"), "instance="],
    );
    let line = listed.lines().nth(1)?;
    line.split("  ").next().map(str::to_string)
}

/// Rows that `kymo series show --open` prints of a series.
fn opened_means(dir: &Path, name: &str) -> Vec<(String, f64)> {
    let mut command = Command::new(kymo());
    command.args(["series", "show", name, "--from", "-10min", "--open"]);
    let output = command.arg(dir).env("TZ", "UTC").output();
    rows(&String::from_utf8_lossy(&output.expect("kymo runs").stdout))
}

/// Known means of a series, by the end of their interval.
fn means(dir: &Path, name: &str) -> Vec<(String, f64)> {
    rows(&series(dir, &["show", name, "--from", "-10min"]))
}

fn rows(printed: &str) -> Vec<(String, f64)> {
    let row = |line: &str| {
        let (stamp, mean) = line.split_once(' ')?;
        Some((stamp.to_string(), mean.trim().parse().ok()?))
    };
    printed.lines().filter_map(row).collect()
}

fn at_least(dir: &Path, field: &str, count: usize) -> Vec<(String, f64)> {
    let found = eventually(|| {
        let found = means(dir, &name_of(dir, field)?);
        (found.len() >= count).then_some(found)
    });
    found.unwrap_or_else(|| panic!("{field}: {:?}", series(dir, &["ls"])))
}

/// Means of a field from the page's API, by the second in which their interval ends.
fn shown(address: &str, field: &str) -> Vec<(i64, f64)> {
    let path = format!("/kymo/v1/series?fields={field}&from=-300&points=31");
    let answer = get(address, &path, "");
    assert_eq!(answer["step"], 10, "{answer}");
    let first = answer["first"].as_f64().expect("a time") as i64;
    let means = answer["series"][0]["avg"].as_array().expect("means");
    let known = means.iter().map(Value::as_f64).zip(0..);
    known
        .filter_map(|(mean, at)| Some((first + 10 * at, mean?)))
        .collect()
}

/// Folders of the recording.
fn recordings(dir: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(dir).expect("a folder");
    let folders = folders.map(|entry| entry.expect("an entry").path());
    let own = |path: &PathBuf| {
        ["store", "rrd", "rollups"]
            .iter()
            .any(|own| path.ends_with(own))
    };
    folders.filter(|path| path.is_dir() && !own(path)).collect()
}

#[test]
fn history_outlives_the_recording() {
    let scratch = Scratch::new("history");
    let (dir, config) = (scratch.path("data"), config(&scratch));
    let (served, address) = start(&dir, &config);
    let stored = at_least(&dir, "memory.total", 2);
    // The recording has the same means.
    let recorded = shown(&address, "memory.total");
    for (_, mean) in &stored {
        let known = |(_, recorded): &(i64, f64)| (recorded / mean - 1.0).abs() < 1e-4;
        assert!(recorded.iter().any(known), "{mean} {recorded:?}");
    }
    // This machine's fields are not listed a second time on the page.
    let listed = get(&address, "/kymo/v1/stored", "");
    assert_eq!(listed["series"], Value::Array(Vec::new()));
    // The history goes on after a kill of the keeper.
    let keeper = served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    served.next_child("keeper", keeper);
    let more = at_least(&dir, "memory.total", stored.len() + 2);
    assert!(more.starts_with(&stored), "{stored:?} {more:?}");
    let name = name_of(&dir, "memory.total").expect("a series");
    let opened = || opened_means(&dir, &name);
    // `--open` reads the same from the store's folder, with a running keeper and without.
    assert!(opened().starts_with(&stored), "{:?}", opened());
    drop(served);
    assert!(opened().starts_with(&more), "{:?}", opened());
    let gone = recordings(&dir);
    assert!(!gone.is_empty());
    for folder in gone {
        fs::remove_dir_all(folder).expect("removed");
    }
    let (_served, address) = start(&dir, &config);
    let status = eventually(|| {
        let status = get(&address, "/kymo/v1/status", "");
        let (from, recorded) = (status["from"].as_f64()?, status["recorded_from"].as_f64()?);
        (recorded > 0.0 && from < recorded).then_some((from, recorded))
    });
    let (_, recorded_from) = status.expect("a status");
    let before: Vec<f64> = shown(&address, "memory.total")
        .into_iter()
        .filter(|(end, _)| *end as f64 <= recorded_from)
        .map(|(_, mean)| mean)
        .collect();
    for (stamp, mean) in &more {
        let same = |old: &f64| (old / mean - 1.0).abs() < 1e-4;
        assert!(before.iter().any(same), "{stamp} {mean} {before:?}");
    }
}

/// Only the socket for writers accepts values.
#[test]
fn the_role_is_the_sockets() {
    let scratch = Scratch::new("history-roles");
    let (dir, config) = (scratch.path("data"), config(&scratch));
    let (_served, _) = start(&dir, &config);
    let question = |step| {
        KeeperRequest::Define(vec![LabelledSeries {
            labels: Labels::new([("job", &b"test"[..])]).expect("a set"),
            step,
            heartbeat: 120,
            start: 1_700_000_000,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        }])
    };
    let read = ask_at(&dir.join("keeper.sock"), &question(10));
    let Answer::Refused(why) = read else {
        panic!("{read:?}");
    };
    assert_eq!(why, "cannot write: this socket only answers what is stored");
    assert!(!series(&dir, &["ls", "job=test"]).contains("test"));
    let write = dir.join("keeper-write.sock");
    let Answer::Refused(why) = ask_at(&write, &question(0)) else {
        panic!("a step of 0 seconds");
    };
    assert!(
        why.starts_with("cannot define {job=\"test\"}: a step is "),
        "{why}"
    );
    assert_eq!(ask_at(&write, &question(10)), Answer::Done);
    assert!(series(&dir, &["ls", "job=test"]).contains("{job=\"test\"}"));
}
