//! An output may be full, closed, or have no reader; a disk that is full under the log is the moment at which a daemon must go
//! on. Each command of `--help` runs with each of these as stdout and as stderr, and each daemon answers afterwards.

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kymo_tests::commands::commands;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{children_of, eventually};
use kymo_tests::{Running, Scratch, free_port, kymo, stdout_of};

/// The target of an output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taker {
    /// A full disk.
    Full,
    /// `2>&-`: the first opened file would get its number.
    Closed,
    /// A pipe whose reader has gone.
    Gone,
    /// A pipe that is full, and whose reader does not read.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// The read end of a pipe, kept open.
type Kept = Option<std::io::PipeReader>;

/// `kymo` with these words, and with `taker` as the stream.
fn command(words: &[String], stream: Stream, taker: Taker) -> (Command, Kept) {
    let mut command = Command::new("sh");
    let shut = match (taker, stream) {
        (Taker::Closed, Stream::Stdout) => ">&-",
        (Taker::Closed, Stream::Stderr) => "2>&-",
        _ => "",
    };
    let script = format!("exec \"$0\" \"$@\" {shut}");
    command.args(["-c", &script]).arg(kymo()).args(words);
    let (to, kept) = match taker {
        Taker::Full => {
            let full = File::options().write(true).open("/dev/full");
            (Stdio::from(full.expect("/dev/full")), None)
        }
        Taker::Closed => (Stdio::null(), None),
        Taker::Gone => (std::io::pipe().expect("a pipe").1.into(), None),
        Taker::Stopped => {
            let (reader, writer) = full_pipe();
            (writer.into(), Some(reader))
        }
    };
    command.stdin(Stdio::null());
    match stream {
        Stream::Stdout => command.stdout(to),
        Stream::Stderr => command.stderr(to),
    };
    (command, kept)
}

fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use std::os::fd::AsRawFd;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut options = File::options();
    // A second descriptor, so that the pipe passed to the command stays blocking.
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let filling = options
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let mut filling = filling.expect("the pipe");
    while filling.write(&[b'\n'; 4096]).is_ok() {}
    (reader, writer)
}

/// Files and sockets for commands: a recording, a store, a configuration.
struct Given {
    scratch: Scratch,
    /// Port for a listener.
    port: u16,
    /// A device that does not answer.
    device: UdpSocket,
    /// Folder in which programs publish to a `kymo serve` of this test only.
    published: PathBuf,
}

impl Drop for Given {
    fn drop(&mut self) {
        // Most commands do not make this folder.
        let _ = fs::remove_dir_all(&self.published);
    }
}

impl Given {
    fn new(name: &str) -> Given {
        let scratch = Scratch::new(name);
        let (recording, files) = (scratch.text("rec"), scratch.path("db"));
        stdout_of(&["record", "-f", &recording, "-sc", "-i0.05", "-c3"]);
        fs::create_dir(&files).expect("a folder");
        let file = scratch.text("db/a.rrd");
        stdout_of(&[
            "rrd",
            "create",
            &file,
            "-b",
            "1700000000",
            "-s",
            "10",
            "DS:x:GAUGE:20:U:U",
            "RRA:AVERAGE:0.5:1:20",
        ]);
        let (files, store) = (scratch.text("db"), scratch.text("journal"));
        stdout_of(&["rrd", "import", &files, "--store", &store, "-b", &files]);
        let device = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        device
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a limit of time");
        let port = device.local_addr().expect("its address").port();
        let config = format!(
            "WorkDir: {files}\nLogFormat: rrdtool\nMaxBytes[_]: 9\nTitle[_]: a\nTarget[a]: 1:public@127.0.0.1:{port}:0.2:1:1\nTarget[b]: log( 1:c@h )\n"
        );
        fs::write(scratch.path("mrtg.cfg"), config).expect("a configuration");
        let port = free_port();
        let published = format!("/dev/shm/kymo-tests-talk-{}-{port}", std::process::id());
        Given {
            scratch,
            port,
            device,
            published: published.into(),
        }
    }

    /// The words of a line; `@` stands for the folder, `NEW` for a new number.
    fn words(&self, line: &str) -> Vec<String> {
        static NEW: AtomicU32 = AtomicU32::new(0);
        let folder = self.scratch.text("");
        let words = line.split_whitespace();
        let port = self.port.to_string();
        let new = NEW.fetch_add(1, Ordering::Relaxed).to_string();
        let word = |word: &str| {
            word.replace("@/", &folder)
                .replace("PORT", &port)
                .replace("NEW", &new)
        };
        words.map(word).collect()
    }
}

/// Each command of `--help` that ends by itself.
const COMMANDS: &[&str] = &[
    "--help",
    "--version",
    "-sc -i0.05 -c2",
    "record -f @/new -sc -i0.05 -c2 --cost",
    "play @/rec -sc",
    "play @/rec -sc --json",
    "play @/rec -sc -P",
    "play @/none",
    "top --once @/rec",
    "top @/none",
    "serve --check --data @/data",
    "config",
    "graph -s c -o @/x.svg @/rec",
    "graph vector(1) --from -1min -o @/y.svg --open @/journal",
    "query 1+1 --open @/journal",
    "query 1+1 --json --open @/journal",
    "query none --open @/journal",
    "top --once --sort none web1:",
    "watch vector(1) @/rec",
    "watch vector(1)>1 @/rec --json",
    "programs --once --data @/data",
    "why now @/rec",
    "why now @/rec --json",
    "series ls --open @/journal",
    "series ls --open @/journal none=",
    "dump @/rec",
    "export @/rec @/x.NEW.kymo",
    "doctor --json",
    "cost --help",
    "verify @/journal",
    "backup --data @/rec @/backups",
    "backup --data @/rec --keep 1h @/backups",
    "discover 127.0.0.1:1",
    "restore @/backups @/restored.NEW",
    "import --collectd @/db --dry-run --data @/journal",
    "verify --backup @/backups",
    "status @/journal",
    "status @/journal --json",
    "collectl -sc -i0.05 -c2",
    "collectl --help",
    "rrd info @/db/a.rrd",
    "rrd fetch @/db/a.rrd AVERAGE -s 1700000000 -e 1700000100",
    "rrd list @/db",
    "rrd info @/db/none.rrd",
    "rrd import --help",
    "rrd import @/db --store @/journal -b @/db",
    "rrd -",
    "rrdcached -h",
    "rrdcached --none",
    "poll --help",
    "help",
    "help subsystems",
    "help series ls",
    "help poll",
    "help why",
    "completions bash",
    "man @/man",
    "poll --check --debug cfg @/mrtg.cfg",
    "poll --no-such",
    "poll @/mrtg.cfg",
];

#[test]
fn each_command_says_when_stdout_takes_nothing() {
    let given = Given::new("talk-commands");
    for line in COMMANDS {
        let usual = output(
            Command::new(kymo())
                .args(given.words(line))
                .stdin(Stdio::null()),
        );
        for stream in STREAMS {
            for taker in [Taker::Full, Taker::Closed, Taker::Gone] {
                let got = output(&mut command(&given.words(line), stream, taker).0);
                check(line, (stream, taker), &usual, &got);
            }
        }
    }
    let mut listed = commands();
    listed.retain(|command| {
        !COMMANDS
            .iter()
            .any(|line| line.split(' ').next() == Some(command))
    });
    assert_eq!(listed, [""; 0], "commands that have no row");
}

fn output(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn check(line: &str, (stream, taker): (Stream, Taker), usual: &Output, got: &Output) {
    let at = format!("kymo {line}, {stream:?} {taker:?}: {got:?} and usually {usual:?}");
    let said = String::from_utf8_lossy(&got.stderr);
    let (code, usual_code) = (got.status.code(), usual.status.code());
    if stream == Stream::Stdout && taker == Taker::Full && !usual.stdout.is_empty() {
        // The doctor may find a slow source or none.
        assert!(matches!(code, Some(1 | 2)), "{at}");
        assert!(said.contains("No space left"), "{at}");
        return;
    }
    let is_doctor = line.starts_with("doctor") && matches!(code, Some(0 | 1));
    assert!(code == usual_code || is_doctor, "{at}");
    match stream {
        Stream::Stdout => assert_eq!(got.stderr.is_empty(), usual.stderr.is_empty(), "{at}"),
        Stream::Stderr => assert_eq!(got.stdout.is_empty(), usual.stdout.is_empty(), "{at}"),
    }
}

/// Runs a daemon with each stream in parallel; `look` checks that it works, then it has to end in order.
fn each_daemon_goes_on(name: &str, line: &str, look: impl Fn(&Given, &Running, &str) + Sync) {
    std::thread::scope(|scope| {
        for stream in STREAMS {
            for taker in [Taker::Full, Taker::Closed, Taker::Gone, Taker::Stopped] {
                let look = &look;
                scope.spawn(move || {
                    let at = format!("{name} {stream:?} {taker:?}");
                    let given = Given::new(&at.replace(' ', "-"));
                    let (mut command, _kept) = command(&given.words(line), stream, taker);
                    match stream {
                        Stream::Stdout => command.stderr(Stdio::null()),
                        Stream::Stderr => command.stdout(Stdio::null()),
                    };
                    command.env("KYMO_DIR", &given.published);
                    let running = Running(command.spawn().expect("kymo starts"));
                    look(&given, &running, &at);
                    ends_well(running, &at);
                });
            }
        }
    });
}

/// Sends SIGTERM; the daemon has to end with code 0.
fn ends_well(mut running: Running, at: &str) {
    running.signal("-TERM");
    let status = eventually(|| running.0.try_wait().ok().flatten());
    let status = status.unwrap_or_else(|| panic!("{at}: it does not end"));
    assert_eq!(status.code(), Some(0), "{at}");
}

/// Waits until `is_so` is true.
fn wait(at: &str, what: &str, mut is_so: impl FnMut() -> bool) {
    let seen = eventually(|| is_so().then_some(()));
    assert!(seen.is_some(), "{at}: {what}");
}

#[test]
fn rrdcached_goes_on() {
    let line = "rrdcached -g -V LOG_DEBUG -b @/db -j @/journal -p @/pid -l unix:@/sock";
    each_daemon_goes_on("rrdcached", line, |given: &Given, _: &Running, at: &str| {
        let mut client = eventually(|| Client::unix(&given.scratch.path("sock")).ok());
        let client = client
            .as_mut()
            .unwrap_or_else(|| panic!("{at}: it does not listen"));
        for (line, answer) in [
            (
                "UPDATE a.rrd 1700000010:1",
                "0 errors, enqueued 1 value(s).",
            ),
            ("UPDATE none.rrd 1700000010:1", "-1 No such file"),
            ("FLUSH a.rrd", "0 Successfully flushed"),
        ] {
            let got = client.text(line);
            assert!(got.contains(answer), "{at}: {line}: {got}");
        }
    });
}

#[test]
fn serve_goes_on() {
    each_daemon_goes_on(
        "serve",
        "serve --data @/data --listen 127.0.0.1:PORT",
        |given: &Given, running: &Running, at: &str| {
            wait(at, "it does not listen", || {
                TcpStream::connect(("127.0.0.1", given.port)).is_ok()
            });
            wait(at, "nothing is recorded", || {
                recorded(&given.scratch.path("data")) > 1
            });
            let children = children_of(running.0.id());
            assert!(children.len() >= 3, "{at}: {children:?}");
            // A recorder that ended would be started again after a second.
            std::thread::sleep(Duration::from_millis(1500));
            assert_eq!(
                children_of(running.0.id()),
                children,
                "{at}: one was started again"
            );
            let listed = kymo_tests::run(&["series", "ls", "--data", &given.scratch.text("data")]);
            assert!(
                matches!(listed.status.code(), Some(0 | 1)),
                "{at}: {listed:?}"
            );
        },
    );
}

/// Files, and the log if it is one, may not grow for a while: writes fail, the recorder reports it, and goes on.
#[test]
fn a_recorder_whose_disk_is_full_goes_on() {
    each_daemon_goes_on(
        "record",
        "record -f @/ring/host -sc -i0.05",
        |given: &Given, running: &Running, at: &str| {
            let ring = given.scratch.path("ring");
            let limit = |bytes: &str| {
                let pid = running.0.id().to_string();
                let set = Command::new("prlimit")
                    .args(["--pid", &pid, &format!("--fsize={bytes}")])
                    .status();
                assert!(set.is_ok_and(|status| status.success()), "{at}: prlimit");
            };
            wait(at, "nothing is recorded", || recorded(&ring) > 1);
            limit("1:unlimited");
            std::thread::sleep(Duration::from_secs(1));
            limit("unlimited:unlimited");
            let before = recorded(&ring);
            wait(at, "it does not go on", || recorded(&ring) > before);
        },
    );
}

#[test]
fn a_poller_goes_on() {
    each_daemon_goes_on(
        "poll",
        "poll --foreground --burst @/mrtg.cfg",
        |given: &Given, _: &Running, at: &str| {
            let mut packet = [0; 512];
            let length = given.device.recv(&mut packet);
            assert!(
                length.is_ok_and(|length| length > 10),
                "{at}: no device is asked"
            );
        },
    );
}

/// Samples in the recordings of a folder.
fn recorded(folder: &Path) -> usize {
    let hosts = fs::read_dir(folder).into_iter().flatten().flatten();
    let words = |host: fs::DirEntry| {
        [
            host.path().display().to_string(),
            "-sc".into(),
            "--json".into(),
        ]
    };
    let played = hosts.map(|host| Command::new(kymo()).arg("play").args(words(host)).output());
    let lines = |output: Output| output.stdout.iter().filter(|byte| **byte == b'\n').count();
    played.map(|output| output.map_or(0, lines)).sum()
}
