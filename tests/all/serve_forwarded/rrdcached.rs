//! Values that go on by rrdcached's protocol: to Debian's rrdcached and to another kymo, over the death of each process.

use std::fs;
use std::path::Path;

use kymo_tests::Scratch;
use kymo_tests::machine::skipped;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrd_daemon::{Daemon, Side};
use kymo_tests::served::{Served, eventually};

use super::ForwardHub;
use crate::prometheus_api::now_s;

const RRDCACHED: &str = "/usr/bin/rrdcached";
/// Files of the test: name and definition.
const FILES: [(&str, &str); 3] = [
    (
        "web 1/load.rrd",
        "DS:load:GAUGE:4:0:100 RRA:AVERAGE:0.5:1:600 RRA:MAX:0.5:5:100",
    ),
    (
        "web 1/octets.rrd",
        "DS:rx:DERIVE:4:0:U DS:tx:COUNTER:4:U:U RRA:AVERAGE:0.1:1:600",
    ),
    ("far.rrd", "DS:v:GAUGE:4:U:U RRA:LAST:0.5:1:600"),
];

/// Columns of all files.
const COLUMNS: u32 = 4;

/// A client of the socket in a folder.
fn client(socket: &Path) -> Client {
    Client::unix(socket).expect("a client")
}

/// Name of a file as a line has it.
fn field(name: &str) -> String {
    name.replace(' ', "\\ ")
}

/// Creates the files, and waits until they have begun.
fn create(socket: &Path, begin: i64) {
    let mut client = client(socket);
    for (name, definition) in FILES {
        let line = format!("CREATE {} -b {begin} -s 1 {definition}", field(name));
        let answer = client.text(&line);
        assert!(answer.starts_with("0 "), "{answer}");
    }
}

/// Sends a value of each file for each of these seconds behind the begin.
fn send(socket: &Path, begin: i64, seconds: std::ops::Range<i64>) {
    let mut client = client(socket);
    for second in seconds {
        let t = begin + second;
        // A value beyond the maximum is unknown in all stores, and so is one that is said to be.
        let load = if second % 7 == 0 {
            "200".into()
        } else {
            format!("{second}.1")
        };
        let tx = if second % 5 == 0 {
            "U".into()
        } else {
            (second * 1000).to_string()
        };
        for (name, value) in [
            (FILES[0].0, load),
            (FILES[1].0, format!("{}:{tx}", second * 77)),
            (FILES[2].0, format!("{}", second * -3)),
        ] {
            let answer = client.text(&format!("UPDATE {} {t}:{value}", field(name)));
            assert!(answer.starts_with("0 "), "{answer}");
        }
    }
}

/// Rows of all files, without those that may still grow.
fn rows(socket: &Path, begin: i64, seconds: i64) -> Option<Vec<String>> {
    let mut client = Client::unix(socket).ok()?;
    let (from, to) = (begin, begin + seconds);
    let of = |client: &mut Client, name: &str, cf: &str| {
        let _flushed = client.text(&format!("FLUSH {}", field(name)));
        client.text(&format!("FETCH {} {cf} {from} {to}", field(name)))
    };
    Some(vec![
        of(&mut client, FILES[0].0, "AVERAGE"),
        of(&mut client, FILES[0].0, "MAX"),
        of(&mut client, FILES[1].0, "AVERAGE"),
    ])
}

fn table(name: &str, address: &str) -> String {
    format!("[[forward]]\nname = \"{name}\"\nrrdcached = \"{address}\"\nmatch = ['rrd']\n")
}

/// Both receivers make the files as they are in kymo, and have the same rows. One of them is away for a while, and the process
/// that forwards and the keeper are killed. A file that a receiver has with later values refuses those that come.
#[test]
fn rrdcached_and_kymo_have_the_values() {
    if !fs::exists(RRDCACHED).unwrap_or(false) {
        return skipped("rrdcached is missing");
    }
    let theirs = Scratch::new("forwarded-to-rrdcached");
    let base = theirs.path("base");
    fs::create_dir_all(&base).expect("a folder");
    let options = ["-B", "-R", "-w", "1"];
    let mut daemon = Daemon::start(Side::Stock, &theirs.path(""), &base, &options);
    let another = Scratch::new("forwarded-to-rrdcached-kymo");
    let config = "user = \"\"\n[listen]\ncollectd = []\n";
    let mut other = Served::configured(&another, &another.path("data"), config);
    other.has_said("rrdcached's protocol on");
    let other_socket = another.path("data/rrdcached.sock");
    let tables = [
        table("stock", &theirs.text("sock")),
        table("kymo", &format!("unix:{}", other_socket.display())),
    ];
    let mut hub = ForwardHub::start("forwarded-rrdcached", &tables.concat());
    let own = hub.scratch.path("data/rrdcached.sock");
    let begin = now_s() - 200;
    let late = format!("CREATE far.rrd -b {} -s 1 {}", begin + 1000, FILES[2].1);
    let answer = daemon.connect().text(&late);
    assert!(answer.starts_with("0 "), "{answer}");
    create(&own, begin - 1);
    let same = |hub: &ForwardHub, daemon: &Daemon, seconds: i64| {
        let ours = rows(&own, begin, seconds).expect("kymo's own rows");
        for socket in [daemon.socket(), &other_socket] {
            let same = || (rows(socket, begin, seconds)? == ours).then_some(());
            eventually(same).unwrap_or_else(|| {
                panic!(
                    "{}: {:#?}, not {ours:#?}: {:#?}",
                    socket.display(),
                    rows(socket, begin, seconds),
                    hub.served.said
                )
            });
        }
    };
    send(&own, begin, 0..40);
    same(&hub, &daemon, 38);
    let refused = |hub: &ForwardHub, by: &str| hub.own("kymo_forward_refused_samples_total", by);
    let by_kymo = eventually(|| refused(&hub, "kymo"));
    assert_eq!(by_kymo, Some(0.0));
    daemon.stop("-TERM");
    send(&own, begin, 40..80);
    hub.served
        .hears("cannot forward to stock: cannot connect to");
    hub.kill("forward");
    send(&own, begin, 80..100);
    hub.kill("keeper");
    send(&own, begin, 100..120);
    daemon = Daemon::start(Side::Stock, &theirs.path(""), &base, &options);
    same(&hub, &daemon, 118);
    hub.served
        .has_said("samples are refused and dropped: it says illegal attempt to update using time");
    let by_stock = || refused(&hub, "stock").filter(|&count| count > 0.0);
    eventually(by_stock).expect("refusals");
    // A batch that was not acknowledged before a kill comes again, and is refused then: of the 80 seconds since the first comparison.
    let again = refused(&hub, "kymo").expect("a count");
    assert!(again <= f64::from(80 * COLUMNS), "{again}");
}
