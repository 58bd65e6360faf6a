//! Prometheus' HTTP API of `kymo serve`: this machine's series and stored ones, errors, forms, and who may see what; promtool
//! as a client, and `kymo query` beside it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_base::label_set::Labels;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_tests::keeper_client::answer_of;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{LONG, Served, ask, eventually, kill};
use kymo_tests::{Scratch, run, stdout_of};
use kymo_wire::keeper::{Answer, KeeperRequest, LabelledSeries, LabelledValues};
use serde_json::{Value, json};

/// A `kymo serve` with a few seconds of recording.
pub(crate) struct Shown {
    served: Served,
    pub(crate) address: String,
    pub(crate) dir: PathBuf,
    _scratch: Scratch,
}

impl Shown {
    pub(crate) fn start(name: &str) -> Shown {
        let scratch = Scratch::new(name);
        let dir = scratch.path("data");
        let config = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n";
        let mut served = Served::configured(&scratch, &dir, config);
        let address = served.address();
        served.has_said("rrdcached's protocol on");
        let shown = Shown {
            served,
            address,
            dir,
            _scratch: scratch,
        };
        let is_ready = || {
            let samples = shown.query("count_over_time(node_load1[1m]) >= 7");
            (!samples["result"].as_array()?.is_empty()).then_some(())
        };
        eventually(is_ready).expect("seven samples");
        shown
    }

    /// `data` of an answer that succeeds.
    pub(crate) fn data(&self, path: &str) -> Value {
        let (status, body) = ask(&self.address, "GET", path, "", "").expect("an answer");
        assert_eq!(status, 200, "{path}: {body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(answer["status"], "success", "{path}: {body}");
        answer["data"].clone()
    }

    fn query(&self, expr: &str) -> Value {
        self.data(&format!("/api/v1/query?query={}", escaped(expr)))
    }

    /// Status, type and text of an error.
    fn error(&self, path: &str) -> (u16, String, String) {
        let (status, body) = ask(&self.address, "GET", path, "", "").expect("an answer");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(answer["status"], "error", "{path}: {body}");
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_string();
        (status, text("errorType"), text("error"))
    }

    fn promtool(&self, words: &[&str], more: &[&str]) -> String {
        let url = format!("http://{}", self.address);
        let mut command = Command::new("promtool");
        command.arg("query").args(words).arg(url).args(more);
        let output = command.output().expect("promtool runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "promtool {words:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A text as a value in a URL.
pub(crate) fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Sends a form; returns status and answer.
fn post(address: &str, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let pairs = form.iter();
    let pairs = pairs.map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
    let body = pairs.collect::<Vec<_>>().join("&");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let sent = stream.write_all((head + &body).as_bytes());
    sent.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let body = serde_json::from_str(body.expect("a body")).expect("JSON");
    (status.expect("a status"), body)
}

pub(crate) fn now_s() -> i64 {
    RealClock.now().real_ns.div_euclid(1_000_000_000)
}

fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list");
    list.iter().filter_map(Value::as_str).collect()
}

/// Has the keeper keep samples of series, each of the same value, at these seconds.
pub(crate) fn write(dir: &Path, series: &[&[(&str, &str)]], stamps_s: &[i64], value: f64) {
    let socket = dir.join("keeper-write.sock");
    let mut stream = eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper");
    for labels in series {
        let labels = labels.iter().map(|(name, value)| (*name, value.as_bytes()));
        let labels = Labels::new(labels).expect("labels");
        let define = KeeperRequest::Define(vec![LabelledSeries {
            labels: labels.clone(),
            step: 10,
            heartbeat: 60,
            start: stamps_s[0] - 10,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        }]);
        let write = KeeperRequest::Write(vec![LabelledValues {
            labels,
            cells: vec![value; stamps_s.len()],
            stamps_ms: stamps_s.iter().map(|s| s * 1000).collect(),
        }]);
        for question in [define, write] {
            assert_eq!(answer_of(&mut stream, &question), Answer::Done);
        }
    }
}

#[test]
fn this_machine_is_asked_as_prometheus_is() {
    let shown = Shown::start("prometheus-api");
    let address = &shown.address;
    // Grafana's first question.
    let form = [("query", "1+1"), ("time", "4")];
    let (status, answer) = post(address, "/api/v1/query", &form);
    let two = json!({"resultType": "scalar", "result": [4, "2"]});
    assert_eq!((status, &answer["data"]), (200, &two));
    let version = shown.data("/prometheus/api/v1/status/buildinfo");
    assert!(
        version["version"]
            .as_str()
            .is_some_and(|v| v.starts_with('3'))
    );

    let memory = shown.query("node_memory_MemTotal_bytes");
    assert_eq!(memory["resultType"], "vector");
    let result = &memory["result"][0];
    assert_eq!(result["metric"]["job"], "node");
    let bytes = result["value"][1]
        .as_str()
        .and_then(|v| v.parse::<f64>().ok());
    assert!(bytes.is_some_and(|bytes| bytes > 1e6), "{memory}");

    let now = now_s().to_string();
    let start = (now_s() - 10).to_string();
    let form = [
        ("query", "rate(node_cpu_seconds_total[30s])"),
        ("start", &start),
        ("end", &now),
        ("step", "1"),
    ];
    let (status, answer) = post(address, "/api/v1/query_range", &form);
    assert_eq!(
        (status, &answer["data"]["resultType"]),
        (200, &json!("matrix"))
    );
    let tracks = answer["data"]["result"].as_array().expect("series");
    assert!(!tracks.is_empty(), "{answer}");
    for track in tracks {
        assert!(track["metric"]["mode"].is_string() && track["metric"]["__name__"].is_null());
        for value in track["values"].as_array().expect("values") {
            let rate = value[1].as_str().and_then(|v| v.parse::<f64>().ok());
            assert!(
                rate.is_some_and(|rate| (0.0..10.0).contains(&rate)),
                "{track}"
            );
        }
    }

    lists(&shown, &start);
    errors(&shown);
}

/// Labels, series and metadata, and lists that stay empty.
fn lists(shown: &Shown, start: &str) {
    let metrics = shown.data("/api/v1/label/__name__/values");
    assert!(strings(&metrics).contains(&"node_load1"));
    let of_cpu = format!(
        "match[]={}",
        escaped("node_cpu_seconds_total{mode=\"idle\"}")
    );
    let names = shown.data(&format!("/api/v1/labels?{of_cpu}"));
    assert_eq!(
        strings(&names),
        ["__name__", "cpu", "instance", "job", "mode"]
    );
    let modes = shown.data(&format!("/api/v1/label/mode/values?{of_cpu}&start={start}"));
    assert_eq!(strings(&modes), ["idle"]);
    let series = shown.data(&format!("/api/v1/series?{of_cpu}&match[]=node_load1"));
    let cpus = shown.query("count(node_cpu_seconds_total{mode=\"idle\"}) + 1");
    let count = series.as_array().map_or(0, Vec::len);
    assert_eq!(cpus["result"][0]["value"][1], json!(count.to_string()));
    let load = shown.data("/api/v1/metadata?metric=node_load1");
    assert_eq!(load["node_load1"][0]["type"], "gauge");
    for (path, data) in [
        ("rules", json!({"groups": []})),
        ("alerts", json!({"alerts": []})),
        ("query_exemplars", json!([])),
        ("format_query?query=a%2Bb", json!("a + b")),
        (
            "parse_query?query=1",
            json!({"type": "numberLiteral", "val": "1"}),
        ),
    ] {
        assert_eq!(shown.data(&format!("/api/v1/{path}")), data, "{path}");
    }
}

fn errors(shown: &Shown) {
    let long = escaped(&format!("{}1", "1+".repeat(200_000)));
    for (path, status, kind, part) in [
        (
            "query?query=sum(",
            400,
            "bad_data",
            "invalid parameter \"query\"",
        ),
        ("query", 400, "bad_data", "invalid parameter \"query\""),
        (
            "query?query=a&time=x",
            400,
            "bad_data",
            "cannot parse \"x\" to a valid timestamp",
        ),
        (
            "query?query=a&limit=-1",
            400,
            "bad_data",
            "invalid parameter \"limit\"",
        ),
        (
            "query?query=a&timeout=-1",
            400,
            "bad_data",
            "timeout must be positive",
        ),
        (
            "query_range?query=a&start=0&end=1e6&step=1",
            400,
            "bad_data",
            "11,000 points",
        ),
        (
            "query_range?query=a&start=2&end=1&step=1",
            400,
            "bad_data",
            "end timestamp",
        ),
        (
            "query_range?query=a%5B1m%5D&start=1&end=2&step=1",
            400,
            "bad_data",
            "range query",
        ),
        ("series", 400, "bad_data", "no match[] parameter provided"),
        ("series?match[]=%7B%7D", 400, "bad_data", "match[]"),
        (
            "labels?start=x",
            400,
            "bad_data",
            "invalid time value for 'start'",
        ),
        ("label//values", 400, "bad_data", "invalid label name"),
        ("rules?type=x", 400, "bad_data", "not supported value \"x\""),
        ("nothing", 404, "", ""),
    ] {
        let path = format!("/api/v1/{path}");
        if status == 404 {
            let answer = ask(&shown.address, "GET", &path, "", "").expect("an answer");
            assert_eq!(answer.0, 404, "{path}");
            continue;
        }
        let (got, got_kind, text) = shown.error(&path);
        assert_eq!((got, got_kind.as_str()), (status, kind), "{path}: {text}");
        assert!(text.contains(part), "{path}: {text}");
    }
    for path in [
        "/api/v1/rules?type=alert",
        "/api/v1/series?match[]=node_load1&start=5&end=1",
    ] {
        assert_eq!(
            ask(&shown.address, "GET", path, "", "")
                .expect("an answer")
                .0,
            200,
            "{path}"
        );
    }
    let twice =
        "label_replace(node_cpu_seconds_total,\"a\",\"\",\"\",\"\") * on() node_cpu_seconds_total";
    let (status, kind, text) = shown.error(&format!("/api/v1/query?query={}", escaped(twice)));
    assert_eq!((status, kind.as_str()), (422, "execution"), "{text}");
    // A form may be far longer than a URL.
    let form = [("query", long.as_str())];
    let (status, answer) = post(&shown.address, "/api/v1/query", &form);
    assert_eq!((status, &answer["errorType"]), (400, &json!("bad_data")));
}

#[test]
fn promtool_and_kymo_query_say_the_same() {
    let shown = Shown::start("prometheus-promtool");
    let t = now_s() - 1;
    let time = t.to_string();
    let expr = "node_memory_MemTotal_bytes";
    let said = shown.promtool(&["instant", &format!("--time={time}")], &[expr]);
    assert!(
        said.contains(expr) && said.contains("job=\"node\""),
        "{said}"
    );
    let (start, end) = (format!("--start={}", t - 5), format!("--end={t}"));
    let said = shown.promtool(
        &["range", &start, &end, "--step=1s"],
        &["count(up) or vector(7)"],
    );
    assert_eq!(said.matches("7 @[").count(), 6, "{said}");
    let said = shown.promtool(&["series", "--match=node_load1", &start, &end], &[]);
    assert!(said.contains("node_load1"), "{said}");
    let said = shown.promtool(&["labels", &start, &end], &["job"]);
    let jobs: Vec<&str> = said.lines().collect();
    assert_eq!(jobs, ["kymo", "node"]);

    let dir = shown.dir.to_string_lossy().into_owned();
    let at = jiff::Timestamp::from_second(t).expect("a time");
    let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for expr in [
        expr,
        "sum by (mode) (rate(node_cpu_seconds_total[30s]))",
        "1",
        "\"text\"",
    ] {
        let path = format!("/api/v1/query?query={}&time={time}", escaped(expr));
        let printed = stdout_of(&["query", expr, "--time", &at, "--json", "--data", &dir]);
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(printed["data"], shown.data(&path), "{expr}");
    }
    let from = jiff::Timestamp::from_second(t - 5).expect("a time");
    let from = from.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let range = [
        "--from", &from, "--thru", &at, "--step", "2s", "--data", &dir,
    ];
    let path = format!(
        "query_range?query=node_load1&start={}&end={t}&step=2",
        t - 5
    );
    let printed = stdout_of(&[&["query", "node_load1", "--json"], &range[..]].concat());
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(printed["data"], shown.data(&format!("/api/v1/{path}")));
    let table = stdout_of(&[&["query", "vector(1.5)"], &range[..]].concat());
    assert_eq!(
        table.lines().filter(|line| line.ends_with(" 1.5")).count(),
        3
    );
    let csv = stdout_of(&["query", "1 + 1", "--csv", "--data", &dir]);
    assert!(
        csv.starts_with("time,value,series\n") && csv.ends_with(",2,\n"),
        "{csv}"
    );
}

#[test]
fn an_expression_becomes_a_picture() {
    let shown = Shown::start("prometheus-graph");
    let dir = shown.dir.to_string_lossy().into_owned();
    let svg = shown.dir.with_file_name("x.svg");
    let svg = svg.to_string_lossy().into_owned();
    let expr = "sum by (mode) (rate(node_cpu_seconds_total[5s]))";
    let more = ["--from", "-20s", "--step", "1s", "--data", &dir];
    stdout_of(&[&["graph", expr, "-o", &svg][..], &more].concat());
    let drawn = std::fs::read_to_string(&svg).expect("svg");
    for text in [
        ">sum by (mode) (rate(node_cpu_seconds_total[5s]))</text>",
        ">user</text>",
        ">idle</text>",
    ] {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
    let png = svg.replace(".svg", ".png");
    stdout_of(&[
        "graph",
        "node_load1",
        "-o",
        &png,
        "--from",
        "-10s",
        "--data",
        &dir,
    ]);
    let bytes = std::fs::read(&png).expect("png");
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 4000);
    for (args, code, expect) in [
        (
            &["sum(node_load1"][..],
            2,
            "cannot use \"sum(node_load1\": 1:15: parse error: ",
        ),
        (
            &["node_load1[5m]"],
            2,
            "cannot evaluate \"node_load1[5m]\": invalid expression type",
        ),
        (&["none{a=\"b\"}"], 1, "no series fits"),
        (&["mistyped"], 1, "no series fits"),
        (&["node_load1", "--step", "x"], 2, "cannot use --step \"x\""),
        (
            &["node_load1", "--from", "-1d", "--step", "1s"],
            2,
            "cannot use --step: more than 11000 points",
        ),
    ] {
        let output = run(&[&["graph", "-o", &png, "--data", &dir][..], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        let starts = said.starts_with(&format!("kymo: {expect}"));
        assert!(starts && said.lines().count() == 1, "{args:?}: {said}");
    }
    // Without a running serve the folder is read.
    let Shown {
        served,
        dir: folder,
        _scratch,
        ..
    } = shown;
    drop(served);
    let dir = folder.to_string_lossy().into_owned();
    std::fs::remove_file(&png).expect("png");
    stdout_of(&[
        "graph",
        "rate(node_cpu_seconds_total[5s])",
        "-o",
        &png,
        "--from",
        "-1min",
        "--open",
        &dir,
    ]);
    assert!(std::fs::read(&png).expect("png").starts_with(b"\x89PNG"));
}

#[test]
fn people_are_for_askers_with_the_token() {
    let shown = Shown::start("prometheus-people");
    let now = now_s();
    let host = machine::host();
    let base = |name| [("__name__", name), ("job", "node"), ("instance", &*host)];
    let open = base("app_open");
    let hidden = [&base("app_hidden")[..], &[("user", "marker-9a")]].concat();
    let stamps: Vec<i64> = (0..6).map(|n| now - 60 + n * 10).collect();
    write(&shown.dir, &[&open, &hidden], &stamps, 3.0);
    let token = std::fs::read_to_string(shown.dir.join("token")).expect("the token");
    let body = |path: &str, token: &str| {
        let (status, body) = ask(&shown.address, "GET", path, token, "").expect("an answer");
        assert_eq!(status, 200, "{path}: {body}");
        body
    };
    let all = escaped("{__name__=~\"app_.+\"}");
    for (path, holds) in [
        (format!("query?query={all}"), "marker-9a"),
        (format!("query?query=count({all})"), "\"2\""),
        ("query?query=app_hidden".into(), "marker-9a"),
        (
            format!("query?query={}", escaped("{user=~\".+\"}")),
            "marker-9a",
        ),
        (
            format!("query?query={}", escaped("{job=\"node\",user!=\"\"}")),
            "marker-9a",
        ),
        (format!("series?match[]={all}"), "marker-9a"),
        (format!("labels?match[]={all}"), "user"),
        ("label/user/values".into(), "marker-9a"),
        ("label/__name__/values".into(), "app_hidden"),
        ("metadata".into(), "app_hidden"),
    ] {
        let path = format!("/api/v1/{path}");
        assert!(body(&path, token.trim()).contains(holds), "{path}");
        assert!(!body(&path, "").contains(holds), "{path}");
    }
    assert!(body("/api/v1/query?query=app_open", "").contains("\"3\""));
    let (status, _) = ask(&shown.address, "GET", "/api/v1/labels", "wrong", "").expect("an answer");
    assert_eq!(status, 401);
}

/// Continues a stopped process at drop, also when the test has failed.
struct Stopped(u32);

impl Drop for Stopped {
    fn drop(&mut self) {
        kill("-CONT", self.0);
    }
}

#[test]
fn a_silent_keeper_costs_its_own_part() {
    let shown = Shown::start("prometheus-silent");
    let stopped = Stopped(shown.served.child("keeper").expect("a keeper"));
    kill("-STOP", stopped.0);
    for path in [
        "query?query=node_load1",
        "series?match[]=node_load1",
        "labels",
    ] {
        let path = format!("/api/v1/{path}");
        let (status, body) = ask(&shown.address, "GET", &path, "", "").expect("an answer");
        assert_eq!(status, 200, "{path}: {body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        let warning = answer["warnings"][0].as_str().unwrap_or_default();
        assert!(warning.contains("the keeper "), "{path}: {body}");
        assert!(
            body.contains("node") || body.contains("cpu"),
            "{path}: {body}"
        );
    }
}

/// The keeper gives each function the value of a row that it needs, and answers name rows that are coarse.
#[test]
fn rows_of_archives_answer_where_values_are_gone() {
    const START_S: i64 = 1_000_000_200;
    let shown = Shown::start("prometheus-rows");
    let mut client = Client::unix(&shown.dir.join("rrdcached.sock")).expect("a client");
    let created = client.text(&format!(
        "CREATE a.rrd -s 60 -b {START_S} DS:load:GAUGE:120:U:U DS:count:DERIVE:120:0:U RRA:AVERAGE:0.5:1:10 \
         RRA:AVERAGE:0.5:10:100 RRA:MIN:0.5:10:100 RRA:MAX:0.5:10:100"
    ));
    assert_eq!(created, "0 RRD created OK");
    // Values of ten minutes are 0 to 9, and the counter grows by 2 a second.
    let values = (1..=120).map(|n| format!("{}:{}:{}", START_S + n * 60, (n - 1) % 10, n * 120));
    let values: Vec<String> = values.collect();
    let updated = client.text(&format!("UPDATE a.rrd {}", values.join(" ")));
    assert!(updated.starts_with("0 errors"), "{updated}");
    let ask_at = |expr: &str, t_s: i64| {
        let path = format!("/api/v1/query?time={t_s}&query={}", escaped(expr));
        let (status, body) = ask(&shown.address, "GET", &path, "", "").expect("an answer");
        assert_eq!(status, 200, "{expr}: {body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        let value = answer["data"]["result"][0]["value"][1].as_str();
        let value = value.and_then(|value| value.parse::<f64>().ok());
        (value, strings_or_none(&answer["warnings"]))
    };
    let (load, count) = (r#"rrd{path="a",ds="load"}"#, r#"rrd{path="a",ds="count"}"#);
    let coarse = "PromQL warning: rows of 10m stand for samples that are gone";
    for (expr, expect, widened) in [
        (load.to_string(), Some(4.5), None),
        (
            format!("min_over_time({load}[1m])"),
            Some(0.0),
            Some("a range of 1m is widened to 10m"),
        ),
        (
            format!("max_over_time({load}[1m])"),
            Some(9.0),
            Some("a range of 1m is widened to 10m"),
        ),
        (format!("avg_over_time({load}[20m])"), Some(4.5), None),
        (
            format!("increase({count}[5m])"),
            Some(600.0),
            Some("a range of 5m is widened to 20m"),
        ),
        (format!("irate({count}[30m])"), None, None),
    ] {
        let (value, warnings) = ask_at(&expr, START_S + 1900);
        assert_eq!(value, expect, "{expr}: {warnings:?}");
        assert!(warnings[0].starts_with(coarse), "{expr}: {warnings:?}");
        let has = |text: &str| warnings.iter().any(|warning| warning.contains(text));
        assert!(widened.is_none_or(has), "{expr}: {warnings:?}");
        assert_eq!(has("widened"), widened.is_some(), "{expr}: {warnings:?}");
    }
    // The finest archive has each value.
    let newest = ask_at(&format!("rate({count}[3m])"), START_S + 7200);
    assert_eq!(newest, (Some(2.0), vec![]));
    assert_eq!(ask_at(load, START_S + 7150).0, Some(8.0));
}

fn strings_or_none(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(str::to_string).collect()
}

#[test]
fn a_folder_with_a_recording_alone_is_asked() {
    let scratch = Scratch::new("query-recording");
    let dir = scratch.text("recorded");
    stdout_of(&["record", "-s", "c", "-i", "0.1", "-c", "5", "-f", &dir]);
    let counted = stdout_of(&["query", "count_over_time(node_load1[1m])", "--open", &dir]);
    let samples = stdout_of(&["series", "samples", "node_load1", "--open", &dir]);
    let count = samples
        .lines()
        .filter(|line| !line.starts_with('#'))
        .count();
    assert!(count >= 4, "{samples}");
    assert!(
        counted.trim_end().ends_with(&format!("  {count}")),
        "{counted}"
    );
}
