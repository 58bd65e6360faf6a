//! Debian's Prometheus as a client of `kymo serve`: it federates kymo's series, and evaluates expressions over samples that it
//! reads remotely. Both forms of remote read, and their errors. vmalert evaluates rules against kymo.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use kymo_sys::machine;
use kymo_tests::machine::skipped;
use kymo_tests::served::{LONG, ask, eventually};
use kymo_tests::{Running, Scratch, free_port};
use kymo_wire::remote_read::{
    MatcherKind, ReadMatcher, ReadQuery, ResponseForm, put_request, read_chunk, take_frame,
};
use kymo_wire::remote_write::{
    WriteItem, WriteLimits, WriteReader, WriteVersion, compress, decompress,
};
use serde_json::Value;

use crate::prometheus_api::{Shown, escaped, now_s, write};

/// A running Prometheus.
struct Prometheus {
    address: String,
    _running: Running,
    _scratch: Scratch,
}

impl Prometheus {
    fn start(name: &str, config: &str) -> Prometheus {
        let scratch = Scratch::new(name);
        let file = scratch.path("prometheus.yml");
        fs::write(&file, config).expect("a configuration");
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", scratch.text("tsdb")))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Prometheus {
            address,
            _running: Running(child.expect("prometheus runs")),
            _scratch: scratch,
        }
    }
}

/// Series and samples: values as they are written.
type Series = BTreeMap<String, Vec<(i64, String)>>;

/// The series of an answer; `None`: there is no answer yet.
fn series(address: &str, question: &str) -> Option<Series> {
    let path = format!("/api/v1/{question}");
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    let (status, _, body) = exchange(address, request.as_bytes())?;
    let answer: Value = serde_json::from_slice(&body).ok()?;
    assert_eq!(status, 200, "{path}: {answer}");
    let pair = |pair: &Value| {
        let t_ms = format!("{:.0}", pair[0].as_f64()? * 1000.0).parse().ok()?;
        Some((t_ms, pair[1].as_str()?.to_string()))
    };
    let each = answer["data"]["result"].as_array()?.iter().map(|of| {
        let many = of["values"].as_array().cloned();
        let values = many.unwrap_or_else(|| vec![of["value"].clone()]);
        let samples = values.iter().filter_map(pair).collect();
        (of["metric"].to_string(), samples)
    });
    Some(each.collect())
}

fn instant(address: &str, expr: &str, at: &str) -> Option<Series> {
    series(address, &format!("query?time={at}&query={}", escaped(expr)))
}

/// Status, head and body of an answer.
fn exchange(address: &str, request: &[u8]) -> Option<(u16, String, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    stream.write_all(request).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let at = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..at]).to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, head, answer[at + 4..].to_vec()))
}

/// Prometheus has the samples of kymo, at their own times and under their own labels.
#[test]
fn prometheus_federates() {
    let shown = Shown::start("federated");
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs:\n- job_name: federated\n  honor_labels: true\n  metrics_path: /federate\n  \
         params: {{'match[]': ['{{job=\"node\"}}', '{{__name__=~\"kymo_cpu_.+\"}}', 'app_open']}}\n  \
         static_configs: [{{targets: ['{}']}}]\n",
        shown.address
    );
    let now = now_s();
    let stamps: Vec<i64> = (0..3).map(|n| now - 60 + n * 10).collect();
    write(
        &shown.dir,
        &[&[("__name__", "app_open"), ("path", "a\\b\"c\n")]],
        &stamps,
        3.5,
    );
    let prometheus = Prometheus::start("federating", &config);
    let has_some = || {
        let found = instant(
            &prometheus.address,
            "count_over_time(node_load1[1m]) >= 6",
            "",
        )?;
        (!found.is_empty()).then_some(())
    };
    eventually(has_some).expect("six samples");
    let at = format!("{}.5", now_s() - 1);
    for selector in [r#"{job="node"}"#, r#"{__name__=~"kymo_cpu_.+"}"#] {
        let theirs = instant(&prometheus.address, &format!("{selector}[5s]"), &at);
        let theirs = theirs.expect("an answer of Prometheus");
        let ours = instant(&shown.address, &format!("{selector}[9s]"), &at).expect("an answer");
        assert!(theirs.len() > 20, "{} series", theirs.len());
        for (labels, samples) in &theirs {
            let known = ours.get(labels).unwrap_or_else(|| panic!("{labels}"));
            let foreign = samples.iter().find(|sample| !known.contains(sample));
            assert_eq!(foreign, None, "{labels}: {known:?}");
        }
        let now = |of: &str| instant(of, selector, &at).expect("an answer");
        let (theirs, ours) = (now(&prometheus.address), now(&shown.address));
        let missing = ours.keys().find(|labels| !theirs.contains_key(*labels));
        assert_eq!(missing, None);
    }
    let open = instant(&prometheus.address, "app_open[5m]", &at).expect("an answer");
    let samples: Vec<_> = open.values().flatten().collect();
    assert_eq!(
        samples,
        [&((now - 40) * 1000, "3.5".to_string())],
        "{open:?}"
    );
    texts(&shown);
}

fn texts(shown: &Shown) {
    let get = |path: &str| ask(&shown.address, "GET", path, "", "").expect("an answer");
    let load = |path: &str| {
        let (status, text) = get(&format!("{path}/federate?match[]=node_load1"));
        assert_eq!(status, 200, "{path}: {text}");
        text.split_once('{').map(|(head, _)| head.to_string())
    };
    for path in ["", "/prometheus"] {
        let expected = "# TYPE node_load1 untyped\nnode_load1";
        assert_eq!(load(path).as_deref(), Some(expected), "{path}");
    }
    assert_eq!(get("/federate"), (200, String::new()));
    let (status, text) = get("/federate?match[]=sum(");
    assert_eq!(status, 400, "{text}");
    assert!(
        text.starts_with("invalid parameter \"match[]\": "),
        "{text}"
    );
    let (status, _) = ask(&shown.address, "GET", "/federate", "wrong", "").expect("an answer");
    assert_eq!(status, 401);
}

/// Prometheus, which has no samples of its own, evaluates expressions over those of kymo as kymo does.
#[test]
fn prometheus_reads_remotely() {
    let shown = Shown::start("read-remotely");
    let now = now_s();
    let stamps: Vec<i64> = (0..6).map(|n| now - 60 + n * 10).collect();
    write(
        &shown.dir,
        &[&[("__name__", "app_open"), ("path", "a\\b")]],
        &stamps,
        3.5,
    );
    let config = format!(
        "remote_read: [{{url: 'http://{}/prometheus/api/v1/read', read_recent: true}}]\n",
        shown.address
    );
    let prometheus = Prometheus::start("reading-remotely", &config);
    let at = now_s() - 1;
    let ready = || instant(&prometheus.address, "node_load1", "").filter(|of| !of.is_empty());
    eventually(ready).expect("an answer of Prometheus");
    for expr in [
        r#"{job="node"}[4s]"#,
        r#"{__name__=~"node_memory_.+",job!="kymo"}"#,
        "app_open[2m]",
        "max by (mode) (rate(node_cpu_seconds_total[5s]))",
        r#"count({job="node",instance!~"x.*"})"#,
        "absent(no_such_metric)",
    ] {
        let at = format!("{at}.5");
        let theirs = instant(&prometheus.address, expr, &at).expect("an answer of Prometheus");
        let ours = instant(&shown.address, expr, &at).expect("an answer");
        assert!(!ours.is_empty(), "{expr}");
        assert_eq!(theirs, ours, "{expr}");
    }
    let range = format!(
        "query_range?start={}.5&end={at}.5&step=1&query={}",
        at - 4,
        escaped("irate(node_cpu_seconds_total{mode=\"idle\"}[3s])")
    );
    let theirs = series(&prometheus.address, &range).expect("an answer of Prometheus");
    assert!(!theirs.is_empty());
    assert_eq!(Some(theirs), series(&shown.address, &range));
}

fn equal<'a>(name: &'a str, value: &'a str) -> ReadMatcher<'a> {
    ReadMatcher {
        kind: MatcherKind::Equal,
        name,
        value,
    }
}

/// Status, head and body of an answer to a body.
fn read(shown: &Shown, token: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let bearer = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let head = format!(
        "POST /api/v1/read HTTP/1.0\r\nHost: {}\r\n{bearer}Content-Type: application/x-protobuf\r\n\
         Accept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        shown.address,
        body.len()
    );
    exchange(&shown.address, &[head.as_bytes(), body].concat()).expect("an answer")
}

fn body(queries: &[ReadQuery], forms: &[ResponseForm]) -> Vec<u8> {
    let (mut message, mut block) = (Vec::new(), Vec::new());
    put_request(&mut message, queries, forms);
    compress(&message, &mut block).expect("a block");
    block
}

/// The series of an answer with all samples: a result has the form of a request by remote write.
fn of_samples(block: &[u8]) -> Vec<(String, Vec<(i64, f64)>)> {
    let mut message = Vec::new();
    decompress(block, 64 << 20, &mut message).expect("a block");
    let mut rest = &message[1..];
    let size = kymo_base::varint::take(&mut rest).expect("a length");
    assert_eq!(u64::try_from(rest.len()), Ok(size), "one result");
    let limits = WriteLimits {
        labels: 64,
        label_bytes: 4096,
        samples: 10_000_000,
        symbols: 0,
    };
    let mut reader = WriteReader::new(WriteVersion::V1, rest, limits).expect("a result");
    let mut all = Vec::new();
    while let Some(WriteItem::Series(series)) = reader.read().expect("series") {
        let labels = series.labels.iter();
        let labels: Vec<String> = labels
            .map(|of| format!("{}={}", of.name, of.value))
            .collect();
        let samples = series.samples.iter().map(|of| (of.t_ms, of.value));
        all.push((labels.join(","), samples.collect()));
    }
    all
}

/// The series of an answer in frames.
fn of_frames(mut answer: &[u8]) -> Vec<(String, Vec<(i64, f64)>)> {
    let mut all = Vec::new();
    while !answer.is_empty() {
        let series = take_frame(&mut answer).expect("a frame");
        assert_eq!(series.query, 0);
        let labels = series.labels.iter();
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut samples = Vec::new();
        for chunk in series.chunks {
            read_chunk(chunk, &mut samples).expect("a chunk");
        }
        all.push((labels.join(","), samples));
    }
    all
}

#[test]
fn both_forms_of_remote_read_have_the_same_samples() {
    let shown = Shown::start("read-forms");
    let thru_ms = (now_s() - 1) * 1000 + 500;
    let query = ReadQuery {
        from_ms: thru_ms - 5000,
        thru_ms,
        matchers: vec![equal("job", "node")],
        function: "",
    };
    let ask = |forms: &[ResponseForm]| {
        let (status, head, body) = read(&shown, "", &body(std::slice::from_ref(&query), forms));
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        (head, body)
    };
    let (head, block) = ask(&[]);
    assert!(head.contains("\r\ncontent-encoding: snappy"), "{head}");
    let samples = of_samples(&block);
    let (head, frames) = ask(&[ResponseForm::Chunks, ResponseForm::Samples]);
    let media_type =
        "content-type: application/x-streamed-protobuf; proto=prometheus.chunkedreadresponse";
    assert!(head.contains(media_type), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    let chunks = of_frames(&frames);
    assert!(samples.len() > 100 && chunks.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(chunks, samples);
    let count: usize = samples.iter().map(|(_, samples)| samples.len()).sum();
    let asked = instant(
        &shown.address,
        "{job=\"node\"}[5s]",
        &format!("{}.5", thru_ms / 1000),
    );
    let asked: usize = asked.expect("an answer").values().map(Vec::len).sum();
    assert_eq!(asked, count);
}

#[test]
fn remote_read_has_limits_and_hides_people() {
    let shown = Shown::start("read-people");
    let now = now_s();
    let host = machine::host();
    let hidden = [
        ("__name__", "app_hidden"),
        ("instance", &*host),
        ("user", "marker-9a"),
    ];
    write(&shown.dir, &[&hidden], &[now - 20, now - 10], 3.0);
    let query = ReadQuery {
        from_ms: (now - 60) * 1000,
        thru_ms: now * 1000,
        matchers: vec![equal("__name__", "app_hidden")],
        function: "rate",
    };
    let token = fs::read_to_string(shown.dir.join("token")).expect("the token");
    for (token, count) in [("", 0), (token.trim(), 1)] {
        for form in ResponseForm::ALL {
            let asked = body(std::slice::from_ref(&query), &[form]);
            let (status, _, body) = read(&shown, token, &asked);
            let found = match form {
                ResponseForm::Samples => of_samples(&body),
                ResponseForm::Chunks => of_frames(&body),
            };
            assert_eq!((status, found.len()), (200, count), "{form:?}");
        }
    }
    let wrong = ReadQuery {
        matchers: vec![ReadMatcher {
            kind: MatcherKind::Matches,
            name: "job",
            value: "(",
        }],
        ..query.clone()
    };
    let mut unknown_form = Vec::new();
    compress(b"\x10\x07", &mut unknown_form).expect("a block");
    for (body, status, part) in [
        (
            b"\xff\xff\xff\xff\xff".to_vec(),
            400,
            "cannot read the body: ",
        ),
        (vec![0; 2 << 20], 400, "cannot read the body: "),
        (unknown_form, 400, "any of the requested response types"),
        (body(&[wrong], &[]), 400, "(\""),
        (body(&vec![query; 65], &[]), 400, "more than 64 queries"),
    ] {
        let (got, head, text) = read(&shown, "", &body);
        let text = String::from_utf8_lossy(&text);
        assert_eq!(got, status, "{text}");
        assert!(
            head.contains("content-type: text/plain") && text.contains(part),
            "{text}"
        );
    }
    assert_eq!(read(&shown, "wrong", &body(&[], &[])).0, 401);
}

/// vmalert evaluates rules against kymo, and writes their series back. A series of an alert has the labels of its
/// expression: one with those of this machine would be refused.
#[test]
fn vmalert_evaluates_rules() {
    if !machine_has("vmalert") {
        return skipped("vmalert is missing");
    }
    let shown = Shown::start("vmalert");
    let scratch = Scratch::new("vmalert-rules");
    let rules = scratch.path("rules.yml");
    let text = "groups:\n- name: machine\n  interval: 1s\n  rules:\n  - record: instance:node_cpu:busy\n    \
                expr: sum by (instance) (rate(node_cpu_seconds_total{mode!=\"idle\"}[10s]))\n  \
                - alert: MachineIsThere\n    expr: sum by (instance) (node_memory_MemTotal_bytes) > 0\n    for: 1s\n  \
                - alert: MachineIsGone\n    expr: absent(node_memory_MemTotal_bytes)\n";
    fs::write(&rules, text).expect("rules");
    let address = format!("127.0.0.1:{}", free_port());
    let url = format!("http://{}", shown.address);
    let child = Command::new("vmalert")
        .arg(format!("-rule={}", rules.display()))
        .args([
            "-datasource.queryStep=1s",
            "-notifier.url=http://127.0.0.1:1/",
        ])
        .args(["-remoteWrite.flushInterval=1s", "-loggerLevel=ERROR"])
        .arg(format!("-datasource.url={url}"))
        .arg(format!("-remoteWrite.url={url}"))
        .arg(format!(
            "-remoteWrite.bearerTokenFile={}",
            shown.dir.join("write-token").display()
        ))
        .arg(format!("-httpListenAddr={address}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _vmalert = Running(child.expect("vmalert runs"));
    let fires = || {
        let request = format!("GET /api/v1/alerts HTTP/1.0\r\nHost: {address}\r\n\r\n");
        let (_, _, body) = exchange(&address, request.as_bytes())?;
        let answer: Value = serde_json::from_slice(&body).ok()?;
        let alerts = answer["data"]["alerts"].as_array()?.clone();
        let firing = alerts.iter().find(|alert| alert["state"] == "firing")?;
        Some((firing["name"].clone(), alerts.len()))
    };
    assert_eq!(eventually(fires), Some(("MachineIsThere".into(), 1)));
    let kept = r#"{__name__=~"instance:node_cpu:busy|ALERTS",alertstate!="pending"}"#;
    let both = || instant(&shown.address, kept, "").filter(|series| series.len() == 2);
    let both = eventually(both).expect("what the rules made");
    let alert = both.keys().find(|labels| labels.contains("ALERTS"));
    let alert = alert.expect("the alert");
    assert!(
        alert.contains("MachineIsThere") && alert.contains("firing"),
        "{alert}"
    );
}

/// True if a program is on the path.
fn machine_has(program: &str) -> bool {
    let help = Command::new(program).arg("-version").output();
    help.is_ok()
}
