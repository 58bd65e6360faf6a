//! `[query] upstream`: Debian's Prometheus, and another kymo, are asked for series that `kymo serve` does not have. One that is away
//! costs its own series alone, and answers say so.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use kymo_tests::machine::skipped;
use kymo_tests::served::{Served, ask, eventually, kill};
use kymo_tests::{Running, Scratch, free_port, stdout_of};
use kymo_wire::remote_write::{WriteEncoder, WriteLabel, WriteSample, WriteVersion, compress};
use serde_json::{Value, json};

use crate::prometheus_api::{escaped, now_s};

/// A `kymo serve` that takes lines of Graphite and asks an upstream.
struct Asking {
    _served: Served,
    address: String,
    graphite: String,
    scratch: Scratch,
}

impl Asking {
    fn start(name: &str, page: &str, query: &str) -> Asking {
        let scratch = Scratch::new(name);
        let graphite = format!("127.0.0.1:{}", free_port());
        let file = scratch.text("kymo.toml");
        let config = format!(
            "user = \"\"\n[listen]\ncollectd = []\ngraphite = [\"{graphite}\"]\n[query]\n{query}\n"
        );
        fs::write(&file, config).expect("a configuration");
        let data = scratch.text("data");
        let words = ["--config", &file, "--data", &data, "--listen", page];
        let mut served = Served::start(&words);
        let address = served.address();
        served.has_said("upstream: user ");
        served.has_said("rrdcached's protocol on");
        Asking {
            _served: served,
            address,
            graphite,
            scratch,
        }
    }

    /// Sends values of Graphite with their times.
    fn send(&self, path: &str, samples: &[(i64, f64)]) {
        let mut stream =
            eventually(|| TcpStream::connect(&self.graphite).ok()).expect("the listener");
        for (t, value) in samples {
            writeln!(stream, "{path} {value} {t}").expect("a line");
        }
    }

    /// An answer of Prometheus' API.
    fn answer(&self, path: &str, token: &str) -> Option<Value> {
        let (_, body) = ask(&self.address, "GET", &format!("/api/v1/{path}"), token, "")?;
        serde_json::from_str(&body).ok()
    }

    /// The answer once it fits.
    fn waits(&self, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = || self.answer(path, "").filter(&fits);
        eventually(found).unwrap_or_else(|| panic!("{path}: {:?}", self.answer(path, "")))
    }
}

fn prometheus(scratch: &Scratch, address: &str) -> Option<Running> {
    let file = scratch.path("prometheus.yml");
    fs::write(&file, "global: {}\n").expect("a configuration");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", scratch.text("tsdb")))
        .arg(format!("--web.listen-address={address}"))
        .arg("--web.enable-remote-write-receiver")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(Running(child.ok()?))
}

/// Writes samples of series, `name=value,...`, to a receiver of remote write, as soon as it takes them.
fn write(address: &str, series: &[(&str, &[(i64, f64)])]) {
    let mut encoder = WriteEncoder::new(WriteVersion::V1);
    for (labels, samples) in series {
        let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
        let labels: Vec<WriteLabel> = pairs
            .map(|(name, value)| WriteLabel { name, value })
            .collect();
        let sample = |&(t, value): &(i64, f64)| WriteSample {
            t_ms: t * 1000,
            value,
            created_ms: None,
        };
        let samples: Vec<WriteSample> = samples.iter().map(sample).collect();
        encoder.push(&labels, &samples, None);
    }
    let (mut message, mut body) = (Vec::new(), Vec::new());
    encoder.finish(&mut message);
    compress(&message, &mut body).expect("a block");
    let head = format!(
        "POST /api/v1/write HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/x-protobuf\r\n\
         Content-Encoding: snappy\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let taken = || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(&[head.as_bytes(), &body].concat()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.contains(" 204 ").then_some(())
    };
    eventually(taken).expect("samples in the upstream");
}

/// Samples of an answer by a label.
fn samples(answer: &Value, label: &str) -> Vec<(String, Vec<(i64, String)>)> {
    let of_all = answer["data"]["result"].as_array().into_iter().flatten();
    let one = |of: &Value| {
        let pairs = of["values"].as_array().into_iter().flatten();
        let values = pairs.map(|pair| {
            (
                pair[0].as_i64().expect("seconds"),
                pair[1].as_str().expect("a value").to_string(),
            )
        });
        (
            of["metric"][label].as_str().unwrap_or_default().to_string(),
            values.collect(),
        )
    };
    let mut all: Vec<_> = of_all.map(one).collect();
    all.sort();
    all
}

/// The series of Prometheus are added to kymo's. Where both have one, kymo's samples count, and Prometheus' are there before them.
/// While Prometheus hangs, and while it is away, kymo's own are answered, with a warning; afterwards all is there again.
#[test]
fn the_series_of_prometheus_are_added() {
    let theirs = Scratch::new("upstream-prometheus");
    let address = format!("127.0.0.1:{}", free_port());
    let Some(mut running) = prometheus(&theirs, &address) else {
        return skipped("prometheus is missing");
    };
    let now = now_s();
    write(
        &address,
        &[
            (
                "__name__=shop_level,job=graphite,path=shop.level,site=here",
                &[(now - 40, 10.0), (now - 30, 11.0), (now - 20, 99.0)],
            ),
            ("__name__=shop_level,job=far,zone=a", &[(now - 20, 5.0)]),
            (
                "__name__=shop_level,job=people,user=root",
                &[(now - 20, 6.0)],
            ),
        ],
    );
    let query = format!("upstream = \"http://{address}\"\ndrop_labels = [\"site\"]");
    let kymo = Asking::start("upstream", "127.0.0.1:0", &query);
    kymo.send("shop.level", &[(now - 20, 1.0), (now - 10, 2.0)]);
    let path = format!("query?query={}&time={now}", escaped("shop_level[1m]"));
    let expected = [
        ("far", vec![(now - 20, "5")]),
        (
            "graphite",
            vec![
                (now - 40, "10"),
                (now - 30, "11"),
                (now - 20, "1"),
                (now - 10, "2"),
            ],
        ),
    ];
    let expected = expected.map(|(job, values)| {
        let values = values.into_iter().map(|(t, v)| (t, v.to_string()));
        (job.to_string(), values.collect::<Vec<_>>())
    });
    let is_whole =
        |answer: &Value| samples(answer, "job") == expected && answer["warnings"].is_null();
    kymo.waits(&path, is_whole);
    the_lists_are_joined(&kymo, now);
    // A token shows series of people, as it does of kymo's own.
    let token = fs::read_to_string(kymo.scratch.path("data/token")).expect("a token");
    let jobs = |token: &str| {
        let path = format!(
            "query?query={}&time={now}",
            escaped("count by (job) (shop_level)")
        );
        let answer = kymo.answer(&path, token).expect("an answer");
        answer["data"]["result"].as_array().map(Vec::len)
    };
    assert_eq!((jobs(""), jobs(token.trim())), (Some(2), Some(3)));

    let own_alone = |why: &'static str| {
        move |answer: &Value| {
            let warned = answer["warnings"][0]
                .as_str()
                .is_some_and(|text| text.contains(why));
            let samples = samples(answer, "job");
            warned && samples.len() == 1 && samples[0].1.len() == 2
        }
    };
    kill("-STOP", running.0.id());
    kymo.waits(
        &path,
        own_alone("cannot ask the upstream: no answer within 2 s"),
    );
    kymo.waits(
        &path,
        own_alone("cannot ask the upstream: it had no answer within 2 s a moment ago"),
    );
    running = prometheus(&theirs, &format!("127.0.0.1:{}", free_port())).expect("another one");
    drop(running);
    kymo.waits(&path, own_alone("cannot connect: Connection refused"));
    let _running = prometheus(&theirs, &address).expect("the upstream");
    kymo.waits(&path, is_whole);
}

/// Series, names and values of labels, a range, and `kymo query` have both.
fn the_lists_are_joined(kymo: &Asking, now: i64) {
    let jobs = kymo
        .answer("label/job/values?match[]=shop_level", "")
        .expect("values");
    assert_eq!(jobs["data"], json!(["far", "graphite"]));
    let names = kymo.answer("labels?match[]=shop_level", "").expect("names");
    assert_eq!(names["data"], json!(["__name__", "job", "path", "zone"]));
    let series = kymo
        .answer("series?match[]=shop_level", "")
        .expect("series");
    assert_eq!(series["data"].as_array().map(Vec::len), Some(2), "{series}");
    let (from, thru) = (now - 40, now - 10);
    let path = format!(
        "query_range?query={}&start={from}&end={thru}&step=10",
        escaped("sum(shop_level)")
    );
    let range = kymo.answer(&path, "").expect("a range");
    let values: Vec<&str> = range["data"]["result"][0]["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| pair[1].as_str())
        .collect();
    assert_eq!(values, ["10", "11", "6", "7"], "{range}");
    let data = kymo.scratch.text("data");
    let said = stdout_of(&["query", "count(shop_level)", "--data", &data]);
    assert_eq!(said, "{}  3\n");
}

/// Two kymos that are each other's upstream: each has the other one's series, and no question goes round for ever.
#[test]
fn two_kymos_ask_each_other() {
    let [first, second] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let query = |of: &str| format!("upstream = \"http://{of}\"");
    let here = Asking::start("upstream-here", &first, &query(&second));
    let there = Asking::start("upstream-there", &second, &query(&first));
    let now = now_s();
    here.send("both.here", &[(now - 10, 1.0)]);
    there.send("both.there", &[(now - 10, 2.0)]);
    for kymo in [&here, &there] {
        let path = format!("query?query={}", escaped("sort({__name__=~\"both_.*\"})"));
        kymo.waits(&path, |answer| {
            let found = answer["data"]["result"].as_array();
            found.is_some_and(|found| found.len() == 2) && answer["warnings"].is_null()
        });
    }
}

/// Servers that are no engines are said to be none, and what kymo has is answered.
#[test]
fn a_strange_upstream_costs_a_warning() {
    for (status, body, why) in [
        (
            "200 OK",
            "<html>",
            "its answer is not that of Prometheus' API",
        ),
        ("404 Not Found", "<html>", "it answers 404 Not Found"),
        ("302 Found", "", "it answers 302 Found"),
        (
            "400 Bad Request",
            "{\"status\":\"error\",\"error\":\"not \\u001b here\"}",
            "it answers 400 Bad Request: not \\x1b here",
        ),
        (
            "200 OK",
            "{\"data\":[{\"a.b\":\"c\"}]}",
            "1 series of the upstream have labels that kymo cannot keep",
        ),
        (
            "200 OK",
            "{\"data\":[],\"warnings\":[\"a store is away\"]}",
            "a store is away",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _request = stream.read(&mut [0; 4096]);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _sent = stream.write_all(answer.as_bytes());
            }
        });
        let kymo = Asking::start(
            "upstream-strange",
            "127.0.0.1:0",
            &format!("upstream = \"http://{address}/x?y=z\""),
        );
        kymo.send("own.level", &[(now_s() - 10, 1.0)]);
        let path = format!("query?query={}", escaped("own_level"));
        kymo.waits(&path, |answer| {
            let warned = answer["warnings"][0]
                .as_str()
                .is_some_and(|text| text.contains(why));
            warned
                && answer["data"]["result"]
                    .as_array()
                    .is_some_and(|found| found.len() == 1)
        });
    }
}
