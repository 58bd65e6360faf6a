//! Samples that senders push to `kymo serve` over HTTP: remote write and OTLP, with Debian's Prometheus as a sender and
//! as the peer whose answers count.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_tests::served::{LONG, Served, ask, eventually, eventually_if_busy, get, kill};
use kymo_tests::{Running, Scratch, free_port};
use kymo_wire::remote_write::{
    MetricType, SeriesMetadata, WriteEncoder, WriteLabel, WriteSample, WriteVersion, compress,
};
use serde_json::Value;

const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// A `kymo serve` to which senders push.
pub(crate) struct PushHub {
    served: Served,
    pub(crate) address: String,
    pub(crate) token: String,
    dir: PathBuf,
    /// Removed last.
    scratch: Scratch,
}

/// An answer of HTTP.
#[derive(Debug)]
struct Answered {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answered {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl PushHub {
    pub(crate) fn start(name: &str) -> PushHub {
        let scratch = Scratch::new(name);
        let dir = scratch.path("data");
        let config = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n";
        let mut served = Served::configured(&scratch, &dir, config);
        let address = served.address();
        served.has_said("rrdcached's protocol on");
        let token = fs::read_to_string(dir.join("write-token")).expect("a token for senders");
        PushHub {
            served,
            address,
            token: token.trim().into(),
            dir,
            scratch,
        }
    }

    /// Posts a body; `None`: there is no answer.
    fn try_post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Answered> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(LONG)).ok()?;
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!(
            "Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        // A hub that refuses the request need not read all of it.
        let _sent = stream.write_all(body);
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        let at = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        Some(Answered {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head,
            body: answer[at + 4..].to_vec(),
        })
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
        self.try_post(path, headers, body).expect("an answer")
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn write(&self, version: WriteVersion, body: &[u8]) -> Answered {
        let bearer = self.bearer();
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", version.content_type()),
            ("Content-Encoding", "snappy"),
        ];
        self.post("/api/v1/write", &headers, body)
    }

    pub(crate) fn query(&self, expr: &str) -> Value {
        let path = format!("/api/v1/query?query={}", escaped(expr));
        get(&self.address, &path, "")["data"]["result"].clone()
    }

    /// Times and values of the one series that a selector picks over a range.
    pub(crate) fn values(&self, selector: &str) -> Vec<(f64, String)> {
        let result = self.query(selector);
        let values = result[0]["values"].as_array().cloned().unwrap_or_default();
        let pair = |pair: &Value| {
            let value = pair[1].as_str().expect("a value");
            (pair[0].as_f64().expect("a time"), value.to_string())
        };
        values.iter().map(pair).collect()
    }

    fn pusher(&self, protocol: &str) -> Value {
        let hosts = get(&self.address, "/kymo/v1/hosts", "");
        let pushers = hosts["pushers"].as_array().expect("senders").iter();
        let mut of_it = pushers.filter(|account| account["protocol"] == protocol);
        of_it.next().expect(protocol).clone()
    }
}

/// A text as a value in a URL.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn now_ms() -> i64 {
    RealClock.now().real_ns.div_euclid(1_000_000)
}

/// Labels, samples as time and value, and the description of a series.
type Sent<'a> = (
    &'a [(&'a str, &'a str)],
    &'a [(i64, f64)],
    Option<SeriesMetadata<'a>>,
);

/// A request by remote write.
fn request(version: WriteVersion, series: &[Sent]) -> Vec<u8> {
    let mut encoder = WriteEncoder::new(version);
    for (labels, samples, metadata) in series {
        let labels = labels
            .iter()
            .map(|&(name, value)| WriteLabel { name, value });
        let samples = samples.iter().map(|&(t_ms, value)| WriteSample {
            t_ms,
            value,
            created_ms: None,
        });
        let labels: Vec<WriteLabel> = labels.collect();
        encoder.push(&labels, &samples.collect::<Vec<_>>(), metadata.as_ref());
    }
    let (mut message, mut body) = (Vec::new(), Vec::new());
    encoder.finish(&mut message);
    compress(&message, &mut body).expect("a block");
    body
}

const UP: &[(&str, &str)] = &[("__name__", "up"), ("instance", "a:1"), ("job", "node")];

#[test]
fn both_versions_of_remote_write_are_stored_before_they_are_answered() {
    let hub = PushHub::start("pushed-versions");
    let now = now_ms();
    let help = SeriesMetadata {
        metric_type: MetricType::Gauge,
        help: "The target is up.",
        unit: "",
    };
    let first = request(WriteVersion::V1, &[(UP, &[(now - 3000, 1.0)], None)]);
    let answer = hub.write(WriteVersion::V1, &first);
    assert_eq!((answer.status, answer.body.len()), (204, 0), "{answer:?}");
    let written = "X-Prometheus-Remote-Write-Samples-Written";
    assert_eq!(answer.header(written), Some("1"));
    let samples = [(now - 2000, 0.5), (now - 1000, STALE)];
    let second = request(WriteVersion::V2, &[(UP, &samples, Some(help))]);
    let answer = hub.write(WriteVersion::V2, &second);
    assert_eq!((answer.status, answer.header(written)), (204, Some("2")));
    let exemplars = "X-Prometheus-Remote-Write-Exemplars-Written";
    assert_eq!(answer.header(exemplars), Some("0"));
    // The marker is no value: it ends the series.
    let selector = r#"up{job="node",instance="a:1"}"#;
    let values = hub.values(&format!("{selector}[1m]"));
    let values: Vec<&str> = values.iter().map(|(_, value)| &**value).collect();
    assert_eq!(values, ["1", "0.5"]);
    assert_eq!(hub.query(selector), Value::Array(Vec::new()));
    let path = "/prometheus/api/v1/metadata?metric=up";
    let described = get(&hub.address, path, "")["data"]["up"][0].clone();
    assert_eq!(described["type"], "gauge", "{described}");
    assert_eq!(described["help"], "The target is up.");
    let account = hub.pusher("remote_write");
    assert_eq!(
        (&account["requests"], &account["samples"]),
        (&2.into(), &3.into())
    );
    assert_eq!(account["series"], 1, "{account}");
}

/// The hub asks the keeper for the next series while it works on some; a keeper that was killed in between is asked again.
#[test]
fn many_series_are_read_in_parts_and_none_is_missing() {
    const SERIES: usize = 500;
    const SAMPLES: i64 = 40;
    let hub = PushHub::start("pushed-many");
    let end = now_ms() - 1000;
    let names: Vec<String> = (0..SERIES).map(|number| format!("n{number}")).collect();
    let labels: Vec<[(&str, &str); 2]> = names
        .iter()
        .map(|name| [("__name__", "parts"), ("part", &**name)])
        .collect();
    let samples: Vec<(i64, f64)> = (0..SAMPLES)
        .map(|number| (end - 1000 * (SAMPLES - 1 - number), number as f64))
        .collect();
    let series: Vec<Sent> = labels
        .iter()
        .map(|labels| (&labels[..], &samples[..], None))
        .collect();
    let body = request(WriteVersion::V1, &series);
    assert_eq!(hub.write(WriteVersion::V1, &body).status, 204);
    let is_whole = |hub: &PushHub| {
        let at = end as f64 / 1000.0;
        let whole = |expr: &str| {
            let path = format!("/api/v1/query?time={at}&query={}", escaped(expr));
            let (status, body) = ask(&hub.address, "GET", &path, "", "")?;
            let answer: Value = serde_json::from_str(&body).ok()?;
            let value = answer["data"]["result"][0]["value"][1]
                .as_str()?
                .to_string();
            (status == 200 && answer["warnings"].is_null()).then_some(value)
        };
        let counted = whole("count(increase(parts[30s]) > 29)")?;
        let summed = whole("sum(sum_over_time(parts[1m]))")?;
        assert_eq!(counted, SERIES.to_string());
        let sum = SERIES as i64 * SAMPLES * (SAMPLES - 1) / 2;
        assert_eq!(summed, sum.to_string());
        Some(())
    };
    eventually(|| is_whole(&hub)).expect("all series");
    for _ in 0..3 {
        let keeper = hub.served.child("keeper").expect("a keeper");
        kill("-KILL", keeper);
        let next = || hub.served.child("keeper").filter(|next| *next != keeper);
        eventually(next).expect("the next keeper");
        eventually(|| is_whole(&hub)).expect("all series again");
    }
}

#[test]
fn requests_that_are_not_taken_say_why() {
    let hub = PushHub::start("pushed-refused");
    let now = now_ms();
    let good = request(WriteVersion::V1, &[(UP, &[(now, 1.0)], None)]);
    let bearer = hub.bearer();
    let bearer = ("Authorization", &*bearer);
    let path = "/prometheus/api/v1/write";
    let snappy = ("Content-Encoding", "snappy");
    let protobuf = ("Content-Type", "application/x-protobuf");
    let whole = fs::read_to_string(hub.dir.join("token")).expect("the token");
    let body = format!("{{\"token\":\"{}\"}}", whole.trim());
    let (_, session) = ask(&hub.address, "POST", "/kymo/v1/session", "", &body).expect("a session");
    let session: Value = serde_json::from_str(&session).expect("JSON");
    let session = format!("Bearer {}", session["token"].as_str().expect("a token"));
    let long = vec![0; (8 << 20) + 1];
    for (headers, body, status, text) in [
        (&[protobuf, snappy][..], &good[..], 401, "no token"),
        (
            &[("Authorization", &*session), protobuf],
            &good,
            403,
            "may not write",
        ),
        (
            &[("Authorization", "Bearer wrong"), protobuf],
            &good,
            401,
            "not known",
        ),
        (
            &[bearer, ("Content-Type", "application/json")],
            &good,
            415,
            "content type",
        ),
        (
            &[bearer, protobuf, ("Content-Encoding", "gzip")],
            &good,
            415,
            "not snappy",
        ),
        (&[bearer, protobuf, snappy], &long, 413, "longer than 8 MiB"),
        (
            &[bearer, protobuf, snappy],
            b"\xff\xff",
            400,
            "not a block of Snappy",
        ),
        (
            &[bearer, protobuf, snappy],
            b"\x02\x04\x0a\x09",
            400,
            "not a protobuf message",
        ),
    ] {
        let answer = hub.post(path, headers, body);
        assert_eq!(answer.status, status, "{text}: {answer:?}");
        assert!(answer.text().contains(text), "{text}: {}", answer.text());
    }
    let (status, _) = ask(&hub.address, "GET", path, &hub.token, "").expect("an answer");
    assert_eq!(status, 405);
    // A token for writing reads nothing that needs a token.
    let text = "/kymo/v1/text?source=proc/1/cmdline";
    let seen = |token: &str| ask(&hub.address, "GET", text, token, "").expect("an answer");
    assert_eq!(seen(&hub.token), seen(""));
    assert_ne!(seen(&hub.token).0, 200);
}

#[test]
fn a_part_that_is_refused_costs_itself_alone_and_is_counted() {
    let hub = PushHub::start("pushed-partly");
    let now = now_ms();
    let wrong: &[(&str, &str)] = &[("__name__", "a"), ("b.c", "d")];
    let late = [(now, 1.0), (now + 3_600_000, 1.0)];
    let partly = request(
        WriteVersion::V1,
        &[(wrong, &[(now, 1.0)], None), (UP, &late, None)],
    );
    hub.write(WriteVersion::V1, b"\xff\xff");
    let answer = hub.write(WriteVersion::V1, &partly);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(
        answer.header("X-Prometheus-Remote-Write-Samples-Written"),
        Some("1")
    );
    assert!(
        answer
            .text()
            .contains("1 x a sample of more than 10 minutes ahead"),
        "{answer:?}"
    );
    let account = hub.pusher("remote_write");
    let refused = account["refused"].as_array().expect("reasons").clone();
    let of = |why: &str| {
        let mut all = refused
            .iter()
            .filter(|of| of["why"].as_str().is_some_and(|of| of.contains(why)));
        all.next().map(|of| of["count"].clone())
    };
    assert_eq!(of("minutes ahead"), Some(1.into()), "{account}");
    assert_eq!(of("not letters, digits"), Some(1.into()), "{account}");
    assert_eq!(of("not understood"), Some(1.into()), "{account}");
}

/// A field of protobuf with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(u8::try_from(length & 0x7f).expect("a byte") | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).expect("a byte"));
    out.extend_from_slice(bytes);
    out
}

fn attribute(key: &str, value: &str) -> Vec<u8> {
    let value = field(1, value.as_bytes());
    [field(1, key.as_bytes()), field(2, &value)].concat()
}

/// A number with its moment and an attribute.
fn number_point(t_ms: i64, value: f64) -> Vec<u8> {
    let t_ns = t_ms.unsigned_abs() * 1_000_000;
    let mut point = vec![3 << 3 | 1];
    point.extend(t_ns.to_le_bytes());
    point.push(4 << 3 | 1);
    point.extend(value.to_le_bytes());
    point.extend(field(7, &attribute("http.method", "GET")));
    point
}

/// A histogram of four values: one up to 0.5, three up to 2.
fn histogram_point(t_ms: i64) -> Vec<u8> {
    let t_ns = t_ms.unsigned_abs() * 1_000_000;
    let mut point = vec![3 << 3 | 1];
    point.extend(t_ns.to_le_bytes());
    point.push(4 << 3 | 1);
    point.extend(4u64.to_le_bytes());
    point.push(5 << 3 | 1);
    point.extend(3.5f64.to_le_bytes());
    point.extend(field(6, &[1u64, 3, 0].map(u64::to_le_bytes).concat()));
    point.extend(field(7, &[0.5f64, 2.0].map(f64::to_le_bytes).concat()));
    point
}

/// A metric: name, unit, and its points in a field of this number, with a temporality.
fn metric(name: &str, unit: &str, kind: u8, point: &[u8], temporality: u8) -> Vec<u8> {
    let mut points = field(1, point);
    if temporality > 0 {
        points.extend([2 << 3, temporality]);
    }
    if kind == 7 {
        points.extend([3 << 3, 1]);
    }
    let parts = [
        field(1, name.as_bytes()),
        field(2, b"About it."),
        field(3, unit.as_bytes()),
        field(kind, &points),
    ];
    field(2, &parts.concat())
}

/// A request with a gauge, a counter, a histogram and a delta, which is not taken.
fn otlp_request(t_ms: i64) -> Vec<u8> {
    let metrics = [
        metric("queue.length", "", 5, &number_point(t_ms, 7.5), 0),
        metric("http.requests", "1", 7, &number_point(t_ms, 42.0), 2),
        metric("http.duration", "s", 9, &histogram_point(t_ms), 2),
        metric("odd", "", 7, &number_point(t_ms, 1.0), 1),
    ];
    let resource = [
        field(1, &attribute("service.name", "shop")),
        field(1, &attribute("service.instance.id", "i-1")),
        field(1, &attribute("host.name", "web")),
    ];
    let parts = [field(1, &resource.concat()), field(2, &metrics.concat())];
    field(1, &parts.concat())
}

#[test]
fn metrics_of_opentelemetry_have_prometheus_names() {
    let hub = PushHub::start("pushed-otlp");
    let now = now_ms();
    let bearer = hub.bearer();
    let bearer = ("Authorization", &*bearer);
    let protobuf = ("Content-Type", "application/x-protobuf");
    let paths = ["/v1/metrics", "/api/v1/otlp/v1/metrics"];
    for (path, t_ms) in paths.into_iter().zip([now - 2000, now - 1000]) {
        let answer = hub.post(path, &[bearer, protobuf], &otlp_request(t_ms));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.header("Content-Type"),
            Some("application/x-protobuf")
        );
        // One point is refused, with the reason.
        let text = answer.text();
        assert!(
            answer.body.windows(2).any(|pair| pair == [1 << 3, 1]),
            "{text}"
        );
        assert!(
            text.contains("not taken: 1 x a data point of delta temporality"),
            "{text}"
        );
    }
    for (expr, expected) in [
        (
            r#"queue_length{http_method="GET",job="shop",instance="i-1"}"#,
            "7.5",
        ),
        (r#"http_requests_total{http_method="GET",job="shop"}"#, "42"),
        (r#"http_duration_seconds_bucket{le="0.5"}"#, "1"),
        (r#"http_duration_seconds_bucket{le="+Inf"}"#, "4"),
        ("http_duration_seconds_sum", "3.5"),
        (r#"target_info{host_name="web",job="shop"}"#, "1"),
    ] {
        let result = hub.query(expr);
        assert_eq!(result[0]["value"][1], expected, "{expr}: {result}");
    }
    assert_eq!(hub.values("queue_length[1m]").len(), 2);
    let packed = gzip(&otlp_request(now));
    let coded = ("Content-Encoding", "gzip");
    let answer = hub.post(paths[0], &[bearer, protobuf, coded], &packed);
    assert_eq!(answer.status, 200, "{answer:?}");
    for (headers, body, status) in [
        (&[protobuf][..], &packed[..], 401),
        (&[bearer, ("Content-Type", "application/json")], b"{}", 415),
        (
            &[bearer, protobuf, ("Content-Encoding", "zstd")],
            &packed,
            415,
        ),
        (&[bearer, protobuf, coded], b"no gzip", 400),
        (&[bearer, protobuf], b"\x0a\x09", 400),
    ] {
        let answer = hub.post(paths[0], headers, body);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let account = hub.pusher("otlp");
    assert_eq!(account["requests"], 4, "{account}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip runs");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(bytes).expect("bytes");
    drop(input);
    child.wait_with_output().expect("its output").stdout
}

/// The keeper and the hub are killed while samples come. Each sample that was acknowledged is there, once.
#[test]
fn no_acknowledged_sample_is_lost_by_kills() {
    let hub = PushHub::start("pushed-kills");
    let begun = now_ms();
    let (mut acked, mut kills, mut number) = (BTreeMap::new(), 0, 0_i64);
    let mut victims = ["keeper", "keeper", "hub"].into_iter().cycle();
    while kills < 5 {
        let victim = victims.next().expect("a victim");
        let before = eventually(|| hub.served.child(victim)).expect(victim);
        for at in 0..20 {
            number += 1;
            let t_ms = begun + number;
            let value = f64::from(i32::try_from(number).expect("a number"));
            let body = request(WriteVersion::V1, &[(UP, &[(t_ms, value)], None)]);
            if at == 7 + kills {
                kill("-KILL", before);
            }
            let bearer = hub.bearer();
            let headers = [("Authorization", &*bearer), ("Content-Encoding", "snappy")];
            // Without an answer, or with one that says so, a sender sends again.
            let send = || {
                let answer = hub.try_post("/api/v1/write", &headers, &body)?;
                assert!(matches!(answer.status, 204 | 503), "{answer:?}");
                (answer.status == 204).then_some(())
            };
            eventually(send).expect("an acknowledgement");
            acked.insert(t_ms, value.to_string());
        }
        kills += 1;
    }
    let stored = hub.values(r#"up{instance="a:1"}[10m]"#);
    let stored: Vec<(i64, String)> = stored
        .into_iter()
        .map(|(at, value)| (milliseconds(at), value))
        .collect();
    assert_eq!(stored, acked.into_iter().collect::<Vec<_>>());
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Debian's Prometheus, which scrapes itself at this address and writes to the hub.
fn scraping(hub: &PushHub, url: &str) -> Running {
    let config = format!(
        "global: {{scrape_interval: 1s}}\n\
         scrape_configs:\n- job_name: node\n  static_configs: [{{targets: ['{url}']}}]\n\
         remote_write:\n- url: http://{}/api/v1/write\n  authorization: {{credentials_file: {}}}\n  \
         queue_config: {{batch_send_deadline: 1s}}\n  metadata_config: {{send_interval: 1s}}\n",
        hub.address,
        hub.dir.join("write-token").display()
    );
    let file = hub.scratch.path("prometheus.yml");
    fs::write(&file, config).expect("a configuration");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            hub.scratch.path("tsdb").display()
        ))
        .arg(format!("--web.listen-address={url}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Running(child.expect("prometheus runs"))
}

/// The answer to a request by HTTP/1.0, in which Prometheus sends no chunks.
fn answer_of(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.contains(" 200 "), "{path}: {answer}");
    Some(body.to_string())
}

/// Debian's Prometheus scrapes itself and writes to kymo. Both have the same samples.
#[test]
fn prometheus_and_kymo_have_the_same_samples() {
    let hub = PushHub::start("pushed-prometheus");
    let url = format!("127.0.0.1:{}", free_port());
    let _prometheus = scraping(&hub, &url);
    let samples = r#"count_over_time(up{job="node",instance=~".+:.+"}[1m]) >= 15"#;
    let has_some = || (hub.query(samples).as_array()?.len() == 1).then_some(());
    eventually_if_busy(has_some).expect("fifteen samples");
    let at_s = now_ms().div_euclid(1000) - 3;
    for expr in [
        r#"{instance=~".+:.+",job="node"}[8s]"#,
        r#"up{instance=~".+:.+"}"#,
        r#"sum by (__name__) (rate({__name__=~"prometheus_http_.*_total",job="node"}[5s]))"#,
        r#"histogram_quantile(0.9, rate(prometheus_http_request_duration_seconds_bucket[6s]))"#,
    ] {
        let path = format!("/api/v1/query?time={at_s}.001&query={}", escaped(expr));
        let result = |address: &str| {
            let body = answer_of(address, &path)?;
            let answer: Value = serde_json::from_str(&body).ok()?;
            let mut all = answer["data"]["result"].as_array()?.clone();
            all.sort_by_key(|series| series["metric"].to_string());
            Some(all)
        };
        let theirs = result(&url).expect("an answer of Prometheus");
        assert!(!theirs.is_empty(), "{expr}");
        let same = eventually(|| (result(&hub.address)? == theirs).then_some(()));
        if same.is_none() {
            let ours = result(&hub.address).expect("an answer");
            let differ = ours
                .iter()
                .zip(&theirs)
                .find(|(ours, theirs)| ours != theirs);
            panic!(
                "{expr}: {} and {} series, {differ:#?}",
                ours.len(),
                theirs.len()
            );
        }
    }
    let described = || {
        let path = "/api/v1/metadata?metric=go_gc_duration_seconds";
        let of = get(&hub.address, path, "")["data"]["go_gc_duration_seconds"][0].clone();
        (of["type"] == "summary").then_some(of)
    };
    let described = eventually(described).expect("metadata");
    assert!(
        described["help"]
            .as_str()
            .is_some_and(|help| help.contains("garbage collection"))
    );
    let account = hub.pusher("remote_write");
    assert_eq!(account["refused"], Value::Array(Vec::new()), "{account}");
}
