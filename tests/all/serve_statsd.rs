//! Lines of statsd and Graphite that programs send to `kymo serve`, and the samples stored from them.

use std::fs;
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use kymo_base::label_set::Labels;
use kymo_store::Store;
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};
use kymo_tests::served::{Served, eventually, get, is_alive, kill};
use kymo_tests::{Scratch, free_port, kymo};

/// A `kymo serve` that receives lines on its own ports.
pub(crate) struct LineHub {
    served: Served,
    address: String,
    dir: PathBuf,
    graphite: u16,
    pub(crate) statsd: u16,
    /// Removed last.
    _scratch: Scratch,
}

impl LineHub {
    pub(crate) fn start(name: &str) -> LineHub {
        let scratch = Scratch::new(name);
        let dir = scratch.path("data");
        let (graphite, statsd) = (free_port(), free_port());
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n\
             graphite = [\"127.0.0.1:{graphite}\"]\nstatsd = [\"127.0.0.1:{statsd}\"]\n\
             [statsd]\ninterval = 1\n"
        );
        let mut served = Served::configured(&scratch, &dir, &config);
        let address = served.address();
        served.has_said(&format!(
            "Graphite's lines on 127.0.0.1:{graphite} (UDP and TCP)"
        ));
        served.has_said(&format!(
            "statsd's lines on 127.0.0.1:{statsd} (UDP and TCP)"
        ));
        LineHub {
            served,
            address,
            dir,
            graphite,
            statsd,
            _scratch: scratch,
        }
    }

    /// Number of lines and samples refused for this reason, according to the log.
    fn refused(&self, why: &str) -> usize {
        let said = self.served.said.iter();
        let news = said.filter_map(|line| Some(line.split_once("not taken: ")?.1));
        let counts = news.flat_map(|news| news.split("; such as: ").next());
        let counts = counts.flat_map(|counts| counts.split("; "));
        let of_it = counts.filter_map(|count| count.strip_suffix(why)?.strip_suffix(" x "));
        of_it.map(|count| count.parse::<usize>().expect(why)).sum()
    }

    /// Counts of a listener, as the page has them.
    fn account(&self, protocol: &str) -> serde_json::Value {
        let hosts = get(&self.address, "/kymo/v1/hosts", "");
        let lines = hosts["lines"].as_array().expect("listeners").iter();
        let mut of_it = lines.filter(|account| account["protocol"] == protocol);
        of_it.next().expect(protocol).clone()
    }

    /// Ends the service, and opens its store.
    pub(crate) fn stored(&mut self) -> Stored {
        let keeper = self.served.child("keeper").expect("a keeper");
        kill("-TERM", self.served.pid());
        eventually(|| (!is_alive(keeper)).then_some(())).expect("the keeper ends");
        self.served.listen(std::time::Duration::from_millis(500));
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let clock: Arc<dyn Clock> = Arc::new(RealClock);
        let (folder, base) = (self.dir.join("store"), self.dir.join("rrd"));
        Stored(Store::open_to_look(&folder, &base, &disk, &clock).expect("a store"))
    }
}

/// The store of a `kymo serve` that has ended.
pub(crate) struct Stored(Store);

impl Stored {
    /// Milliseconds and values of the series with these labels, sorted by name. `None`: there is no such series.
    fn samples(&self, labels: &str) -> Option<Vec<(i64, f64)>> {
        let labels = Labels::parse(labels.as_bytes()).expect(labels);
        let series = self.0.find_points(&labels)?;
        let read = self.0.samples(series, (i64::MIN, i64::MAX));
        let points = read.expect("samples").points;
        Some(points.iter().map(|point| (point.t_ms, point.v)).collect())
    }

    /// Values of the series with these labels.
    pub(crate) fn values(&self, labels: &str) -> Vec<f64> {
        let samples = self.samples(labels);
        let samples = samples.unwrap_or_else(|| panic!("no series {labels}"));
        samples.into_iter().map(|(_, value)| value).collect()
    }
}

pub(crate) fn sender(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", port)).expect("a port");
    socket
}

fn stream(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).expect("a connection")
}

#[test]
fn lines_of_graphite_are_samples_at_their_times() {
    let mut hub = LineHub::start("graphite");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let (datagrams, mut connection) = (sender(hub.graphite), stream(hub.graphite));
    let text = format!(
        "web.cpu 1.5 {now}\nweb.cpu 2.5 {}\r\nweb.disk;b=2;a=1 7 {now}.25\nweb.disk;a=1;b=2 8 {}\n\
         nothing\nweb.cpu x {now}\nweb.cpu 9 {}\nweb.cpu 9 1\n../../etc/passwd 3 {now}\n",
        now + 10,
        now + 1,
        now + 100_000,
    );
    datagrams.send(text.as_bytes()).expect("sent");
    // One line in two pieces, one without a time, one too long, one without an end.
    let (one, other) = ("web.mem 4 ".to_string(), format!("{now}\nweb.now 5 -1\n"));
    connection.write_all(one.as_bytes()).expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let long = "x".repeat(70_000);
    let rest = format!("{other}{long}\nweb.mem 6 {}\nweb.mem 7", now + 1);
    connection.write_all(rest.as_bytes()).expect("sent");
    drop(connection);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let stored = hub.stored();
    let ms = i64::try_from(now).expect("a time") * 1000;
    let of = |path: &str, name: &str, tags: &str| {
        stored.samples(&format!(
            "{{__name__=\"{name}\",{tags}job=\"graphite\",path=\"{path}\"}}"
        ))
    };
    let cpu = of("web.cpu", "web_cpu", "");
    assert_eq!(cpu, Some(vec![(ms, 1.5), (ms + 10_000, 2.5)]));
    let disk = of("web.disk", "web_disk", "a=\"1\",b=\"2\",");
    assert_eq!(disk, Some(vec![(ms + 250, 7.0), (ms + 1000, 8.0)]));
    let hostile = of("../../etc/passwd", "______etc_passwd", "");
    assert_eq!(hostile, Some(vec![(ms, 3.0)]));
    let memory = of("web.mem", "web_mem", "");
    assert_eq!(memory, Some(vec![(ms, 4.0), (ms + 1000, 6.0)]));
    let (came_ms, value) = of("web.now", "web_now", "").expect("a series")[0];
    assert!((ms..ms + 60_000).contains(&came_ms), "{came_ms}");
    assert_eq!(value, 5.0);
    for why in [
        "not a path, a value and a timestamp",
        "a value that is not a decimal number",
        "a sample of more than 5 minutes ahead",
        "a sample that is older than samples are kept",
        "a line of more than 16384 bytes",
        "a line without an end in a stream",
    ] {
        assert_eq!(hub.refused(why), 1, "{why}");
    }
    let names = fs::read_dir(hub.dir.join("rrd")).expect("a folder");
    let names = names.map(|name| name.expect("a name").file_name());
    let made: Vec<_> = names.filter(|name| name != ".kymo-owner").collect();
    assert!(made.is_empty(), "{made:?}");
}

/// A range of samples is removed while lines arrive, and later lines go to the same series.
#[test]
fn a_range_of_samples_is_removed_while_lines_come() {
    let mut hub = LineHub::start("graphite-erase");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs() - 1000;
    let send = |from: u64, to: u64| {
        let mut connection = stream(hub.graphite);
        for at in from..to {
            let line = format!("web.cpu {at} {}\n", now + at);
            connection.write_all(line.as_bytes()).expect("sent");
        }
        drop(connection);
        std::thread::sleep(std::time::Duration::from_millis(500));
    };
    send(0, 30);
    let (data, from) = (hub.dir.to_string_lossy(), (now + 10).to_string());
    let output = Command::new(kymo())
        .args(["series", "rm", "path=web.cpu", "--yes", "--data", &data])
        .args(["--from", &from, "--thru", &(now + 19).to_string()])
        .output()
        .expect("kymo runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("removed the values of 1 series"), "{said}");
    send(30, 40);
    let labels = "{__name__=\"web_cpu\",job=\"graphite\",path=\"web.cpu\"}";
    let expected: Vec<f64> = (0..10).chain(20..40).map(f64::from).collect();
    assert_eq!(hub.stored().values(labels), expected);
}

#[test]
fn a_flood_of_paths_begins_10_000_series_and_no_more() {
    let mut hub = LineHub::start("graphite-flood");
    let mut connection = stream(hub.graphite);
    let text: String = (0..20_000).map(|n| format!("flood.{n} 1 -1\n")).collect();
    connection.write_all(text.as_bytes()).expect("sent");
    connection.write_all(b"flood.0 2 -1\n").expect("sent");
    drop(connection);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let stored = hub.stored();
    let is_there = |n: &u32| {
        let path = format!("flood.{n}");
        let name = format!("flood_{n}");
        let labels = format!("{{__name__=\"{name}\",job=\"graphite\",path=\"{path}\"}}");
        stored.samples(&labels).is_some()
    };
    let count = (0..20_000).filter(is_there).count();
    assert!((10_000..11_000).contains(&count), "{count}");
    let first = "{__name__=\"flood_0\",job=\"graphite\",path=\"flood.0\"}";
    assert_eq!(stored.values(first), [1.0, 2.0]);
    let refused = hub.refused("a sample of a new name beyond the limit of new ones");
    assert_eq!(refused, 20_000 - count);
}

#[test]
fn lines_of_statsd_are_added_up() {
    let mut hub = LineHub::start("statsd");
    let (datagrams, mut connection) = (sender(hub.statsd), stream(hub.statsd));
    let text = "hits:1|c\nhits:2|c|@0.5\nhits:1|c|#path:/a\nload:5|g\nload:-2|g\n\
                took:5|ms\ntook:7|h\ntook:100|d\nwho:ann|s\nwho:bob|s\nwho:ann|s\n\
                bad\n:1|c\nhits:x|c\n../../etc/passwd:1|c\n";
    datagrams.send(text.as_bytes()).expect("sent");
    connection.write_all(b"tcp:1|c\ntc").expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    connection
        .write_all(b"p:2|c\r\nhits:10|c\ntail:1|c")
        .expect("sent");
    drop(connection);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let account = hub.account("statsd");
    let expected = serde_json::json!([1, 15, 0]);
    let counts = ["datagrams", "samples", "clients"].map(|name| account[name].clone());
    assert_eq!(serde_json::json!(counts), expected, "{account}");
    let refused = account["refused"].as_array().expect("reasons");
    assert_eq!(refused.len(), 4, "{account}");
    let stored = hub.stored();
    let of = |name: &str, labels: &str| {
        stored.values(&format!("{{__name__=\"{name}\",job=\"statsd\"{labels}}}"))
    };
    let ends = |name: &str, labels: &str, first: f64, last: f64| {
        let values = of(name, labels);
        assert_eq!(values.first(), Some(&first), "{name}{labels}: {values:?}");
        assert_eq!(values.last(), Some(&last), "{name}{labels}: {values:?}");
        assert!(values.len() >= 2 && values.is_sorted(), "{values:?}");
    };
    ends("hits_total", "", 5.0, 15.0);
    ends("hits_total", ",path=\"/a\"", 1.0, 1.0);
    ends("tcp_total", "", 1.0, 3.0);
    ends("load", "", 3.0, 3.0);
    ends("took_count", "", 3.0, 3.0);
    ends("took_sum", "", 112.0, 112.0);
    let bucket = |bound: &str| {
        let labels = format!("{{__name__=\"took_bucket\",job=\"statsd\",le=\"{bound}\"}}");
        stored.values(&labels).last().copied()
    };
    let counts = ["4", "5", "6", "7", "96", "112", "+Inf"].map(bucket);
    let expected = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0].map(Some);
    assert_eq!(counts, expected);
    assert_eq!(of("took_min", ""), [5.0]);
    assert_eq!(of("took_max", ""), [100.0]);
    assert_eq!(of("who", "")[0], 2.0);
    ends("______etc_passwd_total", "", 1.0, 1.0);
    // All series of a flush have the same stamp.
    let stamp = |name: &str| {
        let labels = format!("{{__name__=\"{name}\",job=\"statsd\"}}");
        stored.samples(&labels).expect(name)[0].0
    };
    let stamps = ["hits_total", "load", "took_count", "who"].map(stamp);
    assert!(stamps.iter().all(|one| *one == stamps[0]), "{stamps:?}");
    for why in [
        "a value without a type",
        "no name",
        "a value that is not a decimal number",
        "a line without an end in a stream",
    ] {
        assert_eq!(hub.refused(why), 1, "{why}");
    }
}

#[test]
fn a_flood_of_metrics_begins_10_000_series_and_no_more() {
    let mut hub = LineHub::start("statsd-flood");
    let mut connection = stream(hub.statsd);
    let text: String = (0..20_000).map(|n| format!("flood.{n}:1|c\n")).collect();
    connection.write_all(text.as_bytes()).expect("sent");
    connection.write_all(b"flood.0:2|c\n").expect("sent");
    drop(connection);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let stored = hub.stored();
    let labels = |n: usize| format!("{{__name__=\"flood_{n}_total\",job=\"statsd\"}}");
    let is_there = |n: &usize| stored.samples(&labels(*n)).is_some();
    let count = (0..20_000).filter(is_there).count();
    assert!((10_000..11_000).contains(&count), "{count}");
    assert_eq!(stored.values(&labels(0)).last(), Some(&3.0));
    let refused = hub.refused("a sample of a new name beyond the limit of new ones");
    assert_eq!(refused, 20_000 - count);
}

#[test]
fn lines_from_elsewhere_need_a_word() {
    for key in ["statsd", "graphite"] {
        let scratch = Scratch::new("lines-elsewhere");
        let file = scratch.text("kymo.toml");
        let port = free_port();
        let config = format!("user = \"\"\n[listen]\n{key} = [\"0.0.0.0:{port}\"]\n");
        fs::write(&file, config).expect("a configuration");
        let output = kymo_tests::run(&[
            "serve",
            "--config",
            &file,
            "--data",
            &scratch.text("data"),
            "--listen",
            "127.0.0.1:0",
        ]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let cause = format!("cannot listen on 0.0.0.0:{port}: anybody could send");
        assert!(said.contains(&cause), "{said}");
    }
}

/// Datagrams with as many samples each as fit into 1,400 bytes; the sums tell how many were read.
#[test]
fn no_sample_is_lost_uncounted() {
    const NAMES: usize = 1000;
    let mut hub = LineHub::start("statsd-many");
    let datagrams = sender(hub.statsd);
    let lines: Vec<String> = (0..NAMES).map(|n| format!("many.{n}:1|c\n")).collect();
    // 100 names in each datagram; all names equally often.
    let texts: Vec<String> = lines.chunks(100).map(|lines| lines.concat()).collect();
    for _ in 0..200 {
        for text in &texts {
            datagrams.send(text.as_bytes()).expect("sent");
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(1200));
    // The kernel reports losses with the next datagram.
    datagrams.send(texts[0].as_bytes()).expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let stored = hub.stored();
    let total = |n: usize| {
        let labels = format!("{{__name__=\"many_{n}_total\",job=\"statsd\"}}");
        *stored.values(&labels).last().expect("a total")
    };
    let read: f64 = (0..NAMES).map(total).sum();
    let lost = hub.refused("a datagram that the kernel dropped") * 100;
    assert_eq!(read + lost as f64, 200_100.0, "{lost} lost");
}

/// Many scripts at once send a line and leave while the keeper is busy: there are more of them than places.
#[test]
fn scripts_that_send_a_line_and_leave_are_all_heard() {
    const SCRIPTS: u64 = 200;
    let hub = LineHub::start("line-scripts");
    let keeper = hub.served.child("keeper").expect("a keeper");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let relay = stream(hub.graphite);
    eventually(|| (hub.account("graphite")["clients"] == 1).then_some(())).expect("the relay");
    kill("-STOP", keeper);
    for script in 0..SCRIPTS {
        let line = format!("backup.bytes {script} {}\n", now - script);
        let mut connection = stream(hub.graphite);
        connection.write_all(line.as_bytes()).expect("sent");
        let mut connection = stream(hub.statsd);
        connection.write_all(b"backup.runs:1|c\n").expect("sent");
    }
    kill("-CONT", keeper);
    for protocol in ["graphite", "statsd"] {
        let account = || hub.account(protocol);
        let all = || {
            account()["samples"]
                .as_u64()
                .filter(|count| *count >= SCRIPTS)
        };
        assert_eq!(eventually(all), Some(SCRIPTS), "{}", account());
    }
    assert_eq!(hub.account("graphite")["clients"], 1, "the relay");
    drop(relay);
}

#[test]
fn a_keeper_that_dies_costs_the_sums_and_no_lines_after_it() {
    let mut hub = LineHub::start("statsd-killed");
    let datagrams = sender(hub.statsd);
    datagrams.send(b"hits:1|c").expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let keeper = hub.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    // The guardian holds the sockets, so that these lines wait for the next keeper.
    datagrams.send(b"hits:5|c").expect("sent");
    stream(hub.graphite)
        .write_all(b"late 7 -1\n")
        .expect("sent");
    hub.served.next_child("keeper", keeper);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let stored = hub.stored();
    let hits = stored.values("{__name__=\"hits_total\",job=\"statsd\"}");
    let ends = (hits.first().copied(), hits.last().copied());
    assert_eq!(ends, (Some(1.0), Some(5.0)), "{hits:?}");
    let late = stored.values("{__name__=\"late\",job=\"graphite\",path=\"late\"}");
    assert_eq!(late, [7.0]);
}
