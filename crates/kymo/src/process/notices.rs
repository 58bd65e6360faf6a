//! A recorder's messages on stderr: a line for each event, at most one a minute of each
//! kind, and one for each slow file.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use kymo_base::name::DisplayName;
use kymo_recording::beat::STARTS;
use kymo_recording::record::{self, RecordType};
use kymo_sys::talk;

const QUIET: Duration = Duration::from_secs(60);
/// Beginning of an event that names a slow file.
pub(crate) const SLOW: &str = "slow read: ";
/// Most kinds of messages in memory.
const KINDS_MAX: usize = 256;

/// Prints a line with the program's name on stderr, because several programs write there.
pub(crate) fn put_line(text: impl Display) {
    talk::say(format_args!("kymo: {text}"));
}

/// Times at which each kind of message was printed last.
#[derive(Default)]
pub(crate) struct Notices {
    reported: HashMap<String, Instant>,
}

impl Notices {
    /// Prints `line`, unless one of its kind was printed within the minute.
    pub(crate) fn say(&mut self, line: &str) {
        // The first three words without digits, such as `slow read: proc/1234/io took
        // ...`, are the kind.
        let words: Vec<_> = line.split(' ').take(3).collect();
        let kind = words.join(" ").replace(|c: char| c.is_ascii_digit(), "");
        let now = Instant::now();
        let is_quiet = |last: &Instant| line.starts_with(SLOW) || now - *last < QUIET;
        if self.reported.get(&kind).is_some_and(is_quiet) {
            return;
        }
        if self.reported.len() >= KINDS_MAX {
            self.reported.clear();
        }
        self.reported.insert(kind, now);
        put_line(DisplayName(line.as_bytes()));
    }

    /// Prints the events of a batch of records, except the recorder's start.
    pub(crate) fn events(&mut self, batch: &[u8]) {
        let mut rest = batch;
        while let Some(raw) = record::peek(rest) {
            if raw.head.record_type == RecordType::Event
                && let Ok(record) = record::parse_unsealed(rest)
                && record.text() != STARTS
            {
                self.say(&record.text());
            }
            rest = &rest[raw.length.min(rest.len())..];
        }
    }
}
