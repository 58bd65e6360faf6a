//! MRTG's own logs beside its program rateup: after each update both files of a target are the same, to the last byte. MRTG and kymo
//! take turns in a folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kymo_agentfarm::{Farm, Settings};
use kymo_poll::batch::Batch;
use kymo_poll::mrtg_log::{LogRule, RateKind, Unknown};
use kymo_poll::sink::{Logs, Report, Series, Sink};
use kymo_sys::disk::RealDisk;
use kymo_sys::effort::{effort, first_seed};
use kymo_tests::{Scratch, kymo, machine};

pub(crate) mod case;

use case::{Case, Step};

/// Contents of the two files of a target.
type Files = [Option<Vec<u8>>; 2];

const NAMES: [&str; 2] = ["t.log", "t.old"];

fn read(folder: &Path) -> Files {
    NAMES.map(|name| std::fs::read(folder.join(name)).ok())
}

fn put(folder: &Path, files: &Files) {
    for (name, content) in NAMES.iter().zip(files) {
        let path = folder.join(name);
        match content {
            Some(content) => std::fs::write(path, content).expect("a file"),
            None => drop(std::fs::remove_file(path)),
        }
    }
}

/// Has rateup do an update as MRTG has it done.
fn rateup(folder: &Path, rule: &LogRule, step: &Step) {
    let unknown = match rule.unknown {
        Unknown::Zero => "-z",
        Unknown::Repeat => "-Z",
    };
    let kind = match rule.kind {
        RateKind::Counter => "u",
        RateKind::PerHour => "h",
        RateKind::PerMinute => "m",
        RateKind::Absolute => "a",
        RateKind::Gauge => "g",
    };
    let values = step.values.each_ref().map(|value| match &value[..] {
        "U" => "-1",
        value => value,
    });
    let mut rateup = Command::new("rateup");
    rateup.arg(folder).arg("t").arg(step.now_s.to_string());
    rateup.args([unknown, kind, values[0], values[1], &rule.bound.to_string()]);
    let output = rateup.output().expect("rateup runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some(), "rateup was killed: {said}");
}

/// A sink with the log of one target.
fn sink(folder: &Path, rule: LogRule) -> Sink {
    let mut sink = Sink::Logs(Logs::new(Arc::new(RealDisk)).expect("a sink"));
    let series = Series {
        path: folder.join("t.rrd"),
        folder_bytes: 0,
        name: b"t.rrd".to_vec(),
        step_s: 300,
        heartbeat_s: 600,
        kind: kymo_poll::sink::Kind::Counter,
        max: [None; 2],
        archives: Vec::new().into(),
        points_kept_s: 0,
        log: rule,
        max_age_s: None,
    };
    sink.begin(vec![series], &[]);
    sink
}

fn update(sink: &mut Sink, step: &Step) -> Report {
    let mut batch = Batch::default();
    let [one, two] = &step.values;
    let argument = format!("{}.25:{one}:{two}", step.now_s);
    batch.push(0, |out| out.extend(argument.as_bytes()));
    let mut report = Report::default();
    sink.write(&batch, &mut report);
    report
}

/// The first line in which two files differ.
fn difference(ours: &Files, theirs: &Files) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let mut text = String::new();
    for ((name, ours), theirs) in NAMES.iter().zip(ours).zip(theirs) {
        let lines = |of: &Option<Vec<u8>>| {
            let text = of.as_deref().map(String::from_utf8_lossy);
            let text = text.unwrap_or("(missing)".into());
            text.lines().map(str::to_string).collect::<Vec<_>>()
        };
        let (ours, theirs) = (lines(ours), lines(theirs));
        let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        let _ = writeln!(
            text,
            "{name}: {} and {} lines, from line {}: {:?} is not {:?}",
            ours.len(),
            theirs.len(),
            same + 1,
            ours.get(same),
            theirs.get(same),
        );
    }
    Some(text)
}

fn exercise(seed: u64, folders: &[PathBuf; 2]) {
    let case = Case::new(seed);
    let [our_folder, their_folder] = folders;
    for folder in folders {
        put(folder, &case.files);
    }
    let mut sink = sink(our_folder, case.rule);
    for (number, step) in case.steps.iter().enumerate() {
        rateup(their_folder, &case.rule, step);
        let report = update(&mut sink, step);
        let differs = difference(&read(our_folder), &read(their_folder));
        assert_eq!(
            differs, None,
            "SEED={seed}, step {number} of {:?}: {report:?}",
            case.rule
        );
    }
}

#[test]
fn each_update_is_rateups() {
    if machine::must_skip(&["rateup"]) {
        return;
    }
    let scratch = Scratch::new("poll-logs");
    let first = first_seed(1);
    let cases = match effort(1) {
        1 => 250,
        more => more * 500,
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            let folders = ["ours", "theirs"].map(|name| scratch.path(&format!("{name}-{half}")));
            for folder in &folders {
                std::fs::create_dir(folder).expect("a folder");
            }
            scope.spawn(move || {
                let seeds = (first..first + cases).filter(|seed| seed % 2 == half);
                seeds.for_each(|seed| exercise(seed, &folders));
            });
        }
    });
}

/// Runs a poller once from a shell's point of view, as cron does.
fn poll(mut poller: Command, config: &Path) {
    let output = poller.arg(config).env("LANG", "C").output();
    let output = output.expect("it is started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn mrtg() -> Command {
    Command::new("/usr/bin/mrtg")
}

fn kymo_poll() -> Command {
    let mut command = Command::new(kymo());
    command.arg("poll");
    command
}

/// The words of the first line of a log.
fn newest(folder: &Path, target: &str) -> [String; 3] {
    let text = std::fs::read_to_string(folder.join(format!("{target}.log"))).expect("a log");
    let words = text.lines().next().unwrap_or_default().split(' ');
    let words: Vec<String> = words.map(str::to_string).collect();
    words.try_into().expect("three words")
}

/// Waits until the clock has another second than the newest value, so that the next one makes a rate.
fn await_second(folder: &Path) {
    let is_now = || {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a time");
        newest(folder, "one")[0] == now.as_secs().to_string()
    };
    while is_now() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn kymo_and_mrtg_take_turns() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let scratch = Scratch::new("poll-logs-turns");
    let folder = scratch.path("web");
    std::fs::create_dir(&folder).expect("a folder");
    let farm = Farm::start(Settings {
        first: [127, 0, 21, 60].into(),
        port: 0,
        devices: 1,
        interfaces: 4,
        community: b"public".to_vec(),
    });
    let farm = farm.expect("a farm");
    let agent = format!("public@{}:{}::::2", farm.address(0), farm.settings().port);
    let options = [
        ("one", "1", "growright, bits"),
        ("two", "2", "perminute, unknaszero"),
        (
            "three",
            "1.3.6.1.2.1.2.2.1.5.3&1.3.6.1.2.1.2.2.1.4.3",
            "gauge, noinfo",
        ),
        ("four", "4", "absolute, withzeroes"),
        ("gone", "1.3.6.1.2.1.2.2.1.5.3&1.3.6.1.4.1.1.1", "gauge"),
    ];
    let mut text = format!("WorkDir: {}\n", folder.display());
    for (name, of, options) in options {
        let _ = writeln!(
            text,
            "Target[{name}]: {of}:{agent}\nTitle[{name}]: t\nMaxBytes[{name}]: 12500000000\nOptions[{name}]: {options}"
        );
    }
    // A missing value makes the exit code 91: so this target has a turn of its own.
    let all = scratch.path("all.cfg");
    let cut = text.find("Target[gone]").expect("the last target");
    let config = scratch.path("mrtg.cfg");
    std::fs::write(&config, &text[..cut]).expect("a configuration");
    std::fs::write(&all, &text).expect("a configuration");
    let targets: Vec<&str> = options[..4].iter().map(|option| option.0).collect();
    poll(mrtg(), &config);
    for round in 0..3 {
        await_second(&folder);
        let before = read_all(&folder, &targets);
        poll(kymo_poll(), &config);
        let after = read_all(&folder, &targets);
        for (at, target) in targets.iter().enumerate() {
            assert_ne!(after[at], before[at], "{target} has no new row");
            let theirs = of_rateup(
                &scratch,
                &before[at],
                &newest(&folder, target),
                options[at].2,
            );
            let differs = difference(&after[at], &theirs);
            assert_eq!(differs, None, "{target} in round {round}");
        }
        await_second(&folder);
        poll(mrtg(), &config);
        for (at, files) in read_all(&folder, &targets).iter().enumerate() {
            // MRTG has taken kymo's log for its own.
            assert_eq!(files[1], after[at][0], "{} in round {round}", targets[at]);
            assert!(files[0] != files[1], "{} in round {round}", targets[at]);
        }
    }
    await_second(&folder);
    let output = kymo_poll().arg(&all).output().expect("kymo runs");
    assert_eq!(output.status.code(), Some(91));
    assert_eq!(newest(&folder, "gone")[2], "-1");
}

fn read_all(folder: &Path, targets: &[&str]) -> Vec<Files> {
    let files = targets.iter().map(|target| {
        ["log", "old"].map(|end| std::fs::read(folder.join(format!("{target}.{end}"))).ok())
    });
    files.collect()
}

/// The files that rateup makes of these files and values.
fn of_rateup(scratch: &Scratch, before: &Files, newest: &[String; 3], options: &str) -> Files {
    let folder = scratch.path("rateup");
    std::fs::create_dir_all(&folder).expect("a folder");
    put(&folder, before);
    let kind = match options {
        options if options.contains("gauge") => RateKind::Gauge,
        options if options.contains("absolute") => RateKind::Absolute,
        options if options.contains("perminute") => RateKind::PerMinute,
        _ => RateKind::Counter,
    };
    let rule = LogRule {
        kind,
        bound: 12_500_000_000,
        unknown: match options.contains("unknaszero") {
            true => Unknown::Zero,
            false => Unknown::Repeat,
        },
    };
    let [now_s, one, two] = newest;
    let step = Step {
        now_s: now_s.parse().expect("a time"),
        values: [one.clone(), two.clone()],
    };
    rateup(&folder, &rule, &step);
    read(&folder)
}

#[test]
fn check_says_where_a_history_goes() {
    let scratch = Scratch::new("poll-logs-check");
    let config = scratch.path("mrtg.cfg");
    let begin = format!("WorkDir: {}\n", scratch.path("").display());
    // As root, a command of a configuration that others may change would be one more line.
    let targets = "Target[a]: 1:public@127.0.0.1\nTitle[a]: t\nMaxBytes[a]: 9\nTarget[b]: 2:public@127.0.0.1\nTitle[b]: t\nMaxBytes[b]: 9\n";
    let check = |globals: &str| {
        std::fs::write(&config, format!("{begin}{globals}{targets}")).expect("a configuration");
        let mut command = kymo_poll();
        command.env_remove("RRDCACHED_ADDRESS").arg("--check");
        let output = command.arg(&config).output().expect("kymo runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let rrd = "LogFormat: rrdtool\n";
    assert!(!check(rrd).contains("history"));
    std::fs::write(scratch.path("a.log"), "1 2 3\n").expect("a log");
    for (globals, fate) in [
        ("LogFormat: rateup\n", None),
        (rrd, Some("it goes into their .rrd files")),
        (
            "LogFormat: rrdtool\nRRDCached: 127.0.0.1:9\n",
            Some("it stays there"),
        ),
    ] {
        let said = check(globals);
        let is_said = |fate: &str| said.contains("the history of 1 target") && said.contains(fate);
        match fate {
            Some(fate) => assert!(is_said(fate), "{globals}: {said}"),
            None => assert!(!said.contains("history"), "{globals}: {said}"),
        }
    }
    std::fs::write(scratch.path("a.rrd"), "").expect("a file");
    assert!(!check(rrd).contains("history"));
}
