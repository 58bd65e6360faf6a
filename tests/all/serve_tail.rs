//! A tail of a running `kymo serve`: what senders of all kinds sent comes in its order, through kills of the keeper; and the
//! command that shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use kymo_base::label_set::Labels;
use kymo_keeper_client::{Tail, TailSink};
use kymo_store::Store;
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};
use kymo_tests::collectd_packet::users;
use kymo_tests::keeper_client::ask_at;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, eventually, get, is_alive, kill};
use kymo_tests::{Scratch, free_port, kymo};
use kymo_wire::keeper::{
    Answer, DefinedSeries, KeeperRequest, MissedPart, NumberedSample, TailAfter, TailPlace,
};

/// Values by the labels of their column, in the order in which they came.
#[derive(Default)]
struct Heard {
    columns: BTreeMap<u32, Vec<String>>,
    values: BTreeMap<String, Vec<(i64, f64)>>,
    missed: u64,
}

impl TailSink for Heard {
    fn restarted(&mut self) {
        self.columns.clear();
    }

    fn defined(&mut self, series: DefinedSeries) {
        let labels = series.columns.iter().map(|column| {
            let labels = column.labels.as_ref().expect("labels");
            String::from_utf8_lossy(labels.text()).into_owned()
        });
        self.columns.insert(series.series, labels.collect());
    }

    fn gone(&mut self, series: u32) {
        self.columns.remove(&series).expect("a series");
    }

    fn missed(&mut self, _missed: MissedPart) {
        self.missed += 1;
    }

    fn samples(&mut self, samples: &[NumberedSample]) {
        for sample in samples {
            let columns = self.columns.get(&sample.series).expect("a definition");
            let labels = columns[usize::from(sample.column)].clone();
            self.values
                .entry(labels)
                .or_default()
                .push((sample.t_ms, sample.v));
        }
    }
}

/// Follows a keeper until it is told to end.
struct Following {
    heard: Arc<Mutex<Heard>>,
    ends: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Following {
    fn begin(socket: &Path, name: &str) -> Following {
        let (heard, ends) = (Arc::<Mutex<Heard>>::default(), Arc::<AtomicBool>::default());
        let (mine, until) = (heard.clone(), ends.clone());
        let mut tail = Tail::open(socket.into(), Some(name), TailPlace::Oldest);
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let mut piece = Piece(Vec::new());
                // A keeper that has ended is asked again.
                if tail.next(Duration::from_millis(300), &mut piece).is_err() {
                    thread::sleep(Duration::from_millis(20));
                }
                let mut heard = mine.lock().expect("a lock");
                piece.0.into_iter().for_each(|event| event(&mut heard));
            }
        });
        Following {
            heard,
            ends,
            thread: Some(thread),
        }
    }

    fn values(&self, labels: &str) -> Vec<(i64, f64)> {
        let heard = self.heard.lock().expect("a lock");
        assert_eq!(heard.missed, 0);
        heard.values.get(labels).cloned().unwrap_or_default()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a thread");
        thread.join().expect("it ends");
    }
}

type Event = Box<dyn FnOnce(&mut Heard)>;

/// Events of one call of `Tail::next`, in order.
struct Piece(Vec<Event>);

impl TailSink for Piece {
    fn restarted(&mut self) {
        self.0.push(Box::new(|heard| heard.restarted()));
    }

    fn defined(&mut self, series: DefinedSeries) {
        self.0.push(Box::new(|heard| heard.defined(series)));
    }

    fn gone(&mut self, series: u32) {
        self.0.push(Box::new(move |heard| heard.gone(series)));
    }

    fn missed(&mut self, missed: MissedPart) {
        self.0.push(Box::new(move |heard| heard.missed(missed)));
    }

    fn samples(&mut self, samples: &[NumberedSample]) {
        let samples = samples.to_vec();
        self.0.push(Box::new(move |heard| heard.samples(&samples)));
    }
}

/// A `kymo serve` with listeners of several kinds.
struct Hub {
    served: Served,
    dir: PathBuf,
    address: String,
    collectd: UdpSocket,
    statsd: UdpSocket,
    _scratch: Scratch,
}

impl Hub {
    fn start(name: &str) -> Hub {
        let scratch = Scratch::new(name);
        let dir = scratch.path("data");
        let (collectd, statsd) = (free_port(), free_port());
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{collectd}\"]\n\
             statsd = [\"127.0.0.1:{statsd}\"]\n[statsd]\ninterval = 1\n"
        );
        let mut served = Served::configured(&scratch, &dir, &config);
        let address = served.address();
        let sender = |port: u16| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.connect(("127.0.0.1", port)).expect("a port");
            socket
        };
        Hub {
            served,
            dir,
            address,
            collectd: sender(collectd),
            statsd: sender(statsd),
            _scratch: scratch,
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("keeper.sock")
    }

    fn client(&self) -> Client {
        eventually(|| Client::unix(&self.dir.join("rrdcached.sock")).ok()).expect("a client")
    }
}

const PATH: &str = r#"{__name__="rrd",ds="load",path="web1/load/load"}"#;
const COUNTER: &str = r#"{__name__="deploys_total",job="statsd"}"#;
const USERS: &str = r#"{__name__="rrd",ds="value",path="h1/users/users"}"#;

/// Sends values of all kinds; for each of rrdcached's that was acknowledged its second.
fn send(hub: &Hub, stamps: std::ops::Range<u64>, now_s: u64) -> Vec<u64> {
    let (mut client, mut acknowledged) = (hub.client(), Vec::new());
    for stamp in stamps {
        let update = format!("UPDATE web1/load/load.rrd {stamp}:{stamp}");
        let Ok(reply) = client.ask(update.as_bytes()) else {
            break;
        };
        if reply.show().starts_with("0 errors") {
            acknowledged.push(stamp);
        }
        // The keeper may be away: losses of these values do not count.
        let _refused = hub.statsd.send(b"deploys:1|c\n");
        let _refused = hub
            .collectd
            .send(&users("h1", now_s + stamp % 1000, stamp as f64));
        thread::sleep(Duration::from_millis(2));
    }
    acknowledged
}

#[test]
fn a_tail_gets_all_values_through_kills_of_the_keeper() {
    let hub = Hub::start("tail-kills");
    let start = 1_000_000_000;
    let create = format!(
        "CREATE web1/load/load.rrd -b {} -s 1 DS:load:GAUGE:20:U:U RRA:AVERAGE:0.5:1:2000",
        start - 10
    );
    assert!(hub.client().text(&create).starts_with('0'));
    let following = Following::begin(&hub.socket(), "follower");
    let now_s = u64::try_from(RealClock.now().real_ns / 1_000_000_000).expect("a time") - 2000;
    let (mut acknowledged, mut stamp) = (Vec::new(), start);
    for round in 0..3 {
        acknowledged.extend(send(&hub, stamp..stamp + 300, now_s));
        stamp += 300;
        if round < 2 {
            let keeper = hub.served.child("keeper").expect("a keeper");
            kill("-KILL", keeper);
            hub.served.next_child("keeper", keeper);
        }
    }
    assert!(acknowledged.len() > 600, "{}", acknowledged.len());
    let has_all = || {
        let values = following.values(PATH);
        let seconds: BTreeSet<i64> = values.iter().map(|(t_ms, _)| t_ms / 1000).collect();
        acknowledged
            .iter()
            .all(|&second| seconds.contains(&second.cast_signed()))
            .then_some(values)
    };
    let values = eventually(has_all).expect("all values that were acknowledged");
    let mut seen = BTreeSet::new();
    let first: Vec<_> = values
        .iter()
        .filter(|(t_ms, _)| seen.insert(*t_ms))
        .collect();
    assert!(
        first.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "each in its order"
    );
    assert!(first.iter().all(|(t_ms, v)| *t_ms as f64 == v * 1000.0));
    eventually(|| (!following.values(COUNTER).is_empty()).then_some(())).expect("statsd's");
    eventually(|| (!following.values(USERS).is_empty()).then_some(())).expect("collectd's");

    // `/kymo/v1/status` and `kymo status` show the tail.
    let status = eventually(|| {
        let status = get(&hub.address, "/kymo/v1/status", "");
        status["tails"][0]["name"].is_string().then_some(status)
    });
    let status = status.expect("tails");
    assert_eq!(
        (&status["tails"][0]["name"], &status["tails"][0]["missed"]),
        (&"follower".into(), &0.into())
    );
    let shown = Command::new(kymo())
        .arg("status")
        .arg(&hub.dir)
        .output()
        .expect("kymo runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("tail follower: position "), "{shown}");

    // Delivered samples were on the disk before.
    let keeper = hub.served.child("keeper").expect("a keeper");
    let counted = following.values(COUNTER);
    drop(following);
    kill("-TERM", hub.served.pid());
    eventually(|| (!is_alive(keeper)).then_some(())).expect("the keeper ends");
    let stored = stored_samples(&hub.dir, COUNTER);
    assert!(counted.iter().all(|sample| stored.contains(sample)));
}

/// Samples of a series in the store of a `kymo serve` that has ended.
fn stored_samples(dir: &Path, labels: &str) -> Vec<(i64, f64)> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let clock: Arc<dyn Clock> = Arc::new(RealClock);
    let (folder, base) = (dir.join("store"), dir.join("rrd"));
    let store = Store::open_to_look(&folder, &base, &disk, &clock).expect("a store");
    let labels = Labels::parse(labels.as_bytes()).expect("labels");
    let series = store.find_points(&labels).expect("a series");
    let read = store
        .samples(series, (i64::MIN, i64::MAX))
        .expect("samples");
    read.points
        .iter()
        .map(|point| (point.t_ms, point.v))
        .collect()
}

/// A tail that is away gets what came meanwhile; one that ends is kept nothing for.
#[test]
fn a_tail_goes_on_where_it_was() {
    let hub = Hub::start("tail-away");
    let create =
        "CREATE web1/load/load.rrd -b 999999990 -s 1 DS:load:GAUGE:20:U:U RRA:AVERAGE:0.5:1:2000";
    assert!(hub.client().text(create).starts_with('0'));
    let (mut tail, mut heard) = (
        Tail::open(hub.socket(), Some("away"), TailPlace::Now),
        Heard::default(),
    );
    tail.next(Duration::ZERO, &mut heard).expect("an answer");
    let sent = send(&hub, 1_000_000_000..1_000_000_050, 1_000_000_000);
    let mut follow = |tail: &mut Tail, until: u64| {
        let done = eventually(|| {
            tail.next(Duration::from_millis(200), &mut heard)
                .expect("an answer");
            let values = heard.values.get(PATH)?;
            (values.last()?.0 == until.cast_signed() * 1000).then_some(())
        });
        done.expect("all of them");
        std::mem::take(&mut heard.values)
            .remove(PATH)
            .unwrap_or_default()
            .len()
    };
    assert_eq!(follow(&mut tail, sent[49]), 50);
    tail.acknowledge(&mut Heard::default())
        .expect("acknowledged");
    drop(tail);
    let sent = send(&hub, 1_000_000_050..1_000_000_080, 1_000_000_000);
    let mut again = Tail::open(hub.socket(), Some("away"), TailPlace::Now);
    assert_eq!(follow(&mut again, sent[29]), 30);
    let refused = |question| match ask_at(&hub.socket(), &question) {
        Answer::Refused(why) => why,
        other => panic!("{other:?}"),
    };
    let beyond = KeeperRequest::Tail(TailAfter {
        name: "away".into(),
        from: TailPlace::Position(1 << 60),
        bytes_max: 1000,
        wait_ms: 0,
    });
    let why = refused(beyond);
    assert!(
        why.starts_with("cannot tail away: position 1152921504606846976 is behind"),
        "{why}"
    );
    let end = KeeperRequest::EndTail("away".into());
    assert_eq!(ask_at(&hub.socket(), &end), Answer::Done);
    assert!(refused(end).ends_with("no such tail is registered"));
    assert_eq!(
        ask_at(&hub.socket(), &KeeperRequest::Tails),
        Answer::Tails(Vec::new())
    );
}

#[test]
fn the_command_prints_values_as_they_come() {
    let hub = Hub::start("tail-command");
    let create =
        "CREATE web1/load/load.rrd -b 999999990 -s 1 DS:load:GAUGE:20:U:U RRA:AVERAGE:0.5:1:2000";
    assert!(hub.client().text(create).starts_with('0'));
    let tail = |words: &[&str]| {
        let mut command = Command::new(kymo());
        let command = command
            .args(["series", "tail", "--data"])
            .arg(&hub.dir)
            .args(words);
        command
            .env("TZ", "UTC")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("kymo runs")
    };
    send(&hub, 1_000_000_000..1_000_000_005, 1_000_000_000);
    let mut child = tail(&["--from", "oldest", "rrd{path=\"web1/load/load\"}"]);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for second in 1_000_000_000..1_000_000_005 {
        let line = lines.next().expect("a line").expect("a text");
        assert!(
            line.starts_with("rrd{ds=\"load\",path=\"web1/load/load\"} 2001-09-09T"),
            "{line}"
        );
        assert!(line.ends_with(&format!("+00:00 {second}")), "{line}");
    }
    send(&hub, 1_000_000_005..1_000_000_006, 1_000_000_000);
    let line = lines.next().expect("a line").expect("a text");
    assert!(line.ends_with(" 1000000005"), "{line}");
    kill("-INT", child.id());
    let ended = child.wait_with_output().expect("it ends");
    assert!(
        ended.stderr.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&ended.stderr)
    );
    // A reader who goes.
    let mut child = tail(&["--from", "oldest"]);
    drop(child.stdout.take());
    send(&hub, 1_000_000_006..1_000_000_008, 1_000_000_000);
    let ended = child.wait_with_output().expect("it ends");
    assert!(
        ended.stderr.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&ended.stderr)
    );
}
