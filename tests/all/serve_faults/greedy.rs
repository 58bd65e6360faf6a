//! A greedy client slows down only itself: the hub answers others meanwhile. If the test runs as
//! root, the greedy client is another user; otherwise it has no token while the others have it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::client::{Answer, Served, ask, eventually, pause};
use kymo_tests::{Scratch, is_root};

const NOBODY: u32 = 65534;
/// Connections of the greedy client.
const GREEDY: usize = 300;
/// Limit for others: behind a greedy client they once waited for 10 s, and were then refused.
const BEFORE_LONG: Duration = Duration::from_secs(5);

/// A request whose answer has some megabytes and takes some tenths of a second.
fn large() -> String {
    let fields: Vec<String> = (0..150).map(|n| format!("cpu.user:{n}")).collect();
    format!(
        "/kymo/v1/series?points=11000&from=-10000&fields={}",
        fields.join(",")
    )
}

/// Changes the user of this thread, and of no other thread of the process, to that of [`NOBODY`].
#[allow(unsafe_code)]
fn become_nobody() {
    // SAFETY: by system call and not by libc's function, it changes this thread's user and touches no memory.
    let changed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
    assert_eq!(changed, 0, "cannot become nobody");
}

/// Behaviour on each connection of the greedy client.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Sends requests repeatedly.
    AsksOn,
    /// Sends a request and now and then reads a byte.
    TakesSlowly,
}

/// A greedy client, which runs until `stop`.
struct Greedy<'a> {
    address: &'a str,
    manner: Manner,
    stop: AtomicBool,
    /// Connections on which an answer has begun.
    answered: AtomicUsize,
}

impl Greedy<'_> {
    fn run(&self) {
        if is_root() {
            become_nobody();
        }
        while !self.stop.load(Ordering::Relaxed) {
            // The client reconnects after the hub closed a connection.
            if self.take().is_none() {
                pause(20);
            }
        }
    }

    fn take(&self) -> Option<()> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", large());
        stream.write_all(request.as_bytes()).ok()?;
        let mut buffer = vec![0; 1 << 20];
        let mut is_begun = false;
        while !self.stop.load(Ordering::Relaxed) {
            let room = match self.manner {
                Manner::AsksOn => buffer.len(),
                Manner::TakesSlowly => 1,
            };
            match stream.read(&mut buffer[..room]) {
                Ok(0) => return None,
                Ok(read) => {
                    if !std::mem::replace(&mut is_begun, true) {
                        self.answered.fetch_add(1, Ordering::Relaxed);
                    }
                    let is_last = buffer[..read].ends_with(b"]}");
                    if self.manner == Manner::AsksOn && is_last {
                        stream.write_all(request.as_bytes()).ok()?;
                    }
                    if self.manner == Manner::TakesSlowly {
                        pause(1000);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `act` beside a greedy client that has answers on at least `answered` connections.
fn beside(served: &Served, manner: Manner, answered: usize, act: impl FnOnce()) {
    let greedy = Greedy {
        address: &served.address,
        manner,
        stop: AtomicBool::new(false),
        answered: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        let _stop = Stop(&greedy.stop);
        for _ in 0..GREEDY {
            scope.spawn(|| greedy.run());
        }
        eventually("a greedy asker", || {
            (greedy.answered.load(Ordering::Relaxed) >= answered).then_some(())
        });
        act();
    });
}

/// A request with the token, or as root.
fn other(served: &Served, target: &str, token: &str) -> Answer {
    match token {
        "" => served.get(target),
        token => served.get_with(target, token),
    }
}

/// Tokens of the other clients: none for another user, and the token.
fn others(scratch: &Scratch) -> Vec<String> {
    let token = std::fs::read_to_string(scratch.path("data/token")).expect("a token");
    let token = token.trim().to_string();
    match is_root() {
        true => vec![String::new(), token],
        false => vec![token],
    }
}

/// 300 connections of one user with requests for large answers kept others waiting for 10 s; then those were refused.
#[test]
fn an_asker_of_many_large_answers_slows_itself_alone() {
    let scratch = Scratch::new("greedy");
    let served = Served::recording(&scratch.text("data"));
    let others = others(&scratch);
    let mut beside_it = Vec::new();
    let before = times(&served, &others[0]);
    beside(&served, Manner::AsksOn, 2, || {
        beside_it = others.iter().map(|token| times(&served, token)).collect();
    });
    // Other load on the machine slows answers without this client, too.
    let after = times(&served, &others[0]);
    let alone = before[before.len() / 2].max(after[after.len() / 2]);
    let limit = BEFORE_LONG + 50 * alone;
    for took in beside_it {
        let (half, most) = (took[took.len() / 2], took[took.len() * 49 / 50]);
        eprintln!("beside a greedy asker: median {half:?}, p98 {most:?}, limit {limit:?}");
        assert!(most < limit, "{took:?}");
    }
}

/// Durations of 50 answers, sorted.
fn times(served: &Served, token: &str) -> Vec<Duration> {
    let mut took = Vec::new();
    for n in 0..50 {
        let target = [
            "/kymo/v1/status",
            "/kymo/v1/processes?limit=10",
            "/kymo/v1/series?fields=cpu.user&from=-60",
            "/kymo/v1/fields",
            "/kymo/v1/events?from=-3600",
        ][n % 5];
        let answer = other(served, target, token);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        took.push(answer.took);
    }
    took.sort_unstable();
    took
}

/// 205 readers that read almost nothing occupied all room for large answers.
#[test]
fn a_slow_reader_keeps_no_room_from_others() {
    let scratch = Scratch::new("slow-readers");
    let served = Served::recording(&scratch.text("data"));
    let others = others(&scratch);
    beside(&served, Manner::TakesSlowly, 7, || {
        for token in &others {
            for _ in 0..3 {
                let start = Instant::now();
                let answer = other(&served, &large(), token);
                assert_eq!(answer.status, 200, "{}", answer.text());
                assert!(answer.body.ends_with(b"]}"), "it was cut");
                eprintln!("beside slow readers: {:?}", start.elapsed());
            }
        }
    });
}

/// Wrong tokens were neither counted nor slowed down nor logged: 5,300 a second.
#[test]
fn a_guesser_of_tokens_is_slowed_and_logged() {
    let scratch = Scratch::new("guesses");
    let served = Served::recording(&scratch.text("data"));
    let token = others(&scratch).pop().expect("the token");
    let served = &served;
    let guess = |n: usize| {
        let headers = format!("Authorization: Bearer {:032x}\r\n", n);
        let answer = ask(&served.address, "GET", "/kymo/v1/status", &headers, "");
        answer.expect("an answer")
    };
    for n in 0..10 {
        assert_eq!(guess(n).status, 401, "{n}");
    }
    std::thread::scope(|scope| {
        let guesses: Vec<_> = (10..30).map(|n| scope.spawn(move || guess(n))).collect();
        // The right token is accepted at once, even from the address of the guesses.
        let lower = format!("authorization: bearer {token}\r\n");
        let right = ask(&served.address, "GET", "/kymo/v1/status", &lower, "");
        let right = right.expect("an answer");
        assert_eq!(right.status, 200, "{}", right.text());
        assert!(right.took < BEFORE_LONG, "{:?}", right.took);
        let answers: Vec<Answer> = guesses
            .into_iter()
            .map(|guess| guess.join().expect("no panic"))
            .collect();
        assert!(answers.iter().all(|answer| answer.status == 429));
        assert_eq!(answers[0].header("retry-after"), Some("10"));
        let slow = |answer: &&Answer| answer.took > Duration::from_secs(4);
        assert!(answers.iter().filter(slow).count() >= 10, "they are slowed");
    });
    assert!(
        served.output_text().contains("refused wrong tokens of "),
        "{}",
        served.output_text()
    );
    let counted = |scopes: &serde_json::Value| scopes["wrong_tokens"]["count"].as_u64();
    let open = served.json("/kymo/v1/status");
    assert_eq!(counted(&open), Some(30));
    assert!(
        open["wrong_tokens"].get("from").is_none(),
        "users are for who has the token"
    );
    let all = served.get_with("/kymo/v1/status", &token).json();
    let from = all["wrong_tokens"]["from"][0].clone();
    assert_eq!(from["count"], 30, "{all}");
}
