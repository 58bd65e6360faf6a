//! Configurations run by MRTG and by kymo: from the same configuration both make the same files, to the last byte.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_poll::batch::Batch;
use kymo_poll::sink::{self, Home, Report, Series, Sink};
use kymo_sys::disk::RealDisk;
use kymo_sys::effort::{effort, first_seed};
use kymo_tests::rrd_file::{difference, files_below, turned};
use kymo_tests::{Scratch, machine};
use kymo_wire::mrtg_cfg::{self, Config, Files};

use crate::poll_logs::case::{Random, log};

/// Targets whose logs are converted in one run.
const TARGETS: usize = 12;

/// The files of this machine.
struct Here;

impl Files for Here {
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        std::fs::read(as_path(path)).map_err(|error| error.to_string())
    }

    fn is_readable(&mut self, path: &[u8]) -> bool {
        as_path(path).is_file()
    }

    fn names(&mut self, _folder: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn is_dir(&mut self, path: &[u8]) -> bool {
        as_path(path).is_dir()
    }

    fn exists(&mut self, path: &[u8]) -> bool {
        as_path(path).exists()
    }
}

fn as_path(path: &[u8]) -> PathBuf {
    String::from_utf8_lossy(path).into_owned().into()
}

/// A configuration of this interval; `later` gives other maxima and kinds.
fn config(log_dir: &Path, interval: &str, later: bool) -> String {
    let (max, kind) = match later {
        false => ("1250000", "gauge"),
        true => ("77", "absolute"),
    };
    // A season's first rows depend on where its archive begins, which stock rrdtool leaves to chance: so no season may end.
    let seasonal = match interval {
        "5" => "RRDHWRRAs[seasons]: RRA:HWPREDICT:1440:0.1:0.0035:288\n",
        _ => "",
    };
    let command = |a: &str, b: &str| format!("`printf '{a}\\n{b}\\n0\\nx\\n'`");
    let mut text = format!(
        "WorkDir: {}\nLogFormat: rrdtool\nInterval: {interval}\n",
        log_dir.display()
    );
    let targets = [
        ("Plain_One", String::new()),
        ("level", format!("Options[level]: growright, {kind}\n")),
        (
            "both_ways",
            "Options[both_ways]: derive\nAbsMax[both_ways]: 99999999999\n".into(),
        ),
        (
            "below",
            "Directory[below]: a/b\nRRDRowCount[below]: 33\nRRDRowCount2h[below]: 7\n".into(),
        ),
        ("seasons", format!("{seasonal}RRDRowCount30m[seasons]: 9\n")),
    ];
    for (at, (name, more)) in targets.iter().enumerate() {
        // A sum beyond 64 bits is stored unchanged.
        let values = command(
            &format!("{at}2345678901234567890123"),
            &format!("{}", 7 + at),
        );
        text +=
            &format!("Target[{name}]: {values}\nTitle[{name}]: x\nMaxBytes[{name}]: {max}\n{more}");
    }
    text
}

/// MRTG's calls of librrd's update, from its debug output: file and arguments.
fn updates(said: &str) -> Vec<(PathBuf, String)> {
    let calls = said
        .lines()
        .filter_map(|line| line.split_once("RRDs::update("));
    let calls = calls.filter_map(|(_, call)| {
        let (path, rest) = call.split_once(", '")?;
        Some((path.into(), rest.split_once('\'')?.0.to_string()))
    });
    calls.collect()
}

pub(crate) fn read(path: &Path) -> Config {
    let path = path.to_string_lossy();
    mrtg_cfg::read(path.as_bytes(), &mut Here).unwrap_or_else(|why| panic!("{why:?}"))
}

fn exercise(interval: &str) {
    let scratch = Scratch::new("poll-mrtg-files");
    let (log_dir, theirs) = (scratch.path("log"), scratch.path("theirs"));
    let file = scratch.path("mrtg.cfg");
    let mut rounds = Vec::new();
    std::fs::create_dir(&log_dir).expect("a folder");
    for later in [false, true] {
        let text = config(&log_dir, interval, later);
        std::fs::write(&file, &text).expect("a configuration");
        let mut mrtg = Command::new("mrtg");
        let output = mrtg.env("LANG", "C").arg("--debug=log").arg(&file).output();
        let output = output.expect("mrtg runs");
        let said =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        let updates = updates(&said);
        assert_eq!(updates.len(), 5, "{said}");
        rounds.push((text, updates));
        // MRTG refuses a second value within a second, and tunes files that are older than its configuration.
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    std::fs::rename(&log_dir, &theirs).expect("a folder");
    std::fs::create_dir(&log_dir).expect("a folder");
    let files = sink::Files::new(Arc::new(RealDisk), 1).expect("files");
    let mut sink = Sink::Files(files);
    for (text, updates) in rounds {
        std::fs::write(&file, text).expect("a configuration");
        let config = read(&file);
        let series = Series::of_all(&config, &Home::new(&log_dir, b"mrtg", None));
        let mut batch = Batch::default();
        for (path, argument) in &updates {
            let at = series.iter().position(|series| series.path == *path);
            let at = at.unwrap_or_else(|| panic!("no target has {}", path.display()));
            batch.push(at, |out| out.extend(argument.as_bytes()));
        }
        sink.begin(series, &[]);
        let mut report = Report::default();
        sink.write(&batch, &mut report);
        assert!(report.refused.is_empty(), "{:?}", report.refused);
    }
    let mut compared = 0;
    for path in files_below(&theirs) {
        if path.extension().is_none_or(|end| end != "rrd") {
            continue;
        }
        let below = path.strip_prefix(&theirs).expect("below");
        let read = |path: &Path| turned(&std::fs::read(path).expect("a file"));
        let differs = difference(&read(&log_dir.join(below)), &read(&path));
        assert_eq!(differs, None, "interval {interval}: {}", below.display());
        compared += 1;
    }
    assert_eq!(compared, 5);
}

#[test]
fn files_are_mrtgs_from_the_configuration_on() {
    if machine::must_skip(&["mrtg", "rrdtool"]) {
        return;
    }
    for interval in ["5", "1", "7", "0:10", "30", "60"] {
        exercise(interval);
    }
}

/// The log without rows of no length: MRTG divides by zero in one that lies at a multiple of five minutes, and ends.
pub(crate) fn convertible(log: &str) -> String {
    let mut before = "";
    let lines = log.split_inclusive('\n').enumerate().filter(|(at, line)| {
        let time = line.split(' ').next().unwrap_or_default();
        // The first line is no row, and has the time of the first one.
        let is_kept = *at < 2 || time != before;
        before = time;
        is_kept
    });
    lines.map(|(_, line)| line).collect()
}

/// Has MRTG and kymo convert these logs, and store the same first value.
fn convert(seed: u64) {
    let scratch = Scratch::new("poll-mrtg-logs");
    let (log_dir, theirs) = (scratch.path("log"), scratch.path("theirs"));
    let file = scratch.path("mrtg.cfg");
    std::fs::create_dir(&log_dir).expect("a folder");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.expect("a time").as_secs() as i64 - 10;
    let random = &mut Random(seed);
    let options = [
        "growright",
        "gauge",
        "absolute",
        "perhour",
        "perminute",
        "bits",
    ];
    let mut text = format!("WorkDir: {}\nLogFormat: rrdtool\n", log_dir.display());
    let mut logs = Vec::new();
    for number in 0..TARGETS {
        let option = options[number % options.len()];
        text += &format!(
            "Target[t{number}]: `printf '12345\\n678\\n0\\nx\\n'`\nTitle[t{number}]: x\nMaxBytes[t{number}]: {}\nOptions[t{number}]: {option}\n",
            1_000_000 * (number + 1),
        );
        logs.push(convertible(&log(random, now_s)));
    }
    std::fs::write(&file, &text).expect("a configuration");
    let put_logs = || {
        for (number, log) in logs.iter().enumerate() {
            std::fs::write(log_dir.join(format!("t{number}.log")), log).expect("a log");
        }
    };
    put_logs();
    let mut mrtg = Command::new("mrtg");
    let output = mrtg.env("LANG", "C").arg("--debug=log").arg(&file).output();
    let output = output.expect("mrtg runs");
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let updates = updates(&said);
    assert_eq!(updates.len(), TARGETS, "{said}");
    std::fs::rename(&log_dir, &theirs).expect("a folder");
    std::fs::create_dir(&log_dir).expect("a folder");
    put_logs();
    let mut sink = Sink::Files(sink::Files::new(Arc::new(RealDisk), 1).expect("files"));
    let series = Series::of_all(&read(&file), &Home::new(&log_dir, b"mrtg", None));
    let mut batch = Batch::default();
    for (at, (_, argument)) in updates.iter().enumerate() {
        batch.push(at, |out| out.extend(argument.as_bytes()));
    }
    sink.begin(series, &[]);
    let mut report = Report::default();
    sink.write(&batch, &mut report);
    let mut compared = 0;
    for number in 0..TARGETS {
        let name = format!("t{number}.rrd");
        let [ours, theirs] =
            [&log_dir, &theirs].map(|folder| std::fs::read(folder.join(&name)).ok());
        let (Some(ours), Some(theirs)) = (&ours, &theirs) else {
            // rrdtool makes no archive without a row, and so MRTG no file.
            assert_eq!(
                ours.is_some(),
                theirs.is_some(),
                "SEED={seed}, {name}: {said} {:?}",
                report.refused
            );
            continue;
        };
        let differs = difference(&turned(ours), &turned(theirs));
        assert_eq!(differs, None, "SEED={seed}, {name}");
        compared += 1;
    }
    assert!(compared > TARGETS / 2, "SEED={seed}: {compared}, {said}");
}

#[test]
fn logs_are_converted_as_mrtg_converts_them() {
    if machine::must_skip(&["mrtg", "rrdtool"]) {
        return;
    }
    let first = first_seed(1);
    (first..first + effort(3)).for_each(convert);
}
