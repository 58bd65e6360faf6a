//! A child that is started again when it dies: soon, but never in a busy loop.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use super::say;

/// Pause after the first death, and after a death in good health.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A child that lived for this long was healthy.
const HEALTHY: Duration = Duration::from_secs(60);

/// A child, or the time at which it is started.
pub(super) struct ChildProcess {
    name: String,
    state: State,
    /// Pause after the next death.
    pause: Duration,
    /// Last end of the child: an equal end is not reported again.
    said: String,
}

enum State {
    Running { child: Child, since: Instant },
    Due(Instant),
}

impl ChildProcess {
    /// A child that is due at once.
    pub(super) fn new(name: impl Into<String>, now: Instant) -> ChildProcess {
        ChildProcess {
            name: name.into(),
            state: State::Due(now),
            pause: FIRST_PAUSE,
            said: String::new(),
        }
    }

    /// Time of the next start; `None`: the child runs.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Due(due) => Some(due),
            State::Running { .. } => None,
        }
    }

    /// True if the child has to be started.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// True if the child runs, as far as is known.
    pub(super) fn is_running(&self) -> bool {
        self.due().is_none()
    }

    /// Process number of the child.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Running { child, .. } => Some(child.id()),
            State::Due(_) => None,
        }
    }

    /// Notes that the child was started, or could not be.
    pub(super) fn start(&mut self, child: io::Result<Child>, now: Instant) {
        match child {
            Ok(child) => self.state = State::Running { child, since: now },
            Err(error) => self.failed(now, &format!("cannot be started: {error}")),
        }
    }

    /// Puts the next start off.
    pub(super) fn put_off(&mut self, due: Instant) {
        self.state = State::Due(due);
    }

    /// Exit status of a child that has ended; the caller then calls `failed`.
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

    /// Plans a new start after a pause, which is longer each time.
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

    /// Kills the child if it runs, and has a new one be due at once.
    pub(super) fn restart(&mut self, now: Instant) {
        self.kill();
        self.state = State::Due(now);
    }

    /// Kills the child, without waiting for its end.
    pub(super) fn send_kill(&mut self) {
        if let State::Running { child, .. } = &mut self.state {
            // This fails only if the child is gone.
            let _ = child.kill();
        }
    }

    /// Kills the child and waits for its end.
    pub(super) fn kill(&mut self) {
        if let State::Running { child, .. } = &mut self.state {
            // Both fail only if the child is gone.
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
        let mut child = ChildProcess::new("child", now);
        assert!(child.is_due(now));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            child.failed(now, "ended");
            pauses.push(child.due().expect("a time").duration_since(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn an_end_is_seen() {
        let now = Instant::now();
        let mut child = ChildProcess::new("child", now);
        child.start(Command::new("/no/such/program").spawn(), now);
        assert!(!child.is_running() && !child.is_due(now));
        child.start(Command::new("false").spawn(), now);
        assert!(child.is_running() && child.pid().is_some());
        let status = loop {
            match child.ended() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(status.code(), Some(1));
        assert_eq!(child.pid(), None);
    }
}
