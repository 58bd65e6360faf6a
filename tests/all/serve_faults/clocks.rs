//! Clocks that were set, and folders of more than one host.

use std::process::Stdio;

use super::client::{LONG, Served};
use super::made_up::{MadeUp, known_users};
use kymo_tests::{Scratch, kymo, run};
use serde_json::Value;

/// 2026-03-01 12:00 UTC.
const START_S: u64 = 1_772_366_400;

fn times(values: &Value) -> Vec<f64> {
    let values = values.as_array().expect("a list").iter();
    values.filter_map(|mark| mark["time"].as_f64()).collect()
}

/// An hour back, then two hours forward, then a year back: every sample is found at its own time.
#[test]
fn clocks_that_were_set() {
    let scratch = Scratch::new("clocks");
    let dir = scratch.path("ring");
    let mut machine = MadeUp::new(&scratch.path(""), &dir, "clocks", START_S, 64 << 10);
    let steps_s: [i64; 3] = [-3600, 7200, -365 * 86_400];
    machine.record(300, 1);
    for step_s in steps_s {
        machine.set_clock(step_s);
        machine.record(300, 1);
    }
    machine.end();
    let served = Served::start(&["--open", &scratch.text("ring")]);
    let hub = served.hub();
    let year_ago = START_S - 365 * 86_400;
    let mut found = 0;
    for (from, thru) in [
        (START_S, START_S + 300),
        (START_S - 3600 + 300, START_S - 3600 + 600),
        (START_S + 3600 + 600, START_S + 3600 + 900),
        (year_ago + 4500, year_ago + 4800),
        (START_S - 7200, START_S + 7200),
        (year_ago - 7200, START_S + 86_400),
    ] {
        for points in [1, 60, 600, 11_000] {
            let target =
                format!("/kymo/v1/series?fields=cpu.user&from={from}&thru={thru}&points={points}");
            let series = served.json(&target);
            let count = series["count"].as_u64().expect("a count");
            assert!(
                count <= points && series["step"].as_f64() > Some(0.0),
                "{target}: {series}"
            );
            let values = series["series"][0]["avg"].as_array().map(Vec::len);
            assert_eq!(values, Some(count as usize), "{target}");
            found += known_users(&series);
        }
        let marks = served.json(&format!("/kymo/v1/events?from={from}&thru={thru}"));
        let times = times(&marks["marks"]);
        assert!(times.is_sorted(), "{marks}");
    }
    assert!(found > 1000, "{found} values");
    let all = served.json(&format!(
        "/kymo/v1/events?from={}&thru={}",
        year_ago - 7200,
        START_S + 86_400
    ));
    let clocks = all["marks"].as_array().expect("marks").iter();
    assert_eq!(
        clocks.filter(|mark| mark["kind"] == "clock").count(),
        3,
        "{all}"
    );
    for at in [START_S, START_S - 3600, year_ago + 4600, 1] {
        let asked = served.get(&format!("/kymo/v1/processes?at={at}"));
        assert_eq!(asked.status, 404, "{}", asked.text());
        let text = served.get(&format!("/kymo/v1/text?source=proc/stat&at={at}"));
        assert_eq!(text.status, if at == 1 { 404 } else { 200 }, "{at}");
    }
    served.is_unharmed(hub);
}

#[test]
fn a_folder_of_several_hosts() {
    let scratch = Scratch::new("hosts");
    let dir = scratch.path("data");
    for (host, start_s) in [("alpha", START_S), ("beta", START_S + 10_000)] {
        let mut machine = MadeUp::new(&scratch.path(""), &dir, host, start_s, 64 << 10);
        machine.record(100, 1);
        machine.end();
    }
    // A folder of several hosts is refused, with their names.
    let mut child = std::process::Command::new(kymo())
        .args([
            "serve",
            "--open",
            &scratch.text("data"),
            "--listen",
            "127.0.0.1:0",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kymo starts");
    let start = std::time::Instant::now();
    while child.try_wait().expect("its end").is_none() {
        if start.elapsed() > LONG {
            child.kill().expect("killed");
            panic!("it serves a folder of two hosts");
        }
        super::client::pause(20);
    }
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("alpha") && said.contains("beta") && said.lines().count() == 1,
        "{said}"
    );

    // The folder of one host is shown.
    let folder = scratch.text("data/alpha-0123abcd");
    for name in [folder.as_str(), &scratch.text("data/alpha")] {
        shows_alpha(name);
    }

    // This machine records into the same folder, so its own recording is shown.
    let served = Served::recording(&scratch.text("data"));
    let status = served.json("/kymo/v1/status");
    let own = kymo_sys::machine::host();
    assert_eq!(status["host"].as_str(), Some(own.as_str()), "{status}");
    assert!(
        status["from"].as_f64() > Some((START_S + 20_000) as f64),
        "{status}"
    );
    let processes = served.get("/kymo/v1/processes");
    assert_eq!(processes.status, 200, "{}", processes.text());
    drop(served);
    assert!(run(&["dump", &folder]).status.success());
}

fn shows_alpha(name: &str) {
    let served = Served::start(&["--open", name]);
    let status = served.json("/kymo/v1/status");
    assert_eq!(
        (status["host"].as_str(), status["mode"].as_str()),
        (Some("alpha"), Some("file"))
    );
    let range = format!("from={START_S}&thru={}", START_S + 100);
    assert!(known_users(&served.json(&format!("/kymo/v1/series?fields=cpu.user&{range}"))) > 90);
}

/// A block in which the clock was set by a year would be half a million points of each line, minute by minute.
#[test]
fn a_year_within_one_block_is_not_rolled_up() {
    const DAY_S: u64 = 86_400;
    let scratch = Scratch::new("year");
    let dir = scratch.path("data");
    let now_s = std::time::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let host = kymo_sys::machine::host();
    let start_s = now_s - 365 * DAY_S;
    let mut machine = MadeUp::new(&scratch.path(""), &dir, &host, start_s, 64 << 10);
    machine.record(100, 1);
    machine.set_clock(364 * DAY_S as i64);
    machine.record(100, 1);
    machine.end();
    let folder = scratch.path(&format!("data/{host}-0123abcd"));
    let spans = std::fs::read_dir(folder).expect("the folder").flatten();
    let spans: Vec<u64> = spans
        .filter_map(|block| {
            let name = block.file_name().to_string_lossy().into_owned();
            let mut numbers = name.strip_suffix(".blk")?.split('-').skip(1);
            let mut number = || numbers.next()?.parse::<u64>().ok();
            let first = number()?;
            Some(number()? - first)
        })
        .collect();
    assert!(
        spans.iter().any(|&span_s| span_s > 300 * DAY_S),
        "{spans:?}"
    );

    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let target = format!("/kymo/v1/series?fields=cpu.user&from={start_s}&points=11000");
    // The maker of roll-ups starts at once, and has run in the meantime.
    for _ in 0..5 {
        let series = served.json(&target);
        let known = series["series"][0]["avg"].as_array().map(Vec::len);
        assert_eq!(known, series["count"].as_u64().map(|count| count as usize));
        super::client::pause(1000);
    }
    let most_kb = super::client::status_of(hub, "VmHWM:");
    assert!(most_kb < 150 << 10, "{most_kb} KiB");
    served.is_unharmed(hub);
}
