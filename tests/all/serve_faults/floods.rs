//! Many connections: slow ones, and more than the limit.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::client::{PROMPT, Served, ask, eventually, exchange, files_of, pause, status_of};
use super::doors::{Door, Line, tls_config};
use kymo_tests::Scratch;
use kymo_tests::machine::skipped;

/// The hub's limits of connections and of live streams among them; crates/serve/src/connections.rs.
const CONNECTIONS_MAX: usize = 512;
const STREAMS_MAX: usize = 64;
/// Other files that the hub has open.
const OTHER_FILES: usize = 64;
const SLOW: usize = 600;
const FLOOD: usize = 10_000;

/// Raises and returns the number of files that this test may open.
#[allow(unsafe_code)]
fn raise_files() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls get a pointer to a limit of ours that outlives them.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    limit.rlim_max as usize
}

fn connect(address: &str) -> Option<TcpStream> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

/// True if the other side has closed the connection.
fn is_closed(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 512]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn missed(served: &Served) -> u64 {
    served.json("/kymo/v1/cost")["missed"]
        .as_u64()
        .expect("a number")
}

/// Waits for a sample that is newer than the call.
fn still_records(served: &Served) {
    let now = served.json("/kymo/v1/status")["now"]
        .as_f64()
        .expect("a time");
    eventually("a new sample", || {
        let thru = served.json("/kymo/v1/status")["thru"].as_f64()?;
        (thru > now).then_some(())
    });
}

fn is_bounded(served: &Served, hub: u32, when: &str) {
    let files = files_of(hub);
    assert!(
        files <= CONNECTIONS_MAX + OTHER_FILES,
        "{when}: {files} files"
    );
    let anonymous_kb = status_of(hub, "RssAnon:");
    assert!(anonymous_kb < 40 << 10, "{when}: {anonymous_kb} KiB");
    eprintln!(
        "{when}: {files} files, {anonymous_kb} KiB, {} samples missed",
        missed(served)
    );
}

#[test]
fn slow_and_many_connections_keep_nobody_out() {
    let scratch = Scratch::new("floods");
    let room = raise_files().saturating_sub(200);
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let missed_before = missed(&served);

    // One byte a second on each connection: together they would hold every place.
    let mut slow: Vec<TcpStream> = (0..SLOW).filter_map(|_| connect(&served.address)).collect();
    assert_eq!(slow.len(), SLOW);
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n";
    let mut sent = 0;
    for byte in &request[..5] {
        sent += slow
            .iter_mut()
            .filter(|stream| (&mut &**stream).write(&[*byte]).is_ok())
            .count();
        served.answers_promptly("beside slow ones");
        pause(1000);
    }
    let closed = slow.iter().filter(|stream| is_closed(stream)).count();
    assert!(
        sent > SLOW && closed >= SLOW - CONNECTIONS_MAX,
        "{sent} bytes, {closed} closed"
    );
    is_bounded(&served, hub, "600 slow connections");
    drop(slow);

    let many = FLOOD.min(room);
    let mut held: Vec<TcpStream> = Vec::with_capacity(many);
    for n in 0..many {
        held.extend(connect(&served.address));
        if n % 2000 == 1999 {
            served.answers_promptly("in a flood");
        }
    }
    assert!(
        held.len() > many - many / 100,
        "only {} connections",
        held.len()
    );
    served.answers_promptly("after a flood");
    is_bounded(&served, hub, &format!("{} connections", held.len()));
    let turned_away = held.iter().filter(|stream| is_closed(stream)).count();
    assert!(
        turned_away >= many - many / 100 - CONNECTIONS_MAX,
        "{turned_away} closed"
    );
    still_records(&served);
    // A busy machine misses some samples, but no client can stop the recorder.
    eprintln!(
        "samples missed: {missed_before} before, {} after",
        missed(&served)
    );
    served.is_unharmed(hub);
}

/// A client that requests large answers and reads none occupies bounded memory.
#[test]
fn answers_that_nobody_takes_are_bounded() {
    let scratch = Scratch::new("untaken");
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let fields: Vec<String> = (0..150).map(|n| format!("cpu.user:{n}")).collect();
    let target = format!(
        "/kymo/v1/series?points=11000&from=-10000&fields={}",
        fields.join(",")
    );
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let whole = ask(&served.address, "GET", &target, "", "").expect("an answer");
    assert!(
        whole.status == 200 && whole.body.len() > 4 << 20,
        "{}",
        whole.body.len()
    );
    let mut held = Vec::new();
    for _ in 0..24 {
        let mut stream = TcpStream::connect(&served.address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        held.push(stream);
    }
    let begun = |stream: &TcpStream| stream.peek(&mut [0; 64]).is_ok_and(|read| read > 0);
    for stream in &held {
        stream.set_read_timeout(Some(PROMPT * 20)).expect("a limit");
    }
    let answered = held.iter().filter(|stream| begun(stream)).count();
    assert!(answered > 20, "only {answered} answers began");
    let anonymous_kb = status_of(hub, "RssAnon:");
    let held_kb = 24 * whole.body.len() as u64 / 1024;
    assert!(
        anonymous_kb < 160 << 10,
        "{anonymous_kb} KiB for {held_kb} KiB of answers"
    );
    served.answers_promptly("beside those who take nothing");
    served.is_unharmed(hub);
}

/// A live stream is the oldest connection, and is not idle.
#[test]
fn a_flood_ends_no_live_stream() {
    let scratch = Scratch::new("listener");
    let room = raise_files().saturating_sub(200);
    if room < 2 * CONNECTIONS_MAX {
        skipped(&format!("only {room} files may be open"));
        return;
    }
    let served = Served::recording(&scratch.text("data"));
    let mut live = TcpStream::connect(&served.address).expect("a connection");
    let wait = Some(std::time::Duration::from_secs(10));
    live.set_read_timeout(wait).expect("a limit");
    let asked = format!(
        "GET /kymo/v1/live?fields=cpu.user HTTP/1.1\r\nHost: {}\r\n\r\n",
        served.address
    );
    live.write_all(asked.as_bytes()).expect("a question");
    samples(&mut live, 1);
    let flood: Vec<TcpStream> = (0..CONNECTIONS_MAX + 100)
        .filter_map(|_| connect(&served.address))
        .collect();
    served.answers_promptly("a flood beside a listener");
    let closed = flood.iter().filter(|stream| is_closed(stream)).count();
    assert!(closed > 0, "nobody had to make room");
    samples(&mut live, 3);
}

/// Reads until `wanted` samples have arrived.
fn samples(live: &mut TcpStream, wanted: usize) {
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while seen.matches("event: sample").count() < wanted {
        let read = live.read(&mut buffer).expect("the stream goes on");
        assert!(read > 0, "the stream was ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
}

/// The first half of a request that needs no token.
const HALF: &str = "POST /kymo/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
/// Half requests of a flood that stay open: up to the limit, and those whose end the client has
/// not yet seen.
const HALVES: RangeInclusive<usize> = CONNECTIONS_MAX - 20..=CONNECTIONS_MAX + 40;
/// A request with an endless answer; on loopback it needs no token either.
const LIVE: &str = "GET /kymo/v1/live?fields=cpu.user HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Live streams of a flood that stay open: up to the limit, and those whose end the client has
/// not yet seen.
const STREAMS: RangeInclusive<usize> = 1..=STREAMS_MAX + 200;

/// Connections that are constantly renewed: each closed one is replaced.
struct BusyFlood<'a> {
    door: &'a Door,
    address: &'a str,
    request: &'a str,
    stop: AtomicBool,
    /// Open connections.
    held: AtomicUsize,
    /// Connections that the hub closed.
    ended: AtomicUsize,
}

impl BusyFlood<'_> {
    /// Keeps more connections open than the limit, until `stop`.
    fn go_on(&self) {
        let mut lines: Vec<Line> = Vec::new();
        let stops = || self.stop.load(Ordering::Relaxed);
        while !stops() {
            while lines.len() < CONNECTIONS_MAX + 40 && !stops() {
                if let Some(line) = self.door.send(self.address, self.request) {
                    line.socket.set_nonblocking(true).expect("a socket");
                    lines.push(line);
                }
            }
            pause(50);
            let before = lines.len();
            lines.retain(|line| !is_gone(&line.socket));
            self.held.store(lines.len(), Ordering::Relaxed);
            self.ended
                .fetch_add(before - lines.len(), Ordering::Relaxed);
        }
    }
}

/// Stops the flood, also when the test has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// True if the other side has closed the connection, after any bytes before that.
fn is_gone(mut socket: &TcpStream) -> bool {
    loop {
        match socket.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// Each of fifty requests is answered during the flood, and `held` of its connections stay open.
fn locks_nobody_out(served: &Served, door: &Door, request: &str, held: RangeInclusive<usize>) {
    let flood = BusyFlood {
        door,
        address: &served.address,
        request,
        stop: AtomicBool::new(false),
        held: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        let _stop = Stop(&flood.stop);
        scope.spawn(|| flood.go_on());
        let ended = || flood.ended.load(Ordering::Relaxed);
        eventually("a full house", || {
            let is = flood.held.load(Ordering::Relaxed);
            (ended() > 0 && held.contains(&is)).then_some(())
        });
        for n in 0..50 {
            let target = ["/", "/page.js"][n % 2];
            let answer = door.get(&served.address, target);
            let status = answer.map(|answer| answer.status);
            assert_eq!(status, Some(200), "{n}: {target} beside {request:?}");
        }
        let before = ended();
        eventually("more of the flood", || {
            (ended() > before + 40).then_some(())
        });
    });
}

#[test]
fn a_busy_flood_locks_nobody_out() {
    let scratch = Scratch::new("busy");
    if raise_files() < 2 * CONNECTIONS_MAX {
        return skipped("too few files may be open");
    }
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    locks_nobody_out(&served, &Door::Plain, HALF, HALVES);
    is_bounded(&served, hub, "busy connections");
    locks_nobody_out(&served, &Door::Plain, LIVE, STREAMS);
    served.is_unharmed(hub);
}

#[test]
fn a_busy_flood_over_tls_locks_nobody_out() {
    let scratch = Scratch::new("busy-tls");
    if raise_files() < 2 * CONNECTIONS_MAX {
        return skipped("too few files may be open");
    }
    let Some(config) = tls_config(&scratch) else {
        return skipped("openssl is missing");
    };
    let dir = scratch.text("data");
    let served = Served::start(&["--config", &config, "--data", &dir]);
    let door = Door::tls();
    // On a slow machine the hub gives up the first half requests before the last ones arrive.
    locks_nobody_out(&served, &door, HALF, 1..=*HALVES.end());
    locks_nobody_out(&served, &door, LIVE, STREAMS);
}

/// A client that stops in the middle of a body is treated as one that stops in a head: closed
/// without an answer.
#[test]
fn half_a_body_is_not_waited_for() {
    let scratch = Scratch::new("half");
    let served = Served::recording(&scratch.text("data"));
    let (answer, ended) = exchange(&served.address, HALF.as_bytes()).expect("a connection");
    assert!(
        ended && answer.is_empty(),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}
