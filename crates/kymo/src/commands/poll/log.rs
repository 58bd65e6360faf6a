//! Destination of a poller's messages: stderr, the file of `--logging`, or syslog once it runs in the
//! background.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Zoned;
use kymo_base::errno::without_numbers;
use kymo_base::name::DisplayName;

use crate::process::notices::put_line;

/// syslog's number for a daemon's warning.
const DAEMON_WARNING: u32 = (3 << 3) + 4;

/// Log of a poller.
#[derive(Debug)]
pub(crate) struct PollLog(Mutex<Destination>);

#[derive(Debug)]
enum Destination {
    Stderr,
    /// Opened for each line, as in MRTG, so that the file may be moved at any time.
    File(PathBuf),
    Syslog(UnixDatagram),
    Nowhere,
}

impl PollLog {
    /// A log in the file, or else on stderr.
    pub(super) fn new(file: Option<&Path>) -> PollLog {
        let to = file.map_or(Destination::Stderr, |file| Destination::File(file.into()));
        PollLog(Mutex::new(to))
    }

    /// A log that drops all lines.
    pub(super) fn silent() -> PollLog {
        PollLog(Mutex::new(Destination::Nowhere))
    }

    /// Leaves stderr: further lines go to syslog, if there is one.
    pub(super) fn leave_terminal(&self, syslog: Option<UnixDatagram>) {
        let Ok(mut to) = self.0.lock() else {
            return;
        };
        if matches!(*to, Destination::Stderr) {
            *to = syslog.map_or(Destination::Nowhere, Destination::Syslog);
        }
    }

    /// Logs a line. Names in it are made safe to show, and the system's numbers of errors are left out.
    pub(crate) fn say(&self, line: &str) {
        let line = without_numbers(line.into());
        let line = DisplayName(line.as_bytes());
        let Ok(to) = self.0.lock() else {
            return;
        };
        match &*to {
            Destination::Stderr => put_line(line),
            Destination::File(path) => {
                if append(path, &line).is_err() {
                    put_line(line);
                }
            }
            Destination::Syslog(socket) => {
                let pid = std::process::id();
                let text = format!("<{DAEMON_WARNING}>kymo[{pid}]: poll: {line}");
                // A failure of the log is no reason to end.
                let _ = socket.send(text.as_bytes());
            }
            Destination::Nowhere => {}
        }
    }
}

/// Appends a line after `2026-11-22 03:04:05 -- `, in the machine's time zone, as MRTG does.
fn append(path: &Path, line: &DisplayName<'_>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // A pipe without a reader counts as a full disk.
    options.custom_flags(libc::O_NONBLOCK);
    let mut file = options.append(true).create(true).mode(0o640).open(path)?;
    let stamp = Zoned::now().strftime("%Y-%m-%d %H:%M:%S");
    file.write_all(format!("{stamp} -- {line}\n").as_bytes())
}

/// A socket to syslog, if there is one.
pub(super) fn syslog() -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect("/dev/log").ok()?;
    // A slow reader of the log must not make the poller wait.
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}
