//! A running `kymo serve`, and its clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kymo_tests::{Running, kymo};
use serde_json::Value;

/// For events that take moments on an idle machine.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// Longest time of a prompt answer. On a busy machine one of a few answers has to be prompt.
pub(super) const PROMPT: Duration = Duration::from_secs(2);

/// A running `kymo serve`. Its processes end with this value.
pub(super) struct Served {
    pub guardian: Running,
    pub address: String,
    /// Folder of programs that publish to this `kymo serve` alone.
    pub published: String,
    said: Arc<Mutex<String>>,
}

impl Served {
    /// Starts the service and waits until it answers.
    pub(super) fn start(arguments: &[&str]) -> Served {
        let published = published();
        let mut child = Command::new(kymo())
            .arg("serve")
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .env("KYMO_DIR", &published)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo starts");
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let said = Arc::new(Mutex::new(String::new()));
        let hears = said.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut said = hears.lock().expect("no panic");
                said.push_str(&line);
                said.push('\n');
            }
        });
        let mut served = Served {
            guardian: Running(child),
            address: String::new(),
            published,
            said,
        };
        let address = || {
            let said = served.output_text();
            let line = said.lines().find(|line| line.contains("open http"))?;
            let rest = line.split("://").nth(1)?;
            Some(rest.split('/').next()?.to_string())
        };
        served.address = eventually("an address", address);
        served
    }

    /// Starts a service that records into this folder, and waits for samples.
    pub(super) fn recording(dir: &str) -> Served {
        let served = Served::start(&["--data", dir]);
        served.is_recording();
        served
    }

    /// Waits for samples.
    pub(super) fn is_recording(&self) {
        eventually("samples", || {
            let status = self.json("/kymo/v1/status");
            (status["recorder"]["alive"] == true && status["thru"].is_number()).then_some(())
        });
    }

    pub(super) fn output_text(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    /// Pid of the child that runs this command, such as `record` or `hub`.
    pub(super) fn child(&self, word: &str) -> Option<u32> {
        let guardian = self.guardian.0.id();
        let all = std::fs::read_to_string(format!("/proc/{guardian}/task/{guardian}/children"));
        let is_it = |&pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|&byte| byte == 0).nth(1) == Some(word.as_bytes())
        };
        let pids = all.unwrap_or_default();
        pids.split_whitespace().flat_map(str::parse).find(is_it)
    }

    pub(super) fn hub(&self) -> u32 {
        eventually("a hub", || self.child("hub"))
    }

    /// The hub is still the same process, and no process has panicked.
    pub(super) fn is_unharmed(&self, hub: u32) {
        assert_eq!(self.child("hub"), Some(hub), "{}", self.output_text());
        assert!(
            !self.output_text().contains("panicked"),
            "{}",
            self.output_text()
        );
        assert_eq!(self.get("/").status, 200);
    }

    pub(super) fn get(&self, target: &str) -> Answer {
        ask(&self.address, "GET", target, "", "").expect(target)
    }

    pub(super) fn get_with(&self, target: &str, token: &str) -> Answer {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        ask(&self.address, "GET", target, &bearer, "").expect(target)
    }

    /// The JSON of a good answer.
    pub(super) fn json(&self, target: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        answer.json()
    }

    /// Waits for prompt answers of the page and of the API.
    pub(super) fn answers_promptly(&self, when: &str) {
        self.is_prompt("/", when);
        self.is_prompt("/kymo/v1/status", when);
    }

    /// Waits until one answer is prompt.
    pub(super) fn is_prompt(&self, target: &str, when: &str) {
        eventually(&format!("a prompt answer to {target} {when}"), || {
            let answer = ask(&self.address, "GET", target, "", "")?;
            (answer.status == 200 && answer.took < PROMPT).then_some(())
        });
    }
}

/// Another folder than the one in which programs of this machine publish.
fn published() -> String {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    format!("/dev/shm/kymo-tests-faults-{}-{number}", std::process::id())
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.guardian.0.try_wait().is_ok_and(|end| end.is_some()) {
            return;
        }
        self.guardian.signal("-TERM");
        let _left = std::fs::remove_dir_all(&self.published);
        let start = Instant::now();
        while start.elapsed() < LONG {
            if self.guardian.0.try_wait().is_ok_and(|end| end.is_some()) {
                return;
            }
            pause(10);
        }
    }
}

/// An answer and its duration.
pub(super) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub took: Duration,
}

impl Answer {
    /// Parses the bytes of one answer.
    pub(super) fn parse(bytes: &[u8], took: Duration) -> Option<Answer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end + 2]).into_owned();
        Some(Answer {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head: head.to_ascii_lowercase(),
            body: bytes[end + 4..].to_vec(),
            took,
        })
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Sends one request. `None`: there was no whole answer.
pub(super) fn ask(
    address: &str,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> Option<Answer> {
    let host = match headers.contains("Host:") {
        true => String::new(),
        false => format!("Host: {address}\r\n"),
    };
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let start = Instant::now();
    let (bytes, _) = exchange(address, request.as_bytes())?;
    Answer::parse(&bytes, start.elapsed())
}

/// Sends bytes and reads until the other side closes;
/// true if it closed in time. `None`: not connected.
pub(super) fn exchange(address: &str, request: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    stream.set_write_timeout(Some(LONG)).ok()?;
    // The hub may refuse a request before it has read all of it.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let ended = match stream.read_to_end(&mut bytes) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    Some((bytes, ended))
}

pub(super) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Repeats `look` until it finds something.
pub(super) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < LONG {
        if let Some(found) = look() {
            return found;
        }
        pause(20);
    }
    panic!("never {what}")
}

/// A number of /proc/PID/status, such as `RssAnon`.
pub(super) fn status_of(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect(field)
}

/// Number of open files of a process.
pub(super) fn files_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}
