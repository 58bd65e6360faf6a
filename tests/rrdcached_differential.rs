//! Differential test against stock's rrdcached: the same seeded streams of commands to both, one request at a time,
//! pipelined and in BATCH, with and without a journal and a restart; every reply compared byte for byte, and at the
//! end every file. Both serve the same path, one after the other, so nothing has to be translated.
//!
//! `KYMO_STREAMS` sets how many streams a session holds, `SEED` where the seeds begin. A failing session is cut down
//! to the few requests that still differ. Needs Debian's rrdtool and rrdcached.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kymo_tests::Scratch;
use kymo_tests::rrd_client::{Client, Reply, is_binary};
use kymo_tests::rrd_daemon::{BOTH, Daemon, Side};
use kymo_tests::rrd_file;
use kymo_tests::rrd_stream::{self, Item, Random, Stream};
use kymo_tests::rrdtool::Pipe;

/// How requests are put on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    One,
    Pipelined,
    Batch,
}

/// One exchange of a session.
#[derive(Clone, Debug)]
enum Step {
    /// On one of a few connections.
    Ask(usize, Vec<u8>),
    /// Sent as one, in pieces of any length.
    Pipelined(Vec<Vec<u8>>),
    Batch(Vec<Vec<u8>>),
    /// Until nothing is written any more.
    Settle,
    /// The daemon is ended and started again.
    Restart,
}

/// What is sent, on what files, to a daemon with what options.
struct Session {
    scratch: Scratch,
    options: Vec<String>,
    steps: Vec<Step>,
    /// Cuts pieces.
    seed: u64,
}

/// What came of it.
struct Played {
    replies: Vec<(Vec<u8>, Reply)>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

const CONNECTIONS: usize = 3;

fn streams_of_a_session() -> u64 {
    let set = std::env::var("KYMO_STREAMS").ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(40)
}

fn first_seed() -> u64 {
    let set = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = set.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    eprintln!("SEED={seed}");
    seed
}

#[test]
fn one_request_at_a_time() {
    compare_sessions(Mode::One);
}

#[test]
fn pipelined_requests() {
    compare_sessions(Mode::Pipelined);
}

#[test]
fn batches() {
    compare_sessions(Mode::Batch);
}

fn compare_sessions(mode: Mode) {
    let seed = first_seed();
    for journal in [false, true] {
        let streams = make_streams(seed + u64::from(journal), false);
        let session = Session::new(&streams, mode, journal);
        compare(&session);
    }
}

fn make_streams(seed: u64, dirty: bool) -> Vec<Stream> {
    let mut random = Random(seed);
    let make = |index| {
        let commands = 30 + random.below(60) as usize;
        rrd_stream::stream(random.next_u64(), &format!("s{index}"), commands, dirty)
    };
    (0..streams_of_a_session()).map(make).collect()
}

impl Session {
    fn new(streams: &[Stream], mode: Mode, journal: bool) -> Session {
        let scratch = Scratch::new("rrd");
        let template = scratch.path("template");
        fs::create_dir_all(&template).expect("a folder");
        let mut pipe = Pipe::start(&template);
        let mut random = Random(streams[0].seed);
        let mut steps = Vec::new();
        for stream in streams {
            rrd_stream::create_files(stream, &template, &mut pipe);
            put_on_wire(&stream.items, mode, &mut random, &mut steps);
            if journal && random.once_in(8) {
                steps.push(Step::Restart);
            }
        }
        let mut options = words("-B -w 1000000 -f 1000000");
        if journal {
            options.extend(["-j".to_string(), scratch.text("journal")]);
        } else {
            options.push("-F".to_string());
        }
        Session {
            scratch,
            options,
            steps,
            seed: streams[0].seed,
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// How a stream's items are sent.
fn put_on_wire(items: &[Item], mode: Mode, random: &mut Random, steps: &mut Vec<Step>) {
    let mut group = Vec::new();
    for item in items {
        let Item::Line(line) = item else {
            close_group(&mut group, mode, steps);
            steps.push(Step::Settle);
            continue;
        };
        match mode {
            Mode::One => {
                let connection = random.below(CONNECTIONS as u64) as usize;
                steps.push(Step::Ask(connection, line.clone()));
            }
            // Most of what BATCH does not know is asked outside.
            Mode::Batch if !is_for_batch(line) && !random.once_in(10) => {
                close_group(&mut group, mode, steps);
                steps.push(Step::Ask(0, line.clone()));
            }
            _ => group.push(line.clone()),
        }
        let settles = line.eq_ignore_ascii_case(b"FLUSHALL");
        if settles || group.len() >= 40 || random.once_in(12) {
            close_group(&mut group, mode, steps);
        }
    }
    close_group(&mut group, mode, steps);
}

fn close_group(group: &mut Vec<Vec<u8>>, mode: Mode, steps: &mut Vec<Step>) {
    let lines = std::mem::take(group);
    match mode {
        _ if lines.is_empty() => {}
        Mode::Batch => steps.push(Step::Batch(lines)),
        _ => steps.push(Step::Pipelined(lines)),
    }
}

fn is_for_batch(line: &[u8]) -> bool {
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    let word = word.to_ascii_uppercase();
    let known: [&[u8]; 6] = [
        b"UPDATE", b"FLUSH", b"FORGET", b"CREATE", b"SUSPEND", b"RESUME",
    ];
    known.contains(&word.as_slice())
}

/// Plays the steps to a fresh daemon on a fresh copy of the files.
fn play(side: Side, session: &Session, steps: &[Step]) -> Played {
    let (base, journal) = (
        session.scratch.path("base"),
        session.scratch.path("journal"),
    );
    for folder in [&base, &journal] {
        let _ = fs::remove_dir_all(folder);
    }
    fs::create_dir_all(&journal).expect("a folder");
    let mut copy = Command::new("cp");
    let copied = copy
        .arg("-a")
        .arg(session.scratch.path("template"))
        .arg(&base)
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "cp");
    let options: Vec<&str> = session.options.iter().map(String::as_str).collect();
    let start = || Daemon::start(side, &session.scratch.path(""), &base, &options);
    let mut wire = Wire::to(start(), session.seed);
    for step in steps {
        if matches!(step, Step::Restart) {
            wire.daemon.stop("-TERM");
            let replies = std::mem::take(&mut wire.replies);
            wire = Wire::to(start(), session.seed);
            wire.replies = replies;
        } else {
            wire.play(step);
        }
    }
    wire.settle();
    for step in [b"FLUSHALL".as_slice(), b"QUEUE"] {
        wire.play(&Step::Ask(0, step.to_vec()));
        wire.settle();
    }
    drop(wire.clients);
    wire.daemon.stop("-TERM");
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a file of the base");
        (path, bytes)
    };
    let files = rrd_file::files_below(&base).into_iter().map(read).collect();
    let replies = wire.replies;
    Played { replies, files }
}

/// The connections to one daemon, and what was said.
struct Wire {
    daemon: Daemon,
    clients: Vec<Client>,
    replies: Vec<(Vec<u8>, Reply)>,
    random: Random,
}

impl Wire {
    fn to(daemon: Daemon, seed: u64) -> Wire {
        let clients = (0..CONNECTIONS).map(|_| daemon.connect()).collect();
        Wire {
            daemon,
            clients,
            replies: Vec::new(),
            random: Random(seed),
        }
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Ask(connection, line) => {
                let reply = self.clients[*connection].ask(line);
                let _ = self.heard(*connection, line, reply);
            }
            Step::Pipelined(lines) => {
                let all: Vec<u8> = lines
                    .iter()
                    .flat_map(|line| [line, &b"\n"[..]].concat())
                    .collect();
                self.send_in_pieces(&all);
                for line in lines {
                    let reply = self.clients[0].reply(is_binary(line));
                    if !self.heard(0, line, reply) {
                        return;
                    }
                }
            }
            Step::Batch(lines) => {
                let label = lines.join(&b'\n');
                let all = [b"BATCH\n", label.as_slice(), b"\n.\n"].concat();
                self.send_in_pieces(&all);
                let reply = self.clients[0].reply(false);
                if !self.heard(0, b"BATCH", reply) {
                    return;
                }
                let reply = self.clients[0].reply(false);
                let _ = self.heard(0, &label, reply);
            }
            Step::Settle => self.settle(),
            Step::Restart => unreachable!("BUG: a restart is for who holds the daemon"),
        }
    }

    fn send_in_pieces(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = match self.random.below(4) {
                0 => 1 + self.random.below(20) as usize,
                _ => rest.len(),
            };
            let (piece, after) = rest.split_at(len.min(rest.len()));
            if self.clients[0].send(piece).is_err() {
                return;
            }
            rest = after;
        }
    }

    /// Notes a reply; whether the connection is still there. Stock closes some, for one after SUSPEND of a file that
    /// it does not know, and does not look at what was sent behind it.
    fn heard(&mut self, connection: usize, line: &[u8], reply: io::Result<Reply>) -> bool {
        let reply = match reply {
            Ok(reply) => reply,
            Err(why) => panic!(
                "no reply to `{}`: {why}: {}",
                String::from_utf8_lossy(line),
                self.daemon.said()
            ),
        };
        let open = matches!(reply, Reply::Bytes(_));
        if !open {
            self.clients[connection] = self.daemon.connect();
        }
        self.replies.push((line.to_vec(), reply));
        open
    }

    /// Until the queue is empty, and what left it is written, too.
    fn settle(&mut self) {
        let client = &mut self.clients[0];
        let mut before = String::new();
        for _ in 0..2000 {
            let now = client.text("STATS");
            if now.contains("QueueLength: 0\n") && now == before {
                return;
            }
            before = now;
            std::thread::sleep(Duration::from_millis(15));
        }
        panic!("the queue does not empty: {before}");
    }
}

/// Both sides' transcripts and files, or the shortest session found in which they differ.
fn compare(session: &Session) {
    let played = BOTH.map(|side| play(side, session, &session.steps));
    let Some(why) = first_difference(&played[0], &played[1]) else {
        eprintln!(
            "{} replies, {} files",
            played[0].replies.len(),
            played[0].files.len()
        );
        return;
    };
    eprintln!(
        "they differ: {why}\ncutting down {} steps ...",
        session.steps.len()
    );
    let steps = cut_down(session);
    let again = BOTH.map(|side| play(side, session, &steps));
    let short = first_difference(&again[0], &again[1]);
    panic!(
        "stock and ours differ: {}\nafter {:#?}",
        short.unwrap_or(format!("{why} (not when played alone)")),
        steps.iter().map(show).collect::<Vec<_>>()
    );
}

fn show(step: &Step) -> String {
    let text = |lines: &[Vec<u8>]| String::from_utf8_lossy(&lines.join(&b'|')).into_owned();
    match step {
        Step::Ask(connection, line) => format!("{connection}: {}", String::from_utf8_lossy(line)),
        Step::Pipelined(lines) => format!("pipelined: {}", text(lines)),
        Step::Batch(lines) => format!("batch: {}", text(lines)),
        other => format!("{other:?}"),
    }
}

fn first_difference(stock: &Played, ours: &Played) -> Option<String> {
    for ((line, theirs), (_, our)) in stock.replies.iter().zip(&ours.replies) {
        let (theirs, our) = (comparable(line, theirs), comparable(line, our));
        if theirs != our {
            return Some(format!(
                "`{}` is answered\n{}\nby stock, and by ours\n{}",
                String::from_utf8_lossy(line),
                theirs.show(),
                our.show()
            ));
        }
    }
    let names = |played: &Played| played.files.keys().cloned().collect::<Vec<PathBuf>>();
    if names(stock) != names(ours) {
        return Some(format!("files {:?} and {:?}", names(stock), names(ours)));
    }
    stock.files.iter().find_map(|(path, theirs)| {
        let turn = |bytes: &[u8]| match is_by_command(path) {
            true => rrd_file::turned(bytes),
            false => bytes.to_vec(),
        };
        let why = rrd_file::difference(&turn(theirs), &turn(&ours.files[path]))?;
        Some(format!("{}: {why}", path.display()))
    })
}

/// Files that a CREATE made are called `c1.rrd`.
fn is_by_command(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('c')
}

/// The part of a reply that must be equal.
fn comparable(line: &[u8], reply: &Reply) -> Reply {
    let Reply::Bytes(bytes) = reply else {
        return reply.clone();
    };
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    let text = || String::from_utf8_lossy(bytes).into_owned();
    let text = match word.to_ascii_uppercase().as_slice() {
        // Numbers of work done: which there are, not how many.
        b"STATS" => text()
            .chars()
            .filter(|letter| !letter.is_ascii_digit())
            .collect(),
        // Stock tells names in the order of the folder.
        b"LIST" => sorted(&text()),
        // CREATE begins at a random row.
        b"INFO" if line.windows(2).any(|pair| pair == b"/c") => without_rows(&text()),
        _ => return reply.clone(),
    };
    Reply::Bytes(text.into_bytes())
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some((_, names)) = lines.split_first_mut() {
        names.sort_unstable();
    }
    lines.join("\n")
}

fn without_rows(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.contains("].cur_row "));
    kept.collect::<Vec<&str>>().join("\n")
}

/// Leaves out steps, then lines, as long as something still differs.
fn cut_down(session: &Session) -> Vec<Step> {
    let mut steps = session.steps.clone();
    let mut tries = 0;
    let mut chunk = steps.len() / 2;
    while chunk > 0 && tries < 120 {
        let mut at = 0;
        while at < steps.len() && tries < 120 {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + chunk).min(steps.len()));
            tries += 1;
            if differs(session, &fewer) {
                steps = fewer;
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    steps
}

fn differs(session: &Session, steps: &[Step]) -> bool {
    let played = BOTH.map(|side| play(side, session, steps));
    first_difference(&played[0], &played[1]).is_some()
}
