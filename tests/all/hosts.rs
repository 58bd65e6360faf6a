//! `kymo top HOST: HOST: ...` and `kymo feed`: many recordings through a program in place of ssh, real servers of ssh on loopback, and
//! hosts that hang, send garbage or speak another version.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

use kymo_query::feed::Feed;
use kymo_query::recorded::Recorded;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_tests::machine::must_skip;
use kymo_tests::served::eventually;
use kymo_tests::{Running, Scratch, free_port, kymo, put, stdout_of};

/// Records a made-up machine with this load.
fn record(scratch: &Scratch, name: &str, load: usize) {
    let root = scratch.path(&format!("root-{name}"));
    put(
        &root,
        "proc/loadavg",
        &format!("{load}.00 0.00 0.00 1/10 99\n"),
    );
    put(
        &root,
        "proc/stat",
        "cpu  1 0 1 9 0 0 0 0 0 0\ncpu0 1 0 1 9 0 0 0 0 0 0\n",
    );
    let (root, rec) = (root.to_string_lossy().into_owned(), scratch.text(name));
    stdout_of(&[
        "record", "-f", &rec, "-sc", "-i0.05", "-c3", "--root", &root,
    ]);
}

fn script(scratch: &Scratch, name: &str, body: &str) -> String {
    let path = scratch.path(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    path.to_string_lossy().into_owned()
}

/// A program in place of ssh: a host is a recording, but for a few.
fn way(scratch: &Scratch) -> String {
    let (folder, kymo) = (scratch.text(""), kymo());
    let kymo = kymo.display();
    let proxy = scratch.text("proxy.py");
    fs::write(&proxy, PROXY).expect("a program");
    let body = format!(
        r#"[ "$1 $2 $3 $4 $5" = "-T -oBatchMode=yes -oConnectTimeout=5 -oClearAllForwardings=yes --" ] || exit 9
[ "$7 $8 $9" = "kymo feed --stdio" ] || exit 9
case "$6" in
hang) exec sleep 1000;;
garbage) exec yes 'Last login: today';;
other) printf 'KYMOFEED\007\000\000\000'; exec sleep 1000;;
long) printf 'KYMOFEED\001\000\000\000\377\377\377\377'; exec sleep 1000;;
no) printf 'no way to \033[2J%s\n' "$6" >&2; exit 255;;
stuck) mkdir {folder}/answered 2>/dev/null || exec sleep 1000; exec {kymo} feed --stdio --data {folder}/h1;;
late) exec python3 {proxy} {kymo} feed --stdio --data {folder}/late;;
*) exec {kymo} feed --stdio --data {folder}/"$6";;
esac"#
    );
    script(scratch, "way", &body)
}

/// Passes a feed on, and sets its clock back by 100 s.
const PROXY: &str = r"
import subprocess, struct, sys, threading, os
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def forth():
    while True:
        piece = os.read(0, 4096)
        if not piece:
            child.stdin.close()
            return
        child.stdin.write(piece)
        child.stdin.flush()
threading.Thread(target=forth, daemon=True).start()
out = sys.stdout.buffer
out.write(child.stdout.read(12))
while True:
    head = child.stdout.read(4)
    if len(head) < 4:
        break
    frame = child.stdout.read(struct.unpack('<I', head)[0])
    if frame[0] == 2:
        id, now = struct.unpack('<Iq', frame[1:])
        frame = frame[:1] + struct.pack('<Iq', id, now - 100_000_000_000)
    out.write(head + frame)
    out.flush()
";

fn top(way: &str, words: &[&str]) -> Output {
    let mut command = Command::new(kymo());
    command.arg("top").args(words).env("KYMO_SSH", way);
    command.stdin(Stdio::null()).output().expect("kymo runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fifty hosts, and five that are none: each has its row, and no other one waits for it for longer than the limit.
#[test]
fn many_hosts_are_rows_of_a_table() {
    let scratch = Scratch::new("hosts-many");
    let way = way(&scratch);
    let bad = ["hang:", "garbage:", "other:", "long:", "no:", "nowhere:"];
    let mut words = vec!["--once".to_string(), "--sort".into(), "load".into()];
    words.extend(bad.iter().map(ToString::to_string));
    for number in 1..=50 {
        record(&scratch, &format!("h{number}"), number);
        words.push(format!("h{number}:"));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = top(&way, &words);
    let table = text(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert_eq!(table.lines().count(), 1 + 50 + bad.len(), "{table}");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    for (row, number) in rows.iter().zip((1..=50).rev()) {
        assert_eq!(row[0], format!("h{number}"), "{table}");
        assert_eq!(row[2], format!("{number}.0"), "{table}");
    }
    for (host, why) in [
        ("garbage", "it sends no feed of kymo"),
        (
            "other",
            "its feed is of version 7, and 1 is the only one known",
        ),
        ("long", "it sends a frame of 4294967295 bytes"),
        ("no", "no way to \\x1b[2Jno"),
        ("nowhere", "nowhere"),
    ] {
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("{host} ")));
        assert!(row.is_some_and(|row| row.contains(why)), "{host}: {table}");
    }
    let hang = table
        .lines()
        .find(|line| line.starts_with("hang "))
        .expect("its row");
    assert!(
        hang.contains("connecting") || hang.contains("does not answer"),
        "{table}"
    );
    assert!(
        table.chars().all(|c| c == '\n' || !c.is_control()),
        "{table}"
    );
}

#[test]
fn the_clock_of_a_host_is_measured() {
    let scratch = Scratch::new("hosts-clock");
    let way = way(&scratch);
    record(&scratch, "late", 1);
    record(&scratch, "right", 2);
    let said = top(&way, &["--once", "--sort", "host", "late:", "right:"]);
    let table = text(&said.stdout);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let clock = |line: usize| -> f64 {
        let row = table.lines().nth(line).expect("a row");
        let word = row.split_whitespace().nth(8).expect("its clock");
        word.parse().expect("a number")
    };
    assert!((clock(1) + 100.0).abs() < 20.0, "{table}");
    assert!(clock(2).abs() < 20.0, "{table}");
}

/// The table of a moment has what the hosts had then, also of one whose clock is late.
#[test]
fn hosts_are_seen_as_they_were() {
    let scratch = Scratch::new("hosts-at");
    let way = way(&scratch);
    record(&scratch, "late", 1);
    let then = RealClock.now().real_ns / 1_000_000_000;
    // The proxy's clock is late by 100 s, but its samples are not: those of 100 s before now are none.
    std::thread::sleep(std::time::Duration::from_secs(2));
    record(&scratch, "right", 1);
    let root = scratch.path("root-right");
    put(&root, "proc/loadavg", "9.00 0.00 0.00 1/10 99\n");
    let (root, rec) = (root.to_string_lossy().into_owned(), scratch.text("right"));
    let between = RealClock.now().real_ns / 1_000_000_000;
    std::thread::sleep(std::time::Duration::from_secs(2));
    stdout_of(&[
        "record", "-f", &rec, "-sc", "-i0.05", "-c3", "--root", &root,
    ]);
    let row = |at: i64, host: &str| {
        let said = top(&way, &["--at", &at.to_string(), host]);
        (said.status.code(), text(&said.stdout))
    };
    let load = |table: &str| {
        let row = table.lines().nth(1).map(str::split_whitespace);
        row.and_then(|mut words| words.nth(2)).map(String::from)
    };
    let (code, before) = row(between, "right:");
    assert_eq!(
        (code, load(&before)),
        (Some(0), Some("1.0".into())),
        "{before}"
    );
    let (code, after) = row(between + 60, "right:");
    assert_eq!(
        (code, load(&after)),
        (Some(0), Some("9.0".into())),
        "{after}"
    );
    for (at, host) in [(then - 1000, "right:"), (then - 1, "late:")] {
        let (code, table) = row(at, host);
        assert_eq!(code, Some(1), "{table}");
        assert!(table.contains("nothing was recorded then"), "{table}");
    }
    let (code, table) = row(then + 100, "late:");
    assert_eq!(
        (code, load(&table)),
        (Some(0), Some("1.0".into())),
        "{table}"
    );
}

/// Without a recorder the host scans by itself.
#[test]
fn a_host_that_is_not_recorded_is_scanned() {
    let scratch = Scratch::new("hosts-own");
    let nowhere = scratch.text("nowhere");
    let kymo = kymo();
    let way = script(
        &scratch,
        "way",
        &format!(
            "export HOME={nowhere} XDG_RUNTIME_DIR={nowhere} RUNTIME_DIRECTORY={nowhere} STATE_DIRECTORY={nowhere}; exec {} feed --stdio",
            kymo.display()
        ),
    );
    let said = top(&way, &["--once", "own:"]);
    let table = text(&said.stdout);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let row: Vec<&str> = table
        .lines()
        .nth(1)
        .expect("a row")
        .split_whitespace()
        .collect();
    let cpu: f64 = row[1].parse().expect("a share of the CPUs");
    assert!((0.0..=100.0).contains(&cpu), "{table}");
}

/// The words of a picture that a program draws by moving the cursor, setting styles and erasing, in 80 columns and 24 lines.
fn picture_of(bytes: &[u8]) -> String {
    let mut cells = vec![vec![' '; 80]; 24];
    let (mut x, mut y) = (0, 0);
    let text = text(bytes);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            match letter {
                '\r' => x = 0,
                '\n' => y += 1,
                letter if x < 80 && y < 24 => (cells[y][x], x) = (letter, x + 1),
                _ => {}
            }
            continue;
        }
        if letters.next() != Some('[') {
            continue;
        }
        let mut numbers = String::new();
        let end = letters.by_ref().find(|letter| {
            numbers.push(*letter);
            letter.is_ascii_alphabetic()
        });
        let numbers: Vec<usize> = numbers
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        match end {
            Some('H') => {
                let at = |n: usize| numbers.get(n).map_or(0, |number| number.saturating_sub(1));
                (y, x) = (at(0), at(1));
            }
            Some('J') => cells.iter_mut().for_each(|line| line.fill(' ')),
            _ => {}
        }
    }
    let lines: Vec<String> = cells.iter().map(|line| line.iter().collect()).collect();
    lines.join("\n")
}

/// `kymo top` on a terminal of its own.
struct OnTerminal {
    script: Child,
    keys: std::process::ChildStdin,
    shown: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
}

impl OnTerminal {
    fn start(way: &str, words: &str) -> OnTerminal {
        let line = format!(
            "stty cols 80 rows 24; exec {} top {words}",
            kymo().display()
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]);
        script
            .env("KYMO_SSH", way)
            .env("TERM", "xterm")
            .env("TZ", "UTC");
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().expect("script");
        let mut output = script.stdout.take().expect("its output");
        let shown = std::sync::Arc::<std::sync::Mutex<Vec<u8>>>::default();
        let all = shown.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                all.lock()
                    .expect("bytes")
                    .extend_from_slice(&piece[..count]);
            }
        });
        let keys = script.stdin.take().expect("its input");
        OnTerminal {
            script,
            keys,
            shown,
        }
    }

    /// Types keys, and waits until the picture has all of these words.
    fn then(&mut self, keys: &str, words: &[&str]) -> String {
        self.keys.write_all(keys.as_bytes()).expect("typed");
        let mut last = String::new();
        let found = eventually(|| {
            last = picture_of(&self.shown.lock().expect("bytes"));
            words.iter().all(|word| last.contains(word)).then_some(())
        });
        assert!(found.is_some(), "{keys:?} {words:?}: {last}");
        last
    }

    fn left(mut self) {
        self.keys.write_all(b"q").expect("typed");
        let status = self.script.wait().expect("its end");
        assert!(status.success());
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // The terminal goes with it, and so the program.
        let _ended = self.script.kill();
    }
}

/// The time in the title of the table or of a host, `HH:MM:SS`.
fn time_of(picture: &str) -> String {
    let is_time = |word: &&str| word.len() == 8 && word.as_bytes()[2] == b':';
    let mut words = picture.split_whitespace();
    words.find(is_time).unwrap_or_default().to_string()
}

/// From the table to a host and back, with one moment for all.
fn walk(top: &mut OnTerminal, hosts: &str, first: &str, other: &str) {
    top.then("", &[hosts, "live", "HOST", "CPU%", "LOAD"]);
    // A moment that is not the last one any more.
    std::thread::sleep(std::time::Duration::from_secs(3));
    // The second in which the first recording begins, and the next one, which has samples of it.
    let begin = time_of(&top.then("B", &[hosts, " ago", "Left Right: time"]));
    top.then("/", &["Filter:"]);
    top.then(&format!("{first}\r"), &[&format!("filter {first}")]);
    let table = top.then("\x1b[C", &[hosts, " ago", "3.0"]);
    let moment = time_of(&table);
    let host = top.then("\r", &["1:Processes", "Esc: hosts", " ago"]);
    let there = time_of(&host);
    assert!(
        begin <= there && there <= moment,
        "{begin} {there} {moment}: {table}\n{host}"
    );
    top.then("5", &["Idle CPU"]);
    // The next samples are of the same second, or of the next one.
    top.then("\x1b[C", &["Esc: hosts"]);
    top.then("\x1b", &["HOST", "LOAD", " ago", hosts]);
    top.then("\x1b", &[other, "?: keys"]);
    top.then("L", &["live", "HOST"]);
}

/// Hosts are opened and left; one that hangs answers keys all the same.
#[test]
fn hosts_are_opened_and_left() {
    if must_skip(&["script"]) {
        return;
    }
    let scratch = Scratch::new("hosts-opened");
    let way = way(&scratch);
    for (name, load) in [("h1", 3), ("h2", 2), ("h3", 1)] {
        record(&scratch, name, load);
    }
    let mut top = OnTerminal::start(&way, "--sort load h1: h2: h3: stuck: hang:");
    top.then("", &["4 of 5 hosts"]);
    walk(&mut top, "4 of 5 hosts", "h1", "h2");
    top.then("/", &["Filter:"]);
    top.then("stuck\r", &["filter stuck"]);
    // The second connection hangs.
    top.then("\r", &["stuck is being asked"]);
    top.then("\x1b", &["4 of 5 hosts", "HOST"]);
    top.then("?", &["the host alone, at this moment"]);
    top.then("?", &["HOST", "LOAD"]);
    top.left();
}

/// Names that ssh could take for switches never reach it.
#[test]
fn names_that_are_none_are_refused() {
    let scratch = Scratch::new("hosts-names");
    let made = scratch.text("made");
    let way = script(&scratch, "way", &format!("touch {made}"));
    for (words, cause) in [
        (
            &["--once", "--", "-oProxyCommand=x:"][..],
            "it begins with a -",
        ),
        (&["--once", "me@-x:"], "it begins with a -"),
        (&["--once", "a\u{1b}b:"], "control characters"),
        (&["--once", "a b:"], "it has blanks"),
        (&["--once", ":"], "it has no name"),
        (
            &["--once", "web1:", "rec"],
            "cannot show recordings and hosts at once",
        ),
        (
            &["--once", "--keys", "m", "web1:"],
            "cannot use --keys with hosts",
        ),
        (
            &["--once", "--sort", "cpu", "rec"],
            "cannot use --sort without hosts",
        ),
        (
            &["--once", "--sort", "none", "web1:"],
            "cannot use --sort \"none\": it takes host, cpu",
        ),
    ] {
        let said = top(&way, words);
        let stderr = text(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{words:?}: {said:?}");
        assert!(
            stderr.contains(cause) && !stderr.contains('\u{1b}'),
            "{words:?}: {stderr}"
        );
    }
    assert!(!scratch.path("made").exists());
}

/// Clients that are none: the host says why, and ends.
#[test]
fn a_host_refuses_other_clients() {
    let scratch = Scratch::new("hosts-clients");
    record(&scratch, "rec", 1);
    let rec = scratch.text("rec");
    for (bytes, why) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "it sends no feed of kymo"),
        (b"KYMOFEED\x03\0\0\0", "its feed is of version 3"),
        (b"KYMOFEED\0\0\0\0", "its feed is of version 0, and 1 is"),
        (
            b"KYMOFEED\x01\0\0\0\xff\xff\0\0\x01",
            "it sends a frame of 65535 bytes",
        ),
        (
            b"KYMOFEED\x01\0\0\0\x02\0\0\0\x63\0",
            "it sends a frame that is none",
        ),
    ] {
        let mut command = Command::new(kymo());
        command.args(["feed", "--stdio", "--data", &rec]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("kymo starts");
        child
            .stdin
            .as_mut()
            .expect("its input")
            .write_all(bytes)
            .expect("it reads");
        let mut said = Vec::new();
        child
            .stdout
            .take()
            .expect("its output")
            .read_to_end(&mut said)
            .expect("it ends");
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said.starts_with(b"KYMOFEED\x01\0\0\0"));
        assert!(text(&said).contains(why), "{}", text(&said));
        assert!(text(&output.stderr).contains(why), "{output:?}");
    }
}

/// A server of ssh with its own key and port, whose kymo shows a recording.
struct Sshd {
    _running: Running,
    port: u16,
}

fn sshd(scratch: &Scratch, name: &str) -> Sshd {
    let port = free_port();
    let key = scratch.text(&format!("key-{name}"));
    keygen(&key);
    let kymo = format!(
        "exec {} \"$@\" --data {}",
        kymo().display(),
        scratch.text(name)
    );
    fs::create_dir(scratch.path(&format!("bin-{name}"))).expect("a folder");
    script(scratch, &format!("bin-{name}/kymo"), &kymo);
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {key}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PermitRootLogin yes\nPasswordAuthentication no\nPidFile none\nSetEnv PATH={}:/usr/bin:/bin\n",
        scratch.text("user.pub"),
        scratch.text(&format!("bin-{name}")),
    );
    fs::write(scratch.path(&format!("sshd-{name}")), config).expect("a configuration");
    let mut command = Command::new("/usr/sbin/sshd");
    command.args(["-D", "-e", "-f", &scratch.text(&format!("sshd-{name}"))]);
    let log = fs::File::create(scratch.path(&format!("log-{name}"))).expect("a log");
    let running = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    let running = Running(running.expect("sshd starts"));
    let answers = || std::net::TcpStream::connect(("127.0.0.1", port)).ok();
    eventually(answers)
        .unwrap_or_else(|| panic!("sshd does not listen: {}", log_of(scratch, name)));
    Sshd {
        _running: running,
        port,
    }
}

fn log_of(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.path(&format!("log-{name}"))).unwrap_or_default()
}

fn keygen(path: &str) {
    let done = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", path])
        .status();
    assert!(done.expect("ssh-keygen").success());
}

#[test]
fn hosts_are_reached_by_ssh() {
    // In /usr/sbin, which need not be in the PATH.
    if must_skip(&["ssh", "ssh-keygen"]) {
        return;
    }
    if !std::path::Path::new("/usr/sbin/sshd").exists() {
        kymo_tests::machine::skipped("sshd is missing");
        return;
    }
    let scratch = Scratch::new("hosts-ssh");
    // The folder in which sshd separates its privileges.
    fs::create_dir_all("/run/sshd").expect("a folder");
    keygen(&scratch.text("user"));
    let (mut config, mut known, mut servers) = (String::new(), String::new(), Vec::new());
    for (name, load) in [("one", 3), ("two", 2), ("three", 1)] {
        record(&scratch, name, load);
        let server = sshd(&scratch, name);
        let key = fs::read_to_string(scratch.path(&format!("key-{name}.pub"))).expect("a key");
        known += &format!("[127.0.0.1]:{} {key}", server.port);
        config += &format!(
            "Host {name}\n  HostName 127.0.0.1\n  Port {}\n",
            server.port
        );
        servers.push(server);
    }
    // A host whose key is another one.
    config += &format!(
        "Host wrong\n  HostName 127.0.0.1\n  Port {}\n  UserKnownHostsFile /dev/null\n",
        servers[0].port
    );
    config += &format!(
        "Host *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n  UserKnownHostsFile {}\n",
        scratch.text("user"),
        scratch.text("known"),
    );
    fs::write(scratch.path("config"), config).expect("a configuration");
    fs::write(scratch.path("known"), known).expect("known hosts");
    let way = script(
        &scratch,
        "way",
        &format!("exec ssh -F {} \"$@\"", scratch.text("config")),
    );
    let said = top(
        &way,
        &["--once", "--sort", "load", "three:", "root@one:", "two:"],
    );
    let table = text(&said.stdout);
    assert_eq!(
        said.status.code(),
        Some(0),
        "{said:?} {}",
        log_of(&scratch, "one")
    );
    let names: Vec<&str> = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["root@one", "two", "three"], "{table}");
    let mut opened = OnTerminal::start(&way, "one: two: three:");
    opened.then("", &["3 of 3 hosts"]);
    walk(&mut opened, "3 of 3 hosts", "one", "two");
    opened.left();
    let said = top(&way, &["--once", "two:", "wrong:"]);
    let table = text(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(table.contains("Host key verification failed"), "{table}");
}

/// Moments and texts of all samples of a source that are not for rates alone.
fn samples_of(source: &mut dyn Source) -> Vec<(i64, String)> {
    let mut samples = Vec::new();
    while let Some(step) = source.next().expect("it can be read") {
        let Step::Sample(moment) = step else { continue };
        let mut text = Vec::new();
        for kind in 0..=u8::MAX {
            let track = source.tracks().get(kind);
            for (slot, instance) in track.instances() {
                text.extend_from_slice(format!("\n{kind} {slot} {:?} ", instance.state).as_bytes());
                track.render(instance, &mut text);
            }
        }
        if !moment.warmup {
            let facts = source.context().text();
            let text = String::from_utf8_lossy(&text).into_owned();
            samples.push((moment.real_ns, format!("{facts}{text}")));
        }
    }
    samples
}

/// A `kymo feed` of a place, and its client.
pub(crate) fn feed_of(place: &str) -> (Child, Feed) {
    let mut command = Command::new(kymo());
    command.args(["feed", "--stdio", "--data", place]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("kymo starts");
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (input, output) = (input.expect("its input"), output.expect("its output"));
    let clock = std::sync::Arc::new(RealClock);
    let feed = Feed::open(Box::new(output), Box::new(input), clock, 8 << 20);
    (child, feed.expect("a feed"))
}

/// A feed of a range is a source like the recording, to the last byte of what the kernel said.
#[test]
fn a_feed_is_what_the_recording_is() {
    let scratch = Scratch::new("hosts-source");
    let rec = scratch.text("rec");
    stdout_of(&["record", "-f", &rec, "-s", "cdmnpZ", "-i0.1:0.1", "-c12"]);
    let open =
        |range| Recorded::open(&scratch.path("rec"), range, Kinds::ALL).expect("a recording");
    let all = samples_of(&mut open(TimeRange::ALL));
    assert!(all.len() >= 12, "{}", all.len());
    let file = scratch.text("rec.kymo");
    stdout_of(&["export", &rec, &file]);
    let whole = (0, all.len() - 1);
    for (place, (first, last)) in [
        (&rec, whole),
        (&rec, (5, 8)),
        (&rec, (3, 3)),
        (&file, whole),
        (&file, (5, 8)),
    ] {
        let range = TimeRange {
            from_ns: all[first].0,
            thru_ns: all[last].0,
        };
        let (mut child, mut feed) = feed_of(place);
        let hello = feed.hello();
        // The first one may be by the name of a block, to the second.
        let begin_ns = all[0].0 - all[0].0 % 1_000_000_000;
        assert!((begin_ns..=all[0].0).contains(&hello.first_ns), "{hello:?}");
        assert_eq!(hello.last_ns, all[all.len() - 1].0);
        for _ in 0..2 {
            feed.read(range, Kinds::ALL).expect("it is asked");
            let fed = samples_of(&mut feed);
            assert_eq!(fed.len(), last - first + 1);
            assert!(fed == all[first..=last], "other texts than recorded");
        }
        let extent = feed.extent().expect("an extent");
        assert_eq!(extent.thru_ns, all[all.len() - 1].0);
        let series = feed.series(&["cpu.total", "memory.total"], range, 60);
        let series = series.expect("a series");
        let ids: Vec<&str> = series.lines.iter().map(|line| line.id.as_str()).collect();
        assert_eq!(ids, ["cpu.total", "memory.total"]);
        let is_known =
            |points: &Vec<kymo_query::series::Point>| points.iter().any(|point| point.max > 0.0);
        assert!(series.points.iter().all(is_known), "{:?}", series.points);
        let refused = feed
            .series(&["cpu.none"], range, 60)
            .err()
            .expect("refused");
        assert!(
            refused.contains("no such column") && !feed.is_broken(),
            "{refused}"
        );
        let why = feed.why(range).expect("an answer");
        assert!(!why.is_empty());
        let offset = feed.offset().expect("its clock");
        assert!(
            offset.ahead_ns.abs() <= offset.doubt_ns + 1_000_000_000,
            "{offset:?}"
        );
        drop(feed);
        assert!(child.wait().expect("its end").success());
    }
}
