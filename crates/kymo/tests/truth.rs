//! Whether what is recorded is what happened: processes add up to what /proc/stat says, totals
//! to those of sysstat. Touches the live machine; needs gcc and sysstat.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const SECONDS: u64 = 30;

/// A process whose leader sleeps while its threads burn CPU.
const BURNER: &str = "#include <pthread.h>\n#include <unistd.h>\nstatic void *burn(void *p) { for (volatile long n = 0;; n++); return p; }\nint main(void) { pthread_t t; for (int i = 0; i < 2; i++) pthread_create(&t, 0, burn, 0); for (;;) pause(); }\n";

struct Load(Vec<Child>);

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("kymo-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a temporary folder");
    dir
}

fn burn(dir: &Path) -> Load {
    let (source, program) = (dir.join("burner.c"), dir.join("burner"));
    fs::write(&source, BURNER).expect("a source");
    let built = Command::new("gcc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    assert!(built.expect("gcc").success());
    Load(vec![Command::new(&program).spawn().expect("the burner")])
}

/// The sum of a key over the lines that have it.
fn sum(json: &str, key: &str) -> f64 {
    let key = format!("\"{key}\":");
    let value = |line: &str| {
        let (_, rest) = line.split_once(&key)?;
        rest.split([',', '}']).next()?.parse::<f64>().ok()
    };
    json.lines().filter_map(value).sum()
}

fn play(recording: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .arg("play")
        .arg(recording)
        .args(args)
        .output()
        .expect("kymo");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn record(letters: &str, dir: &Path) -> Child {
    let count = SECONDS.to_string();
    Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["record", "-s", letters, "-i", "1:1", "-c", &count, "-f"])
        .arg(dir)
        .stderr(Stdio::null())
        .spawn()
        .expect("kymo")
}

/// What user, nice and system grew by from the first recorded /proc/stat to the last.
fn proc_stat_seconds(recording: &Path) -> f64 {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .arg("dump")
        .arg(recording)
        .args(["--source", "proc/stat"])
        .output()
        .expect("kymo");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ticks = |line: &str| -> f64 {
        let numbers = line.split_whitespace().skip(1).take(3);
        numbers
            .filter_map(|number| number.parse::<f64>().ok())
            .sum()
    };
    let times: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with("cpu "))
        .map(ticks)
        .collect();
    (times[times.len() - 1] - times[0]) / 100.0
}

#[test]
fn processes_add_up_to_proc_stat() {
    let dir = folder("sum");
    let load = burn(&dir);
    thread::sleep(Duration::from_millis(500));
    let recording = dir.join("recording");
    assert!(record("cZ", &recording).wait().expect("an end").success());
    drop(load);
    let processes = play(&recording, &["-sZ", "--json"]);
    let spent = sum(&processes, "process.usrt") + sum(&processes, "process.syst");
    let counted = proc_stat_seconds(&recording);
    assert!(
        (spent / counted - 1.0).abs() < 0.02,
        "processes: {spent:.2} s, /proc/stat: {counted:.2} s"
    );
    assert!(
        spent > 1.5 * (SECONDS - 1) as f64,
        "there was too little load: {spent:.2} s"
    );
    fs::remove_dir_all(dir).expect("the folder");
}

/// The numbers of the `Average:` line of sysstat's report, by the names over it; `row` picks the line.
fn average(report: &str, head: &str, row: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
    let names: Vec<&str> = report
        .lines()
        .rfind(|line| line.contains(head))
        .expect("names")
        .split_whitespace()
        .collect();
    let values: Vec<&str> = report
        .lines()
        .rfind(|line| line.starts_with("Average:") && row(line))
        .expect("a mean")
        .split_whitespace()
        .collect();
    let pairs = names.iter().rev().zip(values.iter().rev());
    pairs
        .filter_map(|(name, value)| Some((name.to_string(), value.parse().ok()?)))
        .collect()
}

/// Totals of half a minute beside those of sar, under a load that lasts longer than both: CPU shares
/// within one in a hundred of all time, writes within a hundredth.
#[test]
fn totals_are_those_of_sar() {
    let dir = folder("sar");
    let load = burn(&dir);
    let recording = dir.join("recording");
    thread::sleep(Duration::from_millis(500));
    let mut kymo = record("cd", &recording);
    let sar = Command::new("sar")
        .args(["-u", "-w", "1", &SECONDS.to_string()])
        .env("LC_ALL", "C")
        .output()
        .expect("sar, which `make test` installs");
    assert!(kymo.wait().expect("an end").success());
    drop(load);
    let report = String::from_utf8_lossy(&sar.stdout).into_owned();
    let json = play(&recording, &["-sc", "--json"]);
    let lines = json.lines().count() as f64;
    let shares = average(&report, "%user", |line| line.contains(" all "));
    for (name, key) in [
        ("%user", "cpu.user"),
        ("%system", "cpu.sys"),
        ("%idle", "cpu.idle"),
    ] {
        let sar = shares.iter().find(|(n, _)| n == name).expect("a share").1;
        let ours = sum(&json, key) / lines;
        assert!(
            (sar - ours).abs() < 1.0,
            "{name}: sar {sar:.2}, kymo {ours:.2}"
        );
    }
    fs::remove_dir_all(dir).expect("the folder");
}
