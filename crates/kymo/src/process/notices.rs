//! What a recorder tells people on stderr while it runs: a line an event, and of the same
//! kind at most one a minute; of a slow file one.

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
/// Kinds of message remembered.
const KINDS_MAX: usize = 256;

/// Puts a line on stderr that names the program: several programs write there.
pub(crate) fn put_line(text: impl Display) {
    talk::say(format_args!("kymo: {text}"));
}

/// Remembers when each kind of message was last said.
#[derive(Default)]
pub(crate) struct Notices {
    said: HashMap<String, Instant>,
}

impl Notices {
    /// Says `line`, unless one that begins alike was said within the minute.
    pub(crate) fn say(&mut self, line: &str) {
        // `slow read: proc/1234/io took ...`: the first three words, whatever the number.
        let words: Vec<_> = line.split(' ').take(3).collect();
        let kind = words.join(" ").replace(|c: char| c.is_ascii_digit(), "");
        let now = Instant::now();
        let is_quiet = |last: &Instant| line.starts_with(SLOW) || now - *last < QUIET;
        if self.said.get(&kind).is_some_and(is_quiet) {
            return;
        }
        if self.said.len() >= KINDS_MAX {
            self.said.clear();
        }
        self.said.insert(kind, now);
        put_line(DisplayName(line.as_bytes()));
    }

    /// Says the events of a batch of records. Who started a recorder knows that it starts.
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
