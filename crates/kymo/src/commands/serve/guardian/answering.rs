//! A child that reads on stdin what to do, and says in a line when it does it.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use kymo_base::name::DisplayName;
use kymo_sys::privilege::{self, Role};

use super::ward::Ward;
use super::{REFUSED, own_command};

/// One of them.
pub(super) struct Answering {
    /// Its starts and ends.
    pub ward: Ward,
    word: &'static str,
    /// Where it says that it is ready, until it has.
    ready: Option<PipeReader>,
    was_ready: bool,
}

impl Answering {
    /// To be started at once, by `kymo WORD`.
    pub(super) fn new(word: &'static str, now: Instant) -> Answering {
        Answering {
            ward: Ward::new(word, now),
            word,
            ready: None,
            was_ready: false,
        }
    }

    /// Starts it. `order` makes that, with the number of the pipe on which it says that it is ready.
    pub(super) fn start(
        &mut self,
        mut role: Role,
        order: impl FnOnce(RawFd) -> serde_json::Result<Vec<u8>>,
        now: Instant,
    ) -> Result<()> {
        let (heard, said) = std::io::pipe().context("cannot make a pipe")?;
        role.inherits.push(said.as_raw_fd());
        let order = order(said.as_raw_fd())?;
        let mut command = own_command(self.word);
        command.stdin(Stdio::piped());
        privilege::confine(&mut command, role);
        let mut child = command.spawn();
        if let Some(mut stdin) = child.as_mut().ok().and_then(|child| child.stdin.take()) {
            // One that died already is seen in a moment.
            let _ = stdin.write_all(&order);
        }
        self.ready = Some(heard);
        self.ward.start(child, now);
        Ok(())
    }

    /// What can be read when it has something to say.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    /// What it says of itself, when it is ready; nothing comes if it died before.
    pub(super) fn hear(&mut self) -> Option<String> {
        let mut line = [0; 1024];
        let length = self.ready.take()?.read(&mut line).unwrap_or(0);
        if length == 0 {
            return None;
        }
        self.was_ready = true;
        // A child that was taken over says it, maybe: the terminal obeys none of it.
        Some(DisplayName(line[..length].trim_ascii_end()).to_string())
    }

    /// Whether it runs and has said that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_none() && self.ward.is_running()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.ward.ended()?;
        self.ready = None;
        Some(status)
    }

    /// Whether one that ended so has said why it cannot run: it would be the same the next time.
    pub(super) fn has_refused(&self, status: ExitStatus) -> bool {
        !self.was_ready && status.code() == Some(REFUSED)
    }
}
