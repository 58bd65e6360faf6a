//! The machine's wall clock is set forwards and backwards, far away, and slewed. Nothing ends or hangs, samples and requests keep
//! their intervals, and acknowledged values are there.

use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, children_of, eventually, get};
use kymo_tests::wall_clock::WallClock;
use kymo_tests::{Running, Scratch, kymo, machine, run, stdout_of};

const HOUR: i64 = 3600 * 1_000_000_000;

/// Name of a change of the clock, and the change.
type Step = (&'static str, fn(&WallClock));

/// Changes of the clock, in order.
const STEPS: &[Step] = &[
    ("as it is", |clock| clock.shift(0)),
    ("an hour ahead", |clock| clock.shift(HOUR)),
    ("back again", |clock| clock.shift(0)),
    ("an hour behind", |clock| clock.shift(-HOUR)),
    ("just before 2038", |clock| {
        clock.set(i64::from(i32::MAX) - 1)
    }),
    ("2040", |clock| clock.set(2_208_988_800)),
    ("1970", |clock| clock.set(10)),
    ("smeared", |clock| clock.smear(Duration::from_millis(500))),
    ("as it was", |clock| clock.shift(0)),
];

fn wait(at: &str, what: &str, mut is_so: impl FnMut() -> bool) {
    let seen = eventually(|| is_so().then_some(()));
    assert!(seen.is_some(), "{at}: {what}");
}

fn start(command: &mut Command) -> Running {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    Running(child.expect("kymo starts"))
}

fn ends_well(mut running: Running) {
    running.signal("-TERM");
    let status = eventually(|| running.0.try_wait().ok().flatten());
    assert_eq!(status.expect("it ends").code(), Some(0));
}

fn samples(folder: &Path) -> usize {
    let played = run(&["play", &folder.to_string_lossy(), "-sc", "--json"]);
    played.stdout.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_recorder_goes_on() {
    if machine::must_skip(&["cc"]) {
        return;
    }
    let (clock, scratch) = (WallClock::new("clock-record"), Scratch::new("clock-record"));
    let folder = scratch.path("rec");
    let log = fs::File::create(scratch.path("log")).expect("a log");
    let mut command = clock.command(&kymo());
    command.arg("record").arg("-f").arg(&folder).stderr(log);
    let running = start(command.args(["-sc", "-i0.1"]));
    for (name, step) in STEPS {
        step(&clock);
        let before = samples(&folder);
        wait(name, "nothing is recorded", || {
            samples(&folder) > before + 2
        });
    }
    ends_well(running);
    let said = fs::read_to_string(scratch.path("log")).expect("its log");
    assert!(said.contains("clock step +3600"), "{said}");
    assert!(said.contains("clock step -3600"), "{said}");
}

#[test]
fn a_poller_asks_on() {
    if machine::must_skip(&["cc"]) {
        return;
    }
    let (clock, scratch) = (WallClock::new("clock-poll"), Scratch::new("clock-poll"));
    let device = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = device.local_addr().expect("its address").port();
    let config = format!(
        "WorkDir: {}\nLogFormat: rrdtool\nInterval: 0:01\nTarget[a]: 1:public@127.0.0.1:{port}:0.2:1:1\nMaxBytes[a]: 9\nTitle[a]: a\n",
        scratch.text("")
    );
    fs::write(scratch.path("mrtg.cfg"), config).expect("a configuration");
    device
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit of time");
    let mut command = clock.command(&kymo());
    let running = start(
        command
            .args(["poll", "--foreground"])
            .arg(scratch.path("mrtg.cfg")),
    );
    let mut packet = [0; 512];
    for (name, step) in STEPS {
        step(&clock);
        // One request may have been on its way already.
        for _ in 0..3 {
            let asked = loop {
                match device.recv(&mut packet) {
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    got => break got,
                }
            };
            assert!(asked.is_ok(), "{name}: no device is asked: {asked:?}");
        }
    }
    ends_well(running);
}

/// Values of a client that sets its own timestamps.
struct Values {
    stamp: i64,
    sent: i64,
}

impl Values {
    fn new(client: &mut Client) -> Values {
        let created =
            client.text("CREATE a.rrd -s 10 -b 1700000000 DS:x:GAUGE:20:U:U RRA:LAST:0.5:1:100");
        assert_eq!(created, "0 RRD created OK");
        Values {
            stamp: 1_700_000_000,
            sent: 0,
        }
    }

    fn send(&mut self, name: &str, client: &mut Client) {
        for _ in 0..3 {
            (self.stamp, self.sent) = (self.stamp + 10, self.sent + 1);
            let answer = client.text(&format!("UPDATE a.rrd {}:{}", self.stamp, self.sent));
            assert_eq!(answer, "0 errors, enqueued 1 value(s).", "{name}");
        }
        let flushed = client.text("FLUSH a.rrd");
        assert!(
            flushed.starts_with("0 Successfully flushed"),
            "{name}: {flushed}"
        );
    }

    fn are_there(&self, file: &Path) {
        let (first, last) = ("1700000000", (self.stamp - 10).to_string());
        let file = file.to_string_lossy();
        let rows = stdout_of(&["rrd", "fetch", &file, "LAST", "-s", first, "-e", &last]);
        let values = rows
            .lines()
            .filter_map(|row| row.split_once(": ")?.1.parse::<f64>().ok());
        let values: Vec<i64> = values.map(|value| value as i64).collect();
        let expected: Vec<i64> = (1..=self.sent).collect();
        assert_eq!(values, expected, "{rows}");
    }
}

#[test]
fn rrdcached_keeps_what_it_acknowledges() {
    if machine::must_skip(&["cc"]) {
        return;
    }
    let (clock, scratch) = (
        WallClock::new("clock-rrdcached"),
        Scratch::new("clock-rrdcached"),
    );
    for folder in ["db", "journal"] {
        fs::create_dir(scratch.path(folder)).expect("a folder");
    }
    let begin = || {
        let (base, journal, socket) = (
            scratch.text("db"),
            scratch.text("journal"),
            scratch.text("sock"),
        );
        let (pid, address) = (scratch.text("pid"), format!("unix:{socket}"));
        let words = [
            "rrdcached",
            "-g",
            "-b",
            &base,
            "-j",
            &journal,
            "-p",
            &pid,
            "-l",
            &address,
        ];
        let running = start(clock.command(&kymo()).args(words));
        let client = eventually(|| Client::unix(&scratch.path("sock")).ok());
        (running, client.expect("it listens"))
    };
    let (mut running, mut client) = begin();
    let mut values = Values::new(&mut client);
    for (name, step) in STEPS {
        step(&clock);
        values.send(name, &mut client);
        // A daemon that starts with this clock also reads the old files.
        drop(client);
        drop(running);
        fs::remove_file(scratch.path("sock")).expect("its socket");
        (running, client) = begin();
        values.send(name, &mut client);
    }
    ends_well(running);
    values.are_there(&scratch.path("db/a.rrd"));
}

#[test]
fn serve_goes_on() {
    if machine::must_skip(&["cc", "unshare", "mount"]) {
        return;
    }
    let (clock, scratch) = (WallClock::new("clock-serve"), Scratch::new("clock-serve"));
    let data = scratch.path("data");
    let words = format!(
        "{} serve --data {} --listen 127.0.0.1:0",
        kymo().display(),
        data.display()
    );
    let namespace = clock.namespace(&words);
    let shell: Vec<String> = namespace
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shell: Vec<&str> = shell.iter().map(String::as_str).collect();
    let mut served = Served::start_as("unshare", &shell);
    let address = served.address();
    served.has_said("keeper: user");
    let children = children_of(served.pid());
    for child in &children {
        // Between fork and the loader's work a child has no library yet.
        let has_clock = || {
            let maps = fs::read_to_string(format!("/proc/{child}/maps")).expect("its maps");
            maps.contains("clock_steps.so").then_some(())
        };
        eventually(has_clock).expect("a process has another clock");
    }
    let mut client = Client::unix(&data.join("rrdcached.sock")).expect("a client");
    let mut values = Values::new(&mut client);
    let ring = || {
        let hosts = fs::read_dir(&data).into_iter().flatten().flatten();
        let rings =
            hosts.filter(|entry| entry.path().join("lock").exists() || entry.path().is_dir());
        rings.map(|entry| samples(&entry.path())).sum::<usize>()
    };
    for (name, step) in STEPS {
        step(&clock);
        values.send(name, &mut client);
        let before = ring();
        wait(name, "nothing is recorded", || ring() > before);
        assert_eq!(
            get(&address, "/kymo/v1/status", "")["mode"],
            "live",
            "{name}"
        );
        assert_eq!(
            children_of(served.pid()),
            children,
            "{name}: one was started again"
        );
    }
    client.text("FLUSH a.rrd");
    values.are_there(&data.join("rrd/a.rrd"));
}
