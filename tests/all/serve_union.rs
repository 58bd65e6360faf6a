//! A request has one answer, whoever sends it: the page and the terminal agree on the recording alone, the store alone, both, and
//! a folder opened with `--open`.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use kymo_base::label_set::Labels;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_tests::keeper_client::answer_of;
use kymo_tests::served::{Served, eventually, get};
use kymo_tests::{Scratch, kymo};
use kymo_wire::keeper::{Answer, KeeperRequest, LabelledSeries, LabelledValues};
use serde_json::Value;

/// Seconds of stored values before the recording. The feeder may have written newer ones, and values are taken ten minutes late.
const BEFORE_S: i64 = 480;

fn now_s() -> i64 {
    RealClock.now().real_ns.div_euclid(1_000_000_000)
}

/// Writes means of a field and samples of a metric in the form of this machine's history: each ten seconds up to now.
fn write_history(dir: &Path, now_s: i64) {
    let socket = dir.join("keeper-write.sock");
    let mut stream = eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper");
    let host = machine::host();
    let mean = [
        ("field", &b"memory.total"[..]),
        ("host", host.as_bytes()),
        ("job", b"kymo"),
    ];
    let metric = [
        ("__name__", &b"node_memory_MemTotal_bytes"[..]),
        ("instance", host.as_bytes()),
        ("job", b"node"),
    ];
    for labels in [&mean[..], &metric] {
        let labels = Labels::new(labels.iter().copied()).expect("labels");
        let first = (now_s - BEFORE_S) / 10 * 10;
        let stamps_ms: Vec<i64> = (0..=BEFORE_S / 10)
            .map(|n| (first + n * 10) * 1000)
            .collect();
        let define = KeeperRequest::Define(vec![LabelledSeries {
            labels: labels.clone(),
            step: 10,
            heartbeat: 60,
            start: first - 10,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        }]);
        let write = KeeperRequest::Write(vec![LabelledValues {
            labels,
            cells: vec![42.0; stamps_ms.len()],
            stamps_ms,
        }]);
        for question in [define, write] {
            assert_eq!(answer_of(&mut stream, &question), Answer::Done);
        }
    }
}

/// Rows of a field on the page: end of the interval, and mean.
fn on_the_page(address: &str, (from, thru): (i64, i64)) -> Vec<(i64, String)> {
    let path = format!("/kymo/v1/series?fields=memory.total&from={from}&thru={thru}&points=200");
    let answer = get(address, &path, "");
    let (first, step) = (answer["first"].as_f64(), answer["step"].as_f64());
    let (first, step) = (first.expect("a time"), step.expect("a length"));
    let means = answer["series"][0]["avg"].as_array().cloned();
    let means = means.unwrap_or_default().into_iter().enumerate();
    means
        .filter_map(|(n, mean)| Some(((first + step * n as f64) as i64, digits(mean.as_f64()?))))
        .collect()
}

/// Rows of a field on the terminal.
fn on_the_terminal(dir: &Path, of: &str, (from, thru): (i64, i64)) -> Vec<(i64, String)> {
    let mut command = Command::new(kymo());
    let (from, thru) = (at(from), at(thru));
    command
        .args([
            "series",
            "show",
            "memory.total",
            "--rows",
            "200",
            "--from",
            &from,
        ])
        .args(["--thru", &thru, of])
        .arg(dir)
        .env("TZ", "UTC");
    let output = command.output().expect("kymo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().filter_map(|line| {
        let (time, mean) = line.split_once(' ')?;
        let time: jiff::Timestamp = time.parse().ok()?;
        Some((time.as_second(), digits(mean.trim().parse().ok()?)))
    });
    rows.collect()
}

fn at(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds).expect("a time");
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A value with the six digits that the page shows.
fn digits(value: f64) -> String {
    format!("{value:.5e}")
}

/// Stamps in seconds and values of a selector's samples.
fn samples(dir: &Path, of: &str, from: i64) -> Vec<(f64, f64)> {
    let mut command = Command::new(kymo());
    command
        .args(["series", "samples", "node_memory_MemTotal_bytes", "--json"])
        .args(["--from", &at(from), of])
        .arg(dir)
        .env("TZ", "UTC");
    let output = command.output().expect("kymo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().count() < 2, "one series: {text}");
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    let samples = json["samples"].as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    let pair = |pair: &Value| Some((pair[0].as_f64()? / 1000.0, number(&pair[1])?));
    samples.iter().filter_map(pair).collect()
}

/// Samples of the union: one each ten seconds before the recording and each second since, without doubles or gaps.
fn check_samples(samples: &[(f64, f64)], now_s: i64) {
    type Samples = Vec<(f64, f64)>;
    let (old, new): (Samples, Samples) = samples
        .iter()
        .copied()
        .partition(|(_, value)| *value == 42.0);
    assert!(old.len() > 40 && new.len() > 2, "{samples:?}");
    let border = old.last().expect("stored samples").0;
    assert!(new.iter().all(|(time, _)| *time > border), "{samples:?}");
    assert!(samples[0].0 <= (now_s - BEFORE_S + 10) as f64);
    for pair in samples.windows(2) {
        let distance = pair[1].0 - pair[0].0;
        // A recorder may miss ticks on a busy machine, the store's samples are ten seconds apart.
        let most = if pair[0].1 == 42.0 {
            11.5
        } else {
            f64::INFINITY
        };
        assert!(distance > 0.0 && distance <= most, "{pair:?}");
    }
}

#[test]
fn one_question_has_one_answer() {
    let scratch = Scratch::new("union");
    let dir = scratch.path("data");
    let config = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n";
    let mut served = Served::configured(&scratch, &dir, config);
    let address = served.address();
    let begun_s = now_s();
    let range = |thru: i64| (begun_s - BEFORE_S + 60, thru);
    // The recording alone.
    let recorded = eventually(|| {
        let recorded = on_the_terminal(&dir, "--open", range(now_s()));
        (recorded.len() > 3).then_some(recorded)
    });
    let recorded = recorded.expect("rows of the recording");
    let first = recorded[0].0;
    assert!(
        recorded.iter().all(|(end, _)| *end >= begun_s - 10),
        "{recorded:?}"
    );

    // The recording and the store.
    write_history(&dir, first);
    let thru = now_s() - 3;
    let both = on_the_page(&address, range(thru));
    let stored = both.iter().filter(|(_, mean)| *mean == digits(42.0));
    assert!(stored.count() > 35 && both.len() > 38, "{both:?}");
    assert_eq!(on_the_terminal(&dir, "--data", range(thru)), both);
    check_samples(&samples(&dir, "--data", begun_s - BEFORE_S), begun_s);

    // Reads the same folder without a service.
    drop(served);
    assert_eq!(on_the_terminal(&dir, "--open", range(thru)), both);
    check_samples(&samples(&dir, "--open", begun_s - BEFORE_S), begun_s);

    // The store alone.
    for entry in fs::read_dir(&dir).expect("a folder").flatten() {
        let name = entry.file_name();
        if entry.path().is_dir() && name.to_string_lossy().starts_with(&machine::host()) {
            fs::remove_dir_all(entry.path()).expect("a recording that goes");
        }
    }
    let stored = on_the_terminal(&dir, "--open", range(thru));
    assert!(stored.len() > 35, "{stored:?}");
    let is_written = |(end, mean): &(i64, String)| *end >= first || *mean == digits(42.0);
    assert!(stored.iter().all(is_written), "{stored:?}");
    let left = samples(&dir, "--open", begun_s - BEFORE_S);
    assert!(left.len() > 40, "{left:?}");
}
