//! Senders that change their interval: a series goes on with collectd's definition for the new one, and keeps its rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::rrd_stream::Random;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::kill;
use kymo_wire::collectd::{Cdtime, RrdSettings, TypesDb};

use super::hub::{Hub, eventually};
use super::packets::{gauges, name, now, sender};

/// A value as sent: stamp, interval, value.
type Sent = (u64, u64, u64);

/// Appends `count` values at this interval after the newest one.
fn go_on(sent: &mut Vec<Sent>, interval: u64, count: u64) {
    for _ in 0..count {
        let &(stamp, _, value) = sent.last().expect("a first value");
        sent.push((stamp + interval, interval, (value * 7 + stamp) % 1000));
    }
}

/// The first value of simulated time, on a whole row of every archive in these tests.
fn begin() -> Vec<Sent> {
    let first = now() - 40_000;
    vec![(first - first % 600, 10, 1)]
}

fn send(hub: &Hub, host: &str, sent: &[Sent]) {
    let socket = sender("127.0.0.1", hub.port);
    for &(stamp, interval, value) in sent {
        let packet = gauges(host, &["x".into()], stamp, interval, value as f64);
        socket.send(&packet).expect("sent");
    }
    let &(last, ..) = sent.last().expect("values");
    let series = name(host);
    // LAST is a whole row, and the length of rows may have changed a moment ago.
    eventually(&format!("{series} at {last}"), || {
        let row = last - last % step(hub, &series)?;
        (hub.last(&series) == Some(row)).then_some(())
    });
}

/// Seconds of a primary data point of a series.
fn step(hub: &Hub, series: &str) -> Option<u64> {
    let said = hub.client().text(&format!("INFO {series}"));
    let line = said.lines().find_map(|line| line.strip_prefix("step "))?;
    line.split(' ').next_back()?.parse().ok()
}

fn has_step(hub: &Hub, host: &str, wanted: u64) {
    eventually(&format!("{host} with {wanted} s"), || {
        (step(hub, &name(host)) == Some(wanted)).then_some(())
    });
}

/// The files that rrdtool itself makes of these values: with collectd's definitions, each from the one before.
fn made_by_rrdtool(scratch: &Path, host: &str, parts: &[(u64, &[Sent])]) -> PathBuf {
    let mut before: Option<PathBuf> = None;
    for (at, (interval, sent)) in parts.iter().enumerate() {
        let file = scratch.join(format!("{host}-{at}.rrd"));
        let types = TypesDb::embedded();
        let sources = types.sources(b"gauge").expect("a type");
        let definition = RrdSettings::default().define(Cdtime::from_seconds(*interval), sources);
        let definition = definition.expect("a definition");
        let (step, start) = (definition.step_s.to_string(), (sent[0].0 - 1).to_string());
        let (path, source) = (text(&file), before.as_deref().map(text));
        let mut words = vec!["create", &path, "--step", &step];
        match &source {
            Some(source) => words.extend(["--source", source]),
            None => words.extend(["--start", &start]),
        }
        words.extend(definition.words.iter().map(String::as_str));
        run(scratch, &words);
        let values = sent.iter();
        let values: Vec<String> = values
            .map(|(at, _, value)| format!("{at}:{value}"))
            .collect();
        let mut words = vec!["update", &path];
        words.extend(values.iter().map(String::as_str));
        run(scratch, &words);
        before = Some(file);
    }
    before.expect("a file")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn run(folder: &Path, words: &[&str]) -> String {
    let output = rrdtool(folder, words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn dump(file: &Path) -> String {
    run(Path::new("/"), &["dump", &text(file)])
}

/// Path of the series' file, after a FLUSH.
fn file(hub: &Hub, host: &str) -> PathBuf {
    let said = hub.client().text(&format!("FLUSH {}", name(host)));
    assert!(said.starts_with("0 "), "{said}");
    hub.dir.join("rrd").join(name(host))
}

/// Rows of a file by rrdtool.
fn fetch(file: &Path, from: u64, to: u64) -> String {
    let (from, to) = (from.to_string(), (to - 1).to_string());
    let words = ["fetch", &text(file), "AVERAGE", "-s", &from, "-e", &to];
    run(Path::new("/"), &words)
}

/// Known rows of a series.
fn rows(hub: &Hub, series: &str, from: u64, to: u64) -> BTreeMap<u64, f64> {
    let line = format!("FETCH {series} AVERAGE {from} {to}");
    known(&hub.client().text(&line), from, to)
}

/// Known rows in a range, by their stamps.
fn known(said: &str, from: u64, to: u64) -> BTreeMap<u64, f64> {
    let row = |line: &str| {
        let (stamp, value) = line.split_once(": ")?;
        let (stamp, value) = (stamp.parse().ok()?, value.trim().parse::<f64>().ok()?);
        (stamp > from && stamp <= to && !value.is_nan()).then_some((stamp, value))
    };
    said.lines().filter_map(row).collect()
}

/// With and without a file, to longer and shorter intervals and
/// back: equal bits to those of rrdtool's `create --source`.
#[test]
fn rows_from_before_are_joined_with_those_at_the_new_interval() {
    let hub = Hub::start("intervals", "");
    let hosts = ["bare", "filed"];
    for (before, after) in [(10, 60), (60, 10)] {
        let hosts = hosts.map(|host| format!("{host}-{before}"));
        let mut sent = begin();
        sent[0].1 = before;
        go_on(&mut sent, before, 120);
        let (end, count) = (sent[120].0, sent.len());
        for host in &hosts {
            send(&hub, host, &sent);
        }
        file(&hub, &hosts[1]);
        let fine = rows(&hub, &name(&hosts[0]), sent[0].0, end);
        assert_eq!(fine.len(), 120);
        go_on(&mut sent, after, 3);
        for host in &hosts {
            send(&hub, host, &sent[count..]);
            has_step(&hub, host, after);
        }
        // A new row lies between the old rows for which it stands.
        for (stamp, row) in rows(&hub, &name(&hosts[0]), sent[0].0 + 60, end) {
            let step = before.max(after);
            let own =
                fine.range(stamp - stamp % before + before - step..=stamp.next_multiple_of(before));
            let own: Vec<f64> = own.map(|(_, value)| *value).collect();
            let (least, most) = own
                .iter()
                .fold((f64::MAX, f64::MIN), |(least, most), &value| {
                    (least.min(value), most.max(value))
                });
            assert!((least..=most).contains(&row), "{row} at {stamp}: {own:?}");
        }
        // A keeper that is killed at this moment loses nothing.
        let keeper = hub.keeper();
        kill("-KILL", keeper);
        hub.served.next_child("keeper", keeper);
        go_on(&mut sent, after, 7);
        let scratch = hub.scratch.path("");
        let parts = [(before, &sent[..count]), (after, &sent[count..])];
        for host in &hosts {
            send(&hub, host, &sent[count + 3..]);
            let wanted = dump(&made_by_rrdtool(&scratch, host, &parts));
            assert!(dump(&file(&hub, host)) == wanted, "{host}");
        }
    }
}

#[test]
fn intervals_that_come_and_go_and_files_of_others_change_nothing() {
    let hub = Hub::start("intervals-stay", "");
    let created = |host: &str, words: &str| {
        let folder = hub.dir.join("rrd").join(name(host));
        fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
        let begin = now() - 100_000;
        let line = format!("CREATE {} -b {begin} {words}", name(host));
        assert_eq!(hub.client().text(&line), "0 RRD created OK");
    };
    created(
        "theirs",
        "-s 30 DS:value:GAUGE:300:0:U RRA:AVERAGE:0.5:1:1000",
    );
    let mut sent = begin();
    go_on(&mut sent, 10, 21);
    let until = sent.len();
    for _ in 0..10 {
        go_on(&mut sent, 60, 1);
        go_on(&mut sent, 10, 1);
        go_on(&mut sent, 60, 2);
        go_on(&mut sent, 10, 1);
    }
    send(&hub, "flaps", &sent);
    let mut theirs = sent[..until].to_vec();
    go_on(&mut theirs, 60, 9);
    send(&hub, "theirs", &theirs);
    // The last series to change is done: the other two would have changed before it.
    let mut changes = begin();
    go_on(&mut changes, 10, 9);
    go_on(&mut changes, 60, 3);
    send(&hub, "changes", &changes);
    has_step(&hub, "changes", 60);
    assert_eq!(step(&hub, &name("flaps")), Some(10));
    assert_eq!(step(&hub, &name("theirs")), Some(30));
    let wanted = made_by_rrdtool(&hub.scratch.path(""), "flaps", &[(10, &sent)]);
    assert!(dump(&file(&hub, "flaps")) == dump(&wanted));
}

/// Hundreds of series of ten hosts.
const HOSTS: u64 = 10;
const SERIES: u64 = 20;

fn names() -> Vec<String> {
    let of_host = |host| (0..SERIES).map(move |n| format!("h{host}/p/gauge-{n}.rrd"));
    (0..HOSTS).flat_map(of_host).collect()
}

/// Sends these values for each series.
fn send_all(port: u16, sent: &[Sent]) {
    let socket = sender("127.0.0.1", port);
    let instances: Vec<String> = (0..SERIES).map(|n| n.to_string()).collect();
    for &(stamp, interval, value) in sent {
        for host in 0..HOSTS {
            let packet = gauges(
                &format!("h{host}"),
                &instances,
                stamp,
                interval,
                value as f64,
            );
            socket.send(&packet).expect("sent");
        }
        // Not more than the socket's buffer can hold.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The keeper is killed at any moment while hundreds of series change: earlier rows stay, in the end all have changed.
#[test]
fn killed_while_they_change() {
    let seed = first_seed(u64::from(std::process::id()));
    eprintln!("SEED={seed}");
    let mut random = Random(seed);
    for round in 0..effort(2) {
        let files = ["ask", "1d"][round as usize % 2];
        let config = format!("[store]\nfiles = \"{files}\"\n");
        let hub = Hub::start(&format!("intervals-kill-{round}"), &config);
        let mut sent = begin();
        go_on(&mut sent, 10, 60);
        send_all(hub.port, &sent);
        let (first, end) = (sent[0].0, sent[60].0);
        for name in names() {
            hub.ends_at(&name, end);
        }
        go_on(&mut sent, 60, 3);
        send_all(hub.port, &sent[61..]);
        std::thread::sleep(Duration::from_millis(random.below(400)));
        let keeper = hub.keeper();
        kill("-KILL", keeper);
        hub.served.next_child("keeper", keeper);
        eventually("a step of 60 everywhere", || {
            let count = sent.len();
            go_on(&mut sent, 60, 1);
            send_all(hub.port, &sent[count..]);
            let mut names = names().into_iter();
            names
                .all(|name| step(&hub, &name) == Some(60))
                .then_some(())
        });
        let parts = [(10, &sent[..61]), (60, &sent[61..])];
        let wanted = made_by_rrdtool(&hub.scratch.path(""), "any", &parts);
        let wanted = known(&fetch(&wanted, first + 60, end), first + 60, end);
        assert_eq!(wanted.len(), 9);
        for name in names() {
            let rows = rows(&hub, &name, first + 60, end);
            let same = |((at, one), (other_at, other)): ((&u64, &f64), (&u64, &f64))| {
                at == other_at && (one - other).abs() < 1e-6
            };
            let all_same = rows.len() == 9 && rows.iter().zip(&wanted).all(same);
            assert!(all_same, "{name}: {rows:?}, not {wanted:?}");
        }
        hub.shows_the_page("afterwards");
    }
}
