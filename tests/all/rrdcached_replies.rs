//! `kymo rrdcached` beside Debian's rrdcached: the same lines on copies of one folder, reply for reply. Also the
//! behaviour on which administrators rely: sockets, permissions, pid file, fork, signals, limits.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kymo_tests::machine::must_skip;
use kymo_tests::rrd_client::{Client, Reply};
use kymo_tests::rrd_daemon::{BOTH, Daemon, Side};
use kymo_tests::{Scratch, free_port};

/// Makes `name` with stock's rrdtool: step 10, one GAUGE, from 1000000000 on.
fn create(base: &Path, name: &str) {
    let made = Command::new("rrdtool")
        .args(["create", name, "-b", "1000000000", "-s", "10"])
        .args(["DS:x:GAUGE:60:U:U", "RRA:AVERAGE:0.5:1:20"])
        .current_dir(base)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "rrdtool create");
}

/// A folder with the files that the lines below name.
fn folder(scratch: &Scratch) -> PathBuf {
    let base = scratch.path("db");
    std::fs::create_dir_all(base.join("sub/deep")).expect("folders");
    create(&base, "a.rrd");
    let two = Command::new("rrdtool")
        .args(["create", "two.rrd", "-b", "1000000000", "-s", "10"])
        .args([
            "DS:x:GAUGE:60:U:U",
            "DS:y:COUNTER:60:0:100",
            "RRA:AVERAGE:0.5:1:20",
        ])
        .args(["RRA:MAX:0.5:3:10", "RRA:LAST:0.5:6:10"])
        .current_dir(&base)
        .status();
    assert!(two.is_ok_and(|status| status.success()), "rrdtool create");
    create(&base, "sub/deep/c.rrd");
    std::fs::write(base.join("text.rrd"), "no rrd").expect("a file");
    std::fs::write(base.join("empty.rrd"), "").expect("a file");
    std::fs::create_dir(base.join("folder.rrd")).expect("a folder");
    base
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp");
}

/// Both daemons, each on its own copy of the folder.
fn both(scratch: &Scratch, options: &[&str]) -> [(Daemon, String); 2] {
    let base = folder(scratch);
    BOTH.map(|side| {
        let own = scratch.path(&format!("{side:?}"));
        std::fs::create_dir(&own).expect("a folder");
        copy(&base, &own);
        let base = own.join("db");
        let daemon = Daemon::start(side, &own, &base, options);
        (daemon, base.to_string_lossy().into_owned())
    })
}

/// The reply without parts that differ from daemon to daemon: folders, random numbers, counters.
fn plain(reply: &str, base: &str, line: &str) -> String {
    let reply = reply.replace(base, "BASE");
    let word = line
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    let mut lines: Vec<String> = reply.lines().map(String::from).collect();
    match word.as_str() {
        "STATS" => {
            for line in lines.iter_mut().skip(1) {
                line.truncate(line.find(':').unwrap_or(0));
            }
        }
        "LIST" => lines[1..].sort(),
        "INFO" => lines.retain(|line| !line.contains(".cur_row ")),
        "HELP" => {
            lines.retain(|line| !line.starts_with("TUNE ") && !line.starts_with("DUMP "));
            lines[0] = lines[0].replace("24 Command overview", "22 Command overview");
        }
        _ => {}
    }
    lines.join("\n")
}

/// Compares the replies to a line. True if the connections are closed.
fn compare(pair: &mut [(Client, String); 2], line: &str) -> bool {
    let begun = Instant::now();
    let [stock, ours] = pair.each_mut().map(|(client, base)| {
        let line = line.replace("BASE", base);
        let reply = match client.ask(line.as_bytes()) {
            Ok(reply) => reply.show(),
            Err(error) => format!("no reply: {:?}", error.kind()),
        };
        plain(&reply, base, &line)
    });
    let shown: String = line.chars().take(200).collect();
    assert_eq!(ours, stock, "{shown}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{shown} is not answered"
    );
    // The caller then opens new connections.
    stock.starts_with("(closed)")
}

/// Compares line by line, and reconnects after a closed connection.
fn compare_all<'a>(daemons: &[(Daemon, String); 2], lines: impl IntoIterator<Item = &'a str>) {
    let mut pair = connect(daemons);
    for line in lines {
        // The words of a PING name the line after which an answer is wrong.
        if compare(&mut pair, line) || compare(&mut pair, &format!("PING {line}")) {
            pair = connect(daemons);
        }
    }
}

fn connect(daemons: &[(Daemon, String); 2]) -> [(Client, String); 2] {
    daemons
        .each_ref()
        .map(|(daemon, base)| (daemon.connect(), base.clone()))
}

/// The lines of the reference's transcript, and many more. `BASE` is the daemon's folder.
const LINES: &[&str] = &[
    "PING",
    "ping",
    "Ping extra words",
    "FOO",
    "",
    " PING",
    "PING\\",
    "\\PING",
    ".",
    "WROTE a.rrd",
    "HELP",
    "HELP FLUSH",
    "help update",
    "HELP BATCH",
    "HELP HELP",
    "HELP FOO",
    "HELP WROTE",
    "HELP .",
    "HELP QUIT now",
    "HELP ",
    "STATS",
    "QUEUE",
    "PENDING nosuch.rrd",
    "PENDING a.rrd",
    "PENDING",
    "FORGET nosuch.rrd",
    "FORGET",
    "FORGET ../x.rrd",
    "FLUSH a.rrd",
    "FLUSH nosuch.rrd",
    "FLUSH",
    "FLUSH folder.rrd",
    "FLUSH /etc/passwd",
    "FLUSH ../db/a.rrd",
    "FLUSH BASE/a.rrd",
    "SUSPEND a.rrd",
    "RESUME nosuch.rrd",
    "SUSPEND",
    "UPDATE",
    "UPDATE a.rrd",
    "UPDATE nosuch.rrd 1:1",
    "UPDATE nosuch.rrd",
    "UPDATE sub/nosuch/x.rrd 1:1",
    "UPDATE folder.rrd 1:1",
    "UPDATE text.rrd 1:1",
    "UPDATE ../z.rrd 1:1",
    "UPDATE /etc/passwd 1:1",
    "UPDATE a.rrd N:1",
    "UPDATE a.rrd @1000000010:1",
    "UPDATE a.rrd 1000000010",
    "UPDATE a.rrd :1",
    "UPDATE a.rrd x:1",
    "UPDATE a.rrd 1000000000:1",
    "UPDATE a.rrd 5:1",
    "UPDATE a.rrd -5:1",
    "UPDATE a.rrd 1e9:1",
    "UPDATE a.rrd nan:1",
    "UPDATE a.rrd 1000000010:1 1000000020:2",
    "PENDING a.rrd",
    "PENDING BASE/a.rrd",
    "LAST a.rrd",
    "FIRST a.rrd 0",
    "INFO a.rrd",
    "UPDATE a.rrd 1000000020:3",
    "UPDATE a.rrd 1000000020.5:3",
    "UPDATE a.rrd  1000000021:3",
    "UPDATE a.rrd 1000000021:3 ",
    "PENDING a.rrd",
    "UPDATE a.rrd 1000000022:3 1000000021:4 1000000030:5",
    "UPDATE a.rrd 1000000023:3 x 1000000030:5",
    "PENDING a.rrd",
    "LAST a.rrd",
    "UPDATE a.rrd 1000000024:1\\ 2:\\\\",
    "UPDATE a.rrd 1000000025:1 \\",
    "UPDATE a\\.rrd 1000000026:1",
    "PENDING a.rrd",
    "FORGET a.rrd",
    "FORGET a.rrd",
    "PENDING a.rrd",
    "UPDATE a.rrd 1000000010:1 1000000020:2",
    "SUSPEND a.rrd",
    "SUSPEND a.rrd",
    "FLUSH a.rrd",
    "PENDING a.rrd",
    "RESUME a.rrd",
    "RESUME a.rrd",
    "FLUSH a.rrd",
    "FLUSH a.rrd",
    "PENDING a.rrd",
    "INFO a.rrd",
    "INFO BASE/a.rrd",
    "UPDATE BASE/a.rrd 1000000030:1.5",
    "LAST BASE/a.rrd",
    "FETCH a.rrd AVERAGE 1000000000 1000000050",
    "PENDING a.rrd",
    "FETCH a.rrd AVERAGE 1000000000 1000000045",
    "FETCH a.rrd AVERAGE 0x3b9aca00 1000000050 x",
    "FETCH a.rrd AVERAGE 1000000000 1000000050 x x",
    "FETCH a.rrd AVERAGE 1000000000 1000000050 ",
    "FETCH two.rrd AVERAGE 1000000000 1000000050 y x",
    "FETCH two.rrd AVERAGE 1000000000 1000000050 y y",
    "FETCH two.rrd AVERAGE 1000000000 1000000050 y  x",
    "FETCH a.rrd AVERAGE x",
    "FETCH a.rrd AVERAGE 1000000000 now",
    "FETCH a.rrd",
    "FETCH",
    "FETCH a.rrd FOO 1000000000 1000000050",
    "FETCH a.rrd MAX 1000000000 1000000050",
    "FETCH a.rrd average 1000000000 1000000050",
    "FETCH a.rrd AVERAGE 1000000050 1000000000",
    "FETCH a.rrd AVERAGE 1000000000 1000000000",
    "FETCH nosuch.rrd AVERAGE 1 2",
    "FETCH text.rrd AVERAGE 1 2",
    "FETCH ../a.rrd AVERAGE 1 2",
    "FETCHBIN a.rrd AVERAGE 1000000000 1000000030",
    "FETCHBIN two.rrd MAX 1000000000 1000000030 y",
    "FETCHBIN nosuch.rrd AVERAGE 1 2",
    "FETCHBIN",
    "UPDATE two.rrd 1000000010:1:5 1000000020:2:9 1000000031.25:U:17",
    "FETCH two.rrd AVERAGE 1000000000 1000000050",
    "FETCH two.rrd LAST 1000000000 1000000080",
    "INFO two.rrd",
    "FIRST two.rrd 0",
    "FIRST two.rrd 1",
    "FIRST two.rrd 2",
    "FIRST two.rrd 3",
    "FIRST two.rrd -1",
    "FIRST two.rrd x",
    "FIRST two.rrd",
    "FIRST",
    "FIRST nosuch.rrd 0",
    "FIRST nosuch.rrd",
    "FIRST ../x.rrd",
    "LAST nosuch.rrd",
    "LAST text.rrd",
    "LAST empty.rrd",
    "LAST two.rrd",
    "LAST",
    "LAST /etc/passwd",
    "INFO nosuch.rrd",
    "INFO text.rrd",
    "INFO",
    "INFO ../x.rrd",
    "LIST /",
    "LIST RECURSIVE /",
    "LIST RECURSIVE /sub",
    "LIST /sub",
    "LIST /sub/deep",
    "LIST /a.rrd",
    "LIST /folder.rrd",
    "LIST /nosuch",
    "LIST /nosuch.rrd",
    "LIST /../",
    "LIST ..",
    "LIST RECURSIVE sub",
    "LIST recursive /",
    "LIST",
    "LIST x",
    "LIST /*.rrd",
    "LIST RECURSIVE /*",
    "CREATE b.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "INFO b.rrd",
    "CREATE b.rrd -O DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "CREATE b.rrd -b 1000000000 -s 20 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "INFO b.rrd",
    "CREATE d.rrd -b 5 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "CREATE d.rrd -b",
    "CREATE d.rrd FOO",
    "CREATE d.rrd DS:x:GAUGE:60:U:U",
    "CREATE d.rrd RRA:LAST:0.5:1:5",
    "CREATE d.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1",
    "CREATE d.rrd DS:x:FOO:60:U:U RRA:LAST:0.5:1:5",
    "CREATE d.rrd DS:x:GAUGE:60:U:U DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "CREATE d.rrd",
    "CREATE",
    "CREATE ../d.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "CREATE t.rrd -b 1000000000 -t BASE/two.rrd",
    "INFO t.rrd",
    "CREATE t2.rrd -t nosuch.rrd",
    "CREATE t2.rrd -r nosuch.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
    "UPDATE b.rrd 1000000020:5",
    "PENDING b.rrd",
    "SUSPENDALL",
    "SUSPENDALL",
    "RESUMEALL",
    "RESUMEALL",
    "FLUSHALL",
    "FLUSH two.rrd",
    "STATS",
];

#[test]
fn replies_are_stocks() {
    let scratch = Scratch::new("replies");
    let daemons = both(&scratch, &["-B", "-F"]);
    compare_all(&daemons, LINES.iter().copied());
    let name = "n".repeat(3000);
    let long =
        ["UPDATE", "FLUSH", "LAST", "INFO", "CREATE"].map(|word| format!("{word} {name} 1:1"));
    compare_all(&daemons, long.iter().map(String::as_str));
}

/// A FLUSH of a file that is gone reports success.
#[test]
fn a_flush_of_a_deleted_file_is_answered_as_by_stock() {
    let scratch = Scratch::new("replies-deleted");
    let daemons = both(&scratch, &["-B", "-F"]);
    compare_all(&daemons, ["UPDATE a.rrd 1000000010:1", "PENDING a.rrd"]);
    for (_, base) in &daemons {
        std::fs::remove_file(Path::new(base).join("a.rrd")).expect("it was there");
    }
    let asked = [
        "FLUSH a.rrd",
        "PENDING a.rrd",
        "FLUSH a.rrd",
        "LAST a.rrd",
        "INFO a.rrd",
    ];
    compare_all(&daemons, asked);
    compare_all(&daemons, ["FORGET a.rrd", "FLUSH a.rrd", "PENDING a.rrd"]);
}

/// An administrator's cure for a value of the far future: FORGET, then another file in the place of the first.
#[test]
fn after_forget_the_file_that_is_found_counts() {
    let scratch = Scratch::new("replies-forget");
    let daemons = both(&scratch, &["-B", "-F"]);
    let far = "UPDATE a.rrd 2000000000:7";
    let before = ["UPDATE a.rrd 1000000010:1", "FLUSH a.rrd"];
    compare_all(&daemons, before);
    for (_, base) in &daemons {
        copy(
            &Path::new(base).join("a.rrd"),
            &Path::new(base).join("backup"),
        );
    }
    let after = [
        "LAST a.rrd",
        "UPDATE a.rrd 1000000030:3",
        "FLUSH a.rrd",
        "LAST a.rrd",
        "FETCH a.rrd AVERAGE 1000000000 1000000040",
    ];
    let made_anew = |base: &Path| create(base, "a.rrd");
    let put_back = |base: &Path| copy(&base.join("backup"), &base.join("a.rrd"));
    let moved_back = |base: &Path| {
        copy(&base.join("backup"), &base.join("new"));
        std::fs::rename(base.join("new"), base.join("a.rrd")).expect("a rename");
    };
    let written_over = |base: &Path| {
        let bytes = std::fs::read(base.join("backup")).expect("a backup");
        std::fs::write(base.join("a.rrd"), bytes).expect("the file");
    };
    type Cure<'a> = (&'a str, &'a dyn Fn(&Path));
    let cures: [Cure; 4] = [
        ("made anew", &made_anew),
        ("put back", &put_back),
        ("moved back", &moved_back),
        ("written over", &written_over),
    ];
    for (how, cure) in cures {
        for flush in [&["FLUSH a.rrd"][..], &[]] {
            eprintln!("{how}, flushed: {}", !flush.is_empty());
            compare_all(&daemons, [far]);
            compare_all(&daemons, flush.iter().copied());
            compare_all(&daemons, ["FORGET a.rrd"]);
            for (_, base) in &daemons {
                cure(Path::new(base));
            }
            compare_all(&daemons, after);
            compare_all(&daemons, ["FORGET a.rrd"]);
        }
    }
}

#[test]
fn without_base_and_permission_replies_are_stocks() {
    let scratch = Scratch::new("replies-open");
    let daemons = both(&scratch, &["-O", "-R"]);
    let lines = [
        "UPDATE ../db/a.rrd 1000000010:1",
        "FLUSH ../db/a.rrd",
        "LAST BASE/a.rrd",
        "CREATE a.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
        "CREATE x/y/z.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
        "LIST RECURSIVE /x",
        "UPDATE x/y/z.rrd 1000000300:1",
        "UPDATE /etc/passwd 1:1",
        "LIST RECURSIVE /sub",
    ];
    compare_all(&daemons, lines);
}

/// The only error of two lines: a client that counts lines is out of step afterwards, with stock and with kymo.
#[test]
fn a_missing_folder_is_told_in_stocks_two_lines() {
    let scratch = Scratch::new("folder");
    let texts = both(&scratch, &["-B"]).map(|(daemon, base)| {
        let mut client = daemon.connect();
        let line = "CREATE no/x.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5\nPING\nQUIT\n";
        client.send(line.as_bytes()).expect("sent");
        let bytes = client.rest().expect("read");
        String::from_utf8_lossy(&bytes).replace(&base, "BASE")
    });
    assert_eq!(texts[1], texts[0]);
    assert!(
        texts[1].contains("Did you pass -R to the daemon?\n0 PONG\n"),
        "{}",
        texts[1]
    );
}

/// Sends all lines together, and reads the answers up to the end of the connection.
fn transcript(daemon: &Daemon, base: &str, lines: &[&str]) -> String {
    let mut client = daemon.connect();
    let text: String = lines
        .iter()
        .flat_map(|line| [line.replace("BASE", base), "\n".into()])
        .collect();
    client.send(text.as_bytes()).expect("sent");
    // The connection may be closed by then.
    let _ = client.send(b"QUIT\n");
    let bytes = client.rest().expect("read");
    String::from_utf8_lossy(&bytes).replace(base, "BASE")
}

#[test]
fn pipelined_lines_and_batches_are_answered_as_by_stock() {
    let scratch = Scratch::new("batch");
    let daemons = both(&scratch, &["-B", "-F"]);
    for lines in [
        &[
            "PING",
            "UPDATE a.rrd 1000000010:1",
            "FLUSH a.rrd",
            "PENDING a.rrd",
            "FOO",
            "LAST a.rrd",
        ][..],
        &[
            "BATCH",
            "UPDATE a.rrd 1000000030:1",
            "UPDATE a.rrd 5:1",
            "FOO",
            "UPDATE a.rrd 1000000040:2",
            "STATS",
            "BATCH",
            "",
            "FLUSH a.rrd",
            "FLUSH nosuch.rrd",
            "UPDATE nosuch.rrd 1:1",
            "UPDATE a.rrd",
            "SUSPEND a.rrd",
            "RESUME a.rrd",
            "SUSPENDALL",
            "RESUMEALL",
            "FORGET nosuch.rrd",
            "CREATE e.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
            "CREATE e.rrd -O DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:5",
            "UPDATE e.rrd 1000000300:1 1000000300:2",
            "HELP",
            ".",
            "PENDING a.rrd",
            "PENDING e.rrd",
            ".",
            "BATCH",
            ".",
            "PING\r",
        ],
        &["BATCH", "UPDATE a.rrd 1000000050:1", "QUIT", "PING"],
        &["PENDING a.rrd", "BATCH", "FOO"],
        &["BATCH", "FOO", "SUSPEND nosuch.rrd", ".", "PING"],
        &["RESUME nosuch.rrd", "PING"],
        &["PING", "\\", "PING"],
    ] {
        let [stock, ours] = daemons
            .each_ref()
            .map(|(daemon, base)| transcript(daemon, base, lines));
        assert_eq!(ours, stock, "{lines:?}");
    }
}

/// A client that sends everything and then closes its sending side gets all answers.
#[test]
fn a_client_that_shuts_down_its_side_is_answered() {
    let scratch = Scratch::new("half");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &[]);
    let stream = UnixStream::connect(daemon.socket()).expect("connected");
    std::io::Write::write_all(
        &mut &stream,
        b"PING\nUPDATE a.rrd 1000000010:1\nFLUSH a.rrd\nPING",
    )
    .expect("sent");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("shut down");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut &stream, &mut text).expect("read");
    let flushed = format!("0 Successfully flushed {}/a.rrd.\n", base.display());
    assert_eq!(
        text,
        format!("0 PONG\n0 errors, enqueued 1 value(s).\n{flushed}")
    );
}

/// Debian's daemon does not know TUNE; rrdcached 1.8 does.
#[test]
fn tune_changes_a_file_and_keeps_what_is_pending() {
    let scratch = Scratch::new("tune");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B"]);
    let mut client = daemon.connect();
    let db = base.to_string_lossy().into_owned();
    for (line, reply) in [
        (
            "UPDATE a.rrd 1000000010:1 1000000020:2",
            "0 errors, enqueued 2 value(s).",
        ),
        ("TUNE a.rrd 4 tune a.rrd -h x:77", "0 Success"),
        // librrd moves the name to the end.
        ("TUNE a.rrd 6 tune -i x:-5 -a x:100 a.rrd", "0 Success"),
        ("TUNE a.rrd 4 tune -h x:78 a.rrd surplus", "0 Success"),
        ("TUNE a.rrd 3 tune -h x:78", "0 Success"),
        (
            "PENDING a.rrd",
            "2 updates pending\n1000000010:1\n1000000020:2",
        ),
        (
            "FLUSH a.rrd",
            &format!("0 Successfully flushed {db}/a.rrd."),
        ),
        ("LAST a.rrd", "0 1000000020"),
        ("TUNE", "-1 Usage: TUNE <filename> [options]"),
        ("TUNE a.rrd", "-1 Usage: TUNE <filename> [options]"),
        (
            "TUNE a.rrd -1 tune",
            "-1 Invalid argument count specified (-1)",
        ),
        (
            "TUNE a.rrd 9 tune -h x:1 a.rrd",
            "-1 Invalid argument count specified (9)",
        ),
        (
            "TUNE a.rrd 4 tune -h q:1 a.rrd",
            "-1 Got error unknown data source name 'q'",
        ),
        (
            "TUNE a.rrd 4 tune -h x a.rrd",
            "-1 Got error invalid arguments for heartbeat",
        ),
        (
            "TUNE nosuch.rrd 4 tune -h x:1 nosuch.rrd",
            &format!("-1 Got error opening '{db}/nosuch.rrd': No such file or directory"),
        ),
        (
            "TUNE ../a.rrd 4 tune -h x:1 a.rrd",
            &format!("-1 {db}/../a.rrd: Permission denied"),
        ),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
    let info = client.text("INFO a.rrd");
    for line in [
        "ds[x].minimal_heartbeat 1 78",
        "ds[x].min 0 -5.0000000000e+00",
        "ds[x].max 0 1.0000000000e+02",
        "ds[x].last_ds 2 2",
    ] {
        assert!(
            info.lines().any(|told| told == line),
            "{line} is not in\n{info}"
        );
    }
}

/// Debian's daemon does not know DUMP; rrdcached 1.9 does: it sends the document, then closes the connection.
#[test]
fn dump_sends_the_document_and_closes() {
    let scratch = Scratch::new("dump");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B"]);
    let dumped = |line: &str| {
        let mut client = daemon.connect();
        client
            .send(format!("UPDATE a.rrd 1:1\n{line}\nPING\n").as_bytes())
            .expect("sent");
        let bytes = client.rest().expect("read");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (first, rest) = text.split_once('\n').expect("a first reply");
        assert!(first.starts_with("-1 illegal attempt"), "{first}");
        rest.to_string()
    };
    let mut client = daemon.connect();
    client.text("UPDATE a.rrd 1000000010:1 1000000020:2");
    let text = dumped("DUMP a.rrd dtd");
    let stock = Command::new("rrdtool")
        .args(["dump", "-h", "dtd"])
        .arg(base.join("a.rrd"))
        .output();
    let stock = stock.expect("rrdtool dump").stdout;
    assert_eq!(text, String::from_utf8_lossy(&stock));
    assert_eq!(dumped("dump a.rrd"), text);
    assert_eq!(dumped("DUMP a.rrd none"), text);
    for (line, reply) in [
        (
            "DUMP",
            "-1 Usage: DUMP <filename> [-h none|xsd|dtd]".to_string(),
        ),
        (
            "DUMP nosuch.rrd",
            "-1 nosuch.rrd: failed to stat: No such file or directory".into(),
        ),
        (
            "DUMP ../x.rrd",
            format!("-1 {}/../x.rrd: Permission denied", base.display()),
        ),
    ] {
        assert_eq!(client.text(line), reply);
    }
}

fn program(scratch: &Scratch) -> PathBuf {
    Side::Ours.program(&scratch.path(""))
}

/// Starts kymo's daemon as an administrator does; returns once the daemon is in the background.
fn start(scratch: &Scratch, options: &[&str]) -> Output {
    let output = Command::new(program(scratch))
        .arg("-p")
        .arg(scratch.path("pid"))
        .args(options)
        .stdin(Stdio::null())
        .output();
    output.expect("started")
}

/// Kills the daemon by its pid file, also when the test fails.
struct Background<'a>(&'a Scratch);

impl Background<'_> {
    fn pid(&self) -> Option<i32> {
        let text = std::fs::read_to_string(self.0.path("pid")).ok()?;
        text.trim().parse().ok()
    }

    fn end(&self, signal: &str) {
        let Some(pid) = self.pid() else {
            return;
        };
        let sent = Command::new("kill")
            .args([signal, &pid.to_string()])
            .status();
        assert!(sent.is_ok(), "kill");
        let begun = Instant::now();
        while Path::new(&format!("/proc/{pid}/stat")).exists() && is_running(pid) {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim_start().starts_with('Z'))
}

impl Drop for Background<'_> {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            // The daemon may have ended already.
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

#[test]
fn it_forks_when_it_serves_and_its_pid_file_tells_of_it() {
    let scratch = Scratch::new("fork");
    let base = folder(&scratch);
    let (base, socket) = (
        base.to_string_lossy().into_owned(),
        scratch.text("run/sock"),
    );
    let address = format!("unix:{socket}");
    let options = ["-l", &address, "-b", &base, "-B", "-F"];
    let background = Background(&scratch);
    let first = start(&scratch, &options);
    assert!(first.status.success(), "{first:?}");
    // The socket exists at once, since the start returned after it was made.
    let mut client = Client::unix(Path::new(&socket)).expect("it serves");
    assert_eq!(client.text("PING"), "0 PONG");
    let pid = background.pid().expect("a pid file");
    assert_eq!(
        std::fs::read_link(format!("/proc/{pid}/cwd")).expect("its folder"),
        Path::new(&base)
    );
    assert_eq!(
        std::fs::read_link(format!("/proc/{pid}/fd/1")).expect("its stdout"),
        Path::new("/dev/null")
    );

    // Another store, but the same pid file.
    let other = scratch.text("other");
    let second = start(&scratch, &["-l", &address, "-b", &other]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        said.contains(&format!(
            "Another rrdcached daemon is running?? (pid {pid})"
        )),
        "{said}"
    );
    assert!(
        said.ends_with("rrdcached: daemonize failed, exiting.\n"),
        "{said}"
    );
    assert_eq!(client.text("PING"), "0 PONG");

    client.text("UPDATE a.rrd 1000000010:1");
    background.end("-9");
    let third = start(&scratch, &options);
    let said = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(
        third.status.success() && said.contains("removed stale PID file"),
        "{said}"
    );
    let mut client = Client::unix(Path::new(&socket)).expect("it serves");
    assert_eq!(
        client.text("PENDING a.rrd"),
        "1 updates pending\n1000000010:1"
    );
    background.end("-TERM");
    assert!(!scratch.path("pid").exists() && !Path::new(&socket).exists());
    assert_eq!(last_update(&scratch.path("db/a.rrd")), 1_000_000_010);
}

fn last_update(file: &Path) -> i64 {
    let output = Command::new("rrdtool")
        .arg("last")
        .arg(file)
        .output()
        .expect("rrdtool last");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("no time: {text}"))
}

#[test]
fn what_cannot_start_says_so_and_leaves_nothing() {
    let scratch = Scratch::new("refused");
    let base = folder(&scratch);
    let base = base.to_string_lossy().into_owned();
    for (options, code, text) in [
        (
            &["-l", "unix:/proc/no/sock"][..],
            1,
            "FATAL: cannot open any listen sockets",
        ),
        (&["-l", "127.0.0.1:x"], 1, "Servname not supported"),
        (&["-w", "x"], 2, "Invalid write interval x"),
        (&["-t", "0"], 1, "Invalid thread count: -t 0"),
        (
            &["-P", "FLASH"],
            4,
            "Adding permission \"FLASH\" to socket failed",
        ),
        (&["-x", "-b", &base], 0, "invalid option -- 'x'"),
    ] {
        let output = start(&scratch, options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        assert!(said.contains(text), "{options:?}: {said}");
        assert!(
            !scratch.path("pid").exists(),
            "{options:?} left its pid file"
        );
    }
    let help = start(&scratch, &["-h"]);
    assert_eq!(help.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&help.stdout).contains("--durable"));
}

/// The daemon gives up root and its groups, and its files belong to its user.
#[test]
fn it_becomes_another_user() {
    if must_skip(&["chown"]) {
        return;
    }
    let scratch = Scratch::new("user");
    let base = folder(&scratch);
    let mut chown = Command::new("chown");
    let owned = chown.args(["-R", "nobody:nogroup"]).arg(&base).status();
    assert!(owned.is_ok_and(|status| status.success()), "chown");
    let address = scratch.text("sock");
    let folder = base.to_string_lossy();
    let background = Background(&scratch);
    let begun = start(
        &scratch,
        &[
            "-l", &address, "-b", &folder, "-B", "-F", "-U", "nobody", "-G", "nogroup",
        ],
    );
    assert!(begun.status.success(), "{begun:?}");
    let pid = background.pid().expect("a pid file");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let ids = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<&str>>()
    };
    assert_eq!(ids("Uid:"), ["65534"; 4]);
    assert_eq!(ids("Gid:"), ["65534"; 4]);
    assert!(!ids("Groups:").contains(&"0"), "{:?}", ids("Groups:"));
    assert_eq!(ids("CapEff:"), ["0000000000000000"]);
    let mut client = Client::unix(Path::new(&address)).expect("it serves");
    let made = client.text("CREATE made.rrd -s 10 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:9");
    assert!(made.starts_with("0 "), "{made}");
    let owner = std::fs::metadata(base.join("made.rrd")).expect("the file");
    assert_eq!((owner.uid(), owner.gid()), (65534, 65534));
    client.text("UPDATE a.rrd 1000000010:1");
    background.end("-TERM");
    assert_eq!(last_update(&base.join("a.rrd")), 1_000_000_010);
}

fn ask(client: std::io::Result<Client>, lines: &[(&str, &str)]) {
    let mut client = client.expect("connected");
    for (line, reply) in lines {
        assert!(client.text(line).starts_with(reply), "{line}");
    }
}

#[test]
fn sockets_have_permissions_and_modes_of_their_own() {
    let scratch = Scratch::new("sockets");
    let base = folder(&scratch);
    let (plain, few, group) = (
        scratch.text("plain"),
        scratch.text("few"),
        scratch.text("group"),
    );
    let port = free_port();
    let (v4, v6) = (format!("127.0.0.1:{port}"), format!("[::1]:{port}"));
    let options = format!(
        "-m 0600 -l {plain} -P FLUSH,PENDING,BATCH -m 0666 -l {few} -P PING -l {v4} -l {v6} -s root -m 0640 -l {group}"
    );
    let options: Vec<&str> = options.split(' ').collect();
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &options);
    for (path, mode) in [(&plain, 0o600), (&few, 0o666), (&group, 0o640)] {
        let stat = std::fs::metadata(path).expect("a socket");
        assert_eq!(stat.permissions().mode() & 0o7777, mode, "{path}");
    }
    ask(
        Client::unix(Path::new(&plain)),
        &[
            ("PING", "0 PONG"),
            ("UPDATE a.rrd 1000000010:1", "0 errors"),
        ],
    );
    ask(
        Client::unix(Path::new(&few)),
        &[
            ("PING", "-1 Permission denied."),
            ("UPDATE a.rrd 1000000020:1", "-1 Permission denied."),
            ("PENDING a.rrd", "1 updates pending"),
            ("flush a.rrd", "0 Successfully"),
            ("HELP", "24 Command overview"),
            ("FOO", "-1 Unknown command: FOO"),
            ("BATCH", "0 Go ahead."),
        ],
    );
    for address in [&v4, &v6] {
        // A machine may have no IPv6.
        let Ok(stream) = std::net::TcpStream::connect(address) else {
            assert!(address.starts_with('['), "{address}");
            continue;
        };
        let mut text = String::new();
        std::io::Write::write_all(&mut &stream, b"PING\nSTATS\nQUIT\n").expect("sent");
        std::io::Read::read_to_string(&mut &stream, &mut text).expect("read");
        assert_eq!(text, "0 PONG\n-1 Permission denied.\n");
    }
    // The default socket, which the harness adds last, has the last permissions.
    ask(
        Ok(daemon.connect()),
        &[("PING", "0 PONG"), ("STATS", "-1 Permission denied.")],
    );
    assert!(daemon.stop("-TERM").success());
    for path in [plain, few, group] {
        assert!(!Path::new(&path).exists(), "{path} was left");
    }
}

#[test]
fn the_service_manager_hands_sockets_over() {
    let scratch = Scratch::new("activation");
    let base = folder(&scratch);
    let path = scratch.path("handed");
    let listener = UnixListener::bind(&path).expect("a socket");
    kymo_tests::inherit(&listener);
    let number = std::os::fd::AsRawFd::as_raw_fd(&listener);
    // Only the process itself knows its number.
    let script = format!("exec env LISTEN_PID=$$ LISTEN_FDS=1 \"$@\" 3<&{number}");
    let mut command = Command::new("bash");
    command
        .args(["-c", &script, "bash"])
        .arg(program(&scratch))
        .args(["-g", "-P", "PING,STATS", "-p"])
        .arg(scratch.path("pid"))
        .arg("-b")
        .arg(&base)
        .args(["-l", &scratch.text("unused")]);
    let child = command.stdin(Stdio::null()).spawn().expect("started");
    let child = kymo_tests::Running(child);
    let mut client = Client::unix(&path).expect("connected");
    assert_eq!(client.text("PING"), "0 PONG");
    assert_eq!(client.text("QUEUE"), "-1 Permission denied.");
    assert!(
        !scratch.path("unused").exists(),
        "-l is for when none is handed over"
    );
    child.signal("-TERM");
    assert_eq!(client.rest().expect("closed"), b"");
    assert!(path.exists(), "the socket's name is the service manager's");
}

#[test]
fn signals_say_whether_files_are_written() {
    for (signal, options, written) in [
        ("-TERM", &["-F"][..], true),
        ("-INT", &["-F"], true),
        ("-TERM", &[], false),
        ("-USR1", &[], true),
        ("-USR2", &["-F"], false),
    ] {
        let scratch = Scratch::new("signals");
        let base = folder(&scratch);
        let journal = scratch.text("journal");
        std::fs::create_dir(&journal).expect("a folder");
        let options = [options, &["-j", &journal]].concat();
        let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &options);
        let mut client = daemon.connect();
        client.text("UPDATE a.rrd 1000000010:1 1000000020:2");
        daemon.signal("-HUP");
        assert_eq!(client.text("PING"), "0 PONG", "SIGHUP ends nothing");
        assert!(daemon.stop(signal).success());
        assert_eq!(client.rest().expect("closed"), b"");
        let expected = if written {
            1_000_000_020
        } else {
            1_000_000_000
        };
        assert_eq!(
            last_update(&base.join("a.rrd")),
            expected,
            "{signal} {options:?}"
        );
        let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &options);
        let pending = daemon.connect().text("PENDING a.rrd");
        let count = if written { 0 } else { 2 };
        assert!(
            pending.starts_with(&format!("{count} updates pending")),
            "{signal}: {pending}"
        );
    }
}

/// Requests that arrived before the signal are answered.
#[test]
fn what_is_in_flight_at_the_end_is_answered() {
    let scratch = Scratch::new("flight");
    let base = folder(&scratch);
    for round in 0..20 {
        let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-F"]);
        let mut client = daemon.connect();
        let first = 1_000_001_000 + round * 100;
        client
            .send(format!("UPDATE a.rrd {first}:1\n").as_bytes())
            .expect("sent");
        assert!(daemon.stop("-TERM").success());
        assert_eq!(
            client.rest().expect("read"),
            b"0 errors, enqueued 1 value(s).\n"
        );
        assert_eq!(last_update(&base.join("a.rrd")), first);
    }
}

/// Clients that send requests for files without a pause do not delay the end.
#[test]
fn who_goes_on_asking_for_files_is_not_waited_for() {
    let scratch = Scratch::new("asking");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-F"]);
    let mut clients = [daemon.connect(), daemon.connect()];
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                while client
                    .ask(b"FETCH a.rrd AVERAGE 1000000000 1000000100")
                    .is_ok_and(|reply| matches!(reply, Reply::Bytes(_)))
                {}
            });
        }
        std::thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        assert!(daemon.stop("-TERM").success());
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
    });
}

#[test]
fn durable_answers_are_the_same_answers() {
    let scratch = Scratch::new("durable");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["--durable", "-F"]);
    // With this many files none gets the 64 values after which values are saved and no longer pending.
    const FILES: usize = 8;
    let mut client = daemon.connect();
    for file in 0..FILES {
        let definition = "-b 1000000000 DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:9";
        let reply = client.text(&format!("CREATE d{file}.rrd {definition}"));
        assert_eq!(reply, "0 RRD created OK");
    }
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let mut client = daemon.connect();
            std::thread::spawn(move || {
                let mut accepted = [0; FILES];
                for round in 0..50 {
                    let stamp = 1_000_000_001 + round * 8 + thread;
                    let file = (round + thread) % FILES;
                    let reply = client.text(&format!("UPDATE d{file}.rrd {stamp}:1"));
                    accepted[file] += u32::from(reply == "0 errors, enqueued 1 value(s).");
                    assert!(
                        reply.starts_with("0 errors") || reply.starts_with("-1 illegal"),
                        "{reply}"
                    );
                }
                accepted
            })
        })
        .collect();
    let accepted: Vec<[u32; FILES]> = threads
        .into_iter()
        .map(|thread| thread.join().expect("asked"))
        .collect();
    for file in 0..FILES {
        let sum: u32 = accepted.iter().map(|accepted| accepted[file]).sum();
        let pending = client.text(&format!("PENDING d{file}.rrd"));
        let expected = format!("{sum} updates pending");
        assert!(pending.starts_with(&expected), "{expected}: {pending}");
    }
    client.text("UPDATE a.rrd 1000000001:1");
    let lines = [
        "PING",
        "FLUSH a.rrd",
        "BATCH",
        "UPDATE a.rrd 1000005000:1",
        "UPDATE a.rrd 1:1",
        ".",
        "LAST a.rrd",
    ];
    let text = transcript(&daemon, &base.to_string_lossy(), &lines);
    assert!(
        text.starts_with("0 PONG\n0 Successfully flushed BASE/a.rrd.\n0 Go ahead."),
        "{text}"
    );
    assert!(text.ends_with("0 1000005000\n"), "{text}");
}

#[test]
fn a_client_that_never_reads_costs_little_and_holds_nobody_up() {
    let scratch = Scratch::new("deaf");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &[]);
    let mut deaf = UnixStream::connect(daemon.socket()).expect("connected");
    deaf.set_nonblocking(true).expect("set");
    let lines = "HELP\n".repeat(10_000);
    let begun = Instant::now();
    let mut sent = 0;
    let mut other = daemon.connect();
    while begun.elapsed() < Duration::from_secs(1) {
        match std::io::Write::write(&mut deaf, lines.as_bytes()) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        assert_eq!(other.text("PING"), "0 PONG");
    }
    assert!(
        sent < 4 << 20,
        "{sent} bytes were taken from who reads nothing"
    );
    let resident = resident_kb(daemon.pid());
    assert!(resident < 64 << 10, "{resident} KiB");
    // The client reads at last, and gets all its answers.
    deaf.set_nonblocking(false).expect("set");
    let whole = sent / 5;
    let reader = deaf.try_clone().expect("cloned");
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &reader, &mut bytes).expect("read");
        String::from_utf8_lossy(&bytes)
            .matches("24 Command overview")
            .count()
    });
    deaf.shutdown(std::net::Shutdown::Write).expect("shut down");
    assert_eq!(reading.join().expect("read"), whole);
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("VmRSS");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number")
}

/// CPU time of a process, in ticks of 10 ms.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let rest = stat.rsplit(')').next().expect("fields");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime")
}

/// True once a second passes with at most `ticks_max` ticks; at first the daemon may still set up its journal.
fn comes_to_rest(pid: u32, ticks_max: u64) -> bool {
    (0..20).any(|_| {
        let begun = ticks(pid);
        std::thread::sleep(Duration::from_secs(1));
        ticks(pid) - begun <= ticks_max
    })
}

#[test]
fn a_line_may_be_long_and_must_end() {
    let scratch = Scratch::new("long");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &[]);
    let mut client = daemon.connect();
    let values: String = (1..=20_000)
        .map(|i| format!(" {}:{i}", 1_000_000_000 + i))
        .collect();
    let reply = client.text(&format!("UPDATE a.rrd{values}"));
    assert_eq!(reply, "0 errors, enqueued 20000 value(s).");
    assert!(client.text("FLUSH a.rrd").starts_with("0 Success"));
    let endless = vec![b'x'; 4 << 20];
    let mut client = daemon.connect();
    // The daemon closes the connection somewhere in between.
    let sent = client.send(&endless);
    let closed = client.rest();
    assert!(sent.is_err() || closed.is_ok_and(|bytes| bytes.is_empty()));
    assert!(resident_kb(daemon.pid()) < 64 << 10);
    assert_eq!(daemon.connect().text("PING"), "0 PONG");
}

#[test]
fn ten_thousand_idle_connections_cost_little() {
    let limit = kymo_sys::machine::raise_open_files();
    let count = 10_000.min(limit.saturating_sub(500)) as usize;
    let scratch = Scratch::new("idle");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &[]);
    let before = resident_kb(daemon.pid());
    let mut idle = Vec::with_capacity(count);
    for _ in 0..count {
        idle.push(UnixStream::connect(daemon.socket()).expect("connected"));
    }
    // Each client has sent one request.
    for stream in &idle {
        std::io::Write::write_all(&mut &*stream, b"PING\n").expect("sent");
    }
    for stream in &idle {
        let mut reply = [0; 7];
        std::io::Read::read_exact(&mut &*stream, &mut reply).expect("read");
        assert_eq!(&reply, b"0 PONG\n");
    }
    let after = resident_kb(daemon.pid());
    assert!(
        after - before < 16 << 10,
        "{} KiB for {count}",
        after - before
    );
    assert!(comes_to_rest(daemon.pid(), 3), "idle connections take CPU");
    let mut client = daemon.connect();
    assert_eq!(
        client.text("UPDATE a.rrd 1000000010:1"),
        "0 errors, enqueued 1 value(s)."
    );
}

#[test]
fn without_files_left_it_neither_spins_nor_ends() {
    let scratch = Scratch::new("emfile");
    let base = folder(&scratch);
    let mut command = Command::new("bash");
    command
        .args(["-c", "ulimit -n 48; exec \"$@\"", "bash"])
        .arg(program(&scratch))
        .arg("-g")
        .arg("-b")
        .arg(&base);
    let daemon = Daemon::spawn(command, &scratch.path(""));
    let mut served = daemon.connect();
    assert_eq!(served.text("PING"), "0 PONG");
    let crowd: Vec<UnixStream> = (0..100)
        .map(|_| UnixStream::connect(daemon.socket()).expect("queued"))
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        comes_to_rest(daemon.pid(), 10),
        "CPU is taken with nothing to do"
    );
    assert_eq!(served.text("PING"), "0 PONG", "who is served goes on");
    drop(crowd);
    let mut client = daemon.connect();
    assert_eq!(client.text("PING"), "0 PONG", "and then others come");
    let said = daemon.output_text();
    let complaints = said
        .lines()
        .filter(|line| line.contains("cannot accept"))
        .count();
    assert_eq!(complaints, 1, "{said}");
}

/// An unwritable log does not end the daemon.
#[test]
fn it_logs_into_a_file() {
    let scratch = Scratch::new("log");
    let base = folder(&scratch);
    let log = scratch.text("own.log");
    let daemon = Daemon::start(
        Side::Ours,
        &scratch.path(""),
        &base,
        &["-o", &log, "-V", "LOG_INFO"],
    );
    assert!(daemon.stop("-TERM").success());
    let text = std::fs::read_to_string(&log).expect("a log");
    let said: BTreeSet<&str> = text.lines().filter_map(|line| line.get(24..)).collect();
    for line in [
        "starting up",
        "listening for connections",
        "caught SIGTERM",
        "starting shutdown",
        "goodbye",
    ] {
        assert!(said.contains(line), "{line} is not in\n{text}");
    }
    let first = text.lines().next().expect("a line");
    assert_eq!((&first[4..5], &first[19..24]), ("-", " [6] "), "{first}");
}

/// Stock's answer here has freed memory.
#[test]
fn a_column_that_is_not_there_is_told() {
    let scratch = Scratch::new("column");
    let base = folder(&scratch);
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &[]);
    let reply = daemon
        .connect()
        .text("FETCH a.rrd AVERAGE 1000000000 1000000050 y");
    assert_eq!(
        reply,
        format!("-1 field y not found in {}/a.rrd", base.display())
    );
}

/// QUIT closes the connection without a reply, on both sides.
#[test]
fn quit_closes() {
    let scratch = Scratch::new("quit");
    for (daemon, _) in both(&scratch, &[]) {
        let mut client = daemon.connect();
        assert_eq!(
            client.ask(b"quit").expect("closed"),
            Reply::Closed(Vec::new())
        );
    }
}
