//! A data folder that is moved, or copied and opened elsewhere: all stored series are there under the same names.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use kymo_tests::collectd_packet::users;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, eventually};
use kymo_tests::{Scratch, free_port, kymo};

const SENT: &str = "sw1/port-id1.rrd";
const COLLECTED: &str = "web1/users/users.rrd";
const ROWS: u64 = 30;

struct Place {
    scratch: Scratch,
    port: u16,
    /// Further lines of the configuration.
    config: String,
}

/// Both series in kymo's output.
#[derive(Debug, PartialEq)]
struct Seen {
    listed: Vec<String>,
    fetched: Vec<String>,
    shown: Vec<String>,
}

impl Place {
    fn new(name: &str) -> Place {
        Place {
            scratch: Scratch::new(name),
            port: free_port(),
            config: String::new(),
        }
    }

    fn start(&self, data: &Path) -> Served {
        let text = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{}\"]\n\
             [collectd]\ntrusted = [\"127.0.0.0/8\"]\n{}",
            self.port, self.config
        );
        let mut served = Served::configured(&self.scratch, data, &text);
        served.has_said("keeper: user");
        served
    }

    /// Sends values as both kinds of senders do.
    fn fill(&self, data: &Path, now: u64) {
        let mut client = client(data);
        let made = client.text(&format!(
            "CREATE {SENT} -b {} -s 10 DS:v:GAUGE:60:U:U RRA:AVERAGE:0.5:1:800",
            now - 1000
        ));
        assert!(made.starts_with("0 "), "{made}");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for row in 0..ROWS {
            let stamp = now - (ROWS - row) * 10;
            let said = client.text(&format!("UPDATE {SENT} {stamp}:{row}"));
            assert!(said.starts_with("0 "), "{said}");
            let packet = users("web1", stamp, row as f64);
            let sent = socket.send_to(&packet, ("127.0.0.1", self.port));
            sent.expect("sent");
            let came = eventually(|| client_last(data, COLLECTED).filter(|last| *last == stamp));
            assert!(came.is_some(), "no value of {stamp}");
            if row == ROWS / 2 {
                // One of the series gets a file with rows.
                let said = client.text(&format!("FLUSH {SENT}"));
                assert!(said.starts_with("0 "), "{said}");
            }
        }
    }
}

fn client(data: &Path) -> Client {
    Client::unix(&data.join("rrdcached.sock")).expect("a client")
}

fn client_last(data: &Path, name: &str) -> Option<u64> {
    client(data)
        .text(&format!("LAST {name}"))
        .strip_prefix("0 ")?
        .trim()
        .parse()
        .ok()
}

fn run(words: &[&str]) -> String {
    let output = Command::new(kymo())
        .args(words)
        .env("TZ", "UTC")
        .output()
        .expect("kymo runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Both series in the list and, except with `--open`, as a client fetches them.
fn seen(data: &Path, now: u64, with: &str) -> Seen {
    // Values sent later do not change rows before the last value.
    let (from, thru, dir) = (
        (now - 400).to_string(),
        (now - 20).to_string(),
        data.to_string_lossy(),
    );
    let names = [SENT, COLLECTED];
    let fetched = names.map(|name| match with {
        "--open" => String::new(),
        _ => client(data).text(&format!("FETCH {name} AVERAGE {from} {thru}")),
    });
    let shown = names.map(|name| {
        run(&[
            "series", "show", name, "--from", &from, "--thru", &thru, with, &dir,
        ])
    });
    // The age of the last value changes, and new series of this machine's history may appear at any time.
    let listed = run(&["series", "ls", with, &dir]);
    let names = listed.lines().filter_map(|line| line.split("  ").next());
    let names = names.filter(|name| !name.starts_with('{'));
    Seen {
        listed: names.map(str::to_string).collect(),
        fetched: fetched.to_vec(),
        shown: shown.to_vec(),
    }
}

fn known(shown: &str) -> usize {
    let rows = shown.lines().filter(|line| !line.starts_with('#'));
    rows.filter(|line| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|value| value.parse::<f64>().is_ok())
    })
    .count()
}

/// FETCH reported "Success" with none of 2,899 values, the list had an
/// absolute path beside a new empty series, and `--open` printed "-".
#[test]
fn series_move_with_their_folder() {
    let place = Place::new("serve-moved");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs() / 10 * 10;
    let first = place.scratch.path("first");
    let served = place.start(&first);
    place.fill(&first, now);
    let before = seen(&first, now, "--data");
    assert!(
        before.shown.iter().all(|shown| known(shown) >= 20),
        "{before:?}"
    );
    drop(served);
    let opened = seen(&first, now, "--open");
    assert_eq!(opened.shown, before.shown);
    type Move = fn(&Path, &Path);
    let moves: [(&str, Move); 4] = [
        ("moved", |from, to| fs::rename(from, to).expect("moved")),
        ("copied", |from, to| {
            let copied = Command::new("cp").arg("-a").args([from, to]).status();
            assert!(copied.expect("cp").success());
        }),
        ("linked", |from, to| {
            std::os::unix::fs::symlink(from, to).expect("a link")
        }),
        ("back", |from, to| {
            fs::rename(fs::canonicalize(from).expect("a folder"), to).expect("moved")
        }),
    ];
    let mut data: PathBuf = first;
    for (stamp, (name, how)) in (now - 9..).zip(moves) {
        let to = place.scratch.path(name);
        how(&data, &to);
        data = to;
        let looked = seen(&data, now, "--open");
        assert_eq!(
            (&looked.listed, &looked.shown),
            (&opened.listed, &opened.shown),
            "{name}, opened"
        );
        let mut served = place.start(&data);
        assert_eq!(seen(&data, now, "--data"), before, "{name}");
        // New values go to the same series.
        let mut client = client(&data);
        let said = client.text(&format!("UPDATE {SENT} {stamp}:7"));
        assert!(said.starts_with("0 "), "{name}: {said}");
        let listed = run(&["series", "ls", "--data", &data.to_string_lossy()]);
        assert_eq!(listed.matches("port-id1").count(), 1, "{listed}");
        if name != "linked" {
            served.has_said("the base was ");
        }
    }
    assert!(run(&["verify", &data.to_string_lossy()]).starts_with("no damage: "));
}

/// `[store] base` names another folder: the service treats it as a move, and logs it.
#[test]
fn a_base_that_changes_is_a_move_that_is_said() {
    let mut place = Place::new("serve-rebased");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs() / 10 * 10;
    let data = place.scratch.path("data");
    let served = place.start(&data);
    place.fill(&data, now);
    let before = seen(&data, now, "--data");
    drop(served);
    let base = place.scratch.text("elsewhere");
    fs::rename(data.join("rrd"), &base).expect("moved");
    place.config = format!("[store]\nbase = \"{base}\"\n");
    let mut served = place.start(&data);
    let said = served.has_said("the base was ");
    assert!(
        said.contains("data/rrd") && said.contains("elsewhere"),
        "{said}"
    );
    assert_eq!(seen(&data, now, "--data"), before);
    drop(served);
    assert_eq!(seen(&data, now, "--open").shown, before.shown);
}
