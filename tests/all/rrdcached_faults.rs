//! Faults from outside: kill -9 under load, readers that hold locks, files that are tuned or replaced while they are
//! served, hostile names and clients, a full disk. The oracle is stock's `rrdtool update` with the acknowledged
//! values. Needs Debian's rrdtool and strace; a full disk needs root.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::machine::{Tmpfs, must_skip};
use kymo_tests::rrd_client::Reply;
use kymo_tests::rrd_daemon::{Daemon, Side};
use kymo_tests::rrd_file;
use kymo_tests::rrd_stream::Random;
use kymo_tests::rrdtool::Pipe;
use kymo_tests::{Running, Scratch};

const FILES: usize = 5;
const BIRTH: u64 = 1_000_000_000;
const DEFINITION: &str = "-b 1000000000 -s 10 DS:g:GAUGE:600:U:U DS:c:COUNTER:600:0:U \
     RRA:AVERAGE:0.5:1:40 RRA:MAX:0.5:6:20 RRA:LAST:0.5:30:10";

fn name(index: usize) -> String {
    format!("f{index}.rrd")
}

/// A folder of files made by stock.
fn make_files(base: &Path, count: usize) {
    fs::create_dir_all(base).expect("a folder");
    let mut pipe = Pipe::start(base);
    for index in 0..count {
        pipe.must(&format!("create {} {DEFINITION}", name(index)));
    }
}

fn value(turn: u64) -> String {
    let stamp = BIRTH + 7 * (turn + 1);
    format!(
        "{stamp}.{:06}:{}.5:{}",
        turn * 7919 % 1_000_000,
        turn % 1000,
        turn * 13
    )
}

/// Turns sent to a file, for the oracle.
struct Told {
    /// Acknowledged turns.
    acknowledged: u64,
    /// Sent turns: those beyond the acknowledged ones may be in the file or not.
    sent: u64,
}

/// After a kill the files hold all acknowledged values and the first ones of those in progress; nothing else.
#[test]
fn killed_at_any_moment_it_loses_nothing_that_it_acknowledged() {
    let seed = first_seed(u64::from(std::process::id()));
    eprintln!("SEED={seed}");
    let mut random = Random(seed);
    let rounds = effort(200);
    let scratch = Scratch::new("killed");
    let (base, journal) = (scratch.path("base"), scratch.text("journal"));
    make_files(&base, FILES);
    fs::create_dir_all(&journal).expect("a folder");
    copy(&base, &scratch.path("oracle"));
    let mut oracle = Pipe::start(&scratch.path("oracle"));
    // Rounds alternate between the two promises.
    let start = |round: u64| {
        let options = ["-B", "-w", "1", "-j", &journal, "--durable"];
        let count = options.len() - usize::from(round.is_multiple_of(2));
        Daemon::start(Side::Ours, &scratch.path(""), &base, &options[..count])
    };
    let mut told: Vec<Told> = (0..FILES)
        .map(|_| Told {
            acknowledged: 0,
            sent: 0,
        })
        .collect();
    let mut written = [0u64; FILES];
    let (mut acknowledged, mut under_way) = (0, 0);
    for round in 0..rounds {
        load_and_kill(start(round), &mut told, &mut random);
        let said = write_all(start(round), round);
        for index in 0..FILES {
            let here = fs::read(base.join(name(index))).expect("the file");
            let reached = catch_up(
                &mut oracle,
                &scratch,
                index,
                &mut written[index],
                &told[index],
                &here,
            );
            let Some(reached) = reached else {
                panic!(
                    "round {round}: {} is not what {} to {} values make it: {}",
                    name(index),
                    told[index].acknowledged,
                    told[index].sent,
                    said
                );
            };
            acknowledged += 1;
            under_way += u32::from(reached > told[index].acknowledged);
            told[index] = Told {
                acknowledged: reached,
                sent: reached,
            };
        }
    }
    eprintln!("{acknowledged} files looked at, in {under_way} a value that was under way");
    let turns: u64 = told.iter().map(|file| file.acknowledged).sum();
    assert!(
        turns > rounds * 20,
        "hardly anything was acknowledged: {turns}"
    );
}

/// Writes all values of the journal, by a FLUSH of each file and a kill, or by a signal; returns the daemon's log.
fn write_all(daemon: Daemon, round: u64) -> String {
    if round % 4 == 3 {
        assert!(daemon.stop("-USR1").success(), "round {round}");
        return String::new();
    }
    let mut client = daemon.connect();
    for index in 0..FILES {
        let answer = client.text(&format!("FLUSH {}", name(index)));
        let said = daemon.output_text();
        assert!(answer.starts_with("0 "), "round {round}: {answer}: {said}");
    }
    daemon.signal("-KILL");
    daemon.output_text()
}

/// Gives the oracle the acknowledged values, then one more at a time until its file equals the daemon's.
fn catch_up(
    oracle: &mut Pipe,
    scratch: &Scratch,
    index: usize,
    written: &mut u64,
    told: &Told,
    here: &[u8],
) -> Option<u64> {
    let path = scratch.path("oracle").join(name(index));
    while *written < told.acknowledged {
        oracle.must(&format!("update {} {}", name(index), value(*written)));
        *written += 1;
    }
    loop {
        if fs::read(&path).expect("the oracle's file") == here {
            return Some(*written);
        }
        if *written == told.sent {
            return None;
        }
        oracle.must(&format!("update {} {}", name(index), value(*written)));
        *written += 1;
    }
}

/// Sends in windows, singly or in BATCH, until the kill comes.
fn load_and_kill(daemon: Daemon, told: &mut [Told], random: &mut Random) {
    let mut client = daemon.connect();
    let pid = daemon.pid().to_string();
    let wait = Duration::from_micros(500 + random.below(40_000));
    let killer = std::thread::spawn(move || {
        std::thread::sleep(wait);
        let killed = Command::new("kill").args(["-KILL", &pid]).status();
        assert!(killed.is_ok_and(|status| status.success()), "kill");
    });
    'load: loop {
        if random.once_in(5) && client.ask(b"FLUSHALL").is_err() {
            break;
        }
        let batch = random.once_in(2);
        let lines: Vec<usize> = (0..1 + random.below(30))
            .map(|_| random.below(FILES as u64) as usize)
            .collect();
        let mut bytes = if batch {
            b"BATCH\n".to_vec()
        } else {
            Vec::new()
        };
        for &index in &lines {
            let line = format!("UPDATE {} {}\n", name(index), value(told[index].sent));
            bytes.extend_from_slice(line.as_bytes());
            told[index].sent += 1;
        }
        if batch && random.once_in(4) {
            bytes.extend_from_slice(b"FLUSH f0.rrd\n");
        }
        bytes.extend_from_slice(if batch { b".\n" } else { b"" });
        if client.send(&bytes).is_err() {
            break;
        }
        if batch {
            let answers = [client.reply(false), client.reply(false)];
            match &answers[1] {
                Ok(Reply::Bytes(bytes)) => assert_eq!(bytes, b"0 errors\n"),
                _ => break 'load,
            }
            lines
                .iter()
                .for_each(|&index| told[index].acknowledged += 1);
            continue;
        }
        for &index in &lines {
            match client.reply(false) {
                Ok(Reply::Bytes(bytes)) => assert!(bytes.starts_with(b"0 errors"), "{bytes:?}"),
                _ => break 'load,
            }
            told[index].acknowledged += 1;
        }
    }
    killer.join().expect("the killer");
    drop(daemon);
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp");
}

/// Takes or gives up a lock on a file, as `rrdtool graph` does.
#[allow(unsafe_code)]
fn lock(file: &fs::File, kind: libc::c_int) {
    // SAFETY: all zeros is a valid flock; it is only read by the call.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    // SAFETY: the descriptor is open and the struct lives until the call returns.
    let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &lock) };
    assert_eq!(taken, 0, "cannot lock");
}

/// Stock loses values that it writes while a reader has a lock; kymo waits.
#[test]
fn a_reader_with_a_lock_delays_and_loses_nothing() {
    let scratch = Scratch::new("lock");
    let base = scratch.path("base");
    make_files(&base, 1);
    copy(&base, &scratch.path("oracle"));
    let daemon = Daemon::start(
        Side::Ours,
        &scratch.path(""),
        &base,
        &["-B", "-F", "-w", "1"],
    );
    let mut client = daemon.connect();
    let done = AtomicBool::new(false);
    let path = base.join(name(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let file = fs::File::open(&path).expect("the file");
                lock(&file, libc::F_RDLCK);
                std::thread::sleep(Duration::from_millis(15));
                lock(&file, libc::F_UNLCK);
                drop(file);
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        for turn in 0..400 {
            let answer = client.text(&format!("UPDATE {} {}", name(0), value(turn)));
            assert!(answer.starts_with("0 errors"), "{answer}");
            if turn % 20 == 0 {
                let answer = client.text(&format!("FLUSH {}", name(0)));
                assert!(answer.starts_with("0 Success"), "{answer}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    daemon.stop("-TERM");
    equal_to_oracle(&scratch, 0, 400);
}

/// A reader never releases its lock: FLUSH reports it, and queued values stay.
#[test]
fn a_lock_that_stays_is_an_error_of_flush_and_no_loss() {
    let scratch = Scratch::new("locked");
    let base = scratch.path("base");
    make_files(&base, 1);
    copy(&base, &scratch.path("oracle"));
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B", "-F"]);
    let mut client = daemon.connect();
    client.text(&format!("UPDATE {} {}", name(0), value(0)));
    let file = fs::File::open(base.join(name(0))).expect("the file");
    lock(&file, libc::F_RDLCK);
    let start = Instant::now();
    let answer = client.text(&format!("FLUSH {}", name(0)));
    assert_eq!(
        answer,
        "-1 RRD Error: could not lock RRD",
        "after {:?}",
        start.elapsed()
    );
    assert!(
        client
            .text(&format!("PENDING {}", name(0)))
            .starts_with("1 updates pending")
    );
    drop(file);
    let answer = client.text(&format!("FLUSH {}", name(0)));
    assert!(answer.starts_with("0 Successfully flushed"), "{answer}");
    daemon.stop("-TERM");
    equal_to_oracle(&scratch, 0, 1);
}

fn equal_to_oracle(scratch: &Scratch, index: usize, turns: u64) {
    let mut oracle = Pipe::start(&scratch.path("oracle"));
    for turn in 0..turns {
        oracle.must(&format!("update {} {}", name(index), value(turn)));
    }
    let read = |folder: &str| fs::read(scratch.path(folder).join(name(index))).expect("a file");
    if let Some(why) = rrd_file::difference(&read("oracle"), &read("base")) {
        panic!("the oracle's is the left one: {why}");
    }
}

/// A tune from outside stays, and values go to the file that replaced another.
#[test]
fn a_file_may_be_tuned_and_replaced_while_it_is_served() {
    let scratch = Scratch::new("edited");
    let base = scratch.path("base");
    make_files(&base, 2);
    copy(&base, &scratch.path("oracle"));
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B", "-F"]);
    let mut client = daemon.connect();
    let mut oracle = Pipe::start(&scratch.path("oracle"));
    let mut live = Pipe::start(&base);
    for turn in 0..10 {
        client.text(&format!("UPDATE f0.rrd {}", value(turn)));
        oracle.must(&format!("update f0.rrd {}", value(turn)));
        if turn == 4 {
            client.text("FLUSH f0.rrd");
            for pipe in [&mut live, &mut oracle] {
                pipe.must("tune f0.rrd -h g:77 -a g:500");
            }
        }
    }
    client.text("FLUSH f0.rrd");
    let read =
        |folder: &str, name: &str| fs::read(scratch.path(folder).join(name)).expect("a file");
    assert_eq!(
        rrd_file::difference(&read("oracle", "f0.rrd"), &read("base", "f0.rrd")),
        None
    );
    client.text(&format!("UPDATE f1.rrd {}", value(0)));
    client.text("FLUSH f1.rrd");
    fs::rename(base.join("f0.rrd"), base.join("f1.rrd")).expect("a rename");
    client.text(&format!("UPDATE f1.rrd {}", value(10)));
    oracle.must(&format!("update f0.rrd {}", value(10)));
    let answer = client.text("FLUSH f1.rrd");
    assert!(answer.starts_with("0 Success"), "{answer}");
    assert_eq!(
        rrd_file::difference(&read("oracle", "f0.rrd"), &read("base", "f1.rrd")),
        None
    );
    daemon.stop("-TERM");
}

/// Sends each command with each name that may lead outside the base; all are answered.
fn ask_for_all_of(daemon: &Daemon, outside: &str) {
    let long = "x".repeat(4000);
    for name in [
        "../secret/out.rrd",
        "./../secret/out.rrd",
        "d/../../secret/out.rrd",
        outside,
        "..",
        "/",
        ".",
        "//etc/passwd",
        "/etc/passwd",
        "f0.rrd\0x",
        "\\.\\./secret/out.rrd",
        "\x1b[31m.rrd",
        "f0.rrd/",
        "f0.rrd/..",
        &long,
        "link/../../secret/out.rrd",
    ] {
        for line in [
            format!("UPDATE {name} 1000000100:1:1"),
            format!("FLUSH {name}"),
            format!("INFO {name}"),
            format!("LAST {name}"),
            format!("FETCH {name} AVERAGE 1000000000 1000000100"),
            format!("CREATE {name} -s 10 DS:a:GAUGE:60:U:U RRA:LAST:0.5:1:5"),
            format!("LIST /{name}"),
            format!("TUNE {name} 3 tune -h g:1"),
            format!("DUMP {name}"),
            format!("PENDING {name}"),
            format!("FORGET {name}"),
        ] {
            let mut client = daemon.connect();
            let reply = match line.starts_with("DUMP") {
                // The first line of a dump has no number. QUIT ends the connection after a refusal.
                true => client
                    .send(format!("{line}\nQUIT\n").as_bytes())
                    .and_then(|()| client.rest())
                    .map(drop),
                false => client.ask(line.as_bytes()).map(drop),
            };
            assert!(
                reply.is_ok(),
                "no reply to {line:?}: {}",
                daemon.output_text()
            );
        }
    }
}

/// With -B no name makes the daemon open a file outside the base.
#[test]
fn no_name_leads_out_of_the_base() {
    if must_skip(&["strace"]) {
        return;
    }
    let scratch = Scratch::new("names");
    let base = scratch.path("base");
    make_files(&base, 1);
    fs::create_dir_all(scratch.path("secret")).expect("a folder");
    copy(&base.join("f0.rrd"), &scratch.path("secret/out.rrd"));
    std::os::unix::fs::symlink(scratch.path("secret"), base.join("link")).expect("a link");
    let mut daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B", "-F"]);
    let trace = scratch.path("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-e", "trace=%file", "-o"])
        .arg(&trace)
        .args(["-p", &daemon.pid().to_string()]);
    let strace = Running(
        strace
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("strace"),
    );
    std::thread::sleep(Duration::from_millis(500));
    ask_for_all_of(&daemon, &scratch.text("secret/out.rrd"));
    assert!(daemon.is_running(), "{}", daemon.output_text());
    strace.signal("-INT");
    std::thread::sleep(Duration::from_millis(500));
    let trace = fs::read(&trace).expect("the trace");
    let trace = String::from_utf8_lossy(&trace).into_owned();
    assert!(trace.contains("open"), "the trace is empty");
    let led_out = trace.lines().filter(|line| {
        let opened = line.contains("open") && !line.contains("= -1") && !line.contains("O_PATH");
        opened && (line.contains("secret") || line.contains("passwd"))
    });
    assert_eq!(led_out.collect::<Vec<&str>>(), Vec::<&str>::new());
    daemon.stop("-TERM");
}

/// A client that does not read, a line without an end, and ten thousand silent clients do not hinder others.
#[test]
fn rude_clients_hinder_nobody() {
    let scratch = Scratch::new("rude");
    let base = scratch.path("base");
    make_files(&base, 1);
    raise_limit();
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B", "-F"]);
    let before = memory_kb(daemon.pid());
    let mut deaf = UnixStream::connect(daemon.socket()).expect("a connection");
    deaf.set_write_timeout(Some(Duration::from_millis(300)))
        .expect("a limit");
    let ask = b"HELP\n".repeat(1000);
    // Until the socket's buffers are full.
    while deaf.write_all(&ask).is_ok() {}
    let mut endless = UnixStream::connect(daemon.socket()).expect("a connection");
    endless
        .set_write_timeout(Some(Duration::from_millis(300)))
        .expect("a limit");
    let piece = [b'x'; 65536];
    let mut sent = 0;
    while sent < 256 << 20 && endless.write_all(&piece).is_ok() {
        sent += piece.len();
    }
    assert!(sent < 256 << 20, "a line of 256 MiB is still taken");
    let idle: Vec<UnixStream> = (0..10_000)
        .map_while(|_| UnixStream::connect(daemon.socket()).ok())
        .collect();
    assert_eq!(idle.len(), 10_000, "connections that say nothing");
    let start = Instant::now();
    let mut client = daemon.connect();
    let answer = client.text(&format!("UPDATE f0.rrd {}", value(0)));
    assert_eq!(answer, "0 errors, enqueued 1 value(s).");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    let grown = memory_kb(daemon.pid()).saturating_sub(before);
    eprintln!("10,000 idle connections and two rude ones: {grown} kB");
    assert!(grown < 100_000, "grown by {grown} kB");
    drop((idle, deaf, endless));
    daemon.stop("-TERM");
}

fn memory_kb(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Raises the limit of descriptors for this process and its children.
#[allow(unsafe_code)]
fn raise_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the struct lives until the call returns, which only writes it.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    assert_eq!(read, 0, "cannot read the limit of descriptors");
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the struct lives until the call returns, which only reads it.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    assert_eq!(raised, 0, "cannot raise the limit of descriptors");
    assert!(
        limit.rlim_max > 10_500,
        "10,000 connections take more than {} descriptors",
        limit.rlim_max
    );
}

/// A full disk under the journal: updates are refused with the cause and not applied; with room again, all goes on.
#[test]
fn a_full_disk_refuses_and_recovers() {
    if must_skip(&["mount"]) {
        return;
    }
    let scratch = Scratch::new("full");
    let (base, journal) = (scratch.path("base"), scratch.path("journal"));
    make_files(&base, 1);
    copy(&base, &scratch.path("oracle"));
    let Some(_disk) = Tmpfs::mount(&journal, "6m") else {
        return kymo_tests::machine::skipped("tmpfs cannot be mounted");
    };
    let filler = journal.join("filler");
    let mut file = fs::File::create(&filler).expect("a filler");
    // Leaves a little: the daemon starts, and its journal cannot grow far.
    file.write_all(&vec![1u8; 5 << 20]).expect("some room");
    let options = ["-B", "-F", "-j", &journal.to_string_lossy()];
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &options);
    let mut client = daemon.connect();
    let (mut turn, mut refused) = (0, 0);
    while turn < 60_000 && refused < 3 {
        let answer = client.text(&format!("UPDATE f0.rrd {}", value(turn)));
        if answer == "-1 RRD Error: cannot write journal: No space left on device" {
            refused += 1;
        } else {
            assert_eq!(answer, "0 errors, enqueued 1 value(s).", "value {turn}");
            turn += 1;
        }
    }
    assert_eq!(refused, 3, "{turn} values and the disk is not full");
    let pending = client.text("PENDING f0.rrd");
    assert!(
        pending.starts_with(&format!("{turn} updates pending")),
        "a refused value is applied"
    );
    drop(file);
    fs::remove_file(&filler).expect("the filler is there");
    let start = Instant::now();
    loop {
        let answer = client.text(&format!("UPDATE f0.rrd {}", value(turn)));
        if answer.starts_with("0 ") {
            break;
        }
        let late = start.elapsed() > Duration::from_secs(20);
        assert!(
            !late,
            "it does not recover: {answer}: {}",
            daemon.output_text()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    turn += 1;
    daemon.stop("-TERM");
    equal_to_oracle(&scratch, 0, turn);
}

/// On a full disk everything can be read, also by a daemon that starts then.
#[test]
fn a_full_disk_is_read() {
    const SERIES: usize = 8;
    if must_skip(&["mount"]) {
        return;
    }
    for files in ["7d", "never"] {
        let scratch = Scratch::new("full-read");
        let disk = scratch.path("disk");
        let Some(_disk) = Tmpfs::mount(&disk, "24m") else {
            return kymo_tests::machine::skipped("tmpfs cannot be mounted");
        };
        let (base, journal) = (disk.join("base"), disk.join("journal"));
        fs::create_dir_all(&base).expect("a folder");
        fs::create_dir_all(&journal).expect("a folder");
        let options = ["-B", "--files", files, "-j", &journal.to_string_lossy()];
        let start = || Daemon::start(Side::Ours, &scratch.path(""), &base, &options);
        let (mut daemon, mut turn) = (start(), 1);
        for index in 0..SERIES {
            let mut client = daemon.connect();
            let create = format!("CREATE {} {DEFINITION}", name(index));
            assert_eq!(client.text(&create), "0 RRD created OK");
            let update = format!("UPDATE {} {}", name(index), value(0));
            assert!(client.text(&update).starts_with("0 "));
        }
        fill(&disk.join("filler"));
        for life in ["running", "begun anew"] {
            let story = format!("--files {files}, {life}: {}", daemon.output_text());
            let mut client = daemon.connect();
            turn = until_refused(&mut client, turn);
            for file in (0..SERIES).map(name) {
                for (line, sign) in [
                    (format!("PENDING {file}"), "updates pending"),
                    (format!("LAST {file}"), "0 1"),
                    (format!("FIRST {file} 0"), "0 "),
                    (format!("INFO {file}"), "Info for"),
                    (
                        format!("FETCH {file} AVERAGE 1000000000 1000000010"),
                        "Success",
                    ),
                    (format!("PENDING {file}"), "0 updates pending"),
                    (
                        format!("FETCHBIN {file} LAST 1000000000 1000000300"),
                        "Success",
                    ),
                    ("LIST /".into(), "RRDs"),
                    ("QUEUE".into(), "in queue."),
                    ("STATS".into(), "Statistics follow"),
                ] {
                    let reply = client.ask(line.as_bytes());
                    let answer = reply.expect("a reply").show();
                    let refused = answer.starts_with('-');
                    assert!(
                        !refused && answer.contains(sign),
                        "{story}: {line}: {answer}"
                    );
                }
            }
            client.send(b"DUMP f1.rrd\n").expect("sent");
            let dump = client.rest().expect("a dump");
            let dump = String::from_utf8_lossy(&dump);
            assert!(dump.contains("<lastupdate>1000000007"), "{story}: {dump}");
            daemon.stop("-KILL");
            daemon = start();
        }
        fs::remove_file(disk.join("filler")).expect("the filler is there");
        let begun = Instant::now();
        let update = format!("UPDATE f0.rrd {}", value(turn));
        while !daemon.connect().text(&update).starts_with("0 ") {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{}",
                daemon.output_text()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon.stop("-TERM");
    }
}

/// Updates one file until the journal is full; returns the next turn.
fn until_refused(client: &mut kymo_tests::rrd_client::Client, mut turn: u64) -> u64 {
    loop {
        let answer = client.text(&format!("UPDATE f0.rrd {}", value(turn)));
        if answer == "-1 RRD Error: cannot write journal: No space left on device" {
            return turn;
        }
        assert_eq!(answer, "0 errors, enqueued 1 value(s).", "value {turn}");
        turn += 1;
    }
}

/// Fills the disk.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).expect("a filler");
    for size in [1 << 16, 1 << 9, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

/// A client that disconnects in the middle of a request or of a BATCH: only its whole lines count.
#[test]
fn half_a_request_is_none() {
    let scratch = Scratch::new("half");
    let base = scratch.path("base");
    make_files(&base, 1);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B", "-F"]);
    let whole = format!("UPDATE f0.rrd {}\n", value(0));
    for cut in [1, 7, whole.len() - 1] {
        let mut stream = UnixStream::connect(daemon.socket()).expect("a connection");
        stream.write_all(&whole.as_bytes()[..cut]).expect("a piece");
        stream.shutdown(std::net::Shutdown::Write).expect("an end");
        let mut said = String::new();
        // The daemon does not answer half a request.
        let _ = stream.read_to_string(&mut said);
        assert_eq!(said, "", "after {cut} bytes");
    }
    assert_eq!(daemon.connect().text("PENDING f0.rrd"), "0 updates pending");
    daemon.stop("-TERM");
}
