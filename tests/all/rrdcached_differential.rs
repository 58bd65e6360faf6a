//! Differential test against stock's rrdcached: the same seeded streams of commands to both, one request at a time,
//! pipelined and in BATCH, with and without a journal and a restart; every reply is compared byte for byte, and at the
//! end every file. Both serve the same path, one after the other, so no path has to be translated.
//!
//! `SEED` is the first seed. A failing session is reduced
//! to the few requests that still differ. Needs Debian's rrdtool and rrdcached.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::Scratch;
use kymo_tests::rrd_client::{Client, Reply, is_binary};
use kymo_tests::rrd_daemon::{BOTH, Daemon, Side};
use kymo_tests::rrd_file;
use kymo_tests::rrd_stream::{self, Holds, Item, Random, Stream};
use kymo_tests::rrdtool::Pipe;

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    One,
    Pipelined,
    Batch,
}

/// One exchange of a session.
#[derive(Clone, Debug)]
enum Step {
    /// A request on one of a few connections.
    Ask(usize, Vec<u8>),
    /// Requests sent together, in pieces of any length.
    Pipelined(Vec<Vec<u8>>),
    Batch(Vec<Vec<u8>>),
    /// Waits until nothing more is written.
    Settle,
    /// Stops the daemon and starts it again.
    Restart,
}

/// Steps, files for them, and the daemon's options.
struct Session {
    scratch: Scratch,
    options: Vec<String>,
    steps: Vec<Step>,
    /// Seed for the lengths of pieces.
    seed: u64,
}

/// Replies and files after a session.
struct Played {
    replies: Vec<(Vec<u8>, Reply)>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

const CONNECTIONS: usize = 3;

/// An intended difference: the requests, and each side's answer
/// to the last one (its first line; BASE stands for the folder).
struct Meant {
    why: &'static str,
    asked: &'static [&'static str],
    stock: &'static str,
    ours: &'static str,
    /// Prefix of the compared line of the reply.
    line: &'static str,
}

/// In the place of a request: the daemon stops, and starts again with its journal.
const RESTART: &str = "(restart)";

/// All intended differences. Each must occur, with both answers; the streams avoid them. Not listed: locks and kill -9
/// (rrdcached_faults.rs), the order of LIST (compared without), numbers of STATS, and a missing column, whose message stock
/// reads from freed memory (rrdcached_replies.rs).
const MEANT: &[Meant] = &[
    Meant {
        why: "two names of one file are one file, so its last stamp is known by both",
        asked: &["UPDATE a.rrd 1000000010:1", "UPDATE ./a.rrd 1000000010:1"],
        stock: "0 errors, enqueued 1 value(s).",
        ours: "-1 illegal attempt to update using time 1000000010.000000 when last update time is 1000000010.000000 (minimum one second step)",
        line: "",
    },
    Meant {
        why: "a value that cannot be written harms no neighbour",
        asked: &[
            "UPDATE a.rrd 1000000010:1 1000000020:foo 1000000030:3",
            "FLUSH a.rrd",
            "INFO a.rrd",
        ],
        stock: "last_update 1 1000000010",
        ours: "last_update 1 1000000030",
        line: "last_update",
    },
    Meant {
        why: "and it leaves nothing of itself in the file",
        asked: &[
            "UPDATE b.rrd 1000000010:1:1 1000000020:2:foo",
            "FLUSH b.rrd",
            "INFO b.rrd",
        ],
        stock: "ds[x].last_ds 2 2",
        ours: "ds[x].last_ds 2 1",
        line: "ds[x].last_ds",
    },
    Meant {
        why: "what was refused stays refused after a restart, and takes nothing that was accepted with it",
        asked: &[
            "UPDATE a.rrd 1000000010:1 1000000020.5:2",
            "FLUSH a.rrd",
            "UPDATE a.rrd 1000000020.5:3",
            "UPDATE a.rrd 1000000030:4",
            RESTART,
            "FLUSH a.rrd",
            "INFO a.rrd",
        ],
        stock: "last_update 1 1000000020",
        ours: "last_update 1 1000000030",
        line: "last_update",
    },
    Meant {
        why: "a file of 0 bytes stands for a series that has none",
        asked: &["UPDATE empty.rrd 1000:1"],
        stock: "-1 RRD Error: mmaping file 'BASE/empty.rrd': Invalid argument",
        ours: "-1 No such file: BASE/empty.rrd",
        line: "",
    },
    Meant {
        why: "TUNE is of 1.8",
        asked: &["TUNE a.rrd 3 tune -h x:300"],
        stock: "-1 Unknown command: TUNE",
        ours: "0 Success",
        line: "",
    },
    Meant {
        why: "and HELP tells of it and of DUMP",
        asked: &["HELP"],
        stock: "22 Command overview",
        ours: "24 Command overview",
        line: "",
    },
];

#[test]
fn meant_differences_are_as_they_are_meant() {
    let scratch = Scratch::new("meant");
    let template = scratch.path("template");
    fs::create_dir_all(&template).expect("a folder");
    let mut pipe = Pipe::start(&template);
    let tail = "RRA:AVERAGE:0.5:1:20";
    pipe.must(&format!(
        "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U {tail}"
    ));
    pipe.must(&format!(
        "create b.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U DS:y:GAUGE:60:U:U {tail}"
    ));
    fs::write(template.join("empty.rrd"), "").expect("a file");
    let mut wrong = Vec::new();
    for meant in MEANT {
        let session = meant_session(meant);
        copy_folder(&template, &session.scratch.path("template"));
        let base = session.scratch.text("base");
        for (side, want) in [(Side::Stock, meant.stock), (Side::Ours, meant.ours)] {
            let played = play(side, &session, &session.steps);
            let asked = meant.asked.iter().filter(|line| **line != RESTART);
            let (_, reply) = &played.replies[asked.count() - 1];
            let said = reply.show();
            let line = said
                .lines()
                .find(|line| line.starts_with(meant.line))
                .unwrap_or_default();
            let want = want.replace("BASE", &base);
            if !line.starts_with(&want) {
                wrong.push(format!("{side:?}: {}: `{line}`, not `{want}`", meant.why));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn meant_session(meant: &Meant) -> Session {
    let steps = meant.asked.iter().map(|line| match *line {
        RESTART => Step::Restart,
        line => Step::Ask(0, line.as_bytes().to_vec()),
    });
    let scratch = Scratch::new("meant");
    let mut options = words("-B");
    match meant.asked.contains(&RESTART) {
        true => options.extend(["-j".to_string(), scratch.text("journal")]),
        false => options.push("-F".to_string()),
    }
    Session {
        scratch,
        options,
        steps: steps.collect(),
        seed: 1,
    }
}

/// A line that is too long for stock, which closes the connection without a reply.
#[test]
fn a_long_line_is_a_line() {
    let scratch = Scratch::new("long");
    let base = scratch.path("base");
    fs::create_dir_all(&base).expect("a folder");
    let mut pipe = Pipe::start(&base);
    pipe.must("create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20");
    let values = (1..1000).map(|index| format!(" {}:1", 1_000_000_000 + index));
    let line = format!("UPDATE a.rrd{}", values.collect::<String>());
    for side in BOTH {
        let daemon = Daemon::start(side, &scratch.path(""), &base, &["-B", "-F"]);
        let reply = daemon.connect().ask(line.as_bytes());
        match side {
            Side::Stock => assert_eq!(reply.expect("an end"), Reply::Closed(Vec::new())),
            Side::Ours => assert_eq!(
                reply.expect("a reply").show(),
                "0 errors, enqueued 999 value(s)."
            ),
        }
        daemon.stop("-TERM");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp");
}

/// First seed of a session's streams.
fn seed_of_session() -> u64 {
    let seed = first_seed(u64::from(std::process::id()) << 20);
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

/// Stock drops an unwritable value with all that follow it, and leaves a part of it in the file. kymo refuses only that
/// value: stock's own rrdtool, with one value in each call, gives the expected files.
#[test]
fn a_value_that_cannot_be_written_harms_no_neighbour() {
    let seed = seed_of_session();
    for (mode, journal) in [(Mode::One, false), (Mode::Batch, true)] {
        let streams = make_streams(seed + 2 + u64::from(journal), Holds::Unwritable);
        let session = Session::new(&streams, mode, journal);
        let [stock, ours] = BOTH.map(|side| play(side, &session, &session.steps));
        if let Some(why) = different_reply(&stock, &ours) {
            panic!("{why}");
        }
        let files = written_one_by_one(&session, &streams);
        let lost = files
            .iter()
            .filter(|(path, bytes)| stock.files[*path] != **bytes);
        let lost = lost.count();
        assert!(
            lost > files.len() / 4,
            "stock lost something in only {lost} of {} files",
            files.len()
        );
        for (path, bytes) in &files {
            if let Some(why) = rrd_file::difference(bytes, &ours.files[path]) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                panic!(
                    "{}: {why}\nafter {:#?}",
                    path.display(),
                    about(&streams, path, &name)
                );
            }
        }
    }
}

/// The requests about one file.
fn about(streams: &[Stream], path: &Path, name: &str) -> Vec<String> {
    let of = |stream: &&Stream| {
        path.parent()
            .is_some_and(|folder| folder.ends_with(&stream.folder))
    };
    let items = streams.iter().filter(of).flat_map(|stream| &stream.items);
    let lines = items.filter_map(|item| match item {
        Item::Line(line) => Some(String::from_utf8_lossy(line).into_owned()),
        Item::Settle => None,
    });
    lines.filter(|line| line.contains(name)).collect()
}

/// The files after each value of the streams was written by its own `rrdtool update`. A refused update leaves no trace.
fn written_one_by_one(session: &Session, streams: &[Stream]) -> BTreeMap<PathBuf, Vec<u8>> {
    let (base, template) = (
        session.scratch.path("base"),
        session.scratch.path("template"),
    );
    let (before, after) = (
        session.scratch.path("before.rrd"),
        session.scratch.path("after.rrd"),
    );
    let mut pipe = Pipe::start(&session.scratch.path(""));
    let mut files = BTreeMap::new();
    for stream in streams {
        for subject in &stream.subjects {
            fs::copy(template.join(&subject.path), &before).expect("a copy");
            let lines = stream.items.iter().filter_map(|item| match item {
                Item::Line(line) => rrd_stream::values(line),
                Item::Settle => None,
            });
            let mine = lines.filter(|(name, _)| *name == subject.name);
            for value in mine.flat_map(|(_, values)| values) {
                fs::copy(&before, &after).expect("a copy");
                if pipe.ask(&format!("update after.rrd {value}")).is_ok() {
                    fs::rename(&after, &before).expect("a rename");
                }
            }
            files.insert(
                base.join(&subject.path),
                fs::read(&before).expect("the file"),
            );
        }
    }
    files
}

/// The comparison finds differences: stock against itself has none, and has one after any change of a reply or of a
/// file. Numbers of STATS are not compared.
#[test]
fn a_changed_reply_and_a_changed_file_are_found() {
    let streams: Vec<Stream> = make_streams(11, Holds::All).into_iter().take(2).collect();
    let session = Session::new(&streams, Mode::One, false);
    let [stock, again] = BOTH.map(|_| play(Side::Stock, &session, &session.steps));
    assert_eq!(first_difference(&stock, &again), None);
    for index in 0..stock.replies.len() {
        let mut changed = again.replies.clone();
        let (line, Reply::Bytes(bytes)) = &mut changed[index] else {
            continue;
        };
        let free = line.to_ascii_uppercase().starts_with(b"STATS");
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        let changed = Played {
            replies: changed,
            files: again.files.clone(),
        };
        let found = first_difference(&stock, &changed).is_some();
        assert!(found || free, "reply {index} was changed and nobody saw it");
    }
    for path in stock.files.keys().filter(|path| !is_by_command(path)) {
        let mut changed = again.files.clone();
        if let Some(byte) = changed.get_mut(path).and_then(|bytes| bytes.last_mut()) {
            *byte ^= 1;
            let changed = Played {
                replies: again.replies.clone(),
                files: changed,
            };
            let found = first_difference(&stock, &changed).is_some();
            assert!(found, "{} was changed and nobody saw it", path.display());
        }
    }
}

fn compare_sessions(mode: Mode) {
    let seed = seed_of_session();
    for journal in [false, true] {
        let holds = match journal {
            true => Holds::AllThatOutlivesARestart,
            false => Holds::All,
        };
        let streams = make_streams(seed + u64::from(journal), holds);
        let session = Session::new(&streams, mode, journal);
        compare(&session);
    }
}

fn make_streams(seed: u64, holds: Holds) -> Vec<Stream> {
    let mut random = Random(seed);
    let make = |index| {
        let commands = 30 + random.below(60) as usize;
        rrd_stream::stream(random.next_u64(), &format!("s{index}"), commands, holds)
    };
    (0..effort(40)).map(make).collect()
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

/// Appends the steps that send a stream's items in this mode.
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
            // Most requests that BATCH does not know are sent outside of it.
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
    // A reduced session may have lost its own final requests.
    for step in [b"RESUMEALL".as_slice(), b"FLUSHALL", b"QUEUE"] {
        wire.play(&Step::Ask(0, step.to_vec()));
        wire.settle();
    }
    drop(wire.clients);
    wire.daemon.stop("-TERM");
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a file of the base");
        (path, bytes)
    };
    let files = rrd_file::files_below(&base).into_iter();
    // The default folder of kymo's journal, and the file with the folder's owner.
    let own = [".kymo", ".kymo-owner"].map(|name| base.join(name));
    let files = files.filter(|path| !own.iter().any(|own| path.starts_with(own)));
    let files = files.map(read).collect();
    let replies = wire.replies;
    Played { replies, files }
}

/// The connections to one daemon, and its replies.
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

    /// Notes a reply. True if the connection is still open: stock closes some, for instance after SUSPEND of a file that it
    /// does not know, and ignores the requests after it.
    fn heard(&mut self, connection: usize, line: &[u8], reply: io::Result<Reply>) -> bool {
        let reply = match reply {
            Ok(reply) => reply,
            Err(why) => panic!(
                "no reply to `{}`: {why}: {}",
                String::from_utf8_lossy(line),
                self.daemon.output_text()
            ),
        };
        let open = matches!(reply, Reply::Bytes(_));
        if !open {
            self.clients[connection] = self.daemon.connect();
        }
        self.replies.push((line.to_vec(), reply));
        open
    }

    /// Waits until the queue is empty and its values are written.
    fn settle(&mut self) {
        // A new connection: the others may have been closed.
        let mut client = self.daemon.connect();
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

/// Compares transcripts and files of both sides. Panics with the shortest session found in which they differ.
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
    different_reply(stock, ours).or_else(|| different_file(stock, ours))
}

fn different_reply(stock: &Played, ours: &Played) -> Option<String> {
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
    None
}

fn different_file(stock: &Played, ours: &Played) -> Option<String> {
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

/// True for files that a CREATE made: their names begin with a `c`.
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
        // STATS: the names of numbers are compared, not their values.
        b"STATS" => text()
            .chars()
            .filter(|letter| !letter.is_ascii_digit())
            .collect(),
        // Counts of known files differ: after a restart stock also knows files without waiting values.
        b"SUSPENDALL" | b"RESUMEALL" => text()
            .chars()
            .filter(|letter| !letter.is_ascii_digit())
            .collect(),
        // Stock lists names in the order of the folder.
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

/// Removes steps, then lines, as long as a difference remains.
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
