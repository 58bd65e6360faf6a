//! The guide of a hub that outgrows its machine, as a reader follows it: its configurations are those of hubs here, its commands are
//! typed, and values of 290 hosts are where it says. Only places differ: addresses, folders and the bucket. The ring is that of
//! `make ring`. Needs SeaweedFS and Debian's collectd-core.

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use kymo_tests::s3_server::{BUCKET, S3Server};
use kymo_tests::served::{Served, eventually, kill};
use kymo_tests::{Running, Scratch, free_port, kymo, run};
use kymo_wire::collectd::{
    Cdtime, Encoder, Identifier, PACKET_DEFAULT, Pushed, Value, ValueList, sign,
};

use crate::prometheus_api::now_s;

const GUIDE: &str = include_str!("../../docs/guides/outgrow.md");
const HOSTS: u32 = 290;
const INTERVAL_S: u64 = 10;
/// Pause after a datagram, so that a busy machine's buffer loses none.
const PAUSE: Duration = Duration::from_millis(1);

/// Indented blocks below a heading of the guide: commands begin with `$`, all others are configurations.
pub(crate) struct Section {
    pub(crate) configurations: Vec<String>,
    pub(crate) commands: Vec<String>,
}

/// The section below a heading, with what the test has in other places.
pub(crate) fn section(heading: &str, places: &[(&str, String)]) -> Section {
    let title = format!("\n## {heading}\n");
    let (_, text) = GUIDE.split_once(&title).expect("a heading");
    let text = text.split("\n## ").next().expect("a text");
    let mut found = Section {
        configurations: Vec::new(),
        commands: Vec::new(),
    };
    let mut block = String::new();
    for line in text.lines().chain([""]) {
        match line.strip_prefix("    ") {
            Some(line) => match line.strip_prefix("$ ") {
                Some(command) => found.commands.push(put(command, places)),
                None => block += &format!("{line}\n"),
            },
            None if line.is_empty() || block.is_empty() => {}
            None => found
                .configurations
                .push(put(&std::mem::take(&mut block), places)),
        }
    }
    if !block.is_empty() {
        found.configurations.push(put(&block, places));
    }
    assert!(!found.configurations.is_empty() || !found.commands.is_empty());
    found
}

fn put(text: &str, places: &[(&str, String)]) -> String {
    let replace = |text: String, (of_guide, here): &(&str, String)| text.replace(of_guide, here);
    places.iter().fold(text.to_string(), replace)
}

/// Types a command of the guide, which succeeds; `data`: the folder that it would find.
pub(crate) fn typed(command: &str, data: &Path) -> String {
    let output = output_of(command, data);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn output_of(command: &str, data: &Path) -> Output {
    let asks = ["kymo query ", "kymo series "];
    let more = match asks.iter().any(|verb| command.starts_with(verb)) {
        true => format!(" --data '{}'", data.display()),
        false => String::new(),
    };
    let folder = kymo().parent().expect("its folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("{command}{more}")])
        .env("PATH", format!("{folder}:{path}"))
        .stdin(Stdio::null())
        .output();
    output.expect("a shell")
}

/// Types a command until it succeeds and its answer has these words.
fn shows(command: &str, data: &Path, words: &[&str]) {
    let has = || {
        let output = output_of(command, data);
        let answer = String::from_utf8_lossy(&output.stdout);
        let has_all = words.iter().all(|word| answer.contains(word));
        (output.status.success() && has_all).then_some(())
    };
    eventually(has).unwrap_or_else(|| panic!("{command}: {}, not {words:?}", typed(command, data)));
}

/// Sends values of all hosts, signed; `round`: the number of the interval.
fn send_round(to: &str, first_s: u64, round: u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for host in 0..HOSTS {
        let mut packet = Encoder::new(PACKET_DEFAULT);
        let name = format!("host-{host}");
        let value = Value::Gauge(f64::from(host) + 0.25);
        for (plugin, values) in [("load", &[value; 3][..]), ("users", &[value])] {
            let pushed = packet.push(&ValueList {
                identifier: Identifier {
                    host: name.as_bytes(),
                    plugin: plugin.as_bytes(),
                    plugin_instance: b"",
                    type_name: plugin.as_bytes(),
                    type_instance: b"",
                },
                time: Cdtime::from_seconds(first_s + round * INTERVAL_S),
                interval: Cdtime::from_seconds(INTERVAL_S),
                values,
            });
            assert_eq!(pushed, Pushed::Added);
        }
        let mut signed = Vec::new();
        sign(&mut signed, b"hosts", b"foo", packet.payload());
        socket.send_to(&signed, to).expect("a datagram");
        thread::sleep(PAUSE);
    }
}

/// All rows of the hosts' series, each with its series.
fn rows(data: &Path) -> BTreeSet<String> {
    let data = data.to_string_lossy();
    let output = run(&[
        "series",
        "samples",
        "rrd{path=~\"host-.*\"}",
        "--from",
        "-1h",
        "--data",
        &data,
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut series = "";
    let mut found = BTreeSet::new();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(name) => series = name,
            None => _ = found.insert(format!("{series}: {line}")),
        }
    }
    found
}

/// Waits until a hub has so many rows of each of the four columns of a host.
fn has_rows(data: &Path, count: usize) -> BTreeSet<String> {
    let count = count * 4 * HOSTS as usize;
    let all = || Some(rows(data)).filter(|rows| rows.len() >= count);
    let found = eventually(all);
    let found = found.unwrap_or_else(|| panic!("{} rows, not {count}", rows(data).len()));
    assert_eq!(found.len(), count);
    found
}

/// Starts a hub with these configurations.
fn start(scratch: &Scratch, name: &str, data: &Path, configurations: &[&str]) -> Served {
    let text = configurations.concat();
    let text = format!("user = \"\"\n{text}[record]\nsubsystems = \"cm\"\n");
    let file = scratch.text(&format!("{name}.toml"));
    fs::write(&file, text).expect("a configuration");
    let mut served = Served::of_file(&file, data);
    served.address();
    served.has_said("collectd's datagrams on");
    let socket = data.join("rrdcached.sock");
    eventually(|| std::os::unix::net::UnixStream::connect(&socket).ok()).expect("a keeper");
    served
}

/// Ends a hub in order.
fn stop(mut served: Served) {
    kill("-TERM", served.pid());
    let ended = eventually(|| served.guardian.0.try_wait().ok().flatten());
    ended.expect("it ends");
}

/// A real collectd with a configuration of the guide.
fn client(scratch: &Scratch, configuration: &str) -> Running {
    let folder = scratch.path("collectd");
    fs::create_dir_all(&folder).expect("a folder");
    let (config, shown) = (folder.join("collectd.conf"), folder.display());
    let text = format!(
        "Hostname \"web-1\"\nFQDNLookup false\nInterval 1\nBaseDir \"{shown}\"\nPIDFile \"{shown}/pid\"\n\
         PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
         LoadPlugin load\nLoadPlugin cpu\nLoadPlugin memory\n{configuration}"
    );
    fs::write(&config, text).expect("a configuration");
    let mut command = Command::new("/usr/sbin/collectd");
    let command = command.arg("-f").arg("-C").arg(&config);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Running(child.expect("collectd starts"))
}

/// Files of `/etc/kymo` of both hubs.
fn etc(scratch: &Scratch, server: &S3Server) -> PathBuf {
    let folder = scratch.path("etc");
    fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    write("collectd.auth", "hosts: foo\nhub-1: bar\n");
    write("hub-2-password", "bar\n");
    fs::copy(&server.keys, folder.join("s3-keys")).expect("keys");
    folder
}

#[test]
fn the_guide_is_followed_from_one_hub_to_a_machine_that_was_lost() {
    let scratch = Scratch::new("outgrow");
    let Some(server) = S3Server::start(&scratch) else {
        return;
    };
    let etc = etc(&scratch, &server);
    let [one, two] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let [data, second] = ["hub-1", "hub-2"].map(|name| scratch.path(name));
    let port = one.rsplit(':').next().expect("a port").to_string();
    let places = [
        ("192.0.2.1:25826", one.clone()),
        ("192.0.2.2:25826", two.clone()),
        (
            "\"192.0.2.1\" \"25826\"",
            format!("\"127.0.0.1\" \"{port}\""),
        ),
        ("192.0.2.0/24", "127.0.0.0/8".into()),
        ("/etc/kymo", etc.display().to_string()),
        ("/var/lib/kymo", data.display().to_string()),
        ("s3://hub-backups", format!("s3://{BUCKET}")),
        (
            "https://s3.example:9000",
            format!("http://127.0.0.1:{}", server.port),
        ),
    ];
    for (of_guide, _) in &places {
        assert!(GUIDE.contains(of_guide), "{of_guide}");
    }
    let of = |heading: &str| section(heading, &places);
    // The first value of a series makes no row, each later one makes one.
    let first_s = now_s().unsigned_abs() / INTERVAL_S * INTERVAL_S - 60;
    let send = |number| send_round(&one, first_s, number);

    let hub = of("One hub");
    let [listen, of_client] = &hub.configurations[..] else {
        panic!("{:?}", hub.configurations);
    };
    let running = start(&scratch, "hub-1", &data, &[listen]);
    send(0);
    send(1);
    has_rows(&data, 1);
    let [list, count] = &hub.commands[..] else {
        panic!("{:?}", hub.commands);
    };
    shows(list, &data, &["host-1/load/load", "host-1/users/users"]);
    shows(count, &data, &[&HOSTS.to_string()]);
    let collectd = client(&scratch, of_client);
    shows("kymo series ls host=web-1", &data, &["web-1"]);
    drop(collectd);
    stop(running);

    let next = of("A second server");
    let [forward] = &next.configurations[..] else {
        panic!("{:?}", next.configurations);
    };
    let beside = listen.replace(&one, &two);
    let other = start(&scratch, "hub-2", &second, &[&beside]);
    let running = start(&scratch, "hub-1", &data, &[listen, forward]);
    shows("kymo query kymo_forward_up", &data, &["second"]);
    send(2);
    send(3);
    has_rows(&data, 3);
    has_rows(&second, 1);
    let [backlog, sent] = &next.commands[..] else {
        panic!("{:?}", next.commands);
    };
    for command in [backlog, sent] {
        shows(command, &data, &["second"]);
    }
    stop(running);

    let next = of("A backup on S3");
    let [backup] = &next.configurations[..] else {
        panic!("{:?}", next.configurations);
    };
    let before = {
        let configurations = [listen.as_str(), forward, backup];
        let running = start(&scratch, "hub-1", &data, &configurations);
        let [age, verify] = &next.commands[..] else {
            panic!("{:?}", next.commands);
        };
        shows(age, &data, &["backup:"]);
        // There is a backup when one can be restored; the next one is due in a quarter of an hour.
        let (here, elsewhere) = (data.display().to_string(), scratch.text("tried"));
        let restore = &of("The machine is lost").commands[0];
        shows(&restore.replace(&here, &elsewhere), &data, &[]);
        shows(verify, &data, &[]);
        let before = has_rows(&data, 3);
        // Values after the backup are lost here, and not on the second server.
        send(4);
        has_rows(&data, 4);
        has_rows(&second, 2);
        for child in kymo_tests::served::children_of(running.pid()) {
            kill("-KILL", child);
        }
        kill("-KILL", running.pid());
        drop(running);
        fs::remove_dir_all(&data).expect("the machine is lost");
        before
    };

    let next = of("The machine is lost");
    let [restore, begin, show] = &next.commands[..] else {
        panic!("{:?}", next.commands);
    };
    typed(restore, &data);
    assert_eq!(begin, "systemctl start kymo");
    let running = start(&scratch, "hub-1", &data, &[listen, forward, backup]);
    assert!(
        rows(&data) == before,
        "each row of the backup, and no other"
    );
    shows(show, &data, &["host-1"]);
    // The lost round has no value here: the next one fills its row, too.
    send(5);
    has_rows(&data, 5);
    has_rows(&second, 3);
    stop(running);
    drop(other);

    // The ring's configuration is the one that `make ring` tries, and a hub takes it.
    let ring = of("A ring");
    let text = include_str!("../../docs/guides/forward.md").replace("\n    ", "\n");
    let text = text.replace("\n\n", "\n");
    for configuration in &ring.configurations {
        assert!(text.contains(configuration.as_str()), "{configuration}");
    }
    let all: Vec<&str> = ring.configurations.iter().map(String::as_str).collect();
    stop(start(
        &scratch,
        "hub-1",
        &data,
        &[&[listen.as_str(), forward], &all[..]].concat(),
    ));
}
