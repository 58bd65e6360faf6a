//! A `kymo serve` that receives datagrams on its own port, and requests to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, ask, kill};
use kymo_tests::{Scratch, free_port};

/// For events that take moments on an idle machine, and minutes with sixty processes for each CPU.
const LONG: Duration = Duration::from_secs(900);

pub(super) struct Hub {
    pub served: Served,
    pub address: String,
    pub port: u16,
    pub dir: PathBuf,
    // Removed last.
    pub scratch: Scratch,
}

impl Hub {
    /// Starts with more keys, those of `[listen]` first. `AUTH` stands for a file with the user `user0` and the
    /// password `foo`, `SOCKET` for the default place of the unix socket. New names count at once.
    pub(super) fn start(name: &str, config: &str) -> Hub {
        Hub::start_on(Scratch::new(name), config)
    }

    /// Starts with untrusted senders: new names count once they are repeated.
    pub(super) fn start_wary(scratch: Scratch, config: &str) -> Hub {
        Hub::start_in(scratch, config, Served::start)
    }

    /// Starts with trusted senders on an existing folder.
    pub(super) fn start_on(scratch: Scratch, config: &str) -> Hub {
        Hub::start_in(scratch, &trusting(config), Served::start)
    }

    /// Starts with trusted senders by another function.
    pub(super) fn start_by(name: &str, config: &str, start: fn(&[&str]) -> Served) -> Hub {
        Hub::start_in(Scratch::new(name), &trusting(config), start)
    }

    fn start_in(scratch: Scratch, config: &str, start: fn(&[&str]) -> Served) -> Hub {
        let (dir, file, port) = (scratch.path("data"), scratch.text("kymo.toml"), free_port());
        let users = scratch.text("users");
        fs::write(&users, "user0: foo\n").expect("a file of users");
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{port}\"]\n{}",
            config
                .replace("AUTH", &users)
                .replace("SOCKET", &dir.join("rrdcached.sock").to_string_lossy())
        );
        fs::write(&file, config).expect("a configuration");
        let data = dir.to_string_lossy().into_owned();
        let words = ["--config", &file, "--data", &data];
        let mut served = start(&[&words[..], &["--listen", "127.0.0.1:0"]].concat());
        let address = served.address();
        served.has_said(&format!("collectd's datagrams on 127.0.0.1:{port}"));
        Hub {
            served,
            address,
            port,
            dir,
            scratch,
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::unix(&self.dir.join("rrdcached.sock")).expect("a client")
    }

    pub(super) fn keeper(&self) -> u32 {
        eventually("a keeper", || self.served.child("keeper"))
    }

    /// The last whole row of a series.
    pub(super) fn last(&self, name: &str) -> Option<u64> {
        last(&mut self.client(), name)
    }

    /// Waits until a series ends with the row of that stamp.
    pub(super) fn ends_at(&self, name: &str, stamp: u64) {
        let row = stamp - stamp % 10;
        eventually(&format!("{name} at {row}"), || {
            (self.last(name) == Some(row)).then_some(())
        });
    }

    /// The full names of all series.
    pub(super) fn names(&self) -> Vec<String> {
        let said = self.client().text("LIST RECURSIVE /");
        let mut names: Vec<String> = said.lines().skip(1).map(str::to_string).collect();
        names.sort();
        names
    }

    /// Waits for a line with `part`; returns the line.
    pub(super) fn says(&mut self, part: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = self.served.said.iter().find(|line| line.contains(part));
            if let Some(line) = said {
                return line.clone();
            }
            assert!(
                begun.elapsed() < LONG,
                "never {part}: {:#?}",
                self.served.said
            );
            self.served.listen(Duration::from_millis(100));
        }
    }

    /// The sum of the numbers before these words, in all reports so far.
    pub(super) fn reported(&mut self, words: &str) -> u64 {
        self.served.listen(Duration::from_millis(100));
        let lines = self.served.said.iter();
        let counts = lines.filter_map(|line| {
            let (before, _) = line.split_once(&format!(" {words}"))?;
            before.rsplit(' ').next()?.parse::<u64>().ok()
        });
        counts.sum()
    }

    /// Number of datagrams reported as dropped, in all lines so far.
    pub(super) fn reported_drops(&mut self) -> u64 {
        self.reported("datagrams dropped by the kernel")
    }

    /// Ends the service, and reads its last messages.
    pub(super) fn end(&mut self) {
        kill("-TERM", self.served.pid());
        self.served.guardian.0.wait().expect("its end");
        // Until all processes with this stderr have ended.
        self.served.listen(LONG);
    }

    /// Number of datagrams that the kernel has dropped since the socket was made.
    pub(super) fn dropped(&self) -> u64 {
        let queue = queue(self.port);
        let count = queue.last().and_then(|word| word.parse().ok());
        count.expect("a count")
    }

    /// Waits for good answers of the page and of its API.
    pub(super) fn shows_the_page(&self, when: &str) {
        for target in ["/", "/kymo/v1/status"] {
            let answered = || ask(&self.address, "GET", target, "", "").map(|(status, _)| status);
            eventually(&format!("an answer to {target} {when}"), || {
                (answered() == Some(200)).then_some(())
            });
        }
    }

    /// The keeper is still the same process, and no process has panicked.
    pub(super) fn is_unharmed(&mut self, keeper: u32) {
        self.served.listen(Duration::from_millis(100));
        let said = &self.served.said;
        assert_eq!(self.served.child("keeper"), Some(keeper), "{said:#?}");
        assert!(
            !said.iter().any(|line| line.contains("panicked")),
            "{said:#?}"
        );
    }
}

/// A configuration that trusts this machine's senders.
fn trusting(config: &str) -> String {
    const TRUSTED: &str = "[collectd]\ntrusted = [\"127.0.0.0/8\"]\n";
    match config.contains("[collectd]\n") {
        true => config.replacen("[collectd]\n", TRUSTED, 1),
        false => format!("{config}{TRUSTED}"),
    }
}

/// Fields of the kernel's line about the socket of a loopback port. The kernel may omit it while others come and go.
fn queue(port: u16) -> Vec<String> {
    let own = format!("0100007F:{port:04X}");
    eventually("a socket", || {
        let text = fs::read_to_string("/proc/net/udp").expect("the kernel's list");
        let mut lines = text.lines();
        let line = lines.find(|line| line.split_whitespace().nth(1) == Some(&own))?;
        Some(line.split_whitespace().map(str::to_string).collect())
    })
}

/// Bytes in the socket's queue, with the kernel's overhead.
pub(super) fn waiting_bytes(port: u16) -> u64 {
    let waiting = queue(port)[4]
        .split_once(':')
        .map(|(_, bytes)| u64::from_str_radix(bytes, 16));
    waiting.expect("two numbers").expect("a number")
}

/// The last whole row of a series.
pub(super) fn last(client: &mut Client, name: &str) -> Option<u64> {
    let reply = client.ask(format!("LAST {name}").as_bytes()).ok()?;
    reply.show().strip_prefix("0 ")?.parse().ok()
}

/// Repeats `look` until it finds something, for [`LONG`] at most.
pub(super) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "never {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// RssAnon and RssShmem of a process, in bytes.
pub(super) fn memory(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |field: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let word = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
        word.and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    (number("RssAnon") + number("RssShmem")) << 10
}

/// Bytes of the files in a folder, and below.
pub(super) fn files_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_bytes(&entry.path()),
        _ => entry.metadata().map_or(0, |stat| stat.len()),
    });
    sizes.sum()
}

/// Names of files in a folder, and below.
pub(super) fn files_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => names.extend(files_below(&entry.path())),
            false => names.push(entry.path().to_string_lossy().into_owned()),
        }
    }
    names
}
