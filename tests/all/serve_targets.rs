//! Targets of the poller in the page, the API and `kymo graph`, compared with rrdtool's rows; some names are hostile.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use kymo_base::label_set::Labels;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_tests::keeper_client::answer_of;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::{Served, ask, eventually, get, kill};
use kymo_tests::{Scratch, kymo};
use kymo_wire::collectd::Severity;
use kymo_wire::keeper::{Answer, Event, KeeperRequest, LabelledSeries, LabelledValues, POLL};
use kymo_wire::targets::{DescribedTarget, TargetsHead};
use serde_json::Value;

const STEP: i64 = 300;
/// Values of two and a half days: more than the day's graph shows.
const VALUES: i64 = 720;
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{1b}[2J";

/// A `kymo serve` with targets.
struct Polled {
    served: Served,
    address: String,
    dir: PathBuf,
    /// Stamp of the newest value.
    now: i64,
    _scratch: Scratch,
}

fn described(name: &str, device: &str) -> DescribedTarget {
    DescribedTarget {
        name: name.into(),
        series: format!("polled/a/{name}.rrd"),
        device: device.into(),
        title: format!("Title of {name}"),
        max_bytes: [1000, 500],
        ..DescribedTarget::default()
    }
}

impl Polled {
    fn start(name: &str) -> Polled {
        let scratch = Scratch::new(name);
        let dir = scratch.path("data");
        let config = "user = \"\"\n[listen]\ncollectd = []\n";
        let mut served = Served::configured(&scratch, &dir, config);
        let address = served.address();
        served.has_said("rrdcached's protocol on");
        let now = RealClock.now().real_ns / 1_000_000_000 / STEP * STEP;
        Polled {
            served,
            address,
            dir,
            now,
            _scratch: scratch,
        }
    }

    /// Writes the file of a configuration with this text.
    fn describe(&self, stem: &str, text: &str) {
        let folder = self.dir.join("poll");
        fs::create_dir_all(&folder).expect("a folder");
        let (file, beside) = (format!("{stem}.targets"), format!("{stem}.targets.tmp"));
        fs::write(folder.join(&beside), text).expect("a file");
        fs::rename(folder.join(beside), folder.join(file)).expect("renamed");
    }

    fn client(&self) -> Client {
        Client::unix(&self.dir.join("rrdcached.sock")).expect("a client")
    }

    /// Creates a series in the poller's form, with counters up to `late` values ago.
    fn fill(&self, name: &str, late: i64) {
        let mut client = self.client();
        let begin = self.now - VALUES * STEP;
        let archives = ["AVERAGE", "MAX"].map(|cf| {
            let archives = [1, 6, 24, 288].map(|steps| format!("RRA:{cf}:0.5:{steps}:800"));
            archives.join(" ")
        });
        let archives = archives.join(" ");
        let made = client.text(&format!(
            "CREATE polled/a/{name}.rrd -b {} -s 300 DS:ds0:COUNTER:600:0:1000 DS:ds1:COUNTER:600:0:1000 {archives}",
            begin - 10
        ));
        assert!(made.starts_with("0 "), "{made}");
        let (mut in_, mut out) = (0u64, 0u64);
        for n in 0..=VALUES - late {
            in_ += (n * n % 700 * STEP) as u64;
            out += (n % 90 * STEP) as u64;
            let stamp = begin + n * STEP;
            let said = client.text(&format!("UPDATE polled/a/{name}.rrd {stamp}:{in_}:{out}"));
            assert!(said.starts_with("0 "), "{said}");
        }
    }

    fn get(&self, path: &str) -> Value {
        get(&self.address, path, "")
    }

    /// Repeats the request until its numbers are current.
    fn settled(&self, path: &str) -> Value {
        let settled = eventually(|| {
            let answer = self.get(path);
            let is_settled = answer["pending"] == false && answer["at"].is_number();
            is_settled.then_some(answer)
        });
        settled.expect("numbers")
    }

    /// The ids of a list of targets.
    fn ids(&self, query: &str) -> Vec<String> {
        let answer = self.settled(&format!("/kymo/v1/targets{query}"));
        let targets = answer["targets"].as_array().expect("targets");
        let id = |target: &Value| target["id"].as_str().expect("an id").to_string();
        targets.iter().map(id).collect()
    }

    /// Rows of rrdtool: stamp of the end, and value.
    fn fetched(&self, name: &str, cf: &str, step: i64, column: usize) -> Vec<(i64, f64)> {
        let flushed = self.client().text(&format!("FLUSH polled/a/{name}.rrd"));
        assert!(flushed.starts_with("0 "), "{flushed}");
        let file = self.dir.join(format!("rrd/polled/a/{name}.rrd"));
        let (file, step) = (file.to_string_lossy(), step.to_string());
        let (from, thru) = ((self.now - 100_000).to_string(), self.now.to_string());
        let words = ["fetch", &file, cf, "-r", &step, "-s", &from, "-e", &thru];
        let output = rrdtool(&self.dir, &words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let row = |line: &str| {
            let (stamp, values) = line.split_once(": ")?;
            let value: f64 = values.split(' ').nth(column)?.parse().ok()?;
            Some((stamp.parse().ok()?, value)).filter(|(_, value)| !value.is_nan())
        };
        text.lines().filter_map(row).collect()
    }

    /// Writes the poller's values of a device to the keeper.
    fn device(&self, device: &str, values: [f64; 5], age_s: i64) {
        let labels = [("device", device.as_bytes()), ("job", b"poll")];
        let labels = Labels::new(labels).expect("labels");
        let columns = ["round_trip_s", "losses", "retries", "unseen_s", "late_s"];
        let columns = columns.map(|name| (name.as_bytes().to_vec(), b"GAUGE".to_vec()));
        let stamp = RealClock.now().real_ns / 1_000_000_000 - age_s;
        let define = KeeperRequest::Define(vec![LabelledSeries {
            labels: labels.clone(),
            step: 300,
            heartbeat: 600,
            start: stamp - 601,
            columns: columns.to_vec(),
        }]);
        let rows = [stamp - 600, stamp - 300, stamp];
        let write = KeeperRequest::Write(vec![LabelledValues {
            labels,
            stamps_ms: rows.map(|stamp| stamp * 1000).to_vec(),
            cells: [values; 3].concat(),
        }]);
        self.send(&[define, write]);
    }

    /// Sends the poller's requests to the keeper.
    fn send(&self, requests: &[KeeperRequest]) {
        let socket = self.dir.join("keeper-write.sock");
        let mut stream = UnixStream::connect(socket).expect("a keeper");
        for request in requests {
            assert_eq!(answer_of(&mut stream, request), Answer::Done);
        }
    }
}

/// An event of a device, `age_s` seconds ago.
fn happened(device: &str, age_s: i64, severity: Severity, message: &str) -> Event {
    Event {
        time_ns: RealClock.now().real_ns - age_s * 1_000_000_000,
        severity,
        host: device.into(),
        plugin: POLL.to_vec(),
        plugin_instance: Vec::new(),
        type_name: Vec::new(),
        type_instance: Vec::new(),
        message: message.into(),
    }
}

/// Values of a line of a graph by the stamps at which their rows end.
fn line(graph: &Value, direction: usize, what: &str) -> Vec<(i64, f64)> {
    let (first, step) = (graph["first"].as_i64(), graph["step"].as_i64());
    let (first, step) = (first.expect("first"), step.expect("step"));
    let values = graph["lines"][direction][what].as_array().expect("values");
    let rows = (0..).zip(values);
    rows.filter_map(|(n, value)| Some((first + n * step, value.as_f64()?)))
        .collect()
}

fn graph<'a>(answer: &'a Value, period: &str) -> &'a Value {
    let graphs = answer["graphs"].as_array().expect("graphs");
    let mut graphs = graphs.iter();
    graphs
        .find(|graph| graph["period"] == period)
        .expect(period)
}

/// Each row of rrdtool is there, and is equal.
fn same_rows(ours: &[(i64, f64)], theirs: &[(i64, f64)], least: usize, story: &str) {
    assert!(theirs.len() >= least, "{story}: {} rows", theirs.len());
    for (stamp, value) in theirs {
        let mine = ours.iter().find(|(at, _)| at == stamp);
        let (_, mine) = mine.unwrap_or_else(|| panic!("{story}: no row at {stamp}"));
        assert!(
            (mine - value).abs() <= value.abs() * 2e-5,
            "{story}: {stamp}: {mine} and {value}"
        );
    }
}

#[test]
fn graphs_have_the_rows_of_rrdtool() {
    let polled = Polled::start("targets-rows");
    polled.fill("x", 0);
    let target = DescribedTarget {
        title: HOSTILE.into(),
        page_top: format!("{HOSTILE}\n& more"),
        options: vec!["bits".into(), "growright".into()],
        with_peak: "wmy".into(),
        suppress: "y".into(),
        ..described("x", "sw1")
    };
    let text = TargetsHead::new("a.cfg".into(), 300, 1).line() + &target.line();
    polled.describe("a", &text);
    let answer = polled.get("/kymo/v1/targets/graphs?id=a/x");
    for (direction, least) in [(0, 300), (1, 300)] {
        let day = line(graph(&answer, "day"), direction, "avg");
        let theirs = polled.fetched("x", "AVERAGE", 300, direction);
        same_rows(&day, &theirs, least, "the day");
        let week = graph(&answer, "week");
        let theirs = polled.fetched("x", "AVERAGE", 1800, direction);
        same_rows(&line(week, direction, "avg"), &theirs, 50, "the week");
        let theirs = polled.fetched("x", "MAX", 1800, direction);
        same_rows(
            &line(week, direction, "peak"),
            &theirs,
            50,
            "peaks of the week",
        );
    }
    // Maximum and current value are those of the drawn rows.
    let day = graph(&answer, "day");
    let values = line(day, 0, "avg");
    let largest = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    assert_eq!(day["lines"][0]["max"].as_f64(), Some(largest));
    assert_eq!(
        day["lines"][0]["current"].as_f64(),
        values.last().map(|(_, value)| *value)
    );
    assert_eq!(
        answer["graphs"].as_array().map(Vec::len),
        Some(3),
        "the year is suppressed"
    );
    // Texts have no markup, and no control characters of a terminal.
    assert_eq!(answer["title"], "<img src=x onerror=alert(1)>\\x1b[2J");
    assert_eq!(answer["page_top"][1], "& more");
    assert_eq!(answer["unit"]["name"], "b/s");
    // The percentile is of as many rates as there are rows of five minutes, or as are kept.
    let known = answer["percentile"]["values"][0].as_u64().expect("values");
    assert!(known > 25, "{}", answer["percentile"]);
    assert!(answer["percentile"]["rates"][0].as_f64() < Some(700.0));
    for id in ["a/y", "b/x", "x", "", "../a/x"] {
        let path = format!("/kymo/v1/targets/graphs?id={id}");
        let (status, said) = ask(&polled.address, "GET", &path, "", "").expect("an answer");
        assert_eq!(status, 404, "{said}");
    }
}

#[test]
fn lists_are_sorted_searched_and_cut() {
    let polled = Polled::start("targets-lists");
    polled.fill("x", 0);
    polled.fill("y", 12);
    let mut text = TargetsHead::new("a.cfg".into(), 300, 4).line();
    for target in [
        described("x", "sw1"),
        described("y", "sw2"),
        described("port10", "sw3"),
        described("port9", "sw3"),
    ] {
        text += &target.line();
    }
    // Senseless lines are skipped.
    text += "{\"name\":\"a/b\",\"series\":\"z\"}\nrubbish\n";
    polled.describe("a", &text);
    polled.describe("b", "rubbish\n");
    polled.describe(
        "c",
        &(TargetsHead::new("c.cfg".into(), 300, 1).line() + &described("x", "sw1").line()),
    );
    assert_eq!(polled.ids(""), ["a/port9", "a/port10", "a/x", "c/x", "a/y"]);
    assert_eq!(polled.ids("?sort=-name&limit=2"), ["a/y", "a/x"]);
    assert_eq!(polled.ids("?first=3&limit=2"), ["a/x", "c/x"]);
    assert_eq!(polled.ids("?q=TITLE+sw2"), ["a/y"]);
    assert_eq!(polled.ids("?device=sw1"), ["a/x", "c/x"]);
    assert_eq!(polled.ids("?sort=missing&limit=1"), ["a/y"]);
    let traffic = polled.ids("?sort=traffic");
    assert_eq!(traffic[..2], ["a/x", "c/x"]);
    let answer = polled.settled("/kymo/v1/targets?q=a+x&device=sw1");
    assert_eq!(answer["total"], 5);
    assert_eq!(
        answer["problems"][0],
        "cannot read b.targets: a line makes no sense"
    );
    // The current rate is the newest row's.
    let rates = polled.settled("/kymo/v1/targets?sort=traffic");
    let (_, newest) = *polled.fetched("x", "AVERAGE", 300, 0).last().expect("rows");
    let rate = rates["targets"][0]["rates"][0].as_f64().expect("a rate");
    assert!((rate - newest).abs() < 0.01, "{rate} {newest}");
    assert_eq!(
        rates["targets"][0]["used"][0].as_f64().map(f64::round),
        Some((newest / 10.0).round())
    );
    for query in ["?sort=colour", "?limit=0", "?limit=1001", "?first=0"] {
        let path = format!("/kymo/v1/targets{query}");
        let (status, said) = ask(&polled.address, "GET", &path, "", "").expect("an answer");
        assert_eq!(status, 400, "{said}");
    }
    // A file that is removed takes its targets along.
    fs::remove_file(polled.dir.join("poll/c.targets")).expect("removed");
    let gone = eventually(|| (polled.ids("").len() == 4).then_some(()));
    assert!(gone.is_some(), "{:?}", polled.ids(""));
}

#[test]
fn devices_that_do_not_answer_come_first() {
    let polled = Polled::start("targets-devices");
    let mut text = TargetsHead::new("a.cfg".into(), 300, 4).line();
    for (name, late) in [("good", 0), ("slow", 0), ("dead", 0), ("mute", 20)] {
        polled.fill(name, late);
        text += &described(name, name).line();
    }
    text += &described("unknown", "unknown").line();
    polled.device("good", [0.005, 0.0, 0.0, 0.0, 0.0], 1);
    polled.device("slow", [0.9, 2.0, 2.0, 0.0, 0.0], 1);
    polled.device("dead", [f64::NAN, 5.0, 4.0, 4000.0, 0.0], 1);
    polled.describe("a", &text);
    let answer = polled.settled("/kymo/v1/targets/devices");
    let devices = answer["devices"].as_array().expect("devices");
    let states: Vec<(&str, &str)> = devices
        .iter()
        .map(|device| {
            (
                device["device"].as_str().unwrap_or("?"),
                device["state"].as_str().unwrap_or("?"),
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            ("dead", "dead"),
            ("mute", "dead"),
            ("slow", "slow"),
            ("good", "good"),
            ("unknown", "unknown")
        ]
    );
    assert_eq!(devices[2]["rtt"], 900.0);
    assert_eq!(devices[3]["targets"], 1);
    assert!(polled.served.child("keeper").is_some());
}

/// A target's graphs have the marks of its own device only; a repeated notification leaves one mark.
#[test]
fn what_happened_to_a_device_is_on_its_graphs() {
    let polled = Polled::start("targets-marks");
    polled.fill("x", 0);
    let text = TargetsHead::new("a.cfg".into(), 300, 2).line();
    let targets = [described("x", "sw1"), described("y", "sw2")];
    let lines: String = targets.iter().map(DescribedTarget::line).collect();
    polled.describe("a", &(text + &lines));
    let silent = happened("sw1", 7200, Severity::Failure, HOSTILE);
    let restarted = happened("sw1", 60, Severity::Warning, "was started again");
    let beside = Event {
        plugin: b"df".to_vec(),
        ..happened("sw1", 30, Severity::Failure, "is full")
    };
    let of_others = happened("sw2", 30, Severity::Okay, "answers again");
    let all = [&silent, &restarted, &beside, &of_others].map(Event::clone);
    polled.send(&[
        KeeperRequest::Notify(all.to_vec()),
        KeeperRequest::Notify(vec![restarted.clone()]),
    ]);
    let marks = |answer: &Value| {
        let marks = answer["marks"].as_array().expect("marks").clone();
        let words = |mark: Value| {
            let text = |name: &str| mark[name].as_str().unwrap_or("").to_string();
            [text("kind"), text("device"), text("text")]
        };
        marks.into_iter().map(words).collect::<Vec<_>>()
    };
    let silence = [
        "failure",
        "sw1",
        "sw1: <img src=x onerror=alert(1)>\\x1b[2J",
    ];
    let restart = ["warning", "sw1", "sw1: was started again"];
    let back = ["okay", "sw2", "sw2: answers again"];
    let answer = polled.get("/kymo/v1/targets/graphs?id=a/x");
    assert_eq!(marks(&answer), [silence, restart]);
    assert_eq!(
        answer["marks"][1]["time"].as_f64().map(f64::floor),
        Some((restarted.time_ns / 1_000_000_000) as f64)
    );
    assert_eq!(marks(&polled.get("/kymo/v1/targets/graphs?id=a/y")), [back]);
    // The list of all events has the device's events beside those of hosts.
    let listed = marks(&polled.get("/kymo/v1/events?from=-86400&thru=now"));
    let is_there = |mark: [&str; 3]| listed.contains(&mark.map(String::from));
    assert!(is_there(silence) && is_there(back), "{listed:?}");
    assert!(is_there(["failure", "", "sw1/df: is full"]), "{listed:?}");
    let mut list = Command::new(kymo());
    list.args([
        "series", "events", "sw1", "--from", "-1d", "--json", "--data",
    ]);
    let output = list.arg(&polled.dir).output().expect("kymo runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let kinds = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let kinds: Vec<Value> = kinds.map(|event: Value| event["kind"].clone()).collect();
    assert_eq!(kinds, ["failure", "warning", "failure"], "{text}");
    // The events outlive the keeper.
    let keeper = polled.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    let again = eventually(|| {
        let (status, body) = ask(
            &polled.address,
            "GET",
            "/kymo/v1/targets/graphs?id=a/x",
            "",
            "",
        )?;
        let answer: Value = serde_json::from_str(&body).ok()?;
        (status == 200 && !marks(&answer).is_empty()).then_some(answer)
    });
    assert_eq!(marks(&again.expect("marks")), [silence, restart]);
    // The socket for reading refuses new events.
    let socket = polled.dir.join("keeper.sock");
    let mut stream = UnixStream::connect(socket).expect("a keeper");
    assert!(matches!(
        answer_of(&mut stream, &KeeperRequest::Notify(vec![restarted])),
        Answer::Refused(_)
    ));
}

/// Targets with files elsewhere below the store's base do not count as hosts; `series ls` lists them all, also as JSON.
#[test]
fn targets_are_told_from_what_hosts_send() {
    let polled = Polled::start("targets-hosts");
    let names = ["routers/core_1.rrd", "web1/load/load.rrd"];
    for name in names {
        let made = polled.client().text(&format!(
            "CREATE {name} -s 300 DS:ds0:GAUGE:600:0:U DS:ds1:GAUGE:600:0:U RRA:AVERAGE:0.5:1:10"
        ));
        assert!(made.starts_with("0 "), "{made}");
    }
    let target = DescribedTarget {
        series: names[0].into(),
        ..described("core_1", "core")
    };
    let text = TargetsHead::new("a.cfg".into(), 300, 1).line() + &target.line();
    polled.describe("a", &text);
    let stored = polled.get("/kymo/v1/stored");
    let series = stored["series"].as_array().expect("series");
    let is_target = |name: &str| {
        let mut found = series.iter().filter(|one| one[0] == name);
        found.next().expect(name)[3] == true
    };
    assert_eq!(names.map(is_target), [true, false], "{series:?}");
    let mut list = Command::new(kymo());
    list.args(["series", "ls", "--json", "--data"]);
    let output = list.arg(&polled.dir).output().expect("kymo runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let listed: Vec<Value> = lines.collect();
    let known: Vec<&Value> = listed
        .iter()
        .filter(|one| names.iter().any(|name| one["name"] == *name))
        .collect();
    assert_eq!(known.len(), 2, "{text}");
    assert_eq!(known[0]["step"], 300);
    assert_eq!(known[1]["columns"][1]["name"], "ds1");
}

#[test]
fn targets_are_drawn() {
    let polled = Polled::start("targets-drawn");
    polled.fill("x", 0);
    let target = DescribedTarget {
        title: HOSTILE.into(),
        ..described("x", "sw1")
    };
    polled.describe(
        "a",
        &(TargetsHead::new("a.cfg".into(), 300, 1).line() + &target.line()),
    );
    let output = polled.dir.join("x.svg");
    let draw = |words: &[&str]| {
        let mut command = Command::new(kymo());
        command
            .args(["graph", "--data"])
            .arg(&polled.dir)
            .arg("-o")
            .arg(&output);
        let output = command
            .args(words)
            .env("TZ", "UTC")
            .output()
            .expect("kymo runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(
        draw(&["--target", "X", "--period", "day,week"]),
        (Some(0), String::new())
    );
    let svg = fs::read_to_string(&output).expect("a picture");
    assert!(svg.contains("&lt;img src=x onerror=alert(1)&gt;") && !svg.contains("<img"));
    assert!(svg.contains(">Day<") && svg.contains(">Week<") && !svg.contains(">Month<"));
    for (words, code, said) in [
        (&["--target", "y"][..], 2, "cannot find target y in"),
        (&["--target", "b/x"], 2, "cannot find target b/x in"),
        (
            &["--target", "x", "--period", "hour"],
            2,
            "cannot draw period \"hour\": it is day, week, month or year",
        ),
        (&["--period", "day"], 2, "--target <NAME>"),
    ] {
        let (found, text) = draw(words);
        assert_eq!(found, Some(code), "{text}");
        assert!(text.contains(said), "{text}");
    }
}
