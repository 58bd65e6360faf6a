//! Shared parts of the end-to-end tests: the program under test, scratch folders, load.

#![allow(clippy::print_stderr, reason = "a person reads it")]

pub mod collectd_packet;
pub mod commands;
pub mod container;
#[cfg(target_arch = "x86_64")]
pub mod golden_files;
pub mod injected;
pub mod keeper_client;
pub mod machine;
pub mod package_root;
pub mod postgres;
pub mod postgres_client;
pub mod power_disk;
pub mod rrd_client;
pub mod rrd_daemon;
pub mod rrd_file;
pub mod rrd_stream;
pub mod rrdtool;
pub mod s3_server;
pub mod served;
pub mod snmpd;
pub mod source_package;
pub mod wall_clock;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The program of the profile `quick`, built here unless `make test` has done so. `KYMO` names another one.
pub fn kymo() -> PathBuf {
    usual_process();
    if let Some(path) = std::env::var_os("KYMO") {
        let path = std::fs::canonicalize(path);
        return path
            .unwrap_or_else(|error| panic!("cannot find the program that KYMO names: {error}"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args(["build", "--profile", "quick", "-q", "-p", "kymo"])
            .current_dir(&root);
        for (name, _) in std::env::vars() {
            // Cargo's variables about this test would make build scripts run again.
            if ["CARGO_PKG_", "CARGO_MANIFEST_"]
                .iter()
                .any(|of| name.starts_with(of))
            {
                build.env_remove(name);
            }
        }
        let build = build.status();
        assert!(
            build.is_ok_and(|status| status.success()),
            "kymo does not build"
        );
    });
    root.join("target/quick/kymo")
}

/// Gives this process, and so all its children, the signal dispositions and the umask of a login shell: a process that
/// `nohup` or a script started in the background ignores some signals.
#[allow(unsafe_code)]
fn usual_process() {
    static DONE: std::sync::Once = std::sync::Once::new();
    DONE.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: the default action needs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        // SAFETY: changes a number of this process.
        unsafe { libc::umask(0o022) };
    });
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    // Each run has its own folder for publishers, not that of this machine's programs.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let published = format!("/dev/shm/kymo-tests-run-{}-{number}", std::process::id());
    let output = Command::new(kymo())
        .args(arguments)
        .env("KYMO_DIR", &published)
        .stdin(Stdio::null())
        .output();
    // Most commands do not make this folder.
    let _left = std::fs::remove_dir_all(published);
    output.unwrap_or_else(|error| panic!("cannot run kymo: {error}"))
}

/// Runs the program, which must succeed; returns its stdout.
pub fn stdout_of(arguments: &[&str]) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "kymo {arguments:?}: {}: {stderr}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes `path` below `root`, or replaces its text while kymo may be reading it: the file is at no time empty.
pub fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let file = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .expect("a file");
    file.write_all_at(text.as_bytes(), 0).expect("a text");
    file.set_len(text.len() as u64).expect("its end");
}

/// A new folder, removed at drop.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty folder.
    pub fn new(name: &str) -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("kymo-test-{}-{number}-{name}", std::process::id()));
        assert!(
            std::fs::create_dir_all(&path).is_ok(),
            "cannot make {}",
            path.display()
        );
        Scratch(path)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A path in the folder, as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover is in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that is killed when dropped.
pub struct Running(pub Child);

impl Running {
    /// Starts a shell command.
    pub fn shell(script: &str) -> Running {
        let child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Running(child.unwrap_or_else(|error| panic!("cannot run sh: {error}")))
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: &str) {
        let _is_sent = served::is_killed(signal, self.0.id());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A frame of `kymo dump`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dumped {
    /// Path under the root.
    pub source: String,
    /// Sequence number.
    pub seq: u64,
    /// Duration of the read, in nanoseconds of the clock.
    pub cost_ns: u64,
    /// `changed`, `same`, `failed:CAUSE`, `not-read:slow`.
    pub state: String,
    /// The text.
    pub text: Vec<u8>,
}

/// Reads the output of `kymo dump`.
pub fn parse_dump(mut bytes: &[u8]) -> Vec<Dumped> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let line_len = bytes
            .iter()
            .position(|&b| b == b'\n')
            .unwrap_or(bytes.len());
        let line = String::from_utf8_lossy(&bytes[..line_len]).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        assert!(
            words.len() == 8 && words[0] == ">>>",
            "not a header: {line}"
        );
        let number = |i: usize| {
            words[i]
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("not a number: {line}"))
        };
        let len = number(7) as usize;
        let text = bytes[line_len + 1..line_len + 1 + len].to_vec();
        assert_eq!(bytes[line_len + 1 + len], b'\n');
        bytes = &bytes[line_len + len + 2..];
        frames.push(Dumped {
            source: words[1].into(),
            seq: number(2),
            cost_ns: number(5),
            state: words[6].into(),
            text,
        });
    }
    frames
}

/// Lets children inherit an open file.
#[allow(unsafe_code)]
pub fn inherit(file: &impl std::os::fd::AsRawFd) {
    // SAFETY: clears a flag of an open descriptor; no memory is touched.
    let cleared = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
    assert_eq!(cleared, 0, "cannot pass on a file descriptor");
}

/// A port of this machine that no other test gets, in this process or another, below the range from which the kernel chooses.
pub fn free_port() -> u16 {
    /// Abstract socket names of this process, one for each port: another process cannot bind them.
    static HELD: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() % 12 * 1000;
    loop {
        let number = first + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (number % 12_000) as u16;
        let name = SocketAddr::from_abstract_name(format!("kymo-test-port-{port}"));
        let Ok(held) = UnixListener::bind_addr(&name.expect("a short name")) else {
            continue;
        };
        HELD.lock().expect("a lock").push(held);
        // The port itself is not bound: a child that another test is starting at this moment would inherit the socket.
        if !is_port_used(port) {
            return port;
        }
    }
}

/// True if the kernel lists a socket with this port, in any state.
fn is_port_used(port: u16) -> bool {
    let own = format!(":{port:04X}");
    ["tcp", "tcp6", "udp", "udp6"].into_iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        // The second column is the socket's own address and port.
        let mut locals = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        locals.any(|local| local.ends_with(&own))
    })
}

/// True if the tests run as root.
#[allow(unsafe_code)]
pub fn is_root() -> bool {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The first sequence numbers in the headers of a ring's tails; docs/formats/recording.md, "Tails".
pub fn tail_first_seqs(dir: &str) -> Vec<u64> {
    let folders = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = folders
        .filter_map(|folder| std::fs::read_dir(folder.path()).ok())
        .flatten()
        .flatten();
    let tails = files.filter(|file| file.file_name().to_string_lossy().starts_with("tail"));
    let heads = tails.filter_map(|tail| std::fs::read(tail.path()).ok());
    heads
        .filter_map(|head| {
            Some(u64::from_le_bytes(
                head.get(TAIL_FIRST_SEQ..TAIL_FIRST_SEQ + 8)?
                    .try_into()
                    .ok()?,
            ))
        })
        .collect()
}

/// Offset of the first sequence number in a tail's header.
const TAIL_FIRST_SEQ: usize = 24;
