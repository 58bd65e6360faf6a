//! The processes of a ring: receivers that store, a router that shares samples out to them, and a querier over all.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kymo_tests::served::{ask, eventually};
use kymo_tests::{Running, Scratch, free_port};

/// Receivers of a ring.
const RECEIVERS: usize = 3;

/// The program that `make ring` builds.
fn program() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/thanos-v0.42.4/thanos");
    assert!(built.is_file(), "make ring builds {}", built.display());
    built
}

/// The help of a command of Thanos.
pub(super) fn help(command: &str) -> String {
    let output = Command::new(program()).args([command, "--help"]).output();
    let output = output.expect("thanos runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Starts Thanos with these words in a folder of its own.
fn start(scratch: &Scratch, name: &str, words: &[String]) -> Running {
    let folder = scratch.path(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let child = Command::new(program())
        .args(words)
        .args(["--log.level=error"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Running(child.expect("thanos runs"))
}

fn loopback() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// Waits until a component says that it is ready.
fn waits_for(http: &str) {
    let ready = || {
        let (status, _) = ask(http, "GET", "/-/ready", "", "")?;
        (status == 200).then_some(())
    };
    eventually(ready).unwrap_or_else(|| panic!("{http} is never ready"));
}

/// A receiver that stores.
struct Receiver {
    name: String,
    grpc: String,
    http: String,
    words: Vec<String>,
    running: Option<Running>,
}

impl Receiver {
    fn new(number: usize) -> Receiver {
        let name = format!("receiver-{number}");
        let (grpc, http) = (loopback(), loopback());
        let words = vec![
            "receive".into(),
            "--tsdb.path=tsdb".into(),
            "--tsdb.retention=1d".into(),
            "--tsdb.out-of-order.time-window=1h".into(),
            format!("--grpc-address={grpc}"),
            format!("--http-address={http}"),
            format!("--remote-write.address={}", loopback()),
            format!("--receive.capnproto-address={}", loopback()),
            format!("--label=replica=\"{number}\""),
        ];
        Receiver {
            name,
            grpc,
            http,
            words,
            running: None,
        }
    }
}

/// A ring of receivers, its router and its querier.
pub(super) struct Ring {
    /// URL that takes remote write.
    pub(super) url: String,
    /// Address of the querier.
    pub(super) querier: String,
    receivers: Vec<Receiver>,
    _others: [Running; 2],
    scratch: Scratch,
}

impl Ring {
    /// A ring in which each sample goes to this number of receivers.
    pub(super) fn start(replicas: usize) -> Ring {
        let scratch = Scratch::new("ring");
        let receivers: Vec<Receiver> = (0..RECEIVERS).map(Receiver::new).collect();
        let endpoints: Vec<&str> = receivers.iter().map(|of| &*of.grpc).collect();
        let (write, router) = (loopback(), loopback());
        let router_words = [
            "receive".into(),
            format!("--receive.hashrings=[{{\"endpoints\":{endpoints:?}}}]"),
            "--receive.hashrings-algorithm=ketama".into(),
            format!("--receive.replication-factor={replicas}"),
            format!("--grpc-address={}", loopback()),
            format!("--http-address={router}"),
            format!("--remote-write.address={write}"),
            format!("--receive.capnproto-address={}", loopback()),
            "--label=replica=\"router\"".into(),
        ];
        let router_runs = start(&scratch, "router", &router_words);
        let (querier, querier_runs) = querier(&scratch, &endpoints);
        let mut ring = Ring {
            url: format!("http://{write}/api/v1/receive"),
            querier,
            receivers,
            _others: [router_runs, querier_runs],
            scratch,
        };
        (0..RECEIVERS).for_each(|number| ring.begins(number));
        waits_for(&router);
        ring
    }

    /// Starts a receiver, for the first time or again, and waits until it answers.
    pub(super) fn begins(&mut self, number: usize) {
        let receiver = &mut self.receivers[number];
        receiver.running = Some(start(&self.scratch, &receiver.name, &receiver.words));
        waits_for(&receiver.http);
    }

    /// Kills a receiver with SIGKILL.
    pub(super) fn dies(&mut self, number: usize) {
        self.receivers[number].running = None;
    }
}

/// A sidecar, by which queriers ask a server with Prometheus' API; its address for them.
pub(super) fn sidecar(scratch: &Scratch, name: &str, url: &str) -> (String, Running) {
    let (grpc, http) = (loopback(), loopback());
    let words = [
        "sidecar".into(),
        format!("--prometheus.url={url}"),
        format!("--grpc-address={grpc}"),
        format!("--http-address={http}"),
    ];
    let running = start(scratch, name, &words);
    waits_for(&http);
    (grpc, running)
}

/// A querier over these stores, and its address.
pub(super) fn querier(scratch: &Scratch, stores: &[&str]) -> (String, Running) {
    let http = loopback();
    let mut words = vec![
        "query".into(),
        format!("--http-address={http}"),
        format!("--grpc-address={}", loopback()),
        "--query.replica-label=replica".into(),
    ];
    words.extend(stores.iter().map(|store| format!("--endpoint={store}")));
    let running = start(scratch, "querier", &words);
    waits_for(&http);
    (http, running)
}
