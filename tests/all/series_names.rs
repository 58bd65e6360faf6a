//! Names of series, compared with the names in the programs from which they come.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use kymo_series::{Labels, names};
use kymo_tests::served::eventually;
use kymo_tests::{Running, Scratch};

/// Sources of a type; true: a counter.
type Sources = &'static [(&'static str, bool)];

/// Values by collectd's identifiers, each with the sources of its type in types.db.
const VALUES: &[(&str, &str, Sources)] = &[
    ("h1/cpu-0/cpu-idle", "5", &[("value", true)]),
    ("h1/cpu-1/cpu-user", "5", &[("value", true)]),
    ("h1/memory/memory-used", "7", &[("value", false)]),
    (
        "h1/load/load",
        "1:2:3",
        &[
            ("shortterm", false),
            ("midterm", false),
            ("longterm", false),
        ],
    ),
    (
        "h1/interface-eth0/if_octets",
        "1:2",
        &[("rx", true), ("tx", true)],
    ),
    (
        "h1/disk-sda/disk_ops",
        "1:2",
        &[("read", true), ("write", true)],
    ),
    ("h1/uptime/uptime", "9", &[("value", false)]),
    ("h2/df-root/df_complex-free", "9", &[("value", false)]),
    ("h2/swap/swap-used", "9", &[("value", false)]),
    ("h2/swap/swap_io-in", "9", &[("value", true)]),
    ("h2/tail-web log/counter-a b", "9", &[("value", true)]),
    ("h2/exec/gauge", "9", &[("value", false)]),
    ("h2/exec/gauge-x", "9", &[("value", false)]),
    ("h2/exec-y/gauge", "9", &[("value", false)]),
    ("h2/irq/irq-7", "9", &[("value", true)]),
    ("h\u{e4}/a/gauge-\"q\\\"", "9", &[("value", false)]),
];

/// Label sets in the output of write_prometheus.
fn label_sets_of(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, rest) = line.split_once('{').expect("labels");
            let end = rest.rfind('}').expect("a }");
            let selector = format!("{{{}=\"{name}\",{}}}", names::METRIC, &rest[..end]);
            let matchers = kymo_series::Selector::parse(&selector).expect("labels").0;
            let labels = matchers
                .iter()
                .map(|each| (each.label(), each.value().as_bytes()));
            shown(&Labels::new(labels).expect("a label set"))
        })
        .collect()
}

fn shown(labels: &Labels) -> String {
    String::from_utf8_lossy(labels.text()).into_owned()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn scraped(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n")
        .map(|(_, body)| body.to_string())
}

fn put_values(socket: &Path) {
    let stream = eventually(|| UnixStream::connect(socket).ok()).expect("collectd's socket");
    let mut replies = BufReader::new(stream.try_clone().expect("a descriptor"));
    for (identifier, values, _) in VALUES {
        let quoted = identifier.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("PUTVAL \"{quoted}\" interval=10 N:{values}\n");
        (&stream).write_all(line.as_bytes()).expect("a command");
        let mut reply = String::new();
        replies.read_line(&mut reply).expect("a reply");
        assert!(reply.starts_with('0'), "{identifier}: {reply}");
    }
}

#[test]
fn names_of_collectd_are_those_of_write_prometheus() {
    let scratch = Scratch::new("series_names");
    let (config, socket) = (scratch.path("collectd.conf"), scratch.path("sock"));
    let (shown_folder, port) = (scratch.path("").display().to_string(), free_port());
    let text = format!(
        "Hostname \"own\"\nFQDNLookup false\nBaseDir \"{shown_folder}\"\nPIDFile \"{shown_folder}/pid\"\n\
         PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
         LoadPlugin unixsock\n<Plugin unixsock>\n  SocketFile \"{}\"\n</Plugin>\n\
         LoadPlugin write_prometheus\n<Plugin write_prometheus>\n  Host \"127.0.0.1\"\n  Port \"{port}\"\n</Plugin>\n",
        socket.display()
    );
    fs::write(&config, text).expect("a configuration");
    let mut command = Command::new("/usr/sbin/collectd");
    let command = command.arg("-f").arg("-C").arg(&config);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _collectd = Running(child.expect("collectd starts"));
    put_values(&socket);

    let ours: BTreeSet<String> = VALUES
        .iter()
        .flat_map(|(identifier, _, sources)| {
            let of = names::collectd_of_path(identifier.as_bytes()).expect("an identifier");
            sources.iter().map(move |(source, counts)| {
                shown(&names::collectd(&of, source.as_bytes(), *counts).expect("a name"))
            })
        })
        .collect();
    let all = || {
        scraped(port)
            .map(|text| label_sets_of(&text))
            .filter(|said| said.len() >= ours.len())
    };
    let theirs = eventually(all).unwrap_or_else(|| panic!("{:?}", scraped(port)));
    assert_eq!(theirs, ours);
}
