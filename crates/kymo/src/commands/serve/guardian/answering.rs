//! A child that reads its order on stdin, and reports with a line that it is ready.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use kymo_base::name::DisplayName;
use kymo_sys::privilege::{self, Role};

use super::child_process::ChildProcess;
use super::{REFUSED, own_command};

/// A child that reports when it is ready.
pub(super) struct Answering {
    /// Starts and ends of the child.
    pub child: ChildProcess,
    word: &'static str,
    /// Pipe for the child's report, until it comes.
    ready: Option<PipeReader>,
    was_ready: bool,
}

impl Answering {
    /// A child that is due at once; its command is `kymo WORD`.
    pub(super) fn new(word: &'static str, now: Instant) -> Answering {
        Answering {
            child: ChildProcess::new(word, now),
            word,
            ready: None,
            was_ready: false,
        }
    }

    /// Starts the child. `order` makes its order, with the descriptor of the pipe for its report.
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
            // If the child is dead already, the guardian notices that soon.
            let _ = stdin.write_all(&order);
        }
        self.ready = Some(heard);
        self.child.start(child, now);
        Ok(())
    }

    /// A file that becomes readable when the child reports.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    /// The child's report. `None`: it died before.
    pub(super) fn hear(&mut self) -> Option<String> {
        let mut line = [0; 1024];
        let length = self.ready.take()?.read(&mut line).unwrap_or(0);
        if length == 0 {
            return None;
        }
        self.was_ready = true;
        // The report may come from a child under foreign control, so a terminal must obey none of
        // it.
        Some(DisplayName(line[..length].trim_ascii_end()).to_string())
    }

    /// True if the child runs and has reported.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_none() && self.child.is_running()
    }

    /// Exit status of the child, if it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.ended()?;
        self.ready = None;
        Some(status)
    }

    /// True if a child with this status has reported why it cannot run: the next start would fail,
    /// too.
    pub(super) fn has_refused(&self, status: ExitStatus) -> bool {
        !self.was_ready && status.code() == Some(REFUSED)
    }
}
