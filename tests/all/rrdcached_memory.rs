//! No client can make the daemon's memory exceed its bound: all requests that
//! once did are sent at the same time, under a limit of the kernel, while an
//! ordinary client goes on. Each of these alone once used between 1.9 and 6.3 GB.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kymo_rrd::create::{Create, define};
use kymo_tests::Scratch;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrd_daemon::{BOTH, Daemon, Side};

/// Bound of the daemon's memory.
const BOUND: u64 = 512 << 20;
/// The kernel's limit (`RLIMIT_DATA`). Whole stacks count: 2 MiB for each of eighty threads.
const ASKED_MAX_KIB: u64 = (BOUND >> 10) + 80 * 2048;
/// Longest wait for any event.
const PATIENCE: Duration = Duration::from_secs(300);
const BIRTH: i64 = 1_000_000_000;

fn start(scratch: &Scratch, options: &[&str]) -> Daemon {
    let base = scratch.path("db");
    fs::create_dir_all(&base).expect("a folder");
    let mut command = Command::new("bash");
    command
        .arg("-c")
        .arg(format!("ulimit -d {ASKED_MAX_KIB}; exec \"$0\" \"$@\""))
        .arg(Side::Ours.program(&scratch.path("")))
        .args(["-g", "-B", "-b"])
        .arg(&base)
        .args(options);
    Daemon::spawn(command, &scratch.path(""))
}

/// A number of /proc/PID/status, in bytes.
fn status(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    number
        .and_then(|text| text.parse::<u64>().ok())
        .expect("a number")
        << 10
}

/// Makes a file of 16 GiB, nearly all of it a hole.
fn make_sparse(path: &Path) {
    let definitions: [&[u8]; 2] = [b"DS:x:GAUGE:60:U:U", b"RRA:AVERAGE:0.5:1:5"];
    let request = Create {
        file_name: b"sparse",
        step: 1,
        start: Some(BIRTH),
        definitions: &definitions,
    };
    let (mut header, _) = define(&request, BIRTH, &mut 1, None, false).expect("a header");
    header.rra[0].row_cnt = (1 << 31) - 8;
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    fs::write(path, bytes).expect("a file");
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.set_len(header.file_size_bytes()).expect("a hole");
}

/// Sends a request on its own connection; returns the first line of the answer.
fn ask(daemon: &Daemon, line: &str) -> String {
    let mut stream = UnixStream::connect(daemon.socket()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.write_all(line.as_bytes()).expect("sent");
    stream.write_all(b"\n").expect("sent");
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).is_ok() && byte != *b"\n" {
        answer.push(byte[0]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends bytes until all are taken, the daemon closes the connection, or it reads nothing for a while.
fn push(stream: &mut UnixStream, mut bytes: &[u8]) {
    let limit = Some(Duration::from_secs(2));
    stream.set_write_timeout(limit).expect("a limit");
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Clients that send a request and read no answer; they stay connected until drop.
fn deaf(daemon: &Daemon, count: usize, line: &str) -> Vec<UnixStream> {
    let connect = |_| {
        let mut stream = UnixStream::connect(daemon.socket()).expect("connected");
        push(&mut stream, line.as_bytes());
        stream
    };
    (0..count).map(connect).collect()
}

/// Clients that send a line without an end.
fn endless(daemon: &Daemon, count: usize) -> Vec<UnixStream> {
    let line = vec![b'x'; 960 << 10];
    let connect = |_| {
        let mut stream = UnixStream::connect(daemon.socket()).expect("connected");
        push(&mut stream, &line);
        stream
    };
    (0..count).map(connect).collect()
}

/// A client that sends values and reads them back until `end`; counts its rounds.
fn ordinary(daemon: &Daemon, end: &AtomicBool, rounds: &AtomicU64) {
    let mut client = daemon.connect();
    let mut round = 0;
    while !end.load(Ordering::Relaxed) {
        round += 1;
        let stamp = BIRTH + round;
        let update = client.text(&format!("UPDATE ordinary.rrd {stamp}:{round}"));
        assert_eq!(update, "0 errors, enqueued 1 value(s).");
        let fetched = client.text(&format!("FETCH ordinary.rrd LAST {} {stamp}", stamp - 1));
        let row = format!("\n{stamp}: {:.17e}", round as f64);
        // Rust writes an exponent without its sign and zeros.
        let row = row.split('e').next().expect("a row");
        assert!(fetched.contains(row), "{row}: {fetched}");
        assert_eq!(client.text("PING"), "0 PONG");
        rounds.store(round as u64, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The daemon's largest `RssAnon` until `end`, in bytes.
fn watch(pid: u32, end: &AtomicBool) -> u64 {
    let mut most = 0;
    while !end.load(Ordering::Relaxed) {
        most = most.max(status(pid, "RssAnon"));
        std::thread::sleep(Duration::from_millis(10));
    }
    most
}

/// Sends all requests that are large or whose answers are not read, at the same time.
fn attack(daemon: &Daemon) {
    let blank = |name: &str, rows: u32| {
        ask(
            daemon,
            &format!("CREATE {name} -s 1 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:{rows}"),
        )
    };
    std::thread::scope(|scope| {
        for at in 0..3 {
            scope.spawn(move || {
                let made = blank(&format!("large{at}.rrd"), 1 << 23);
                assert_eq!(made, "0 RRD created OK");
            });
        }
        for at in 0..3 {
            scope.spawn(move || {
                let long = "RRA:HWPREDICT:4000000:0.1:0.0035:65535";
                let made = ask(
                    daemon,
                    &format!("CREATE hw{at}.rrd DS:x:GAUGE:60:U:U {long}"),
                );
                assert_eq!(made, "0 RRD created OK");
                let sources = "DS:x:GAUGE:60:U:U DS:y:GAUGE:60:U:U";
                let said = ask(daemon, &format!("CREATE refused.rrd {sources} {long}"));
                assert!(said.ends_with("and 1310720 are the most"), "{said}");
                let said = ask(daemon, "TUNE sparse.rrd 4 tune sparse.rrd -h x:7");
                assert!(
                    said.contains("cells, and 8388608 are the most here"),
                    "{said}"
                );
                let said = ask(
                    daemon,
                    "CREATE n.rrd -r sparse.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:9",
                );
                assert!(said.ends_with("have more than 8388608 cells"), "{said}");
            });
        }
        let held = [
            scope.spawn(|| deaf(daemon, 8, "DUMP sparse.rrd\n")),
            scope.spawn(|| deaf(daemon, 4, "FETCH sparse.rrd AVERAGE 900000000 1000000000\n")),
            scope.spawn(|| deaf(daemon, 100, "FETCH wide.rrd AVERAGE 999800000 1000000000\n")),
            scope.spawn(|| {
                deaf(
                    daemon,
                    20,
                    "FETCHBIN wide.rrd AVERAGE 999800000 1000000000\n",
                )
            }),
            scope.spawn(|| {
                deaf(
                    daemon,
                    300,
                    &"FETCH narrow.rrd AVERAGE 999970000 1000000000\n".repeat(9),
                )
            }),
            scope.spawn(|| deaf(daemon, 200, &"LIST RECURSIVE /\nHELP\n".repeat(2000))),
            scope.spawn(|| endless(daemon, 400)),
        ];
        let held = held.map(|held| held.join().expect("no panic"));
        assert!(held.iter().all(|held| !held.is_empty()));
    });
}

/// Ends the other threads when a test fails.
struct Ended<'a>(&'a AtomicBool, &'a Daemon);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            eprintln!("the daemon said: {}", self.1.output_text());
        }
    }
}

#[test]
fn memory_has_a_bound_whatever_clients_do() {
    let scratch = Scratch::new("memory");
    let daemon = start(&scratch, &[]);
    make_sparse(&scratch.path("db/sparse.rrd"));
    let sources: Vec<String> = (0..20).map(|at| format!("DS:s{at}:GAUGE:60:U:U")).collect();
    for (name, sources, rows) in [
        ("wide", sources.join(" "), 200_000),
        ("narrow", "DS:x:GAUGE:60:U:U".into(), 30_000),
        ("ordinary", "DS:x:GAUGE:60:U:U".into(), 500),
    ] {
        let create = format!("CREATE {name}.rrd -b {BIRTH} -s 1 {sources} RRA:LAST:0.5:1:{rows}");
        assert_eq!(ask(&daemon, &create), "0 RRD created OK");
    }
    let (end, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let most = std::thread::scope(|scope| {
        let client = scope.spawn(|| ordinary(&daemon, &end, &rounds));
        let watcher = scope.spawn(|| watch(daemon.pid(), &end));
        let _ended = Ended(&end, &daemon);
        attack(&daemon);
        let before = rounds.load(Ordering::Relaxed);
        let begun = Instant::now();
        while rounds.load(Ordering::Relaxed) < before + 20 && !client.is_finished() {
            assert!(
                begun.elapsed() < PATIENCE,
                "an ordinary client waits for ever"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        end.store(true, Ordering::Relaxed);
        client.join().expect("an ordinary client is served");
        watcher.join().expect("it runs")
    });
    let peak = status(daemon.pid(), "VmHWM");
    eprintln!(
        "at most {} MiB, with the program itself {} MiB",
        most >> 20,
        peak >> 20
    );
    assert!(most.max(peak) < BOUND, "{most} and {peak} bytes");
    assert!(
        daemon
            .output_text()
            .contains("connections: clients had more than 96 MiB"),
        "{}",
        daemon.output_text()
    );
    let mut client = daemon.connect();
    assert_eq!(client.text("PING"), "0 PONG");
    daemon.signal("-KILL");
}

#[test]
fn who_takes_no_answers_is_not_waited_for_for_ever() {
    let scratch = Scratch::new("stalled");
    let daemon = start(&scratch, &["-V", "LOG_INFO"]);
    let _deaf = deaf(&daemon, 3, &"HELP\n".repeat(20_000));
    let mut slow = Client::unix(daemon.socket()).expect("connected");
    let line = "closed 3 connections: clients took nothing of their answers for 60 s";
    let begun = Instant::now();
    while !daemon.output_text().contains(line) {
        assert!(begun.elapsed() < PATIENCE, "{}", daemon.output_text());
        // A client that reads its answers stays connected.
        assert_eq!(slow.text("PING"), "0 PONG");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(slow.text("PING"), "0 PONG");
}

/// Answers that kymo sends in pieces are stock's, byte for byte.
#[test]
fn long_answers_are_those_of_stock() {
    let scratch = Scratch::new("long");
    let [stock, ours] = BOTH.map(|side| {
        let own = scratch.path(&format!("{side:?}"));
        fs::create_dir_all(own.join("db")).expect("a folder");
        Daemon::start(side, &own, &own.join("db"), &[])
    });
    let mut clients = [stock.connect(), ours.connect()];
    let mut both = |line: &str| {
        let [stock, ours] = clients.each_mut().map(|client| client.ask(line.as_bytes()));
        let (stock, ours) = (stock.expect("an answer"), ours.expect("an answer"));
        assert!(stock == ours, "{line}: not as stock answers");
        ours
    };
    both(&format!(
        "CREATE a.rrd -b {BIRTH} -s 1 DS:x:GAUGE:600:U:U DS:y:COUNTER:600:U:U DS:z:GAUGE:60:0:9 \
         RRA:LAST:0.5:1:20000 RRA:MAX:0.5:7:9000"
    ));
    for round in 1..=150 {
        let stamp = BIRTH + round * 211;
        both(&format!(
            "UPDATE a.rrd {stamp}:{}.25:{}:{}",
            round % 17,
            round * 999,
            round % 12
        ));
    }
    let end = BIRTH + 150 * 211;
    for (cf, from, to, columns) in [
        ("LAST", BIRTH, end, ""),
        ("LAST", BIRTH - 5000, end + 5000, " z x"),
        ("LAST", end - 19_999, end, " y"),
        ("MAX", BIRTH - 100_000, end + 100_000, ""),
        ("LAST", BIRTH, end, " x x"),
        ("MIN", BIRTH, end, ""),
    ] {
        for verb in ["FETCH", "FETCHBIN"] {
            both(&format!("{verb} a.rrd {cf} {from} {to}{columns}"));
        }
    }
    both("PING");
}
