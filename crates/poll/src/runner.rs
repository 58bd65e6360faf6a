//! Commands of the configuration are run by a process of their own, the runner: this very program, started before the
//! poller shuts itself in. It reads the configuration itself; the poller hands it numbers and values and never a text,
//! so whoever makes the poller say what he likes runs nothing that the configuration does not name.
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

use frame::{Ask, PACKET_BYTES, Say};
use unsent::Unsent;

/// The poller's side of a runner.
#[derive(Debug)]
pub struct Runner {
    socket: OwnedFd,
    child: Child,
    generation: u32,
    /// What the socket had no room for.
    unsent: Unsent,
}

/// What a runner says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It has read the configuration as it was asked to last, and can be asked from now on.
    Loaded {
        /// See [`Commands::fingerprint`]; another than that of the poller's own reading means that the configuration
        /// has changed in between: then both have to read it again.
        fingerprint: u64,
    },
    /// What a command said. Comes once for each [`Runner::ask`] since the configuration was read last.
    Answer {
        /// As asked.
        number: u32,
        /// No value at all if the command could not be run or took too long.
        answer: Answer,
    },
    /// A line for people.
    Line(Vec<u8>),
    /// The runner has ended, which it does not do by itself: commands are no longer run.
    Gone,
}

impl Runner {
    /// Starts the runner: `command` is this program with the words that lead to [`serve`]. Its standard input is the
    /// socket. It reads the configuration at once.
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

    /// Has the command of a reading run; the number is the reading's place in the configuration. One that still runs is
    /// not run twice.
    pub fn ask(&mut self, number: u32) {
        let generation = self.generation;
        self.put(&Ask::Run { generation, number });
    }

    /// Has the program of a threshold run.
    pub fn act(&mut self, action: Action) {
        let generation = self.generation;
        self.put(&Ask::Act { generation, action });
    }

    /// Has the configuration read again. What was asked before and is not answered is forgotten.
    pub fn load(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        self.put(&Ask::Load { generation });
    }

    /// The next thing it says, without waiting; to be called until there is none whenever [`Runner::as_fd`] is readable.
    pub fn take(&mut self) -> Option<Heard> {
        self.unsent.send_waiting(&self.socket);
        let mut packet = [0; PACKET_BYTES];
        loop {
            let length = match recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(rustix::io::Errno::AGAIN) => return None,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => 0,
            };
            if length == 0 {
                return Some(Heard::Gone);
            }
            if let Some(heard) = self.understood(&packet[..length]) {
                return Some(heard);
            }
        }
    }

    /// Asks for nothing more and waits until the programs of thresholds have ended, at most so long.
    pub fn finish(mut self, at_most: Duration) {
        self.unsent.send_waiting(&self.socket);
        // One that has gone is finished.
        let _ = shutdown(&self.socket, Shutdown::Write);
        // Answers may still come, of no use to anyone, then the end.
        while wait_readable(&[self.socket.as_fd()], at_most) == [true] {
            if matches!(self.take(), Some(Heard::Gone)) {
                let _ = self.child.wait();
                return;
            }
        }
    }

    /// `None`: it is of no use any more.
    fn understood(&self, packet: &[u8]) -> Option<Heard> {
        let current = self.generation;
        match Say::of(packet)? {
            Say::Loaded {
                generation,
                fingerprint,
            } if generation == current => Some(Heard::Loaded { fingerprint }),
            Say::Answer {
                generation,
                number,
                answer,
            } if generation == current => Some(Heard::Answer { number, answer }),
            Say::Line(line) => Some(Heard::Line(line)),
            Say::Loaded { .. } | Say::Answer { .. } => None,
        }
    }

    fn put(&mut self, ask: &Ask) {
        let mut packet = Vec::new();
        ask.put(&mut packet);
        self.unsent.push(packet, &self.socket);
    }
}

/// Any bytes as a packet of either side, and as what a command prints.
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
