//! Values that `kymo serve` forwards (`[[forward]]`): Debian's Prometheus and victoria-metrics have all that kymo has, over
//! the death of each process that takes part; and a receiver of the test's own says what goes over the wire. Receivers of other
//! protocols have modules of their own.

mod collectd;
mod outage;
mod receiver;
mod rrdcached;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use kymo_tests::machine::skipped;
use kymo_tests::served::{Served, ask, eventually, kill};
use kymo_tests::{Running, Scratch, free_port};
use kymo_wire::remote_write::WriteVersion;
use serde_json::Value;

use self::receiver::{Answering, Receiver};
use crate::prometheus_api::{escaped, now_s};

/// Samples by labels without those of the way.
type Found = BTreeMap<String, Vec<(i64, String)>>;

/// A `kymo serve` that takes lines of Graphite and datagrams of collectd, and forwards values.
struct ForwardHub {
    served: Served,
    address: String,
    graphite: String,
    /// Port of collectd's datagrams.
    collectd: u16,
    scratch: Scratch,
}

impl ForwardHub {
    fn start(name: &str, tables: &str) -> ForwardHub {
        ForwardHub::start_in(Scratch::new(name), tables)
    }

    fn start_in(scratch: Scratch, tables: &str) -> ForwardHub {
        ForwardHub::start_with(scratch, "", tables)
    }

    /// Starts one that listens on one more address for datagrams.
    fn start_with(scratch: Scratch, address: &str, tables: &str) -> ForwardHub {
        let graphite = format!("127.0.0.1:{}", free_port());
        let collectd = free_port();
        let own = format!("127.0.0.1:{collectd}");
        let addresses = [own.as_str(), address];
        let addresses = &addresses[..1 + usize::from(!address.is_empty())];
        // Beyond loopback anybody could send.
        let is_insecure = !address.is_empty() && !address.starts_with("127.");
        let config = format!(
            "user = \"\"\ninsecure = {is_insecure}\n[listen]\ncollectd = {addresses:?}\ngraphite = [\"{graphite}\"]\n{tables}"
        );
        let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
        let address = served.address();
        served.has_said("rrdcached's protocol on");
        let hub = ForwardHub {
            served,
            address,
            graphite,
            collectd,
            scratch,
        };
        hub.waits_for_tails(tables.matches("[[forward]]").count());
        hub
    }

    /// Waits until the keeper has this number of tails: values that come later are forwarded.
    fn waits_for_tails(&self, count: usize) {
        let tails = || {
            let (_, body) = ask(&self.address, "GET", "/kymo/v1/status", "", "")?;
            let status: Value = serde_json::from_str(&body).ok()?;
            (status["tails"].as_array()?.len() == count).then_some(())
        };
        eventually(tails).unwrap_or_else(|| panic!("no tails: {:#?}", self.served.said));
    }

    /// Sends a value of each of five series for each second of a range before now.
    fn send(&self, seconds: std::ops::Range<i64>) {
        let now = now_s();
        let connected = || TcpStream::connect(&self.graphite).ok();
        let mut stream = eventually(connected).expect("the listener");
        for second in seconds {
            for series in 0..5 {
                let value = second * 7 + series;
                let t = now - second;
                writeln!(stream, "sent.by{series} {value}.25 {t}").expect("a line");
            }
        }
    }

    /// Kills a child and waits for the next one.
    fn kill(&mut self, word: &str) {
        let child = self.served.child(word).expect("a child");
        kill("-9", child);
        self.served.next_child(word, child);
    }

    /// The value of a series of kymo itself.
    fn own(&self, metric: &str, forward: &str) -> Option<f64> {
        let path = format!(
            "query?query={}",
            escaped(&format!("{metric}{{forward=\"{forward}\"}}"))
        );
        let answer = json(&self.address, &path)?;
        answer["data"]["result"][0]["value"][1]
            .as_str()?
            .parse()
            .ok()
    }
}

/// Graphite's series that a server has, of the last minutes.
fn found(address: &str) -> Option<Found> {
    let path = format!(
        "query?nocache=1&query={}",
        escaped("{job=\"graphite\"}[20m]")
    );
    let answer = json(address, &path)?;
    let all = answer["data"]["result"].as_array()?.iter().map(|of| {
        let mut labels = of["metric"].clone();
        labels.as_object_mut().expect("labels").remove("site");
        let pairs = of["values"].as_array().into_iter().flatten();
        let pair = |pair: &Value| {
            let seconds = pair[0].as_f64().expect("a time");
            let value: f64 = pair[1].as_str().expect("a text").parse().expect("a value");
            ((seconds * 1000.0).round() as i64, value.to_string())
        };
        let mut values: Vec<_> = pairs.map(pair).collect();
        // A batch may come twice.
        values.dedup();
        (labels.to_string(), values)
    });
    Some(all.collect())
}

/// An answer of Prometheus' API. By HTTP/1.0 it has no chunks.
pub(crate) fn json(address: &str, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(
        stream,
        "GET /api/v1/{path} HTTP/1.0\r\nHost: {address}\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// An answer of kymo's own API.
fn kymo_json(address: &str, path: &str) -> Option<Value> {
    let (_, body) = ask(address, "GET", &format!("/kymo/v1/{path}"), "", "")?;
    serde_json::from_str(&body).ok()
}

fn victoria_metrics(scratch: &Scratch, address: &str) -> Option<Running> {
    let child = Command::new("victoria-metrics")
        .arg(format!("-storageDataPath={}", scratch.text("victoria")))
        .arg(format!("-httpListenAddr={address}"))
        .args([
            "-search.latencyOffset=1ms",
            "-search.disableCache",
            "-loggerLevel=ERROR",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(Running(child.ok()?))
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

/// A table `[[forward]]`.
fn table(name: &str, url: &str, more: &str) -> String {
    format!("[[forward]]\nname = \"{name}\"\nurl = \"{url}\"\n{more}\n")
}

/// Two real receivers get all values, and a third that never answers delays neither. One is stopped for a while, and the
/// process that forwards and the keeper are killed: all values arrive.
#[test]
fn real_receivers_have_all_values() {
    let scratch = Scratch::new("forwarded-real");
    let [victoria, theirs] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let running = (
        victoria_metrics(&scratch, &victoria),
        prometheus(&scratch, &theirs),
    );
    let (Some(mut running), Some(_prometheus)) = running else {
        return skipped("victoria-metrics or prometheus is missing");
    };
    let silent = Receiver::start(Answering::Silent);
    let more = "match = ['{job=\"graphite\"}']\nlabels = { site = \"here\" }";
    let tables = [
        table("silent", &silent.url(), more),
        table("victoria", &format!("http://{victoria}/api/v1/write"), more),
        table("prometheus", &format!("http://{theirs}/api/v1/write"), more),
    ];
    for address in [&victoria, &theirs] {
        eventually(|| found(address)).expect("an answer of the receiver");
    }
    let mut hub = ForwardHub::start_in(scratch, &tables.concat());
    let stored = |hub: &ForwardHub, count: usize| {
        let has_all = |all: &Found| all.values().map(Vec::len).sum::<usize>() == count;
        let ours = eventually(|| found(&hub.address).filter(has_all));
        ours.expect("all values in kymo")
    };
    let same = |hub: &ForwardHub, count: usize| {
        for address in [&victoria, &theirs] {
            let ours = stored(hub, count);
            let equal = || (found(address)? == ours).then_some(());
            eventually(equal).unwrap_or_else(|| {
                panic!(
                    "{address}: {:?}, not {ours:?}: {:#?}",
                    found(address),
                    hub.served.said
                )
            });
        }
    };
    let values = |from: i64, to: i64| (from..to).rev();
    let all = |hub: &ForwardHub, from, to| {
        for second in values(from, to) {
            hub.send(second..second + 1);
        }
    };
    all(&hub, 100, 120);
    same(&hub, 100);
    running.signal("-TERM");
    running.0.wait().expect("its end");
    all(&hub, 80, 99);
    hub.served
        .hears("cannot forward to victoria: cannot connect: Connection refused");
    hub.kill("forward");
    all(&hub, 60, 79);
    // Graphite's lines have no answer: those that the keeper has not read yet would die with it.
    stored(&hub, 100 + 2 * 19 * 5);
    hub.kill("keeper");
    all(&hub, 40, 59);
    running = victoria_metrics(&hub.scratch, &victoria).expect("the receiver");
    same(&hub, 100 + 3 * 19 * 5);
    drop(running);
}

/// A hub that keeps no values answers with those of the engine behind it, before and after its keeper dies. Its blocks have names
/// and states alone.
#[test]
fn a_hub_may_keep_no_values() {
    let scratch = Scratch::new("forwarded-keep-none");
    let victoria = format!("127.0.0.1:{}", free_port());
    let Some(mut running) = victoria_metrics(&scratch, &victoria) else {
        return skipped("victoria-metrics is missing");
    };
    eventually(|| found(&victoria)).expect("an answer of the engine");
    let receiver = table(
        "victoria",
        &format!("http://{victoria}/api/v1/write"),
        "match = ['{job=\"graphite\"}']",
    );
    let own = format!("[store]\nkeep = \"none\"\n[query]\nupstream = \"http://{victoria}\"\n");
    let mut hub = ForwardHub::start_in(scratch, &format!("{own}{receiver}"));
    for second in (50..250).rev() {
        hub.send(second..second + 1);
    }
    let count = |all: &Found| all.values().map(Vec::len).sum::<usize>();
    let theirs = eventually(|| found(&victoria).filter(|all| count(all) == 1000));
    let theirs = theirs.unwrap_or_else(|| {
        let all = found(&victoria).unwrap_or_default();
        panic!("{} of 1000 samples: {:#?}", count(&all), hub.served.said)
    });
    let same = |hub: &ForwardHub| (found(&hub.address)? == theirs).then_some(());
    eventually(|| same(&hub)).unwrap_or_else(|| panic!("{:?}", found(&hub.address)));
    let data = hub.scratch.path("data");
    let is_saved = || {
        let status = Command::new(kymo_tests::kymo())
            .args(["status", "--json"])
            .arg(&data)
            .output()
            .ok()?;
        let status: Value = serde_json::from_slice(&status.stdout).ok()?;
        let blocks = status["blocks"].as_u64()?;
        assert_eq!(status["bytes_of_points"], 0, "{status}");
        (blocks > 0).then_some(())
    };
    eventually(is_saved).expect("a block without values");
    hub.kill("keeper");
    eventually(|| same(&hub)).unwrap_or_else(|| panic!("{:?}", found(&hub.address)));
    running.signal("-KILL");
    running.0.wait().expect("its end");
    let alone = eventually(|| json(&hub.address, "query?query=sent_by0[20m]")).expect("an answer");
    assert!(alone["warnings"][0].is_string(), "{alone}");
}

/// The process that forwards dies before the answer to samples that the receiver took. They go again, and the receiver refuses
/// whole requests that have one of them: newer samples arrive all the same, and none comes twice.
#[test]
fn known_samples_cost_no_new_ones() {
    let receiver = Receiver::start(Answering::Unanswered);
    let scratch = Scratch::new("forwarded-known");
    let more = "match = ['{job=\"graphite\"}']";
    let mut hub = ForwardHub::start_in(scratch, &table("new", &receiver.url(), more));
    hub.send(20..40);
    let first = || (receiver.samples("sent_by").len() >= 5).then_some(());
    eventually(first).expect("samples without an answer");
    hub.send(10..20);
    receiver.answers(Answering::New);
    hub.kill("forward");
    let all = || (receiver.samples("sent_by").len() == 150).then_some(());
    eventually(all).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
    hub.send(5..6);
    let all = || (receiver.samples("sent_by").len() == 155).then_some(());
    eventually(all).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
    let counts = receiver.samples("sent_by");
    assert!(counts.values().all(|&count| count == 1), "{counts:?}");
    assert!(!receiver.refused().is_empty());
}

/// The receiver says which version it takes, and one that knows the first alone and answers 204 to all is found out.
#[test]
fn the_receiver_chooses_the_version() {
    let receivers = [
        (Answering::Taking, WriteVersion::V2),
        (Answering::OnlyFirst, WriteVersion::V1),
        (Answering::Ignorant, WriteVersion::V1),
    ];
    let started = receivers.map(|(answering, version)| (Receiver::start(answering), version));
    let scratch = Scratch::new("forwarded-versions");
    fs::write(scratch.path("token"), "secret-1\n").expect("a file");
    let more = format!(
        "match = ['{{job=\"graphite\"}}']\ndrop_labels = [\"path\"]\ntoken_file = \"{}\"",
        scratch.text("token")
    );
    let tables = (0..).zip(&started);
    let tables: String = tables
        .map(|(at, (receiver, _))| table(&format!("r{at}"), &receiver.url(), &more))
        .collect();
    let hub = ForwardHub::start_in(scratch, &tables);
    hub.send(10..30);
    for (receiver, version) in &started {
        let all = || (receiver.samples("sent_by").len() == 100).then_some(());
        eventually(all).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
        for taken in receiver.taken() {
            assert_eq!(taken.version, *version);
            assert_eq!(taken.authorization, "Bearer secret-1");
            for (labels, _, value) in &taken.samples {
                assert!(
                    labels.starts_with("__name__=sent_by") && !labels.contains("path"),
                    "{labels}"
                );
                assert_eq!(value.fract(), 0.25, "{labels}");
            }
        }
        // Nothing came twice: a request of the other version was not taken.
        let twice = receiver
            .samples("")
            .into_values()
            .filter(|&count| count > 1);
        assert_eq!(twice.count(), 0);
    }
    assert!(started[0].0.refused().is_empty(), "2.0 comes first");
    let said = hub.served.said.join("\n");
    assert!(!said.contains("secret-1"), "{said}");
}

/// A receiver is shown a user and a password, which no log has.
#[test]
fn a_receiver_is_shown_a_user() {
    let receiver = Receiver::start(Answering::Taking);
    let scratch = Scratch::new("forwarded-user");
    fs::write(scratch.path("password"), "secret:2\n").expect("a file");
    let more = format!(
        "match = ['{{job=\"graphite\"}}']\nuser = \"kymo\"\npassword_file = \"{}\"",
        scratch.text("password")
    );
    let hub = ForwardHub::start_in(scratch, &table("own", &receiver.url(), &more));
    hub.send(10..11);
    let all = || (receiver.samples("sent_by").len() == 5).then_some(());
    eventually(all).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
    for taken in receiver.taken() {
        // `kymo:secret:2` in Base64.
        assert_eq!(taken.authorization, "Basic a3ltbzpzZWNyZXQ6Mg==");
    }
    let said = hub.served.said.join("\n");
    assert!(!said.contains("secret:2"), "{said}");
}

/// A request that the receiver refuses is dropped, counted and said; one that it takes later comes again, and nothing twice.
#[test]
fn refusals_and_pauses_are_counted() {
    let receiver = Receiver::start(Answering::Status(429, "Retry-After: 1\r\n", "slowly"));
    let more = "match = ['{job=\"graphite\"}']";
    let mut hub = ForwardHub::start("forwarded-refused", &table("own", &receiver.url(), more));
    hub.send(10..20);
    hub.served.hears("cannot forward to own: it answers 429 Too Many Requests: slowly; the values wait in the journal");
    receiver.answers(Answering::Taking);
    let count = |expected: usize| {
        let all = || (receiver.samples("sent_by").len() == expected).then_some(());
        eventually(all).unwrap_or_else(|| panic!("{:?}", receiver.samples("")));
    };
    count(50);
    receiver.answers(Answering::Status(
        400,
        "X-Prometheus-Remote-Write-Samples-Written: 0\r\n",
        "too old",
    ));
    hub.send(30..40);
    hub.served.hears(
        "forward own: 50 samples are refused and dropped: it answers 400 Bad Request: too old",
    );
    receiver.answers(Answering::Taking);
    hub.send(50..60);
    count(100);
    for (metric, expected) in [
        ("kymo_forward_samples_total", 100.0),
        ("kymo_forward_refused_samples_total", 50.0),
        ("kymo_forward_missed_values_total", 0.0),
        ("kymo_forward_up", 1.0),
    ] {
        let is = || (hub.own(metric, "own")? == expected).then_some(());
        eventually(is).unwrap_or_else(|| panic!("{metric}: {:?}", hub.own(metric, "own")));
    }
    assert!(hub.own("kymo_forward_failed_requests_total", "own") >= Some(1.0));
    let hosts = kymo_json(&hub.address, "hosts").expect("hosts");
    let [receiver_account] = &hosts["receivers"].as_array().expect("receivers")[..] else {
        panic!("{hosts}");
    };
    for (key, expected) in [("sent", 100), ("refused", 50), ("missed", 0)] {
        assert_eq!(receiver_account[key], expected, "{key}");
    }
    assert_eq!(receiver_account["up"], true);
    let (_, metrics) = ask(&hub.address, "GET", "/metrics", "", "").expect("metrics");
    for line in [
        "# TYPE kymo_forward_samples_total counter",
        "kymo_forward_samples_total{forward=\"own\"} 100",
        "kymo_forward_refused_samples_total{forward=\"own\"} 50",
        "# TYPE kymo_forward_backlog_seconds gauge",
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line}: {metrics}");
    }
    let twice = receiver
        .samples("")
        .into_values()
        .filter(|&count| count > 1);
    assert_eq!(twice.count(), 0);
}

/// Deaths of all processes and of the receiver lose no sample. A sample comes twice only where a request was taken and its answer
/// did not arrive: exactly that request, and one at most for each death.
#[test]
fn deaths_lose_nothing_and_repeat_one_request() {
    let receiver = Receiver::start(Answering::Taking);
    let tables = table("own", &receiver.url(), "match = ['{job=\"graphite\"}']");
    let mut hub = ForwardHub::start("forwarded-deaths", &tables);
    let has = |hub: &ForwardHub, count: usize| {
        let all = || (receiver.samples("sent_by").len() == count).then_some(());
        eventually(all).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
    };
    // Samples that came more than once, and requests that had one of them.
    let doubled = || {
        let (mut seen, mut samples, mut requests) = (BTreeSet::new(), 0, 0);
        for taken in receiver.taken() {
            let again = taken.samples.into_iter().filter(|(labels, t_ms, value)| {
                !seen.insert((labels.clone(), *t_ms, value.to_bits()))
            });
            let again = again.count();
            (samples, requests) = (samples + again, requests + usize::from(again > 0));
        }
        (samples, requests)
    };
    hub.send(190..200);
    has(&hub, 50);
    receiver.answers(Answering::Lost);
    hub.send(180..190);
    has(&hub, 100);
    let came_twice = || (doubled().1 == 1).then_some(doubled().0);
    let lost = eventually(came_twice).expect("the request comes again");
    let of_request = |of: usize| receiver.taken()[of].samples.len();
    let at = receiver.taken().len();
    assert_eq!((lost, lost), (of_request(at - 1), of_request(at - 2)));
    let (mut sent, mut deaths) = (100, 1);
    for round in 0..3 {
        let begin = 150 - 30 * round;
        // The keeper has a sample for certain when it answers with it.
        let mut part = |hub: &ForwardHub, at: i64| {
            hub.send(begin + 5 * at..begin + 5 * at + 5);
            sent += 25;
            let kept = || {
                (found(&hub.address)?.values().map(Vec::len).sum::<usize>() == sent).then_some(())
            };
            eventually(kept).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
        };
        part(&hub, 3);
        hub.kill("forward");
        part(&hub, 2);
        receiver.answers(Answering::Status(503, "", "it starts"));
        hub.kill("keeper");
        part(&hub, 1);
        let ForwardHub {
            served, scratch, ..
        } = hub;
        drop(served);
        receiver.answers(Answering::Taking);
        hub = ForwardHub::start_in(scratch, &tables);
        part(&hub, 0);
        deaths += 3;
        has(&hub, sent);
    }
    let (samples, requests) = doubled();
    assert!(
        requests <= deaths,
        "{samples} samples of {requests} requests came twice"
    );
}

/// A tail of a receiver that is configured no more ends, so that the journal is not kept for it.
#[test]
fn a_receiver_that_is_gone_keeps_no_journal() {
    let receiver = Receiver::start(Answering::Taking);
    let scratch = Scratch::new("forwarded-gone");
    let both = [
        table("a", &receiver.url(), ""),
        table("b", &receiver.url(), ""),
    ]
    .concat();
    let hub = ForwardHub::start_in(scratch, &both);
    let ForwardHub {
        served, scratch, ..
    } = hub;
    drop(served);
    let mut hub = ForwardHub::start_in(scratch, &table("b", &receiver.url(), ""));
    hub.served
        .has_said("keeper: the tail forward-a has ended: it is configured no more");
    let tails = |hub: &ForwardHub| {
        let status = kymo_json(&hub.address, "status")?;
        let tails = status["tails"].as_array()?.iter();
        let names = tails.map(|tail| tail["name"].as_str().unwrap_or_default().to_string());
        Some(names.collect::<Vec<String>>())
    };
    assert_eq!(tails(&hub), Some(vec!["forward-b".to_string()]));
    let ForwardHub {
        served, scratch, ..
    } = hub;
    drop(served);
    // The last table goes, too.
    let hub = ForwardHub::start_in(scratch, "");
    assert_eq!(tails(&hub), Some(Vec::new()));
}

/// Another kymo as a receiver: it wants TLS and the token of senders, and takes 2.0. Series of its own inputs need another
/// `instance` than its own.
#[test]
fn another_kymo_is_a_receiver() {
    let theirs = Scratch::new("forwarded-kymo-theirs");
    let (cert, key) = (theirs.text("cert.pem"), theirs.text("key.pem"));
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                   -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let made = Command::new("openssl")
        .args(request.split_whitespace())
        .args(["-keyout", &key, "-out", &cert])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return skipped("openssl is missing");
    }
    let config = format!(
        "user = \"\"\nhosts = [\"localhost\"]\ntls_cert = \"{cert}\"\ntls_key = \"{key}\"\n[listen]\ncollectd = []\n"
    );
    let mut served = Served::configured(&theirs, &theirs.path("data"), &config);
    let address = served.address();
    served.has_said("rrdcached's protocol on");
    let (_, port) = address.rsplit_once(':').expect("a port");
    let more = format!(
        "match = ['{{job=\"graphite\"}}']\nlabels = {{ instance = \"web-1\" }}\ntls_ca = \"{cert}\"\ntoken_file = \"{}\"",
        theirs.text("data/write-token")
    );
    let url = format!("https://localhost:{port}/api/v1/write");
    let hub = ForwardHub::start("forwarded-kymo", &table("kymo", &url, &more));
    hub.send(10..30);
    let all = || (hub.own("kymo_forward_samples_total", "kymo")? == 100.0).then_some(());
    eventually(all).unwrap_or_else(|| panic!("{:#?}", hub.served.said));
    let refused = hub.own("kymo_forward_refused_samples_total", "kymo");
    assert_eq!(refused, Some(0.0));
    let requests = hub.own("kymo_forward_requests_total", "kymo");
    assert!(requests < Some(20.0), "no request went twice: {requests:?}");
}
