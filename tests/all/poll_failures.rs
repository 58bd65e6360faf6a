//! HWThresh: bounds of what the archive FAILURES of an .rrd has, beside MRTG.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_agentfarm::{Farm, Settings};
use kymo_tests::machine;
use kymo_tests::served::eventually;

use crate::poll_pages::sides::Sides;

/// Archives of a day that repeats, behind two others: the last numbers are those of archives that they need.
const ARCHIVES: &str = "RRA:HWPREDICT:1440:0.1:0.0035:288:4 RRA:SEASONAL:288:0.1:3 RRA:DEVPREDICT:1440:6 \
                        RRA:DEVSEASONAL:288:0.1:3 RRA:FAILURES:288:7:9:6";

/// Seconds of a step, and those before its end in which the other side may be late for it.
const STEP: u64 = 300;
const LATE: u64 = 60;

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time").as_secs()
}

/// A file whose next value completes one step, whenever it comes until the next step ends.
fn make_rrd(file: &Path) {
    let from = now_s() / STEP * STEP - 250 - 12 * STEP;
    let rrdtool = |words: &[String]| {
        let output = Command::new("rrdtool")
            .args(words)
            .output()
            .expect("rrdtool");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
    };
    let name = file.to_str().expect("a path").to_string();
    let mut words = vec![
        "create".into(),
        name.clone(),
        "-b".into(),
        from.to_string(),
        "-s".into(),
        "300".into(),
        "DS:ds0:COUNTER:600:0:12500000".into(),
        "DS:ds1:COUNTER:600:0:12500000".into(),
        "RRA:AVERAGE:0.5:1:800".into(),
        "RRA:MAX:0.5:1:800".into(),
    ];
    words.extend(ARCHIVES.split_whitespace().map(String::from));
    rrdtool(&words);
    let values = (1..=12).map(|at| format!("{}:{at}000:{at}000", from + at * 300));
    let words = ["update".to_string(), name].into_iter().chain(values);
    rrdtool(&words.collect::<Vec<_>>());
}

#[test]
fn failures_have_bounds_as_in_mrtg() {
    if machine::must_skip(&["mrtg", "rrdtool"]) {
        return;
    }
    let farm = Farm::start(Settings {
        first: [127, 0, 21, 95].into(),
        port: 0,
        devices: 1,
        interfaces: 2,
        community: b"public".to_vec(),
    });
    let farm = farm.expect("a farm");
    // Both sides are to run in the same step.
    while now_s() % STEP > STEP - LATE {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let config = format!(
        "WorkDir: WORK\nLogFormat: rrdtool\nThreshDir: WORK\n\
         Target[t]: 1:public@{}:{}\nTitle[t]: T\nMaxBytes[t]: 12500000\nRRDHWRRAs[t]: {ARCHIVES}\n\
         HWThreshMinI[t]: 1\nHWThreshMaxI[t]: 0\nHWThreshMaxO[t]: 0\nHWThreshDesc[t]: not as ever\n\
         HWThreshProgI[t]: WORK/broken\nHWThreshProgOKO[t]: WORK/mended\nThreshMaxO[t]: 1000000000\n",
        farm.address(0),
        farm.settings().port
    );
    let sides = Sides::run("poll-failures", &config, |work| {
        make_rrd(&work.join("t.rrd"));
        for name in ["broken", "mended"] {
            let script = format!(
                "#!/bin/sh\necho $(printf '[%s]' {name} \"$@\" \"$HWTHRESH_DESC\") >> {}/log\n",
                work.display()
            );
            std::fs::write(work.join(name), script).expect("a script");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(work.join(name), mode).expect("its mode");
        }
        // Broken until now.
        std::fs::write(work.join("m.cfg.t.hwthreshmaxO"), "").expect("a file");
    });
    // kymo waits for no program: neither before it starts the next one nor before it ends.
    let lines_of = |work: &Path| {
        let log = std::fs::read_to_string(work.join("log")).unwrap_or_default();
        let mut lines: Vec<String> = log.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    let theirs = lines_of(&sides.theirs);
    eventually(|| (lines_of(&sides.ours).len() >= theirs.len()).then_some(()));
    let ours = lines_of(&sides.ours);
    assert_eq!(ours, theirs);
    let ours = ours.join("\n");
    assert!(
        ours.contains("[broken][t][1][0][not as ever][not as ever]"),
        "{ours}"
    );
    assert!(ours.contains("[mended][t][0][0][not as ever]"), "{ours}");
    for work in [&sides.ours, &sides.theirs] {
        let there = ["minI", "maxI", "maxO"]
            .map(|end| work.join(format!("m.cfg.t.hwthresh{end}")).exists());
        assert_eq!(there, [true, false, false], "{}", work.display());
    }
    // Without files of its own kymo has no prediction, and says so.
    let native = config.replace("LogFormat: rrdtool\n", "");
    let (said, _) = sides.again(&native);
    assert!(
        said.contains("they are not checked, for 1 targets"),
        "{said}"
    );
}
