//! `-A`: real clients by unix sockets and TCP beside the terminal's output, a client that never reads, and access by user.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_tests::{Running, Scratch, free_port, kymo, run};

/// A live command whose outputs are read by threads.
struct Live {
    program: Running,
    stdout: Option<JoinHandle<String>>,
    stderr: BufReader<std::process::ChildStderr>,
}

fn live(words: &[&str]) -> Live {
    live_as(&kymo(), words)
}

fn live_as(program: &Path, words: &[&str]) -> Live {
    let mut child: Child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let stdout = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).expect("text");
        text
    });
    Live {
        program: Running(child),
        stdout: Some(stdout),
        stderr,
    }
}

impl Live {
    /// The next line on stderr that contains `part`.
    fn next_line(&mut self, part: &str) -> String {
        let mut line = String::new();
        while self.stderr.read_line(&mut line).expect("text") > 0 {
            if line.contains(part) {
                return line.trim().to_string();
            }
            line.clear();
        }
        panic!("it never said {part}");
    }

    /// The address at which the command serves clients.
    fn address(&mut self) -> String {
        let line = self.next_line("clients are served at");
        line.rsplit(' ').next().expect("an address").to_string()
    }

    /// Exit code and all of stdout, after the command ended by itself.
    fn output(mut self) -> (Option<i32>, String) {
        let stdout = self.stdout.take().expect("read once");
        let text = stdout.join().expect("text");
        let status = self.program.0.wait().expect("it has ended");
        (status.code(), text)
    }
}

fn all_of(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).expect("text");
    text
}

/// Two clients, an early and a late one, get the lines of the terminal from their connection on, below its header.
#[test]
fn clients_see_what_the_terminal_shows() {
    for (words, heads) in [
        (&["-scdn"] as &[&str], 2),
        (&["-sc", "--verbose"], 3),
        (&["-scm", "-P"], 1),
        (&["-sm", "--csv"], 1),
        (&["--vmstat"], 2),
        (&["-sc", "--json"], 0),
    ] {
        let scratch = Scratch::new("clients");
        let socket = scratch.text("s");
        let words = [words, &["-i.1", "-c20", "-A", &socket]].concat();
        let mut program = live(&words);
        let address = program.address();
        let first = UnixStream::connect(&address).expect("it listens");
        let about = fs::symlink_metadata(&address).expect("a socket");
        assert!(about.file_type().is_socket());
        assert_eq!(about.mode() & 0o777, 0o600);
        let first = std::thread::spawn(move || all_of(first));
        std::thread::sleep(Duration::from_millis(700));
        let late = all_of(UnixStream::connect(&address).expect("it listens"));
        let first = first.join().expect("text");
        let (code, shown) = program.output();
        assert_eq!(code, Some(0));
        assert!(!scratch.path("s").exists(), "the socket's name has gone");
        assert_eq!(first, shown, "{words:?}");
        let begin = first.split_inclusive('\n').take(heads).collect::<String>();
        let rest = late.strip_prefix(&begin);
        let rest = rest.unwrap_or_else(|| panic!("{words:?}: no header over {late}"));
        assert!(
            !rest.is_empty() && rest.len() < first.len() - begin.len(),
            "{words:?}"
        );
        assert!(shown.ends_with(rest), "{words:?}");
    }
}

/// A client that never reads costs neither the terminal nor the other clients anything.
#[test]
fn who_never_reads_is_dropped() {
    let scratch = Scratch::new("clients-slow");
    let socket = scratch.text("s");
    let mut program = live(&["-sZ", "-i.02:.02", "--json", "-A", &socket]);
    let address = program.address();
    let never = UnixStream::connect(&address).expect("it listens");
    let reads = UnixStream::connect(&address).expect("it listens");
    let mut reads = BufReader::new(reads).lines();
    let reader = std::thread::spawn(move || {
        let mut seen = 0;
        while reads.next().is_some_and(|line| line.is_ok()) {
            seen += 1;
        }
        seen
    });
    let line = program.next_line("dropped");
    assert_eq!(
        line,
        "kymo: dropped clients that did not read what was sent: 1 so far"
    );
    std::thread::sleep(Duration::from_millis(500));
    program.program.signal("-TERM");
    let (code, shown) = program.output();
    assert_eq!(code, Some(0));
    // Each interval is there, and whole.
    let lines = shown.lines().count();
    assert!(
        shown
            .lines()
            .all(|line| line.starts_with('{') && line.ends_with('}'))
    );
    let seen: usize = reader.join().expect("a number");
    assert!(seen > lines / 2, "{seen} of {lines} lines");
    // The bytes in this client's queue do not exceed the limit of a queue.
    let left = all_of(never).len();
    assert!((1..8 << 20).contains(&left), "{left} bytes");
}

/// TCP clients, and then the terminal too, get no command lines and no users; clients of a unix socket do.
#[test]
fn command_lines_are_for_the_owner() {
    let word = "word-of-a-command-line";
    let _process = Running::shell(&format!("sleep 60; : {word}"));
    let scratch = Scratch::new("clients-private");
    for (place, form, private) in [
        (scratch.text("s"), "--verbose", true),
        ("127.0.0.1:0".to_string(), "--verbose", false),
        (scratch.text("s"), "--json", true),
        ("127.0.0.1:0".to_string(), "--json", false),
        ("server:0".to_string(), "-P", false),
    ] {
        let words = [
            &[
                "-sZ",
                "-i.1:.1",
                "-c8",
                "--procfilt",
                "csh",
                "--procopts",
                "w",
            ] as &[&str],
            &[form, "-A", &place],
        ];
        let words = words.concat();
        let mut program = live(&words);
        let address = program.address();
        let seen = match private {
            true => all_of(UnixStream::connect(&address).expect("it listens")),
            false => all_of(TcpStream::connect(&address).expect("it listens")),
        };
        let (_, shown) = program.output();
        assert!(seen.contains("sh"), "{place} {form}: {seen}");
        assert_eq!(seen.contains(word), private, "{place} {form}: {seen}");
        assert_eq!(shown.contains(word), private, "{place} {form}");
        assert_eq!(seen.contains("root"), private, "{place} {form}: {seen}");
    }
}

/// On a socket, the intervals of an export end with collectl's mark; on the terminal they do not.
#[test]
fn exports_are_served() {
    let scratch = Scratch::new("clients-export");
    let mut program = live(&[
        "-sc",
        "-i.1",
        "-c5",
        "--export",
        "lexpr",
        "-A",
        &scratch.text("s"),
    ]);
    let seen = all_of(UnixStream::connect(program.address()).expect("it listens"));
    let (_, shown) = program.output();
    let ends = seen.matches("\n>>><<<\n").count();
    assert!(
        ends > 0 && ends == seen.matches("sample.time").count(),
        "{seen}"
    );
    assert!(shown.ends_with(&seen.replace(">>><<<\n", "")));
}

/// kymo connects to a listener, as collectl does for colmux: each line begins with the host's name, in collectl's format, and
/// each side ends when the other one ends.
#[test]
fn kymo_connects_as_collectl_does() {
    let scratch = Scratch::new("clients-connect");
    let named = scratch.path("collectl");
    symlink(kymo(), &named).expect("a link");
    let waiting = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = waiting.local_addr().expect("an address").to_string();
    let (plain, connect) = (to.as_str(), format!("connect:{to}"));
    let mut begins = BTreeSet::new();
    for (program, place) in [
        (Path::new("/usr/bin/collectl"), plain),
        (&named, plain),
        (&kymo(), &connect),
    ] {
        let mut running = live_as(program, &["-sc", "-i1", "-A", place]);
        let (mut client, _) = waiting.accept().expect("a client");
        let mut lines = BufReader::new(&client).lines();
        let mut next = || lines.next().expect("a line").expect("text");
        let begin = format!("{}\n{}", next(), next());
        let row = next();
        let host = begin.split(' ').next().expect("a host").to_string();
        assert!(row.starts_with(&format!("{host} ")), "{row}");
        begins.insert(begin);
        client.write_all(b"means nothing\n").expect("it is heard");
        drop(client);
        assert_eq!(running.program.0.wait().expect("it ends").code(), Some(0));
    }
    assert_eq!(begins.len(), 1, "{begins:?}");
}

#[test]
fn what_is_refused() {
    let scratch = Scratch::new("clients-refused");
    let (folder, socket, text) = (scratch.text("f"), scratch.text("s"), scratch.text("t"));
    let _listens = UnixListener::bind(&socket).expect("a socket");
    fs::write(&text, "text").expect("a file");
    let taken = TcpListener::bind(("127.0.0.1", free_port())).expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let raw = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/vm-20261121-215607.raw.gz"
    );
    for (words, cause) in [
        (&["-A", "0.0.0.0:0"] as &[&str], "--insecure"),
        (&["-A", "10.0.0.1:7"], "--insecure"),
        (&["-A", &socket], "somebody listens there"),
        (&["-A", &text], "something is there that is no socket"),
        (&["-A", &taken], "cannot listen at"),
        (
            &["-f", &folder, "-A", &socket],
            "the recorder has no clients",
        ),
        (&["-P", "-f", &folder, "-A", &socket], "plot files"),
        (&["-p", raw, "-A", &socket], "it is for what is shown live"),
        (
            &["--export", "graphite,localhost", "-A", &socket],
            "address of its own",
        ),
        (
            &["-sZ", "--procfilt", "U root", "-A", "127.0.0.1:0"],
            "--procfilt",
        ),
        (&["-scg", "-A", "127.0.0.1:0"], "control groups"),
        (&["-sG", "-A", "127.0.0.1:0"], "control groups"),
        (&["--insecure"], "cannot"),
    ] {
        let mut words = words.to_vec();
        if !words.contains(&"-p") {
            words.extend(["-c1", "-i.1"]);
        }
        let output = run(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains(cause) && said.lines().count() == 1,
            "{words:?}: {said}"
        );
    }
    let recorder = run(&["record", "-f", &folder, "-A", &socket]);
    let said = String::from_utf8_lossy(&recorder.stderr).into_owned();
    assert!(said.contains("the recorder has no clients"), "{said}");
    assert!(!scratch.path("f").exists());
    assert_eq!(fs::read_to_string(&text).expect("a file"), "text");
}

/// A daemon that serves clients needs no folder, and replaces the socket that a killed one left.
#[test]
fn a_daemon_serves() {
    let scratch = Scratch::new("clients-daemon");
    let (socket, pid_file) = (scratch.text("s"), scratch.path("pid"));
    drop(UnixListener::bind(&socket).expect("a socket"));
    let words = ["-D", "-sc", "-i.1", "-A", &socket, "--pidfile"];
    let pid_name = pid_file.to_string_lossy().into_owned();
    let output = run(&[&words[..], &[&pid_name]].concat());
    assert!(output.status.success(), "{output:?}");
    let pid: u32 = fs::read_to_string(&pid_file)
        .expect("a file")
        .trim()
        .parse()
        .expect("a number");
    let mut client = BufReader::new(UnixStream::connect(&socket).expect("it listens"));
    let mut line = String::new();
    client.read_line(&mut line).expect("a line");
    assert!(line.starts_with("#<--"), "{line}");
    kymo_sys::machine::ask_to_end(pid);
    let rest = all_of(client);
    assert!(!rest.is_empty() && !Path::new(&socket).exists());
}
