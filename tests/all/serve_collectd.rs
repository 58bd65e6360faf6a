//! Real collectds send to `kymo serve` by their network plugin: plain, signed and encrypted. The series equal those that
//! their own rrdtool plugin makes of the same values. Needs Debian's collectd-core and rrdtool.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use kymo_tests::collectd_packet::users;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::{Served, eventually, kill};
use kymo_tests::{Running, Scratch, free_port, stdout_of};

/// Series of each host that the test compares.
const SERIES: [&str; 4] = [
    "load/load",
    "memory/memory-used",
    "cpu-0/cpu-user",
    "interface-lo/if_octets",
];

/// A `kymo serve` that receives datagrams on its own port.
pub(crate) struct Hub {
    pub(crate) served: Served,
    pub(crate) address: String,
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
    scratch: Scratch,
}

impl Hub {
    pub(crate) fn start(name: &str, config: &str) -> Hub {
        let scratch = Scratch::new(name);
        let (dir, port) = (scratch.path("data"), free_port());
        let users = scratch.text("users");
        fs::write(&users, "# who may\nuser0: foo\n").expect("a file of users");
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{port}\"]\n\
             [collectd]\nauth_file = \"{users}\"\n{config}"
        );
        let mut served = Served::configured(&scratch, &dir, &config);
        let address = served.address();
        served.has_said(&format!("collectd's datagrams on 127.0.0.1:{port}"));
        Hub {
            served,
            address,
            dir,
            port,
            scratch,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::unix(&self.dir.join("rrdcached.sock")).expect("a client")
    }

    /// A collectd of its own host, which also writes .rrd files itself.
    fn collectd(&self, host: &str, server: &str) -> Running {
        let folder = self.scratch.path(host);
        fs::create_dir_all(&folder).expect("a folder");
        let (config, shown) = (folder.join("collectd.conf"), folder.display());
        let text = format!(
            "Hostname \"{host}\"\nFQDNLookup false\nInterval 1\nWriteThreads 1\nBaseDir \"{shown}\"\nPIDFile \"{shown}/pid\"\n\
             PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
             LoadPlugin load\nLoadPlugin memory\nLoadPlugin cpu\nLoadPlugin interface\n\
             LoadPlugin rrdtool\n<Plugin rrdtool>\n  DataDir \"{shown}/rrd\"\n</Plugin>\n\
             LoadPlugin network\n<Plugin network>\n  <Server \"127.0.0.1\" \"{}\">\n{server}  </Server>\n</Plugin>\n",
            self.port
        );
        fs::write(&config, text).expect("a configuration");
        let mut command = Command::new("/usr/sbin/collectd");
        let command = command.arg("-f").arg("-C").arg(&config);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(child.expect("collectd starts"))
    }

    /// Waits until the series have grown by `seconds`.
    fn have(&self, names: &[String], seconds: u64) {
        let first = |name: &String| {
            let first = eventually(|| self.last(name));
            first.unwrap_or_else(|| panic!("no {name}"))
        };
        let firsts: Vec<u64> = names.iter().map(first).collect();
        for (name, first) in names.iter().zip(firsts) {
            let later = || self.last(name).filter(|&last| last >= first + seconds);
            eventually(later).unwrap_or_else(|| panic!("{name} does not go on"));
        }
    }

    fn last(&self, name: &str) -> Option<u64> {
        let said = self.client().text(&format!("LAST {name}"));
        said.strip_prefix("0 ")?.parse().ok()
    }
}

fn secured(level: &str, password: &str) -> String {
    format!("    SecurityLevel {level}\n    Username \"user0\"\n    Password \"{password}\"\n")
}

fn rows(folder: &Path, file: &Path) -> BTreeMap<u64, String> {
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    rows_since(folder, file, now - 300)
}

/// Known rows by their stamp, as rrdtool prints them.
fn rows_since(folder: &Path, file: &Path, start: u64) -> BTreeMap<u64, String> {
    let (file, start) = (file.to_string_lossy(), start.to_string());
    let output = rrdtool(
        folder,
        &["fetch", &file, "AVERAGE", "-r", "1", "-s", &start],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let (stamp, values) = line.split_once(": ")?;
        (!values.contains("nan")).then(|| Some((stamp.parse().ok()?, values.to_string())))?
    };
    text.lines().filter_map(row).collect()
}

/// Sources and archives of a file, without values and times.
fn definition(folder: &Path, file: &Path) -> Vec<String> {
    let output = rrdtool(folder, &["info", &file.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let live = [
        "filename",
        "last_update",
        ".last_ds",
        ".value",
        ".unknown_sec",
        ".cur_row",
        "cdp_prep",
    ];
    text.lines()
        .filter(|line| !live.iter().any(|word| line.contains(word)))
        .map(str::to_string)
        .collect()
}

#[test]
fn what_real_collectds_send_is_what_they_would_have_written() {
    let hub = Hub::start("collectd-three", "");
    let mut senders = Vec::new();
    for (host, server) in [
        ("plain", String::new()),
        ("signed", secured("Sign", "foo")),
        ("encrypted", secured("Encrypt", "foo")),
    ] {
        senders.push((host, hub.collectd(host, &server)));
    }
    let names = |host: &str| SERIES.map(|name| format!("{host}/{name}.rrd"));
    let all: Vec<String> = senders.iter().flat_map(|(host, _)| names(host)).collect();
    hub.have(&all, 5);
    // After collectd's end both sides have all values.
    for (_, sender) in &senders {
        kill("-TERM", sender.0.id());
    }
    let mut compared = 0;
    for (host, mut sender) in senders {
        let ended = eventually(|| sender.0.try_wait().ok().flatten());
        ended.expect("collectd ends");
        for name in names(host) {
            let theirs = hub.scratch.path(host).join("rrd").join(&name);
            let ours = hub.dir.join("rrd").join(&name);
            let current = || {
                let said = hub.client().text(&format!("FLUSH {name}"));
                assert!(said.starts_with("0 "), "FLUSH {name}: {said}");
                let (theirs, ours) = (rows(&hub.dir, &theirs), rows(&hub.dir, &ours));
                (theirs.keys().last() == ours.keys().last() && !ours.is_empty())
                    .then_some((theirs, ours))
            };
            let (their_rows, our_rows) = eventually(current)
                .unwrap_or_else(|| panic!("{name} lacks values: {:?}", rows(&hub.dir, &ours)));
            assert_eq!(
                definition(&hub.dir, &ours),
                definition(&hub.dir, &theirs),
                "{name}"
            );
            // collectd sends and writes by several threads: the first value may be missing on one side.
            for (stamp, row) in &our_rows {
                if let Some(theirs) = their_rows.get(stamp) {
                    assert_eq!(
                        row, theirs,
                        "{name} at {stamp}; all of ours {our_rows:?}, of collectd {their_rows:?}"
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 3 * 4 * 4, "{compared} rows");
}

/// A sender that continues after its series was removed creates it again.
#[test]
fn a_removed_series_begins_again() {
    let hub = Hub::start("collectd-removed", "trusted = [\"127.0.0.0/8\"]\n");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs() / 10 * 10;
    let send = |stamp: u64| {
        let sent = socket.send_to(&users("web1", stamp, 1.0), ("127.0.0.1", hub.port));
        sent.expect("sent");
    };
    let name = "web1/users/users.rrd";
    let comes = |stamp: u64| {
        let last = || hub.last(name).filter(|&last| last == stamp);
        eventually(last).unwrap_or_else(|| panic!("no value of {stamp}"));
    };
    for stamp in [now - 100, now - 90] {
        send(stamp);
        comes(stamp);
    }
    let data = hub.dir.to_string_lossy();
    stdout_of(&["series", "rm", "host=web1", "--yes", "--data", &data]);
    assert_eq!(hub.last(name), None);
    // The first value finds no series, and is counted as refused; the next one creates it.
    let begins = || {
        send(now - 80);
        send(now - 70);
        hub.last(name).filter(|&last| last == now - 70)
    };
    eventually(begins).expect("the series begins again");
}

#[test]
fn what_is_forged_or_damaged_is_counted_and_makes_no_name() {
    let mut hub = Hub::start("collectd-forged", "security = \"sign\"\n");
    let forged = hub.collectd("forged", &secured("Sign", "bar"));
    let plain = hub.collectd("plain", "");
    let good = hub.collectd("good", &secured("Encrypt", "foo"));
    hub.have(&["good/load/load.rrd".into()], 2);
    for name in ["forged/load/load.rrd", "plain/load/load.rrd"] {
        assert_eq!(hub.last(name), None, "{name}");
    }
    assert!(!hub.dir.join("rrd/forged").exists() && !hub.dir.join("rrd/plain").exists());
    // At its end the keeper reports the counts that it has not yet reported.
    kill("-TERM", hub.served.pid());
    hub.served.has_said("damaged or forged datagrams");
    drop((forged, plain, good));
}

/// A VALUES part of one gauge.
pub(crate) const GAUGE: &[u8] = b"\x00\x06\x00\x0f\x00\x01\x01\x00\x00\x00\x00\x00\x00\xe0\x3f";

pub(crate) fn text_part(kind: u8, text: &str) -> Vec<u8> {
    let length = (text.len() + 5) as u16;
    [&[0, kind][..], &length.to_be_bytes(), text.as_bytes(), &[0]].concat()
}

pub(crate) fn time_part(seconds: u64) -> Vec<u8> {
    [&[0, 8, 0, 12][..], &(seconds << 30).to_be_bytes()].concat()
}

/// A datagram of one gauge without an interval, of the series `HOST/odd/gauge`.
pub(crate) fn odd_gauge(host: &str, time: u64) -> Vec<u8> {
    [
        text_part(0, host),
        time_part(time),
        text_part(2, "odd"),
        text_part(4, "gauge"),
        GAUGE.to_vec(),
    ]
    .concat()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn values_from_the_future_names_that_lead_elsewhere_and_cut_datagrams() {
    let mut hub = Hub::start(
        "collectd-odd",
        "trusted = [\"127.0.0.0/8\"]\n[store]\nfiles = \"1d\"\n",
    );
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", hub.port)).expect("an address");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    // LAST is the last whole row; rows of a sender without an interval have 10 s.
    let row = now - now % 10;
    for host in ["..", "../../..", "a\nb", "\u{1b}[2J"] {
        socket.send(&odd_gauge(host, now)).expect("sent");
    }
    socket
        .send(&odd_gauge("tomorrow", now + 86_400))
        .expect("sent");
    let whole = odd_gauge("cut", now);
    for length in 0..whole.len() {
        socket.send(&whole[..length]).expect("sent");
    }
    socket.send(&odd_gauge("good", now - 10)).expect("sent");
    socket.send(&odd_gauge("good", now)).expect("sent");
    socket.send(&odd_gauge("good", now)).expect("sent");
    let stored = eventually(|| (hub.last("good/odd/gauge.rrd") == Some(row)).then_some(()));
    stored.expect("the good ones");
    let base = hub.dir.join("rrd");
    assert_eq!(
        names_in(&base),
        [".kymo-owner", "good"],
        "no other name was made"
    );
    // A type that is missing in types.db has the kinds of the packet.
    let unknown = [
        text_part(0, "good"),
        time_part(now),
        text_part(2, "odd"),
        text_part(4, "no_such_type"),
        GAUGE.to_vec(),
    ]
    .concat();
    socket.send(&unknown).expect("sent");
    let stored = eventually(|| hub.last("good/odd/no_such_type.rrd"));
    assert_eq!(stored, Some(row));
    // At its end the keeper reports the counts that it has not yet reported, with the last reason.
    kill("-TERM", hub.served.pid());
    for part in [
        "damaged or forged datagrams",
        "values from the future",
        "last: cannot make .._.._../odd/gauge.rrd",
    ] {
        hub.served.has_said(part);
    }
}

/// rrdtool resolves a name before a request by a unix socket, so series without files, the default, could not be drawn. And
/// removing a file that had been written on request removed its series.
#[test]
fn series_without_files_are_drawn_and_outlive_files() {
    let hub = Hub::start("collectd-views", "trusted = [\"127.0.0.0/8\"]\n");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs() / 10 * 10;
    let send = |stamp: u64| {
        let sent = socket.send_to(&users("web1", stamp, 1.0), ("127.0.0.1", hub.port));
        sent.expect("sent");
        let last = || {
            hub.last("web1/users/users.rrd")
                .filter(|&last| last == stamp)
        };
        eventually(last).unwrap_or_else(|| panic!("no value of {stamp}"));
    };
    (1..=20).for_each(|row| send(now - 1000 + row * 10));
    let file = hub.dir.join("rrd/web1/users/users.rrd");
    assert_eq!(fs::metadata(&file).expect("a placeholder").len(), 0);
    let daemon = format!("unix:{}", hub.dir.join("rrdcached.sock").display());
    let (picture, shown) = (hub.scratch.text("web.png"), file.display().to_string());
    let (start, end) = ((now - 1000).to_string(), (now - 800).to_string());
    let drawn = rrdtool(
        &hub.dir,
        &[
            "graph",
            &picture,
            "--daemon",
            &daemon,
            "-s",
            &start,
            "-e",
            &end,
            &format!("DEF:u={shown}:value:AVERAGE"),
            "LINE1:u#b03a2e:users",
            "PRINT:u:AVERAGE:mean %lf",
        ],
    );
    let said = String::from_utf8_lossy(&drawn.stdout).into_owned();
    let why = String::from_utf8_lossy(&drawn.stderr).into_owned();
    assert!(said.contains("mean 1.000000"), "{said} {why}");
    let flushed = hub.client().text("FLUSH web1/users/users.rrd");
    assert!(flushed.starts_with("0 Successfully"), "{flushed}");
    fs::remove_file(&file).expect("a file was made");
    hub.client().text("FETCH web1/users/users.rrd AVERAGE");
    (21..=25).for_each(|row| send(now - 1000 + row * 10));
    let flushed = hub.client().text("FLUSH web1/users/users.rrd");
    assert!(flushed.starts_with("0 Successfully"), "{flushed}");
    let rows = rows_since(&hub.dir, &file, now - 1000);
    assert!(rows.len() >= 22, "{rows:?}");
}

#[test]
fn a_removed_file_is_made_again() {
    let hub = Hub::start(
        "collectd-removed-file",
        "trusted = [\"127.0.0.0/8\"]\n[store]\nfiles = \"1d\"\n",
    );
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", hub.port)).expect("an address");
    let (name, file) = ("gone/odd/gauge.rrd", hub.dir.join("rrd/gone/odd/gauge.rrd"));
    // Far in the past, so that there is room for many tries.
    let mut time = UNIX_EPOCH.elapsed().expect("a clock").as_secs() - 1_000_000;
    let mut appears = |what: &str| {
        let sent = eventually(|| {
            time += 10;
            socket.send(&odd_gauge("gone", time)).expect("sent");
            hub.client().text(&format!("FLUSH {name}"));
            file.exists().then_some(())
        });
        sent.expect(what);
    };
    appears("a file");
    fs::remove_file(&file).expect("removed");
    appears("a file again");
}
