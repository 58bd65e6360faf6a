//! A child that is started again when it dies: at once enough, but never in a busy loop.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use super::say;

/// After the first death, and after one in good health.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A child that lived so long was well.
const HEALTHY: Duration = Duration::from_secs(60);

/// A child, or when there will be one.
pub(super) struct Ward {
    name: String,
    state: State,
    /// Until the start after the next death.
    pause: Duration,
    /// How it ended last: the same again is not said again.
    said: String,
}

enum State {
    Running { child: Child, since: Instant },
    Due(Instant),
}

impl Ward {
    /// One to be started at once.
    pub(super) fn new(name: impl Into<String>, now: Instant) -> Ward {
        Ward {
            name: name.into(),
            state: State::Due(now),
            pause: FIRST_PAUSE,
            said: String::new(),
        }
    }

    /// When it is to be started; `None`: it runs.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Due(due) => Some(due),
            State::Running { .. } => None,
        }
    }

    /// Whether it is to be started.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Whether it runs, as far as is known.
    pub(super) fn is_running(&self) -> bool {
        self.due().is_none()
    }

    /// Its process number.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Running { child, .. } => Some(child.id()),
            State::Due(_) => None,
        }
    }

    /// It was started, or could not be.
    pub(super) fn start(&mut self, child: io::Result<Child>, now: Instant) {
        match child {
            Ok(child) => self.state = State::Running { child, since: now },
            Err(error) => self.failed(now, &format!("cannot be started: {error}")),
        }
    }

    /// Not before then.
    pub(super) fn put_off(&mut self, due: Instant) {
        self.state = State::Due(due);
    }

    /// How it ended, if it has; `failed` comes next.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let State::Running { child, since } = &mut self.state else {
            return None;
        };
        let status = super::ended(child)?;
        let now = Instant::now();
        if now.duration_since(*since) >= HEALTHY {
            self.pause = FIRST_PAUSE;
            self.said.clear();
        }
        self.state = State::Due(now);
        Some(status)
    }

    /// It is started again after a pause, each longer than the one before.
    pub(super) fn failed(&mut self, now: Instant, how: &str) {
        let pause = self.pause;
        self.state = State::Due(now + pause);
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        if self.said != how {
            say(&format!(
                "the {} {how}; it is started again in {} s",
                self.name,
                pause.as_secs()
            ));
            self.said = how.into();
        }
    }

    /// Has it end whatever it does, without waiting for that.
    pub(super) fn send_kill(&mut self) {
        if let State::Running { child, .. } = &mut self.state {
            // Fails only when it is gone.
            let _ = child.kill();
        }
    }

    /// Ends it whatever it does.
    pub(super) fn kill(&mut self) {
        if let State::Running { child, .. } = &mut self.state {
            // Both fail only when it is gone.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let now = Instant::now();
        let mut ward = Ward::new("child", now);
        assert!(ward.is_due(now));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            ward.failed(now, "ended");
            pauses.push(ward.due().expect("a time").duration_since(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn an_end_is_seen() {
        let now = Instant::now();
        let mut ward = Ward::new("child", now);
        ward.start(Command::new("/no/such/program").spawn(), now);
        assert!(!ward.is_running() && !ward.is_due(now));
        ward.start(Command::new("false").spawn(), now);
        assert!(ward.is_running() && ward.pid().is_some());
        let status = loop {
            match ward.ended() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(status.code(), Some(1));
        assert_eq!(ward.pid(), None);
    }
}
