//! Power cuts, and a disk that stalls, under all processes of `kymo serve`,
//! on a file system that loses unsynced bytes (`kymo_tests::power_disk`).

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_shm::{Description, Publisher, Schema};
use kymo_sys::effort::{effort, first_seed};
use kymo_tests::power_disk::{Faults, PowerDisk};
use kymo_tests::rrd_client::Client;
use kymo_tests::rrd_stream::Random;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::{Served, ask, children_of, eventually, get, is_alive, is_killed};
use kymo_tests::{Scratch, free_port, kymo, parse_dump, run};
use kymo_wire::collectd::{Cdtime, Encoder, Identifier, PACKET_DEFAULT, Pushed, Value, ValueList};
use serde_json::Value as Json;

const BIRTH: u64 = 1_000_000_020;
const CREATE: &str =
    "CREATE a.rrd -s 60 -b 1000000020 DS:load:GAUGE:120:U:U RRA:AVERAGE:0.5:1:20000";
/// The value in everything that collectd sends.
const COLLECTED: f64 = 42.5;

/// A `kymo serve` with all its files on a disk whose power can go.
struct Machine {
    story: String,
    scratch: Scratch,
    disk: PowerDisk,
    collectd: u16,
}

impl Machine {
    fn new(seed: u64) -> Option<Machine> {
        let scratch = Scratch::new("power-serve");
        let disk = PowerDisk::mount(&scratch.path("disk"), seed)?;
        let collectd = free_port();
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{collectd}\"]\n"
        );
        fs::write(scratch.path("kymo.toml"), config).expect("a configuration");
        Some(Machine {
            story: format!("SEED={seed}"),
            scratch,
            disk,
            collectd,
        })
    }

    fn data(&self) -> PathBuf {
        self.disk.path().join("data")
    }

    /// Starts all processes; returns them and the page's address.
    fn start(&self) -> (Served, String) {
        let (config, data) = (self.scratch.text("kymo.toml"), self.data());
        let ([program, begin @ ..], kymo) = (self.disk.machine(), kymo());
        let (data, kymo) = (data.to_string_lossy(), kymo.to_string_lossy());
        let mut words: Vec<&str> = begin.iter().map(String::as_str).collect();
        words.extend([&*kymo, "serve", "--config", &config, "--data", &data]);
        words.extend(["--listen", "127.0.0.1:0"]);
        let mut served = Served::start_as(&program, &words);
        let address = served.address();
        served.has_said("keeper: user");
        served.has_said("collectd's datagrams on");
        (served, address)
    }

    fn client(&self) -> Client {
        Client::unix(&self.data().join("rrdcached.sock")).expect("a client")
    }

    /// Kills every process at once, so that their memory is lost.
    fn kill_all(&self, served: Served) {
        let mut all = vec![served.pid()];
        let mut at = 0;
        while let Some(&pid) = all.get(at) {
            // A stopped process starts no other one: a child begun after the listing would live on and keep its sockets.
            // A process that has ended cannot be signalled.
            let _is_sent = is_killed("-STOP", pid);
            all.extend(children_of(pid));
            at += 1;
        }
        for &pid in &all {
            let _is_sent = is_killed("-KILL", pid);
        }
        let gone = eventually(|| all.iter().all(|&pid| !is_alive(pid)).then_some(()));
        assert!(gone.is_some(), "{}: processes live on", self.story);
        let _published = fs::remove_dir_all(&served.published);
    }

    fn collect(&self, socket: &UdpSocket, at: u64) {
        let mut encoder = Encoder::new(PACKET_DEFAULT);
        let identifier = Identifier {
            host: b"box",
            plugin: b"load",
            plugin_instance: b"",
            type_name: b"gauge",
            type_instance: b"x",
        };
        let list = ValueList {
            identifier,
            time: Cdtime::from_seconds(at),
            interval: Cdtime::from_seconds(1),
            values: &[Value::Gauge(COLLECTED)],
        };
        assert_eq!(encoder.push(&list), Pushed::Added);
        // A dead keeper has closed its socket.
        let _sent = socket.send(encoder.payload());
    }
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn value(turn: u64) -> String {
    format!("{}:{turn}", BIRTH + 60 * (turn + 1))
}

/// State that must survive a power cut.
#[derive(Default)]
struct Known {
    /// Values of a.rrd: those on the disk for certain, and all that were sent.
    floor: u64,
    sent: u64,
    token: String,
    /// Total of the counters of ended programs.
    counted: u64,
}

/// Sends values by rrdcached's protocol and by collectd's until the power goes.
fn load(machine: &Machine, random: &mut Random, known: &mut Known) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket
        .connect(("127.0.0.1", machine.collectd))
        .expect("an address");
    let (begun, length) = (
        Instant::now(),
        Duration::from_millis(200 + random.below(2500)),
    );
    let mut client = machine.client();
    let mut acknowledged: Vec<Instant> = Vec::new();
    let (first, mut collected) = (known.sent, now_s() - 250);
    while begun.elapsed() < length && machine.disk.off_since().is_none() {
        let line = format!("UPDATE a.rrd {}", value(known.sent));
        known.sent += 1;
        match client.ask(line.as_bytes()) {
            Ok(reply) if reply.show().starts_with("0 errors") => acknowledged.push(Instant::now()),
            _ => break,
        }
        if known.sent.is_multiple_of(20) {
            machine.collect(&socket, collected);
            collected += 1;
        }
        if random.once_in(200) {
            let _answer = client.ask(b"FLUSHALL");
        }
    }
    machine.disk.cut();
    let syncs = machine.disk.syncs_of("journal-");
    let certain = syncs.len().checked_sub(2).map(|index| syncs[index]);
    let count = acknowledged
        .iter()
        .filter(|&&at| certain.is_some_and(|certain| at < certain));
    known.floor = known.floor.max(first + count.count() as u64);
}

/// A program counts and ends; the keeper keeps its total after removing its file.
fn count_and_end(machine: &Machine, served: &Served, known: &mut Known) {
    let mut schema = Schema::new("example", 1).folder(&served.published);
    let total = schema.counter(Description::new("work_total", ""));
    let publisher = Publisher::create(&schema).expect("a publisher");
    publisher.take().add(total, 700);
    let path = publisher.path().expect("a file").to_path_buf();
    let seen = eventually(|| counted(machine, "alive"));
    assert_eq!(seen, Some(700), "{}: what a program counts", machine.story);
    drop(publisher);
    let gone = eventually(|| (!path.exists()).then_some(()));
    assert!(gone.is_some(), "{}: its file stays", machine.story);
    known.counted += 700;
}

/// The count of programs of this life.
fn counted(machine: &Machine, life: &str) -> Option<u64> {
    let output = Command::new(kymo())
        .args(["programs", "--json", "--data"])
        .arg(machine.data())
        .output();
    let asked: Json = serde_json::from_slice(&output.expect("kymo runs").stdout).ok()?;
    let all = asked["publishers"].as_array()?;
    let one = all
        .iter()
        .find(|each| each["name"] == "example" && each["life"] == life)?;
    one["metrics"][0]["value"]
        .as_f64()
        .map(|value| value as u64)
}

/// Starts without repair, and checks that everything certain is there and no number has changed.
fn come_up(machine: &mut Machine, known: &mut Known) {
    machine.disk.restart();
    let story = &machine.story;
    let data = machine.data();
    let verified = run(&["verify", &data.join("store").to_string_lossy()]);
    let said = text(&verified.stdout) + &text(&verified.stderr);
    assert!(verified.status.success(), "{story}: {said}");
    let (served, address) = machine.start();
    let mut client = machine.client();
    let flushed = client.text("FLUSH a.rrd");
    assert!(
        flushed.starts_with("0 "),
        "{story}: {flushed}: {:#?}",
        served.said
    );
    let last = rrdtool(&data.join("rrd"), &["last", "a.rrd"]);
    let last: u64 = text(&last.stdout).trim().parse().expect("a stamp");
    let turns = (last - BIRTH) / 60;
    let (floor, sent) = (known.floor, known.sent);
    assert!(
        (floor..=sent).contains(&turns),
        "{story}: {turns} values, not {floor} to {sent}: {said}{:#?}",
        served.said
    );
    known.sent = turns;
    known.floor = turns;
    check_rows(&data.join("rrd"), "a.rrd", story, &|stamp| {
        ((stamp - BIRTH) / 60 - 1) as f64
    });
    // This file may never have been on the disk.
    let _flushed = client.ask(b"FLUSH box/load/gauge-x.rrd");
    let file = fs::metadata(data.join("rrd/box/load/gauge-x.rrd"));
    if file.is_ok_and(|file| file.len() > 0) {
        check_rows(&data.join("rrd"), "box/load/gauge-x.rrd", story, &|_| {
            COLLECTED
        });
    }
    let token = fs::read_to_string(data.join("token")).expect("a token");
    assert_eq!(token, known.token, "{story}: another token");
    let programs = || counted(machine, "retired").filter(|&count| count == known.counted);
    if known.counted > 0 && eventually(programs).is_none() {
        let counted = counted(machine, "retired");
        panic!(
            "{story}: {counted:?}, not {} of ended programs",
            known.counted
        );
    }
    for path in [
        "/kymo/v1/status",
        "/kymo/v1/fields",
        "/kymo/v1/hosts",
        "/kymo/v1/events?from=0&thru=now",
    ] {
        get(&address, path, token.trim());
    }
    let recording = run(&[
        "dump",
        &data.join("recording").to_string_lossy(),
        "--source",
        "proc/loadavg",
    ]);
    let said = text(&recording.stderr);
    assert!(!said.contains("damage"), "{story}: {said}");
    for frame in parse_dump(&recording.stdout) {
        let line = text(&frame.text);
        assert_eq!(line.split_whitespace().count(), 5, "{story}: {line:?}");
    }
    machine.kill_all(served);
    machine.disk.settle();
}

/// Known rows hold the sent values.
fn check_rows(folder: &Path, file: &str, story: &str, right: &dyn Fn(u64) -> f64) {
    let begin = (now_s() - 1000).min(BIRTH).to_string();
    let words = ["fetch", file, "AVERAGE", "-s", &begin];
    let output = rrdtool(folder, &words);
    for line in text(&output.stdout).lines() {
        let Some((stamp, row)) = line.split_once(": ") else {
            continue;
        };
        let found: f64 = row.parse().expect("a number");
        let stamp = stamp.parse().expect("a stamp");
        let off = (found - right(stamp)).abs();
        assert!(found.is_nan() || off < 1e-6, "{story}: {file} {line}");
    }
}

#[test]
fn all_of_kymo_serve_outlives_power_cuts() {
    let first = first_seed(1);
    for seed in first..first + effort(1) {
        eprintln!("SEED={seed}");
        let Some(mut machine) = Machine::new(seed) else {
            return;
        };
        let mut random = Random(seed);
        let mut known = Known::default();
        for round in 0..3 {
            let (served, _) = machine.start();
            if round == 0 {
                let created = machine.client().text(CREATE);
                assert!(created.starts_with("0 "), "{created}");
                // Token and file must be on the disk: a cut may lose the rest of the first second.
                std::thread::sleep(Duration::from_millis(100));
                known.token = fs::read_to_string(machine.data().join("token")).expect("a token");
                let syncs = || machine.disk.syncs_of("journal-").len();
                let before = syncs();
                let synced = eventually(|| (syncs() > before + 1).then_some(()));
                assert!(synced.is_some(), "SEED={seed}: the journal is never synced");
            }
            if round % 2 == 1 {
                count_and_end(&machine, &served, &mut known);
            }
            if random.once_in(2) {
                machine.disk.set_faults(Faults {
                    cut_at: Some(20 + random.below(2000)),
                    ..Faults::default()
                });
            }
            load(&machine, &mut random, &mut known);
            machine.kill_all(served);
            come_up(&mut machine, &mut known);
        }
    }
}

/// Time that a disk needs for a bad sector.
const STALL: Duration = Duration::from_secs(20);

/// Counts the good answers to a request while the disk stalls.
fn answered_meanwhile(machine: &Machine, address: &str, path: &str, token: &str) -> u32 {
    let mut answered = 0;
    while machine.disk.is_stalled() {
        let answer = ask(address, "GET", path, token, "");
        let is_answered = answer.is_some_and(|(status, _)| status == 200);
        answered += u32::from(is_answered && machine.disk.is_stalled());
        std::thread::sleep(Duration::from_millis(100));
    }
    answered
}

/// A disk stalls for a while: requests about this machine are answered
/// meanwhile, and datagrams for which there was no room are counted.
#[test]
fn a_disk_that_stalls_costs_what_is_written_and_nothing_else() {
    let seed = first_seed(1);
    let Some(machine) = Machine::new(seed) else {
        return;
    };
    let (served, address) = machine.start();
    let token = fs::read_to_string(machine.data().join("token")).expect("a token");
    let token = token.trim();
    let paths = ["/kymo/v1/status", "/kymo/v1/processes", "/kymo/v1/fields"];
    for path in paths {
        let answer = || ask(&address, "GET", path, token, "").filter(|(status, _)| *status == 200);
        assert!(
            eventually(answer).is_some(),
            "{path} before the disk stalls"
        );
    }
    machine.disk.set_faults(Faults {
        stall: Some((1, STALL)),
        ..Faults::default()
    });
    let stalled = eventually(|| machine.disk.is_stalled().then_some(()));
    assert!(stalled.is_some(), "nothing is written");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket
        .connect(("127.0.0.1", machine.collectd))
        .expect("an address");
    let (mut sent, first) = (0, now_s() - 250);
    std::thread::scope(|scope| {
        let (machine, address) = (&machine, &address);
        let answers = paths.map(|path| {
            scope.spawn(move || (path, answered_meanwhile(machine, address, path, token)))
        });
        while machine.disk.is_stalled() {
            for _ in 0..50 {
                machine.collect(&socket, first + sent / 40);
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        for answers in answers {
            let (path, answered) = answers.join().expect("a thread");
            eprintln!("{path}: {answered} answers while the disk stalled");
            assert!(
                answered >= 3,
                "{path}: {answered} answers while the disk stalled"
            );
        }
    });
    // The values after a loss tell its extent.
    let is_counted = || {
        machine.collect(&socket, first + sent / 40);
        sent += 1;
        std::thread::sleep(Duration::from_millis(50));
        let hosts = get(&address, "/kymo/v1/hosts", token);
        let socket = &hosts["sockets"][0];
        let senders = socket["senders"].as_array()?.iter();
        let taken: u64 = senders.filter_map(|each| each["datagrams"].as_u64()).sum();
        (taken + socket["lost"].as_u64()? == sent).then_some(())
    };
    let hosts = || get(&address, "/kymo/v1/hosts", token);
    assert!(
        eventually(is_counted).is_some(),
        "of {sent} datagrams: {}",
        hosts()
    );
    for word in ["keeper", "hub", "record"] {
        let pid = served.child(word);
        assert!(
            pid.is_some_and(is_alive),
            "no {word} any more: {:#?}",
            served.said
        );
    }
}
