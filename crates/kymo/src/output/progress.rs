//! A line on the terminal with the progress of a long command. Without a terminal there
//! is no such line.

use std::time::{Duration, Instant};

use kymo_sys::{machine, talk};

/// Shortest time between two lines.
const EVERY: Duration = Duration::from_millis(100);

/// Time after which a rate is known.
const RATE_AFTER: Duration = Duration::from_secs(1);

/// The pace of a command whose work is counted.
pub(crate) struct WorkPace(Instant);

impl WorkPace {
    /// The work begins now.
    pub(crate) fn new() -> WorkPace {
        WorkPace(Instant::now())
    }

    /// `20 of 100 files, 10 files/s, 8 s left`; `things`: the plural of a piece of work. Of `all` nothing may be known.
    pub(crate) fn words(&self, things: &str, done: u64, all: Option<u64>) -> String {
        words(things, (done, all), self.0.elapsed())
    }
}

fn words(things: &str, (done, all): (u64, Option<u64>), elapsed: Duration) -> String {
    let mut words = match all {
        Some(all) => format!("{done} of {all} {things}"),
        None => format!("{done} {things}"),
    };
    if elapsed < RATE_AFTER || done == 0 {
        return words;
    }
    let rate = done as f64 / elapsed.as_secs_f64();
    words += &format!(", {rate:.0} {things}/s");
    let Some(all) = all else {
        return words;
    };
    let left_s = all.saturating_sub(done) as f64 / rate;
    let left = match left_s {
        0.0..120.0 => format!("{left_s:.0} s"),
        120.0..7200.0 => format!("{:.0} min", left_s / 60.0),
        _ => format!("{:.0} h", left_s / 3600.0),
    };
    words + &format!(", {left} left")
}

/// The line with the progress.
pub(crate) struct Progress {
    on: bool,
    shown: Option<Instant>,
}

impl Progress {
    /// A line on stderr, if that is a terminal.
    pub(crate) fn new() -> Progress {
        Progress {
            on: machine::stderr_is_terminal(),
            shown: None,
        }
    }

    /// Replaces the line by `text`, at most every `EVERY`.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= EVERY);
        if self.on && due {
            self.shown = Some(Instant::now());
            talk::put(format!("\r\x1b[Kkymo: {}", text()).as_bytes());
        }
    }

    /// Erases the line, before another text is printed.
    pub(crate) fn clear(&mut self) {
        if self.on && self.shown.take().is_some() {
            talk::put(b"\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_the_time_left() {
        for (work, elapsed_ms, expected) in [
            ((0, Some(100)), 5000, "0 of 100 files"),
            ((20, Some(100)), 900, "20 of 100 files"),
            (
                (20, Some(100)),
                2000,
                "20 of 100 files, 10 files/s, 8 s left",
            ),
            (
                (100, Some(100)),
                2000,
                "100 of 100 files, 50 files/s, 0 s left",
            ),
            ((20, None), 2000, "20 files, 10 files/s"),
            (
                (10, Some(6010)),
                1000,
                "10 of 6010 files, 10 files/s, 10 min left",
            ),
            (
                (10, Some(108_010)),
                1000,
                "10 of 108010 files, 10 files/s, 3 h left",
            ),
        ] {
            let elapsed = Duration::from_millis(elapsed_ms);
            assert_eq!(words("files", work, elapsed), expected);
        }
    }
}
