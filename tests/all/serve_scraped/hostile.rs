//! Targets that behave badly, each beside a good one that must not notice.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kymo_tests::served::eventually;
use serde_json::Value;

use super::{ScrapeHub, job};

/// A server of HTTP whose answer depends on the path.
pub(super) struct HostileTarget {
    address: String,
    /// Seconds since 1970 of a sample that has a time of its own.
    dated_s: u64,
}

fn since_1970_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

impl HostileTarget {
    pub(super) fn start() -> HostileTarget {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let dated_s = since_1970_s() - 60;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away ends the answer.
                thread::spawn(move || drop(answer(stream, dated_s)));
            }
        });
        HostileTarget { address, dated_s }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// The path of a request, and its credentials.
fn request(stream: &TcpStream) -> Option<(String, String)> {
    let mut lines = BufReader::new(stream.take(8192)).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_string();
    let mut authorization = String::new();
    for line in lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("authorization")
        {
            authorization = value.to_string();
        }
    }
    Some((path, authorization))
}

fn send(mut stream: &TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(body)
}

const TEXT: &str = "Content-Type: text/plain; version=0.0.4\r\n";

fn answer(stream: TcpStream, dated_s: u64) -> std::io::Result<()> {
    while let Some((path, authorization)) = request(&stream) {
        match path.as_str() {
            "/good" => send(&stream, "200 OK", TEXT, b"# TYPE good gauge\ngood 1\n")?,
            "/open" => {
                let open = "Content-Type: application/openmetrics-text; version=1.0.0\r\n";
                let text = format!(
                    "# TYPE open counter\nopen_total 2 # {{a=\"b\"}} 1\n# TYPE dated gauge\ndated 3 {dated_s}.125\n# EOF\n"
                );
                send(&stream, "200 OK", open, text.as_bytes())?;
            }
            "/endless" => return endless(&stream),
            "/slow" => return slow(&stream, b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
            "/heads" => return slow(&stream, b"HTTP/1.1 200 OK\r\n", &b"X-A: b\r\n".repeat(500)),
            "/interim" => return slow(&stream, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            "/silent" => thread::sleep(Duration::from_secs(5)),
            "/closed" => return Ok(()),
            "/noise" => (&stream).write_all(&[0xff; 4096])?,
            "/garbage" => send(&stream, "200 OK", TEXT, b"good 1\n\x00\xff{{{\n")?,
            "/labels" => send(&stream, "200 OK", TEXT, &huge_labels())?,
            "/many" => send(&stream, "200 OK", TEXT, &many_samples())?,
            "/long" => send(&stream, "200 OK", TEXT, &[b'a'; 100_000])?,
            "/bomb" => send(
                &stream,
                "200 OK",
                &format!("{TEXT}Content-Encoding: gzip\r\n"),
                &bomb(),
            )?,
            "/loop" => send(&stream, "302 Found", "Location: /loop\r\n", b"")?,
            "/away" => send(
                &stream,
                "302 Found",
                "Location: http://127.0.0.1:1/\r\n",
                b"",
            )?,
            "/moved" => send(&stream, "301 Moved Permanently", "Location: good\r\n", b"")?,
            "/page" => send(&stream, "200 OK", "Content-Type: text/html\r\n", b"<html>")?,
            "/secret" if authorization == "Basic a3ltbzpvcGVuOnNlc2FtZQ==" => {
                send(&stream, "200 OK", TEXT, b"secret 1\n")?;
            }
            "/secret" => send(&stream, "401 Unauthorized", "", b"")?,
            _ => send(&stream, "404 Not Found", "", b"")?,
        }
    }
    Ok(())
}

fn endless(mut stream: &TcpStream) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\n{TEXT}Transfer-Encoding: chunked\r\n\r\n"
    )?;
    let samples = "endless{a=\"b\"} 1\n".repeat(1000);
    loop {
        write!(stream, "{:x}\r\n{samples}\r\n", samples.len())?;
    }
}

/// A piece each 20 ms, for ever.
fn slow(mut stream: &TcpStream, begin: &[u8], piece: &[u8]) -> std::io::Result<()> {
    stream.write_all(begin)?;
    loop {
        stream.write_all(piece)?;
        thread::sleep(Duration::from_millis(20));
    }
}

fn huge_labels() -> Vec<u8> {
    let labels: Vec<String> = (0..100)
        .map(|n| format!("l{n}=\"{}\"", "x".repeat(300)))
        .collect();
    format!("good{{{}}} 1\nfine 1\n", labels.join(",")).into_bytes()
}

/// More samples than a scrape may have.
fn many_samples() -> Vec<u8> {
    let lines = (0..2000).map(|number| format!("many{{n=\"{number}\"}} 1\n"));
    lines.collect::<String>().into_bytes()
}

/// 64 MB of samples in some 100 kB.
fn bomb() -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let samples = b"bomb 1\n".repeat(10_000);
    for _ in 0..1000 {
        packer.write_all(&samples).expect("memory");
    }
    packer.finish().expect("memory")
}

/// Paths, and the begin of the reason why a scrape fails.
const FAILING: [(&str, &str); 16] = [
    ("/endless", "the answer has more than 10 MiB"),
    (
        "/slow",
        "no answer within 1 s, while waiting for the answer",
    ),
    ("/heads", "cannot read the answer: "),
    (
        "/interim",
        "no answer within 1 s, while waiting for the answer",
    ),
    (
        "/silent",
        "no answer within 1 s, while waiting for the answer",
    ),
    ("/closed", "cannot read the answer: "),
    ("/noise", "cannot read the answer: "),
    (
        "/garbage",
        "the answer is not in the format of Prometheus or OpenMetrics: line 2: ",
    ),
    ("/many", "it has more than 1000 samples"),
    (
        "/long",
        "the answer is not in the format of Prometheus or OpenMetrics: line 1: more than 65536 bytes",
    ),
    ("/bomb", "the answer has more than 10 MiB"),
    ("/loop", "more than 10 redirects"),
    ("/away", "cannot connect: "),
    ("/page", "the answer is not metrics but text/html"),
    ("/none", "the target answers 404 Not Found"),
    ("/secret", "the target answers 401 Unauthorized"),
];

#[test]
fn a_bad_target_costs_itself_alone() {
    let server = HostileTarget::start();
    let urls: Vec<String> = FAILING.iter().map(|(path, _)| server.url(path)).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let good: Vec<String> = ["/good", "/open", "/moved", "/labels"]
        .map(|path| server.url(path))
        .to_vec();
    let good: Vec<&str> = good.iter().map(String::as_str).collect();
    // Paths are no part of the instance, so each target needs a label of its own.
    let mut tables = String::new();
    for (n, url) in good.iter().enumerate() {
        tables += &job(&format!("good{n}"), &[url], "");
    }
    for (n, url) in urls.iter().enumerate() {
        tables += &job(&format!("bad{n}"), &[url], "samples = 1000");
    }
    let scratch = kymo_tests::Scratch::new("scraped-hostile");
    let password = scratch.text("password");
    std::fs::write(&password, "open:sesame\n").expect("a file");
    let login = format!("user = \"kymo\"\npassword_file = \"{password}\"");
    tables += &job("login", &[&server.url("/secret")], &login);
    let hub = ScrapeHub::start_in(scratch, &tables);
    for (path, why) in FAILING {
        let said = reason(&hub, &server.url(path), "down");
        assert!(said.starts_with(why), "{path}: {said}");
    }
    for (job, metric) in [
        ("good0", "good"),
        ("good1", "open_total"),
        ("good2", "good"),
        ("good3", "fine"),
        ("login", "secret"),
    ] {
        let expr = format!("{metric}{{job=\"{job}\"}} and on (job) up == 1");
        let found = eventually(|| (hub.query(&expr).len() == 1).then_some(()));
        found.unwrap_or_else(|| panic!("{expr}: {:#?}", hub.served.said));
    }
    // A sample with a time of its own keeps it.
    let own = hub.values("dated[10m]");
    let dated_ms = i64::try_from(server.dated_s * 1000 + 125).expect("a time");
    assert_eq!(own, [(dated_ms, "3".to_string())]);
    stays_whole(&hub);
    let hosts = kymo_tests::served::get(&hub.address, "/kymo/v1/hosts", "");
    let pushers = hosts["pushers"].as_array().expect("senders").iter();
    let refused = pushers.filter(|of| of["sender"] == server.url("/labels").as_str());
    let refused: Vec<Value> = refused.map(|of| of["refused"][0]["why"].clone()).collect();
    assert_eq!(refused, ["a sample whose labels are too long or too many"]);
}

/// The reason of a target that has this state, whichever of the targets with its URL it is.
fn reason(hub: &ScrapeHub, url: &str, health: &str) -> String {
    let find = || {
        let answer = kymo_tests::served::get(&hub.address, "/api/v1/targets", "");
        let targets = answer["data"]["activeTargets"].as_array()?.clone();
        let mut targets = targets.into_iter();
        let found = targets.find(|of| of["scrapeUrl"] == url && of["health"] == health)?;
        found["lastError"].as_str().map(String::from)
    };
    eventually(find).unwrap_or_else(|| panic!("{url} is not {health}: {:#?}", hub.served.said))
}

/// The good target is scraped each second, whatever the others do.
fn stays_whole(hub: &ScrapeHub) {
    let range = r#"good{job="good0"}[30s]"#;
    let enough = || Some(hub.values(range)).filter(|values| values.len() > 8);
    let values = eventually(enough).expect("samples");
    let steps: Vec<i64> = values
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    let late = steps.iter().filter(|&&step| step > 2500).count();
    assert_eq!(late, 0, "{steps:?}");
    assert!(hub.served.child("scrape").is_some());
    let said = hub.served.said.join("\n");
    assert!(!said.contains("the process that scrapes"), "{said}");
}
