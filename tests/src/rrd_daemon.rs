//! The two daemons, stock's and kymo's, started alike in scratch folders: in the foreground on a unix socket (and a
//! port on request), ended by a signal and waited for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::rrd_client::Client;

/// The project of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Debian's rrdcached.
    Stock,
    /// kymo under the name rrdcached; `KYMO_RRDCACHED` names another program to test instead.
    Ours,
}

/// Both daemons, the reference first.
pub const BOTH: [Side; 2] = [Side::Stock, Side::Ours];

impl Side {
    /// The program to start; kymo gets its name by a link in `scratch`.
    pub fn program(self, scratch: &Path) -> PathBuf {
        if self == Side::Stock {
            return "/usr/bin/rrdcached".into();
        }
        if let Some(other) = std::env::var_os("KYMO_RRDCACHED") {
            return other.into();
        }
        let folder = scratch.join("ours");
        let link = folder.join("rrdcached");
        if !link.exists() {
            std::fs::create_dir_all(&folder).expect("a folder for the link");
            std::os::unix::fs::symlink(crate::kymo(), &link).expect("a link to the program");
        }
        link
    }
}

/// A daemon that runs in the foreground.
pub struct Daemon {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Starts a daemon that serves `base` on `scratch/sock`, with these further options.
    pub fn start(side: Side, scratch: &Path, base: &Path, options: &[&str]) -> Daemon {
        let mut command = Command::new(side.program(scratch));
        command.arg("-g").arg("-b").arg(base).args(options);
        Daemon::spawn(command, scratch)
    }

    /// Starts a command that ends in daemon options; adds the unix socket and the pid file.
    pub fn spawn(mut command: Command, scratch: &Path) -> Daemon {
        let socket = scratch.join("sock");
        let log = scratch.join("daemon.log");
        // A killed daemon leaves both, and stock does not start if the pid in the file is alive.
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_file(scratch.join("pid"));
        let output = File::options().create(true).append(true).open(&log);
        let output = output.expect("a log");
        command.arg("-p").arg(scratch.join("pid"));
        command
            .arg("-l")
            .arg(format!("unix:{}", socket.display()))
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a log"))
            .stderr(output);
        let child = command
            .spawn()
            .unwrap_or_else(|why| panic!("cannot start {command:?}: {why}"));
        let mut daemon = Daemon { child, socket, log };
        daemon.wait_until_it_answers();
        daemon
    }

    fn wait_until_it_answers(&mut self) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            if let Ok(mut client) = Client::unix(&self.socket)
                && client.ask(b"PING").is_ok()
            {
                return;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the daemon ended with {status}: {}", self.output_text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the daemon does not answer: {}", self.output_text());
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::unix(&self.socket)
            .unwrap_or_else(|why| panic!("cannot connect: {why}: {}", self.output_text()))
    }

    /// The daemon's unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// `unix:SOCKET`, the form for `--daemon` and `RRDCACHED_ADDRESS`.
    pub fn address(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// The daemon's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The daemon's stdout and stderr so far.
    pub fn output_text(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// True if the daemon is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal (`-TERM`) and waits for the end.
    pub fn stop(mut self, signal: &str) -> ExitStatus {
        self.signal(signal);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!(
            "the daemon does not end after {signal}: {}",
            self.output_text()
        );
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The daemon may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
