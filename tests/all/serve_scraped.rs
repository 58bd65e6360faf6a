//! Targets that `kymo serve` scrapes (`[[scrape]]`): beside Debian's Prometheus on a real node_exporter, by TLS with a
//! token, with hostile targets beside a good one, and over the death of each process that takes part.

mod hostile;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kymo_tests::served::{Served, eventually, get, kill};
use kymo_tests::{Running, Scratch, free_port, machine};
use serde_json::Value;

/// A `kymo serve` that scrapes.
struct ScrapeHub {
    served: Served,
    address: String,
    dir: PathBuf,
    scratch: Scratch,
}

impl ScrapeHub {
    /// Starts with these tables.
    fn start(name: &str, tables: &str) -> ScrapeHub {
        ScrapeHub::start_in(Scratch::new(name), tables)
    }

    fn start_in(scratch: Scratch, tables: &str) -> ScrapeHub {
        let dir = scratch.path("data");
        let config = format!("user = \"\"\n[listen]\ncollectd = []\n{tables}");
        let mut served = Served::configured(&scratch, &dir, &config);
        let address = served.address();
        ScrapeHub {
            served,
            address,
            dir,
            scratch,
        }
    }

    fn query(&self, expr: &str) -> Vec<Value> {
        results(&self.address, expr).expect("an answer")
    }

    /// The value of an expression with one result.
    fn value(&self, expr: &str) -> Option<f64> {
        value_of(&self.query(expr))
    }

    /// Times in milliseconds and values of the one series that a selector picks over a range.
    fn values(&self, selector: &str) -> Vec<(i64, String)> {
        let result = self.query(selector);
        let values = result
            .first()
            .and_then(|series| series["values"].as_array());
        let pair = |pair: &Value| {
            let seconds = pair[0].as_f64().expect("a time");
            let value = pair[1].as_str().expect("a value");
            ((seconds * 1000.0).round() as i64, value.to_string())
        };
        values.into_iter().flatten().map(pair).collect()
    }

    /// State of the target with this URL, by Prometheus' API; `Null`: there is none yet.
    fn target(&self, url: &str) -> Value {
        let answer = get(&self.address, "/api/v1/targets", "");
        let targets = answer["data"]["activeTargets"].as_array().expect("targets");
        let mut found = targets.iter().filter(|target| target["scrapeUrl"] == url);
        found.next().cloned().unwrap_or_default()
    }

    /// Waits until the state of a target is this one; its last error.
    fn wait_for(&self, url: &str, health: &str) -> String {
        let state = || Some(self.target(url)).filter(|target| target["health"] == health);
        let target = eventually(state);
        let target = target.unwrap_or_else(|| {
            panic!(
                "{url} is not {health}: {}, {:#?}",
                self.target(url),
                self.served.said
            )
        });
        target["lastError"].as_str().expect("a text").to_string()
    }
}

/// The result of an instant query, sorted by labels; `None`: there is no answer yet. By HTTP/1.0 Prometheus sends no
/// chunks.
fn results(address: &str, expr: &str) -> Option<Vec<Value>> {
    let path = format!("/api/v1/query?query={}", escaped(expr));
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(!head.contains(" 400 "), "{expr}: {body}");
    let answer: Value = serde_json::from_str(body).ok()?;
    let mut all = answer["data"]["result"].as_array()?.clone();
    all.sort_by_key(|series| series["metric"].to_string());
    Some(all)
}

fn value_of(results: &[Value]) -> Option<f64> {
    let [one] = results else {
        return None;
    };
    one["value"][1].as_str()?.parse().ok()
}

/// A text as a value in a URL.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A table `[[scrape]]` that scrapes each second.
fn job(name: &str, urls: &[&str], more: &str) -> String {
    let urls: Vec<String> = urls.iter().map(|url| format!("{url:?}")).collect();
    let urls = urls.join(", ");
    format!(
        "[[scrape]]\njob = \"{name}\"\nurls = [{urls}]\ninterval = \"1s\"\ntimeout = \"1s\"\n{more}\n"
    )
}

/// node_exporter on a port; `None`: it is missing.
fn node_exporter(port: u16) -> Option<Running> {
    let child = Command::new("prometheus-node-exporter")
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    Some(Running(child.ok()?))
}

/// Debian's Prometheus, which scrapes a target each second; `None`: it is missing.
fn prometheus(scratch: &Scratch, port: u16, target: &str) -> Option<Running> {
    let file = scratch.path("prometheus.yml");
    let rules = "metric_relabel_configs: [{source_labels: [__name__], regex: 'go_.*', action: drop}, \
                 {source_labels: [device], regex: '(.+)', target_label: 'dev', replacement: 'x-$1'}]";
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: exporter\n  {rules}\n  \
         static_configs: [{{targets: ['{target}'], labels: {{env: test}}}}]\n"
    );
    fs::write(&file, config).expect("a configuration");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", scratch.text("tsdb")))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(Running(child.ok()?))
}

/// Label sets of a result.
fn label_sets(results: &[Value]) -> BTreeSet<String> {
    results.iter().map(|of| of["metric"].to_string()).collect()
}

/// Series whose value was the same in the last scrapes, by their labels.
fn at_rest(address: &str) -> BTreeMap<String, String> {
    let expr = r#"{job="exporter",__name__=~"node_.*"}[5s]"#;
    let found = results(address, expr).expect("an answer");
    let still = found.iter().filter_map(|of| {
        let values = of["values"].as_array()?.iter();
        let values: BTreeSet<&str> = values.filter_map(|pair| pair[1].as_str()).collect();
        let value = values.first().filter(|_| values.len() == 1)?;
        Some((of["metric"].to_string(), value.to_string()))
    });
    still.collect()
}

/// A table with the rules of the Prometheus beside it.
const RULES: &str = "labels = { env = \"test\" }\n[[scrape.relabel]]\nsource_labels = [\"__name__\"]\nregex = \"go_.*\"\naction = \"drop\"\n\
                     [[scrape.relabel]]\nsource_labels = [\"device\"]\nregex = \"(.+)\"\ntarget_label = \"dev\"\nreplacement = \"x-$1\"\n";

#[test]
fn prometheus_and_kymo_scrape_the_same() {
    let scratch = Scratch::new("scraped-same");
    let (target_port, port) = (free_port(), free_port());
    let target = format!("127.0.0.1:{target_port}");
    let (Some(exporter), Some(_prometheus)) = (
        node_exporter(target_port),
        prometheus(&scratch, port, &target),
    ) else {
        return machine::skipped("prometheus or node_exporter is missing");
    };
    let url = format!("http://{target}/metrics");
    let hub = ScrapeHub::start_in(scratch, &job("exporter", &[&url], RULES));
    let theirs = format!("127.0.0.1:{port}");
    let has_some = |address: &str| {
        let found = results(address, r#"count_over_time(up{job="exporter"}[1m])"#)?;
        (value_of(&found)? >= 6.0).then_some(())
    };
    eventually(|| has_some(&theirs)).expect("scrapes of Prometheus");
    eventually(|| has_some(&hub.address)).expect("scrapes of kymo");
    // Names and labels, those of scrapes as well, and values that do not move.
    let all = r#"{job="exporter"}"#;
    let same = || {
        let (ours, theirs) = (results(&hub.address, all)?, results(&theirs, all)?);
        let (ours, theirs) = (label_sets(&ours), label_sets(&theirs));
        (ours.len() > 300 && ours == theirs).then_some(ours)
    };
    let sets = eventually(same).unwrap_or_else(|| {
        let ours = label_sets(&hub.query(all));
        let theirs = label_sets(&results(&theirs, all).expect("an answer"));
        let differ: Vec<_> = ours.symmetric_difference(&theirs).collect();
        panic!("{} and {} series, {differ:#?}", ours.len(), theirs.len())
    });
    assert!(
        sets.iter().all(|set| !set.contains("\"go_")),
        "a rule drops"
    );
    assert!(
        sets.iter().any(|set| set.contains("\"dev\":\"x-")),
        "a rule sets"
    );
    let (ours, peers) = (at_rest(&hub.address), at_rest(&theirs));
    let both: Vec<_> = ours.keys().filter(|set| peers.contains_key(*set)).collect();
    assert!(both.len() > 100, "{} at rest", both.len());
    for set in both {
        assert_eq!(ours[set], peers[set], "{set}");
    }
    let scraped = "scrape_samples_scraped > scrape_samples_post_metric_relabeling";
    assert_eq!(hub.query(scraped).len(), 1, "the rule drops samples");
    let path = "/api/v1/metadata?metric=node_cpu_seconds_total";
    let described = get(&hub.address, path, "")["data"]["node_cpu_seconds_total"][0].clone();
    assert_eq!(described["type"], "counter", "{described}");
    ends_and_comes_back(&hub, &exporter, &theirs, &url);
}

/// A target that is stopped, and one that has ended, end its series in both.
fn ends_and_comes_back(hub: &ScrapeHub, exporter: &Running, theirs: &str, url: &str) {
    let up = r#"up{job="exporter"}"#;
    let load = r#"node_load1{job="exporter"}"#;
    let is = |up_value: f64, count: usize| {
        let both = [hub.address.as_str(), theirs];
        let fits = |address: &str| {
            let is_up = value_of(&results(address, up)?)? == up_value;
            (is_up && results(address, load)?.len() == count).then_some(())
        };
        let both = || {
            both.iter()
                .all(|address| fits(address).is_some())
                .then_some(())
        };
        eventually(both).unwrap_or_else(|| panic!("not {up_value}: {:#?}", hub.target(url)));
    };
    is(1.0, 1);
    exporter.signal("-STOP");
    is(0.0, 0);
    let why = hub.wait_for(url, "down");
    assert!(why.contains("no answer within 1 s, while "), "{why}");
    exporter.signal("-CONT");
    is(1.0, 1);
    exporter.signal("-KILL");
    is(0.0, 0);
    let refused = || {
        let why = hub.wait_for(url, "down");
        (why == "cannot connect: Connection refused").then_some(())
    };
    eventually(refused).expect("the reason");
    let hosts = get(&hub.address, "/kymo/v1/hosts", "");
    let scraped = &hosts["scraped"][0];
    assert_eq!(
        (&scraped["job"], &scraped["url"]),
        (&"exporter".into(), &url.into())
    );
    assert_eq!(
        scraped["error"], "cannot connect: Connection refused",
        "{hosts}"
    );
}

/// Another kymo as a target: it wants TLS and a token.
#[test]
fn a_target_with_tls_and_a_token_is_scraped() {
    let target = Scratch::new("scraped-tls-target");
    let (cert, key) = (target.text("cert.pem"), target.text("key.pem"));
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                   -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let made = Command::new("openssl")
        .args(request.split_whitespace())
        .args(["-keyout", &key, "-out", &cert])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return machine::skipped("openssl is missing");
    }
    // With a name numbers need the token.
    let config = format!(
        "user = \"\"\nhosts = [\"localhost\"]\ntls_cert = \"{cert}\"\ntls_key = \"{key}\"\n[listen]\ncollectd = []\n"
    );
    let mut served = Served::configured(&target, &target.path("data"), &config);
    let address = served.address();
    let (_, port) = address.rsplit_once(':').expect("a port");
    let url = format!("https://localhost:{port}/metrics");
    let scratch = Scratch::new("scraped-tls");
    let token = fs::read_to_string(target.path("data/token")).expect("a token");
    fs::write(scratch.path("token"), "wrong\n").expect("a file");
    let with = |name: &str, file: &str| {
        let more = format!(
            "tls_ca = \"{cert}\"\ntoken_file = \"{}\"",
            scratch.text(file)
        );
        job(name, &[&url], &more)
    };
    let config = format!("{}{}", with("own", "token"), job("system", &[&url], ""));
    let hub = ScrapeHub::start_in(scratch, &config);
    let why = |job: &str| {
        let answer = get(&hub.address, "/api/v1/targets", "");
        let targets = answer["data"]["activeTargets"]
            .as_array()
            .expect("targets")
            .clone();
        let target = targets
            .into_iter()
            .find(|target| target["scrapePool"] == job);
        let target = target?;
        (target["health"] != "unknown").then(|| target["lastError"].as_str().map(String::from))?
    };
    let said = eventually(|| why("system")).expect("an error");
    assert!(
        said.contains("cannot use TLS: invalid peer certificate"),
        "{said}"
    );
    let said = eventually(|| why("own")).expect("an error");
    assert_eq!(said, "the target answers 401 Unauthorized");
    // The file is read again at SIGHUP, by the guardian.
    fs::write(hub.scratch.path("token"), token).expect("a file");
    kill("-HUP", hub.served.pid());
    eventually(|| why("own").filter(String::is_empty)).expect("the token counts");
    let samples = r#"kymo_samples_total{job="own",instance=~"localhost:.+"}"#;
    eventually(|| hub.value(samples)).expect("samples of kymo itself");
    let said = hub.served.said.join("\n");
    assert!(!said.contains("wrong"), "no token in a message: {said}");
}

/// The processes that take part are killed while a target is scraped: no scrape is lost.
#[test]
fn scrapes_outlive_the_keeper() {
    let good = hostile::HostileTarget::start();
    let url = good.url("/good");
    let mut hub = ScrapeHub::start("scraped-kills", &job("good", &[&url], ""));
    let up = r#"up{job="good"}"#;
    eventually(|| (hub.values(&format!("{up}[1m]")).len() > 2).then_some(())).expect("samples");
    let before = hub.values(&format!("{up}[1m]")).len();
    let keeper = hub.served.child("keeper").expect("a keeper");
    kill("-9", keeper);
    hub.served.next_child("keeper", keeper);
    let more = || {
        let found = results(&hub.address, &format!("{up}[1m]"))?;
        let values = found.first()?["values"].as_array()?.len();
        (values > before + 4).then_some(())
    };
    eventually(more).expect("samples behind the death");
    let values = hub.values(&format!("{up}[1m]"));
    let steps: Vec<i64> = values
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    // A machine that is busy may delay a scrape, but not lose one.
    let lost = steps.iter().filter(|&&step| step > 2500).count();
    assert_eq!(lost, 0, "{steps:?}; {:#?}", hub.served.said);
    let scraper = hub.served.child("scrape").expect("a process");
    kill("-9", scraper);
    hub.served
        .hears("the process that scrapes was ended by signal 9");
    hub.served.next_child("scrape", scraper);
    let count = hub.values(&format!("{up}[1m]")).len();
    eventually(|| (hub.values(&format!("{up}[1m]")).len() > count + 1).then_some(()))
        .expect("more");
    assert!(hub.dir.join("store").is_dir());
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let scratch = Scratch::new("scraped-config");
    let file = scratch.text("kymo.toml");
    let missing = scratch.text("missing");
    for (more, why) in [
        (
            format!("token_file = \"{missing}\""),
            format!("cannot scrape a: cannot read {missing}"),
        ),
        (
            format!("tls_ca = \"{file}\""),
            "cannot scrape a: cannot use tls_ca: it holds no certificate".to_string(),
        ),
    ] {
        let config = format!("user = \"\"\n{}", job("a", &["https://localhost:1"], &more));
        fs::write(&file, config).expect("a file");
        let data = scratch.text("data");
        let words = [
            "serve",
            "--config",
            &file,
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
        ];
        let output = kymo_tests::run(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&why), "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
    }
}
