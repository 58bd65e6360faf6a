//! A running `kymo serve` with its processes, from the side of a user and of a service manager.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Running, Scratch, kymo};

/// For events that take milliseconds on an idle machine.
pub const LONG: Duration = Duration::from_secs(60);

/// A running `kymo serve`. Its processes end with this value.
pub struct Served {
    /// The guardian.
    pub guardian: Running,
    lines: Receiver<String>,
    /// Lines on stderr so far.
    pub said: Vec<String>,
    /// Folder of programs that publish to this service only.
    pub published: PathBuf,
}

impl Served {
    /// Starts `kymo serve` with these words.
    pub fn start(arguments: &[&str]) -> Served {
        Served::start_with(arguments, |command| command)
    }

    /// Starts `kymo serve` on a data folder, a configuration written to `kymo.toml`, and the page on a free port.
    pub fn configured(scratch: &Scratch, data: &Path, config: &str) -> Served {
        let file = scratch.text("kymo.toml");
        fs::write(&file, config).expect("a configuration");
        Served::of_file(&file, data)
    }

    /// Starts `kymo serve` with a configuration file and a data folder, and the page on a free port.
    pub fn of_file(config: &str, data: &Path) -> Served {
        let data = data.to_string_lossy();
        let page = ["--listen", "127.0.0.1:0"];
        Served::start(&["--config", config, "--data", &data, page[0], page[1]])
    }

    /// Starts `kymo serve` with these words, after `more` has changed the command.
    pub fn start_with(arguments: &[&str], more: impl Fn(&mut Command) -> &mut Command) -> Served {
        let mut command = Command::new(kymo());
        more(command.arg("serve").args(arguments));
        Served::spawn(command)
    }

    /// Starts a program that becomes `kymo serve`, such as `env`.
    pub fn start_as(program: &str, words: &[&str]) -> Served {
        let mut command = Command::new(program);
        command.args(words);
        Served::spawn(command)
    }

    fn spawn(mut command: Command) -> Served {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let own = format!("/dev/shm/kymo-tests-{}-{number}", std::process::id());
        let named = command.get_envs().find(|(name, _)| *name == "KYMO_DIR");
        let named = named.and_then(|(_, folder)| Some(PathBuf::from(folder?)));
        let published = named.unwrap_or(own.into());
        command
            .env("KYMO_DIR", &published)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("kymo starts");
        let stderr = child.stderr.take().expect("its stderr");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Served {
            guardian: Running(child),
            lines,
            said: Vec::new(),
            published,
        }
    }

    /// Waits for a new line with `part`.
    pub fn hears(&mut self, part: &str) -> String {
        let deadline = Instant::now() + LONG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("it never said {part:?}, but {:#?}", self.said)
                }
            }
        }
    }

    /// An earlier or new line with all of these parts. Waits longer than other functions, for a machine that is busy.
    pub fn has_said_all(&mut self, parts: &[&str]) -> String {
        let fits = |line: &String| parts.iter().all(|part| line.contains(part));
        let deadline = Instant::now() + 5 * LONG;
        loop {
            if let Some(line) = self.said.iter().find(|line| fits(line)) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.said.push(line),
                Err(_) => panic!("it never said {parts:?}, but {:#?}", self.said),
            }
        }
    }

    /// Collects lines from stderr for a while.
    pub fn listen(&mut self, length: Duration) {
        let deadline = Instant::now() + length;
        let left = || deadline.saturating_duration_since(Instant::now());
        while let Ok(line) = self.lines.recv_timeout(left()) {
            self.said.push(line);
        }
    }

    /// An earlier or new line with `part`.
    pub fn has_said(&mut self, part: &str) -> String {
        let said = self.said.iter().find(|line| line.contains(part)).cloned();
        said.unwrap_or_else(|| self.hears(part))
    }

    /// Waits until the page is served; returns its address.
    pub fn address(&mut self) -> String {
        let line = self.hears("open http");
        let rest = line.split("://").nth(1).expect("a URL");
        rest.split('/').next().expect("an address").to_string()
    }

    /// Process id of the guardian.
    pub fn pid(&self) -> u32 {
        self.guardian.0.id()
    }

    /// Process id of the child that runs this command, such as `record` or `hub`.
    pub fn child(&self, word: &str) -> Option<u32> {
        children_of(self.pid())
            .into_iter()
            .find(|&pid| arguments_of(pid).get(1).map(String::as_str) == Some(word))
    }

    /// Waits for a child that runs this command, other than `before`.
    pub fn next_child(&self, word: &str, before: u32) -> u32 {
        let found = eventually(|| self.child(word).filter(|&pid| pid != before));
        found.unwrap_or_else(|| panic!("no new {word}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let has_ended = self.guardian.0.try_wait().is_ok_and(|end| end.is_some());
        if !has_ended {
            self.guardian.signal("-TERM");
        }
        let end = || self.guardian.0.try_wait().ok().flatten();
        if !has_ended && eventually(end).is_none() {
            eprintln!("kymo serve did not end: {:#?}", self.said);
        }
        // The folder may be in use again, or removed already.
        let _left = fs::remove_dir_all(&self.published);
    }
}

/// Repeats `look` until it finds something, for [`LONG`] at most.
pub fn eventually<T>(look: impl FnMut() -> Option<T>) -> Option<T> {
    within(LONG, look)
}

/// As [`eventually`], for events that take many seconds on an idle machine, such as a server that starts and gathers data.
pub fn eventually_if_busy<T>(look: impl FnMut() -> Option<T>) -> Option<T> {
    within(5 * LONG, look)
}

fn within<T>(most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < most {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// The child processes of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    let all = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let all = all.unwrap_or_default();
    all.split_whitespace().flat_map(str::parse).collect()
}

/// The command line of a process, by words.
pub fn arguments_of(pid: u32) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// A field of /proc/PID/status.
pub fn status_of(pid: u32, field: &str) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let words = line.expect(field).split_whitespace();
    words.map(str::to_string).collect()
}

/// Targets of a process's file descriptors.
pub fn files_of(pid: u32) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).expect("its files");
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect()
}

/// True until all threads of a process have ended: the first thread may be gone while another one still has the sockets,
/// waiting for a disk.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    state.is_some_and(|state| state != 'Z' || threads > 1)
}

/// Sends a signal, such as `-KILL`. After `-STOP`, all threads have stopped.
pub fn kill(signal: &str, pid: u32) {
    assert!(is_killed(signal, pid), "kill {pid}");
}

/// Sends a signal; false if the process has ended.
pub fn is_killed(signal: &str, pid: u32) -> bool {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    let is_sent = sent.is_ok_and(|status| status.success());
    if is_sent && signal == "-STOP" {
        eventually(|| is_stopped(pid).then_some(())).expect("a process that stops");
    }
    is_sent
}

/// Reports whether no thread of a process runs any more. One thread handles SIGSTOP and stops the others, which run until then; a
/// thread that waits in the kernel without interruption stops when its wait ends.
fn is_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut states = tasks.into_iter().flatten().flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    });
    states.all(|state| "TtDZX".contains(state))
}

/// Sends a request; returns status and body.
pub fn ask(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    let bearer = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{bearer}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, body.to_string()))
}

/// The answer to a request that must succeed. A service without a recorded sample refuses it with 503 for a moment.
pub fn get(address: &str, path: &str, token: &str) -> Value {
    let deadline = Instant::now() + LONG;
    loop {
        let (status, body) = ask(address, "GET", path, token, "").expect("an answer");
        let is_early = status == 503 && body.contains("cannot find a recording");
        if is_early && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        assert_eq!(status, 200, "{path}: {body}");
        return serde_json::from_str(&body).expect("JSON");
    }
}
