//! `--pages` with `LogFormat: rrdtool`: graphs and pages of .rrd files have the figures of those of a .log with the same history.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kymo_agentfarm::{Farm, Settings};
use kymo_poll::pages::comments;
use kymo_tests::{Scratch, kymo};

use crate::poll_logs::case::Random;

/// Above all rates of a history.
const MOST: u64 = 2 << 30;
/// Targets, each with another history.
const TARGETS: u64 = 6;

fn poll(config: &Path, words: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(kymo());
    let output = command.arg("poll").args(words).arg(config).output();
    let output = output.expect("it is started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (said, output.status.code())
}

/// A log whose last update was in time for the next one. A gap is unknown in an .rrd and a rate in a log, and a rate of 0 becomes
/// unknown, so there is neither.
/// The first answer of a device is a leap beyond [`MOST`], which both refuse: else the newest row would show how much of its half hour
/// has passed.
fn history(seed: u64, now_s: i64) -> String {
    let random = &mut Random(seed);
    let mut time_s = now_s - 300;
    let mut text = format!("{time_s} 0 0\n");
    for (step, rows) in [(1, 1), (300, 600), (1800, 600), (7200, 600), (86_400, 732)] {
        time_s = time_s / step * step;
        for _ in 0..rows {
            let [one, two, more] = [1 << 20, 1 << 30, 1000].map(|most| 1 + random.below(most));
            text += &format!("{time_s} {one} {two} {} {two}\n", one + more);
            time_s -= step;
        }
    }
    text
}

fn site(
    scratch: &Scratch,
    farm: &Farm,
    name: &str,
    globals: &str,
    now_s: i64,
) -> std::path::PathBuf {
    let work = scratch.path(name);
    std::fs::create_dir_all(&work).expect("a folder");
    let mut text = format!("WorkDir: {}\n{globals}", work.display());
    for number in 0..TARGETS {
        text += &format!(
            "Target[t{number}]: 1:public@{}:{}::::2\nTitle[t{number}]: T\nMaxBytes[t{number}]: {MOST}\nWithPeak[t{number}]: wmy\n\
             Options[t{number}]: avgpeak\n",
            farm.address(0),
            farm.settings().port
        );
        let history = history(number + 11, now_s);
        std::fs::write(work.join(format!("t{number}.log")), history).expect("a log");
    }
    let config = scratch.path(&format!("{name}.cfg"));
    std::fs::write(&config, text).expect("a configuration");
    config
}

#[test]
fn pages_of_rrd_files_have_the_figures_of_logs() {
    let scratch = Scratch::new("poll-pages-rrd");
    let farm = Farm::start(Settings {
        first: [127, 0, 21, 97].into(),
        port: 0,
        devices: 1,
        interfaces: 2,
        community: b"public".to_vec(),
    });
    let farm = farm.expect("a farm");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time");
    let now_s = i64::try_from(now.as_secs()).expect("a time");
    let logs = site(&scratch, &farm, "logs", "", now_s);
    let rrds = site(&scratch, &farm, "rrds", "LogFormat: rrdtool\n", now_s);
    assert_eq!(poll(&logs, &[]), (String::new(), Some(0)));
    assert_eq!(poll(&rrds, &["--pages"]), (String::new(), Some(0)));
    let mut compared = 0;
    for number in 0..TARGETS {
        let [of_log, of_rrd] = ["logs", "rrds"].map(|name| {
            let page = std::fs::read(scratch.path(name).join(format!("t{number}.html")));
            comments::read(&page.expect("a page"))
        });
        for (period, (of_log, of_rrd)) in of_log.iter().zip(&of_rrd).enumerate() {
            // Largest and mean rates.
            for figure in [0, 1, 3, 4] {
                let [one, two] = [of_log, of_rrd].map(|of| of[figure].expect("a figure") as f64);
                assert!(
                    (one - two).abs() <= 0.03 * one.max(two) + 1.0,
                    "t{number}, {period}: {} {one} {two}",
                    comments::NAMES[figure]
                );
                compared += usize::from(one > 0.0);
            }
        }
    }
    assert!(compared > 60, "{compared} figures");
    // Graphs are drawn again when they are due, and not by a poller without the option.
    let changed = |name: &str| {
        let stat = std::fs::metadata(scratch.path("rrds").join(name)).expect("a file");
        stat.modified().expect("a time")
    };
    let before = ["t0-day.png", "t0-week.png", "t0.html"].map(changed);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(poll(&rrds, &["--pages"]).1, Some(0));
    let after = ["t0-day.png", "t0-week.png", "t0.html"].map(changed);
    assert!(after[0] > before[0] && after[1] == before[1] && after[2] > before[2]);
    assert_eq!(poll(&rrds, &[]).1, Some(0));
    assert_eq!(["t0-day.png", "t0-week.png", "t0.html"].map(changed), after);
}
