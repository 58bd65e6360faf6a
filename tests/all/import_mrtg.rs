//! `kymo import --mrtg`: history that MRTG has kept, in its own logs or in .rrd files, comes into a store, and a poller goes on
//! with it. Stock rrdtool makes the expected files from those that `poll_mrtg_files` compares with MRTG's.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_agentfarm::{Farm, Settings};
use kymo_poll::sink::{Home, Series};
use kymo_rrd::{Rrd, take_rows};
use kymo_sys::effort::{effort, first_seed};
use kymo_tests::rrd_file::{difference, turned};
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::eventually;

use crate::import::Place;
use crate::poll_logs::case::{Random, log};
use crate::poll_mrtg_files::{convertible, read};

const OPTIONS: [&str; 6] = [
    "growright",
    "gauge",
    "absolute",
    "perhour",
    "perminute",
    "bits",
];

pub(crate) fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time").as_secs() as i64
}

/// A configuration with a target for each option, in a folder that has its log.
pub(crate) fn logged(folder: &Path, interval: &str, seed: u64) -> String {
    fs::create_dir_all(folder.join("sub")).expect("a folder");
    let random = &mut Random(seed);
    let mut text = format!("WorkDir: {}\nInterval: {interval}\n", folder.display());
    for (number, option) in OPTIONS.iter().enumerate() {
        text += &format!(
            "Target[t{number}]: `false`\nTitle[t{number}]: x\nMaxBytes[t{number}]: 99999999999999\nOptions[t{number}]: {option}\n"
        );
        let name = match number {
            2 => {
                text += "Directory[t2]: sub\n";
                "sub/t2.log".into()
            }
            _ => format!("t{number}.log"),
        };
        let log = convertible(&log(random, now_s() - 10));
        fs::write(folder.join(name), log).expect("a log");
    }
    text
}

/// The file that stock rrdtool makes of a converted log for this series, with the log's own rows as they are: rrdtool fills the
/// unknown ones with means of longer rows.
fn expected(folder: &Path, series: &Series) -> Vec<u8> {
    let text = fs::read(series.path.with_extension("log")).expect("a log");
    let converted = series.convert_log(&text, &mut 1).expect("a file");
    fs::write(folder.join("converted.rrd"), converted.to_bytes()).expect("a file");
    let step = series.step_s.to_string();
    let sources = series.sources();
    let words = sources.iter().chain(series.archives.iter());
    let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
    let words: Vec<String> = words.collect();
    let mut all = vec!["create", "made.rrd", "--step", &step];
    all.extend(["--source", "converted.rrd"]);
    all.extend(words.iter().map(String::as_str));
    let output = rrdtool(folder, &all);
    assert!(output.status.success(), "{output:?}");
    let made = fs::read(folder.join("made.rrd")).expect("a file");
    let mut made = Rrd::parse(&made).expect("a file of rrdtool");
    take_rows(&mut made, &converted);
    made.to_bytes()
}

fn compare(interval: &str, format: &str, seed: u64) {
    let place = Place::new("import-mrtg");
    let folder = place.scratch.path("www");
    let text = logged(&folder, interval, seed) + format;
    let file = place.scratch.path("core.cfg");
    fs::write(&file, text).expect("a configuration");
    let words = ["--mrtg", &file.to_string_lossy()];
    let (code, text, said) = place.import(&[&words[..], &["--dry-run"]].concat());
    assert_eq!((code, said), (0, Vec::new()), "SEED={seed}: {text}");
    let counts = "series: 6 new, 0 extended, 0 complete before, 0 left out\n";
    assert!(text.ends_with(counts), "{text}");
    let (_, text, _) = place.import(&words);
    assert!(text.ends_with(counts), "{text}");
    let ours = place.exported("out");
    assert_eq!(ours.len(), OPTIONS.len());
    for series in Series::of_all(&read(&file), &Home::new(&folder, b"core", None)) {
        let name = String::from_utf8_lossy(&series.name).into_owned();
        let theirs = expected(&place.scratch.path(""), &series);
        let ours = &ours[Path::new(&name)];
        let differs = difference(&turned(ours), &turned(&theirs));
        assert_eq!(differs, None, "SEED={seed}, {name}, {interval}, {format}");
    }
    let (code, text, said) = place.import(&words);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    assert!(
        text.contains(" 0 new, 0 extended, 6 complete before,"),
        "{text}"
    );
}

#[test]
fn native_logs_come_with_all_rows() {
    let first = first_seed(1);
    for seed in first..first + effort(2) {
        compare("5", "", seed);
    }
    compare("10", "", first);
    // As MRTG converts them when the format is new.
    compare("5", "LogFormat: rrdtool\n", first);
    compare("1", "LogFormat: rrdtool\n", first);
}

#[test]
fn files_of_mrtg_come_as_they_are() {
    let place = Place::new("import-mrtg-rrd");
    let folder = place.scratch.path("www");
    fs::create_dir_all(&folder).expect("a folder");
    let start = (now_s() - 3000).to_string();
    let create = ["create", "a.rrd", "--start", &start];
    let words = [
        "DS:ds0:COUNTER:600:0:125000",
        "DS:ds1:COUNTER:600:0:125000",
        "RRA:AVERAGE:0.5:1:800",
        "RRA:MAX:0.5:1:800",
    ];
    let output = rrdtool(&folder, &[&create[..], &words[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let last = (now_s() - 100).to_string() + ":7:8";
    let output = rrdtool(&folder, &["update", "a.rrd", &last]);
    assert!(output.status.success(), "{output:?}");
    fs::write(folder.join("c.log"), "no log\n").expect("a file");
    // A row of no length, at a multiple of five minutes: MRTG divides by zero there.
    let rows = [1200, 900, 900, 600].map(|time| format!("{time} 1 2 3 4\n"));
    let text = format!("1200 5 6\n{}", rows.concat());
    fs::write(folder.join("d.log"), text).expect("a file");
    let mut text = format!("WorkDir: {}\nLogFormat: rrdtool\n", folder.display());
    for name in ["a", "b", "c", "d"] {
        text += &format!("Target[{name}]: `false`\nTitle[{name}]: x\nMaxBytes[{name}]: 125000\n");
    }
    let file = place.scratch.text("core.cfg");
    fs::write(&file, text).expect("a configuration");
    // A log alone.
    let log = convertible(&log(&mut Random(3), now_s()));
    fs::write(place.scratch.path("r 1.log"), log).expect("a log");
    let alone = place.scratch.text("r 1.log");
    let (code, text, said) = place.import(&["--mrtg", &file, &alone]);
    let [b, c, d] = ["b", "c", "d"].map(|name| folder.join(name).display().to_string());
    let refused = [
        format!("kymo: cannot import mrtg/core/b.rrd: there is neither {b}.rrd nor {b}.log"),
        format!(
            "kymo: cannot import mrtg/core/c.rrd: {c}.log cannot be converted: its first line is no time and two values"
        ),
        format!(
            "kymo: cannot import mrtg/core/d.rrd: {d}.log cannot be converted: its rows have no order in time"
        ),
    ];
    assert_eq!((code, &said[..]), (1, &refused[..]), "{text}");
    assert!(text.ends_with("series: 2 new, 0 extended, 0 complete before, 3 left out\n"));
    let ours = place.exported("out");
    let names: Vec<_> = ours.keys().map(|name| name.to_string_lossy()).collect();
    assert_eq!(names, ["mrtg/core/a.rrd", "mrtg/r 1.rrd"]);
    let theirs = fs::read(folder.join("a.rrd")).expect("a file");
    assert!(ours[Path::new("mrtg/core/a.rrd")] == theirs);
    // Files that cannot be read.
    fs::write(&file, "Target[a]: what\n").expect("a configuration");
    for (name, why) in [
        (&file, ": "),
        (&place.scratch.text("none.log"), "there is no such file"),
    ] {
        let (code, _, said) = place.import(&["--mrtg", name]);
        let begin = format!("kymo: cannot import {name}: ");
        assert_eq!(code, 2, "{said:?}");
        assert!(
            said[0].starts_with(&begin) && said[0].contains(why),
            "{said:?}"
        );
    }
}

/// A poller of `kymo serve` has begun the series before their history comes, and goes on with them.
#[test]
fn a_poller_goes_on_with_the_history() {
    let farm = Farm::start(Settings {
        first: Ipv4Addr::new(127, 0, 35, 1),
        port: 0,
        devices: 1,
        interfaces: 2,
        community: b"public".to_vec(),
    });
    let farm = farm.expect("a farm");
    let mut place = Place::new("import-mrtg-poll");
    // The machine before, of which this one has a copy.
    let [old, new] = ["old", "new"].map(|name| place.scratch.path(name));
    for folder in [&old, &new] {
        fs::create_dir_all(folder).expect("a folder");
        let (address, port) = (farm.address(0), farm.settings().port);
        let mut text = format!(
            "WorkDir: {}\nLogFormat: rrdtool\nInterval: 0:10\n",
            folder.display()
        );
        for number in [1, 2] {
            text += &format!(
                "Target[i{number}]: {number}:public@{address}:{port}::::2\nTitle[i{number}]: x\nMaxBytes[i{number}]: 125000000\n"
            );
        }
        fs::write(folder.join("core.cfg"), text).expect("a configuration");
    }
    for number in [1, 2] {
        let logs = (number..)
            .step_by(2)
            .map(|seed| log(&mut Random(seed), now_s() - 900));
        let log = logs
            .map(|log| convertible(&log))
            .find(|log| log.lines().count() > 2000);
        let log = log.expect("a log of years");
        fs::write(old.join(format!("i{number}.log")), log).expect("a log");
    }
    let [old, new] = [old, new].map(|folder| folder.join("core.cfg").display().to_string());
    place.restart_with(&format!("[poll]\nmrtg = [\"{new}\"]\n"));
    let names = ["mrtg/core/i1.rrd", "mrtg/core/i2.rrd"];
    let rows = |to: &str| {
        let files = place.exported(to);
        let rows = |name: &str| {
            fs::write(place.scratch.path("a.rrd"), files.get(Path::new(name))?).expect("a file");
            let words = ["fetch", "a.rrd", "AVERAGE", "-s", "-2y", "-r", "86400"];
            let output = rrdtool(&place.scratch.path(""), &words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text.lines().filter(|line| line.contains("e+")).count())
        };
        let [one, two] = names.map(rows);
        Some([one?, two?])
    };
    let before = eventually(|| rows("begun")).expect("series of the poller");
    assert_eq!(before, [0; 2]);
    let (code, text, said) = place.import(&["--mrtg", &old]);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    assert!(
        text.contains("series: 0 new, 2 extended, 0 complete before,"),
        "{text}"
    );
    let after = rows("after").expect("series of the poller");
    assert!(after.iter().all(|rows| *rows > 300), "{after:?}");
    // The poller's values still come.
    let values = |to: &str| Some(place.exported(to)[Path::new(names[0])].clone());
    let before = values("then");
    eventually(|| (values("now") != before).then_some(())).expect("another value");
}
