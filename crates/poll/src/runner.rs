//! The runner is a process that runs the commands of the configuration: this very program, started before the poller
//! confines itself. It reads the configuration itself. The poller sends it numbers and values and never a text, so an
//! attacker who controls the poller can run only commands that the configuration names.
//!
//! This file is the poller's side; `child` is the runner's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::time::Duration;

use kymo_sys::machine::wait_readable;
use rustix::net::{
    AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, recv, shutdown, socketpair,
};

use crate::threshold::Action;

mod child;
mod commands;
mod frame;
mod job;
#[cfg(test)]
mod tests;
mod trusted;
mod unsent;

pub use child::serve;
pub use commands::{Commands, Programs};
pub use frame::{Answer, LINE_BYTES};
pub use trusted::RefusedCommands;

use frame::{Ask, PACKET_BYTES, Say};
use unsent::Unsent;

/// The poller's side of a runner.
#[derive(Debug)]
pub struct Runner {
    socket: OwnedFd,
    child: Child,
    generation: u32,
    /// Packets that the socket had no room for.
    unsent: Unsent,
}

/// A message of the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerMessage {
    /// The runner has read the configuration as last requested, and takes requests from now on.
    Loaded {
        /// See [`Commands::fingerprint`]. If the poller's own reading gives another one, the configuration has changed
        /// in between: both have to read it again.
        fingerprint: u64,
    },
    /// Output of a command, once for each run since the configuration was last read. Requests during a run start no
    /// other run.
    Answer {
        /// The number of the request.
        number: u32,
        /// Has no values if the command could not be run or took too long.
        answer: Answer,
    },
    /// A line to be logged.
    Line(Vec<u8>),
    /// The runner has ended, which it does not do by itself: no commands run any more.
    Gone,
}

impl Runner {
    /// Starts the runner, which reads the configuration at once. `command` is this program with the arguments that lead
    /// to [`serve`]; its standard input becomes the socket.
    pub fn start(mut command: Command) -> io::Result<Runner> {
        let (socket, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let child = command.stdin(other).spawn()?;
        Ok(Runner {
            socket,
            child,
            generation: 0,
            unsent: Unsent::default(),
        })
    }

    /// Requests a run of a reading's command; `number` is the reading's place in the configuration. A command that still
    /// runs is not started again.
    pub fn ask(&mut self, number: u32) {
        let generation = self.generation;
        self.put(&Ask::Run { generation, number });
    }

    /// Requests a run of a threshold's program.
    pub fn act(&mut self, action: Action) {
        let generation = self.generation;
        self.put(&Ask::Act { generation, action });
    }

    /// Requests that the configuration is read again. Pending requests are dropped and get no answer.
    pub fn load(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        self.put(&Ask::Load { generation });
    }

    /// The next message, without waiting. When [`Runner::as_fd`] is readable, call this until it returns `None`.
    pub fn take(&mut self) -> Option<RunnerMessage> {
        self.unsent.send_waiting(&self.socket);
        let mut packet = [0; PACKET_BYTES];
        loop {
            let length = match recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(rustix::io::Errno::AGAIN) => return None,
                // A runner that was killed with requests unread: its last answers are behind this error, which comes once.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => continue,
                Err(_) => 0,
            };
            if length == 0 {
                return Some(RunnerMessage::Gone);
            }
            if let Some(event) = self.understood(&packet[..length]) {
                return Some(event);
            }
        }
    }

    /// Sends no more requests and waits until the programs of thresholds have ended; `log` gets the runner's lines. Gives up
    /// after `at_most` without a message from the runner.
    pub fn finish(mut self, at_most: Duration, log: &mut dyn FnMut(&[u8])) {
        self.unsent.send_waiting(&self.socket);
        // An error means that the runner has ended already.
        let _ = shutdown(&self.socket, Shutdown::Write);
        // Answers that still come are dropped; then the socket closes.
        while wait_readable(&[self.socket.as_fd()], at_most) == [true] {
            match self.take() {
                Some(RunnerMessage::Gone) => {
                    let _ = self.child.wait();
                    return;
                }
                Some(RunnerMessage::Line(line)) => log(&line),
                Some(RunnerMessage::Loaded { .. } | RunnerMessage::Answer { .. }) | None => {}
            }
        }
    }

    /// Parses a packet; `None`: it is no packet, or answers a request of an earlier configuration.
    fn understood(&self, packet: &[u8]) -> Option<RunnerMessage> {
        let current = self.generation;
        match Say::of(packet)? {
            Say::Loaded {
                generation,
                fingerprint,
            } if generation == current => Some(RunnerMessage::Loaded { fingerprint }),
            Say::Answer {
                generation,
                number,
                answer,
            } if generation == current => Some(RunnerMessage::Answer { number, answer }),
            Say::Line(line) => Some(RunnerMessage::Line(line)),
            Say::Loaded { .. } | Say::Answer { .. } => None,
        }
    }

    fn put(&mut self, ask: &Ask) {
        let mut packet = Vec::new();
        ask.put(&mut packet);
        self.unsent.push(packet, &self.socket);
    }
}

/// Fuzzes the parsers with any bytes, as a packet of either side and as output of a command.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_runner(input: &[u8]) {
    frame::fuzz_frames(input);
    job::fuzz_output(input);
}

impl AsFd for Runner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
