//! Destination of the daemon's messages: a file, or syslog; in the foreground also stderr. Lines have stock's
//! form.

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_base::errno::without_numbers;
use kymo_base::name::DisplayName;
use kymo_ingest::log::Severity;
use kymo_sys::talk;

use super::options::Options;

/// syslog's number for daemons, to which a severity is added.
const FACILITY: u32 = 3 << 3;

/// The log of a running daemon.
pub(super) struct DaemonLog {
    /// Highest severity, by number, that is logged.
    level: u32,
    stderr: bool,
    to: To,
}

enum To {
    File(File),
    Syslog(UnixDatagram),
    Nowhere,
}

impl DaemonLog {
    /// A log by the options; takes the log file out of them.
    pub(super) fn new(options: &mut Options) -> Arc<DaemonLog> {
        Arc::new(DaemonLog {
            level: options.log_level,
            stderr: options.foreground,
            to: match options.log_file.take() {
                Some(file) => To::File(file),
                None => syslog().map_or(To::Nowhere, To::Syslog),
            },
        })
    }

    /// Writes a line. Names in it are made safe to show, and the system's numbers of errors are left out.
    pub(super) fn say(&self, severity: Severity, line: &str) {
        let severity = severity as u32;
        if severity > self.level {
            return;
        }
        let line = without_numbers(line.into());
        let line = DisplayName(line.as_bytes());
        if self.stderr {
            talk::say(line);
        }
        // A failure of the log cannot be reported anywhere.
        let _ = match &self.to {
            // In one write, because threads share the file.
            To::File(file) => {
                let text = format!("{} [{severity}] {line}\n", stamp(now()));
                (&*file).write_all(text.as_bytes())
            }
            To::Syslog(socket) => {
                let number = FACILITY | severity;
                let pid = std::process::id();
                let text = format!("<{number}>rrdcached[{pid}]: {line}");
                socket.send(text.as_bytes()).map(drop)
            }
            To::Nowhere => Ok(()),
        };
    }
}

fn syslog() -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect("/dev/log").ok()?;
    // A slow reader of the log must not make clients wait.
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A time as `2026-11-22 03:04:05`, UTC.
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years: so leap days are at the ends of years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_000_000_000, "2001-09-09 01:46:40"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(stamp(seconds), text);
        }
    }
}
