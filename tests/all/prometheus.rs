//! `/metrics` beside its model, on the live machine: promtool finds nothing that it does not find in node_exporter's
//! own output; the series that both have are the same and have the same values; Debian's Prometheus scrapes both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_base::reading::Reading;
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem;
use kymo_query::recorded::Recorded;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_tests::machine::{self, Interface};
use kymo_tests::{Running, Scratch, free_port, stdout_of};
use kymo_view::prometheus::{self, Cost};
use serde_json::Value;

/// Names kymo has, but node_exporter only in later versions than Debian's, or other kernels.
const ONLY_OURS: &[&str] = &["node_pressure_irq_stalled_seconds_total"];

/// What is there but for a moment, the reader itself among it: live, the values say nothing of each other.
const MOMENTARY: &[&str] = &[
    "node_procs_running",
    "node_procs_blocked",
    "node_disk_io_now",
    // Each reader's own connection.
    "node_netstat_Tcp_CurrEstab",
    "node_sockstat_sockets_used",
    "node_sockstat_TCP_alloc",
    "node_sockstat_TCP_inuse",
    "node_filefd_allocated",
];

/// Rounds of: node_exporter, kymo, node_exporter.
const ROUNDS: usize = 5;

/// A series, as it is written: name and labels, sorted.
type Series = String;

/// What is exposed.
struct Exposition {
    text: String,
    values: BTreeMap<Series, f64>,
    /// Type by name.
    types: BTreeMap<String, String>,
}

/// Files of /proc, and which of the corpus stands for each; of several kernels.
const MACHINES: &[(&str, &[(&str, &str)])] = &[
    (
        "6.18",
        &[
            ("stat", "stat"),
            ("loadavg", "loadavg"),
            ("meminfo", "meminfo"),
            ("vmstat", "vmstat"),
            ("diskstats", "diskstats_nvme_multipath"),
            ("net/dev", "net_dev_containers"),
            ("pressure/cpu", "pressure_cpu"),
            ("pressure/memory", "pressure_io"),
            ("pressure/io", "pressure_io"),
            ("net/sockstat", "sockstat"),
            ("net/sockstat6", "sockstat6"),
            ("net/snmp", "snmp"),
            ("net/netstat", "netstat"),
            ("net/snmp6", "snmp6"),
            ("sys/fs/file-nr", "file_nr"),
        ],
    ),
    (
        "3.10 to 5.4, 48 CPUs",
        &[
            ("stat", "stat_3.10_48cpu"),
            ("loadavg", "loadavg_busy"),
            ("meminfo", "meminfo_3.10"),
            ("vmstat", "vmstat"),
            ("diskstats", "diskstats_4.18"),
            ("net/dev", "net_dev"),
            ("pressure/cpu", "pressure_cpu_5.4"),
            ("pressure/memory", "pressure_io"),
            ("pressure/io", "pressure_io"),
        ],
    ),
    (
        "4.18, a CPU offline",
        &[("stat", "stat_4.18_offline"), ("diskstats", "diskstats")],
    ),
    (
        "2.6.32",
        &[
            ("stat", "stat_2.6.32"),
            ("loadavg", "loadavg_busy"),
            ("meminfo", "meminfo_2.6.32"),
            ("vmstat", "vmstat_2.6.32"),
            ("diskstats", "diskstats_2.6.32"),
            ("net/dev", "net_dev_2.6.32"),
        ],
    ),
];

/// Both read the same files: then all is the same, to the last bit.
#[test]
fn the_same_of_the_same_files() {
    if let Some(tool) = missing(&["prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    for (machine, files) in MACHINES {
        let tree = Scratch::new("proc");
        for (file, text) in *files {
            // kymo takes the network of its own process where the root is not that of the machine.
            for path in [format!("proc/{file}"), format!("proc/self/{file}")] {
                let path = tree.path(&path);
                let text = format!("{}/corpus/{text}.txt", env!("CARGO_MANIFEST_DIR"));
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::copy(text, path).expect("a file");
            }
        }
        let (root, dir) = (tree.text(""), tree.text("ring"));
        stdout_of(&[
            "record", "-s", "cdnmpist", "-i", ".1", "-c", "1", "-f", &dir, "--root", &root,
        ]);
        let ours = parse(newest(&dir).expect("a sample"));
        let node = NodeExporter::start(&[
            format!("--path.procfs={}", tree.text("proc")),
            "--no-collector.netdev.netlink".into(),
        ]);
        let theirs = node.scrape();
        // What the kernel does not say (a CPU that is offline, a time it does not have) is 0 there, and left out here.
        let mut lacking = lacking(&ours, &theirs, &theirs);
        lacking.retain(|series| theirs.values[series] != 0.0);
        // Of that time; no interface's name holds a colon since.
        lacking.retain(|series| !series.contains("eth0:1"));
        assert!(lacking.is_empty(), "{machine}: {lacking:?}");
        same_types(&ours, &theirs);
        let of_node = ours
            .values
            .iter()
            .filter(|(series, _)| series.starts_with("node_"));
        for (series, value) in of_node {
            let other = theirs.values.get(series);
            assert!(
                other.is_none_or(|other| other == value),
                "{machine}: {series}: {value}, not {other:?}"
            );
        }
    }
}

#[test]
fn as_node_exporter_has_it() {
    if let Some(tool) = missing(&["promtool", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let _devices = machine::hold_devices();
    // Only root may add one; without it the names are tamer.
    let _hostile = Interface::add("q\"{\\}=,");
    let (node, kymo) = (NodeExporter::start(&[]), Kymo::start());
    let mut verdicts = BTreeMap::new();
    for _ in 0..ROUNDS {
        let before = node.scrape();
        let ours = kymo.scrape_after(now());
        let after = node.scrape();
        assert_eq!(lacking(&ours, &before, &after), [""; 0]);
        same_types(&ours, &before);
        compare(&ours, &before, &after, &mut verdicts);
        let complaints = promtool(&ours.text);
        let allowed = promtool(&before.text);
        let more: Vec<_> = complaints.difference(&allowed).collect();
        assert!(more.is_empty(), "promtool: {more:?}");
    }
    let equal = verdicts
        .values()
        .filter(|verdict| verdict.equal > 0)
        .count();
    let wrong: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict.is_wrong())
        .collect();
    eprintln!(
        "{} series, {equal} of them equal while neither moved",
        verdicts.len()
    );
    assert!(wrong.is_empty(), "not as node_exporter has it: {wrong:#?}");
    assert!(equal > 50, "too few were seen at rest: {equal}");
}

#[test]
fn prometheus_scrapes_both() {
    if let Some(tool) = missing(&["prometheus", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let _devices = machine::hold_devices();
    let (node, kymo) = (NodeExporter::start(&[]), Kymo::start());
    let prometheus = Prometheus::start(&[("kymo", kymo.port), ("node", node.port)]);
    prometheus.wait_until("min(count_over_time(up[10s])) >= 9 and min(min_over_time(up[5s])) == 1");
    let moment = now() - 3.0;

    let ours = prometheus.values("{__name__=~\"node_.*\",job=\"kymo\"}", moment);
    let theirs = prometheus.ranges("{__name__=~\"node_.*\",job=\"node\"}[8s]", now());
    let (mut still, mut moving) = (0, 0);
    for (series, value) in &ours {
        let Some(range) = theirs.get(series) else {
            assert!(ONLY_OURS.contains(&name_of(series)), "{series}");
            continue;
        };
        let (first, last) = (range[0], range[range.len() - 1]);
        let is_total = name_of(series).ends_with("_total");
        if is_total && range.iter().all(|v| *v == first) {
            assert_eq!(*value, first, "{series}");
            still += 1;
        } else if is_total && !may_step_back(series) {
            assert!(
                first <= *value && *value <= last,
                "{series}: {value} is not in {range:?}"
            );
            moving += 1;
        }
    }
    eprintln!("{still} counters at rest, {moving} moving");
    assert!(still > 20 && moving > 10, "too little to compare");

    let own = prometheus.values("{__name__=~\"kymo_.*\",job=\"kymo\"}", moment);
    let newest = own["kymo_last_sample_timestamp_seconds"];
    assert!(
        (moment - newest).abs() < 5.0,
        "{newest} is not now, {moment}"
    );
    for (name, least) in [
        ("kymo_cpu_seconds_total{process=\"recorder\"}", 0.0),
        ("kymo_memory_bytes{process=\"recorder\"}", 100_000.0),
        ("kymo_memory_bytes{process=\"hub\"}", 100_000.0),
        ("kymo_samples_total", 3.0),
        ("kymo_samples_missed_total", 0.0),
        ("kymo_ring_bytes", 1.0),
    ] {
        let value = own
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {own:?}"));
        assert!(*value >= least, "{name}: {value}");
    }
    assert_eq!(prometheus.complaints(), "");
}

/// What the rounds said of one series.
#[derive(Default, Debug)]
struct Verdict {
    /// Rounds in which it did not move, and ours was equal.
    equal: usize,
    /// It did not move, but ours was not equal: value of theirs, and of ours.
    unequal: Vec<(f64, f64)>,
    /// A counter that was not between its values before and after: before, ours, after.
    outside: Vec<(f64, f64, f64)>,
    is_counter: bool,
}

impl Verdict {
    /// A counter that was equal before and after was so all the time. A gauge may have come back, but not again and again.
    fn is_wrong(&self) -> bool {
        let unequal = match self.is_counter {
            true => !self.unequal.is_empty(),
            false => self.equal == 0 && self.unequal.len() > ROUNDS / 2,
        };
        unequal || !self.outside.is_empty()
    }
}

fn compare(
    ours: &Exposition,
    before: &Exposition,
    after: &Exposition,
    verdicts: &mut BTreeMap<Series, Verdict>,
) {
    for (series, &value) in &ours.values {
        let (Some(&first), Some(&last)) = (before.values.get(series), after.values.get(series))
        else {
            continue;
        };
        if MOMENTARY.contains(&name_of(series)) {
            continue;
        }
        let verdict = verdicts.entry(series.clone()).or_default();
        let is_vmstat = series.starts_with("node_vmstat_");
        verdict.is_counter = is_vmstat || before.types[name_of(series)] == "counter";
        // node_exporter does not let them step back; a tick or two is what they step.
        let slack = if may_step_back(series) { 0.05 } else { 0.0 };
        if first == last && (value - first).abs() <= slack {
            verdict.equal += 1;
        } else if first == last {
            verdict.unequal.push((first, value));
        } else if verdict.is_counter && !(first - slack <= value && value <= last + slack) {
            verdict.outside.push((first, value, last));
        }
    }
}

fn may_step_back(series: &str) -> bool {
    series.contains("mode=\"idle\"")
        || series.contains("mode=\"iowait\"")
        || series.starts_with("node_disk_io_time_weighted")
}

/// Of the names that both have, node_exporter's series that we lack. All of ours must be node_exporter's.
fn lacking(ours: &Exposition, before: &Exposition, after: &Exposition) -> Vec<Series> {
    let of = |exposition: &Exposition| -> BTreeSet<Series> {
        let named = exposition.values.keys().filter(|series| {
            let name = name_of(series);
            name.starts_with("node_") && ours.types.contains_key(name) && !ONLY_OURS.contains(&name)
        });
        named.cloned().collect()
    };
    // A device may have come or gone in between, seldom enough.
    let (ours, before, after) = (of(ours), of(before), of(after));
    let either: BTreeSet<_> = before.union(&after).cloned().collect();
    let more: Vec<_> = ours.difference(&either).collect();
    assert!(more.is_empty(), "not of node_exporter: {more:?}");
    assert!(ours.len() > 40, "too few: {ours:?}");
    before
        .intersection(&after)
        .filter(|series| !ours.contains(*series))
        .cloned()
        .collect()
}

fn same_types(ours: &Exposition, theirs: &Exposition) {
    for (name, kind) in &ours.types {
        if let Some(other) = theirs.types.get(name) {
            assert_eq!(kind, other, "{name}");
        }
    }
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

/// Parses an exposition; labels are sorted, as the two write them in different orders.
fn parse(text: String) -> Exposition {
    let (mut values, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            types.insert(name.to_string(), kind.to_string());
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let value = value.parse().expect("a number");
            assert!(
                values.insert(sorted(series), value).is_none(),
                "twice: {series}"
            );
        }
    }
    Exposition {
        text,
        values,
        types,
    }
}

fn sorted(series: &str) -> Series {
    let Some((name, labels)) = series.strip_suffix('}').and_then(|s| s.split_once('{')) else {
        return series.into();
    };
    // Names of labels are words: `",` and `="` part them where no label's value holds both.
    let mut labels: Vec<&str> = labels
        .split("\",")
        .map(|label| label.trim_end_matches('"'))
        .collect();
    labels.sort_unstable();
    let labels: Vec<String> = labels.iter().map(|label| format!("{label}\"")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

/// What `promtool check metrics` says, line by line.
fn promtool(text: &str) -> BTreeSet<String> {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("promtool");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(text.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool");
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said)
        .lines()
        .map(str::to_string)
        .collect()
}

/// The first of the tools that is not there.
fn missing<'a>(tools: &[&'a str]) -> Option<&'a str> {
    tools.iter().copied().find(|tool| !runs(tool))
}

fn runs(tool: &str) -> bool {
    let quiet = Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs_f64()
}

/// The body of an answer; `None` while nobody listens, or for an error.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    )
    .ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).filter(|status| *status == "200")?;
    Some(body.to_string())
}

/// Asks again and again, for up to half a minute.
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn spawn(command: &mut Command) -> Running {
    let child: std::io::Result<Child> = command.stdin(Stdio::null()).spawn();
    Running(child.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}")))
}

/// node_exporter with its defaults, but for `lo`, which Debian's leaves out.
struct NodeExporter {
    port: u16,
    _running: Running,
}

impl NodeExporter {
    fn start(arguments: &[String]) -> NodeExporter {
        let port = free_port();
        let running = spawn(
            Command::new("prometheus-node-exporter")
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--collector.netdev.device-exclude=^$")
                .args(arguments)
                .stderr(Stdio::null()),
        );
        wait_for("node_exporter", || get(port, "/"));
        NodeExporter {
            port,
            _running: running,
        }
    }

    fn scrape(&self) -> Exposition {
        parse(get(self.port, "/metrics").expect("node_exporter's metrics"))
    }
}

/// Debian's Prometheus, scraping each second.
struct Prometheus {
    port: u16,
    scratch: Scratch,
    _running: Running,
}

impl Prometheus {
    fn start(jobs: &[(&str, u16)]) -> Prometheus {
        let (scratch, port) = (Scratch::new("prometheus"), free_port());
        let mut config =
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n".to_string();
        for (job, port) in jobs {
            config += &format!(
                "- job_name: {job}\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
            );
        }
        std::fs::write(scratch.path("prometheus.yml"), config).expect("its configuration");
        let log = File::create(scratch.path("log")).expect("its log");
        let running = spawn(
            Command::new("prometheus")
                .arg(format!("--config.file={}", scratch.text("prometheus.yml")))
                .arg(format!("--storage.tsdb.path={}", scratch.text("tsdb")))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--log.level=warn")
                .stdout(Stdio::null())
                .stderr(log),
        );
        wait_for("Prometheus", || get(port, "/-/ready"));
        Prometheus {
            port,
            scratch,
            _running: running,
        }
    }

    fn query(&self, query: &str, time: f64) -> Vec<Value> {
        let encoded: String = query.bytes().map(|b| format!("%{b:02x}")).collect();
        let path = format!("/api/v1/query?query={encoded}&time={time:.3}");
        let answer = get(self.port, &path).unwrap_or_else(|| panic!("no answer to {query}"));
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["data"]["result"]
            .as_array()
            .expect("a result")
            .clone()
    }

    fn wait_until(&self, query: &str) {
        wait_for(query, || {
            (!self.query(query, now()).is_empty()).then_some(())
        });
    }

    fn values(&self, query: &str, time: f64) -> BTreeMap<Series, f64> {
        let results = self.query(query, time);
        let pairs = results
            .iter()
            .map(|result| (series_of(result), number(&result["value"])));
        pairs.collect()
    }

    fn ranges(&self, query: &str, time: f64) -> BTreeMap<Series, Vec<f64>> {
        let results = self.query(query, time);
        let pairs = results.iter().map(|result| {
            let points = result["values"].as_array().expect("points");
            (series_of(result), points.iter().map(number).collect())
        });
        pairs.collect()
    }

    /// What it wrote of warnings and errors.
    fn complaints(&self) -> String {
        std::fs::read_to_string(self.scratch.path("log")).expect("its log")
    }
}

fn number(point: &Value) -> f64 {
    let text = point[1].as_str().expect("a value");
    text.parse().expect("a number")
}

/// The series without the labels that Prometheus adds.
fn series_of(result: &Value) -> Series {
    let labels = result["metric"].as_object().expect("labels");
    let added = ["__name__", "job", "instance"];
    let own = labels
        .iter()
        .filter(|(key, _)| !added.contains(&key.as_str()));
    let own: Vec<String> = own
        .filter_map(|(key, value)| Some(format!("{key}=\"{}\"", value.as_str()?)))
        .collect();
    let name = labels["__name__"].as_str().expect("a name");
    match own.is_empty() {
        true => name.into(),
        false => format!("{name}{{{}}}", own.join(",")),
    }
}

/// What kymo exposes of the newest sample of a recording.
fn newest(dir: &str) -> Option<String> {
    let mut recorded = Recorded::open(dir.as_ref(), TimeRange::ALL, Kinds::ALL).ok()?;
    let all = subsystem::ALL.iter();
    let mut states: Vec<_> = all
        .map(|&subsystem| (subsystem, Interpreter::new(subsystem), Reading::default()))
        .collect();
    let mut cost = Cost::UNKNOWN;
    while let Some(step) = recorded.next().ok()? {
        if let Step::Sample(moment) = step {
            cost.newest = moment.real_ns as f64 / 1e9;
            for (_, interpreter, reading) in &mut states {
                interpreter.read(recorded.tracks(), recorded.context(), reading);
            }
        }
    }
    let readings = states
        .iter()
        .map(|(subsystem, _, reading)| (*subsystem, reading));
    let mut out = Vec::new();
    prometheus::write(&mut out, readings, recorded.context(), &cost);
    String::from_utf8(out).ok()
}

/// `kymo serve`, recording each second.
struct Kymo {
    port: u16,
    running: Running,
    _scratch: Scratch,
}

impl Kymo {
    fn start() -> Kymo {
        let (scratch, port) = (Scratch::new("metrics"), free_port());
        let running = spawn(
            Command::new(kymo_tests::kymo())
                .args(["serve", "--data", &scratch.text("kymo")])
                .args(["--listen", &format!("127.0.0.1:{port}")])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let kymo = Kymo {
            port,
            running,
            _scratch: scratch,
        };
        kymo.scrape_after(0.0);
        kymo
    }

    /// Its newest sample, which was begun after `time`.
    fn scrape_after(&self, time: f64) -> Exposition {
        wait_for("a sample", || {
            let exposition = parse(get(self.port, "/metrics")?);
            let newest = *exposition
                .values
                .get("kymo_last_sample_timestamp_seconds")?;
            (newest > time).then_some(exposition)
        })
    }
}

impl Drop for Kymo {
    /// It ends its children when it is asked to, not when it is killed.
    fn drop(&mut self) {
        self.running.signal("-TERM");
        let end = Instant::now() + Duration::from_secs(10);
        while matches!(self.running.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
