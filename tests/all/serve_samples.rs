//! Stored samples by selectors of PromQL: from a running keeper, and from the folder of one that has ended.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

use kymo_base::label_set::Labels;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_tests::keeper_client::answer_of;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, eventually, kill};
use kymo_tests::{Scratch, kymo};
use kymo_wire::keeper::{Answer, KeeperRequest, LabelledSeries, LabelledValues};

/// Writes values of a counter and of a gauge, ten seconds apart, up to now.
fn write(dir: &Path, now_s: i64) {
    let socket = dir.join("keeper-write.sock");
    let mut stream = eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper");
    for (name, kind) in [("requests_total", "DDERIVE"), ("depth", "GAUGE")] {
        let labels = [("__name__", name.as_bytes()), ("queue", b"a \"b\"")];
        let labels = Labels::new(labels).expect("labels");
        let define = KeeperRequest::Define(vec![LabelledSeries {
            labels: labels.clone(),
            step: 10,
            heartbeat: 60,
            start: now_s - 1000,
            columns: vec![(b"value".to_vec(), kind.as_bytes().to_vec())],
        }]);
        let write = KeeperRequest::Write(vec![LabelledValues {
            labels,
            stamps_ms: (0..5).map(|n| (now_s - 50 + n * 10) * 1000 + 125).collect(),
            cells: vec![1.0, 2.5, f64::from_bits(0x7ff0_0000_0000_0002), 0.1, 1e300],
        }]);
        for question in [define, write] {
            assert_eq!(answer_of(&mut stream, &question), Answer::Done);
        }
    }
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn samples(arguments: &[&str]) -> Output {
    let mut command = Command::new(kymo());
    command
        .args(["series", "samples"])
        .args(arguments)
        .env("TZ", "UTC");
    command.output().expect("kymo runs")
}

/// The value in each line, without the time.
fn values(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split(' ').nth(1).unwrap_or_default())
        .collect()
}

#[test]
fn samples_come_back_from_the_keeper_and_from_its_folder() {
    let scratch = Scratch::new("serve_samples");
    let dir = scratch.path("data");
    let config = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n";
    let mut served = Served::configured(&scratch, &dir, config);
    served.address();
    let now_s = RealClock.now().real_ns / 1_000_000_000;
    write(&dir, now_s);
    let mut client = Client::unix(&dir.join("rrdcached.sock")).expect("a client");
    let create = format!(
        "CREATE web1/cpu-0/cpu-idle.rrd -b {} -s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:100",
        now_s / 10 * 10 - 100
    );
    assert!(client.text(&create).starts_with('0'));
    for n in 1..=3 {
        let at = now_s / 10 * 10 - 100 + n * 10;
        let reply = client.text(&format!("UPDATE web1/cpu-0/cpu-idle.rrd {at}:{n}"));
        assert!(reply.starts_with('0'), "{reply}");
    }
    let folder = dir.display().to_string();
    let asked = |selector: &str, of: &str| {
        let output = samples(&[selector, "--from", "-10min", of, &folder]);
        (output.status.code(), text_of(&output))
    };
    let questions = [
        "requests_total",
        r#"{__name__=~"dep.*|x",queue!=""}"#,
        "collectd_cpu{cpu=\"0\"}",
        "rrd{path=~\"web1/.*\"}",
    ];
    let running: Vec<(Option<i32>, String)> =
        questions.iter().map(|it| asked(it, "--data")).collect();
    let (code, text) = &running[0];
    assert_eq!(*code, Some(0), "{text}");
    assert!(
        text.starts_with("# requests_total{queue=\"a \\\"b\\\"\"}\n"),
        "{text}"
    );
    let large = 1e300.to_string();
    assert_eq!(values(text), ["1", "2.5", "stale", "0.1", &large]);
    assert!(text.contains(".125+00:00 2.5"), "{text}");
    assert_eq!(values(&running[1].1), values(text));
    assert!(running[2].1.contains("rows of 10 s"), "{}", running[2].1);
    assert_eq!(values(&running[2].1), ["1", "2", "3"]);
    assert_eq!(running[2].1, running[3].1);

    // Series of this machine have queues, too, and a job.
    let of_queues = "{queue=~\".+\",job=\"\"}";
    let labels = samples(&[of_queues, "--labels", "--data", &folder]);
    let lines = text_of(&labels);
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "depth{queue=\"a \\\"b\\\"\"}",
            "requests_total{queue=\"a \\\"b\\\"\"}"
        ]
    );
    let json = text_of(&samples(&["depth", "--json", "--data", &folder]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["samples"].as_array().map(Vec::len), Some(5));
    assert_eq!(json["samples"][4][1], large);

    for (selector, code, said) in [
        ("nothing_total", 1, "no series fits"),
        (
            "{a=\"\"}",
            2,
            "one matcher at least has to refuse an empty value",
        ),
        ("{a=~\"(\"}", 2, "missing closing )"),
    ] {
        let output = samples(&[selector, "--data", &folder]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{selector}: {error}");
        assert!(error.contains(said), "{selector}: {error}");
    }
    let few = samples(&["requests_total", "--most", "2", "--data", &folder]);
    assert!(String::from_utf8_lossy(&few.stderr).contains("too many samples"));

    // Acknowledged values are in the folder, even after a kill of the keeper.
    kill("-KILL", served.child("keeper").expect("a keeper"));
    drop(served);
    for (question, (code, text)) in questions.iter().zip(running) {
        assert_eq!(asked(question, "--open"), (code, text), "{question}");
    }
}
