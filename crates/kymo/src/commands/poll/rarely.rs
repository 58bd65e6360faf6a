//! Repeated messages.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::PollLog;

/// Limits repeated messages: the same one is logged once in ten minutes.
pub(super) struct Rarely(HashMap<String, Instant>);

impl Rarely {
    const AGAIN: Duration = Duration::from_secs(600);
    const KINDS_MAX: usize = 1024;

    pub(super) fn new() -> Rarely {
        Rarely(Default::default())
    }

    /// Logs a line, unless it was logged lately.
    pub(super) fn say(&mut self, line: String, log: &PollLog) {
        let now = Instant::now();
        if self.0.len() > Rarely::KINDS_MAX {
            self.0
                .retain(|_, logged_at| now.duration_since(*logged_at) < Rarely::AGAIN);
        }
        match self.0.get(&line) {
            Some(logged_at) if now.duration_since(*logged_at) < Rarely::AGAIN => {}
            _ => {
                log.say(&line);
                self.0.insert(line, now);
            }
        }
    }
}
