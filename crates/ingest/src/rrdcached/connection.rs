//! One client: unserved input, and answers that the client has not received.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use kymo_store::{Position, Writer};
use kymo_sys::listen::Peer;
use kymo_wire::rrdcached::{Answers, Permissions};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// Bytes read at a time.
pub(super) const READ_SIZE: usize = 64 << 10;
/// Longest line, in bytes: stock closes at 8,192.
pub(super) const LINE_MAX: usize = 1 << 20;
/// Most bytes of memory that an idle connection may keep.
const IDLE_BYTES: usize = 4096;

/// A client.
pub(super) struct Connection {
    pub socket: OwnedFd,
    pub permissions: Permissions,
    /// The client that limits count for.
    pub peer: Option<Peer>,
    /// The client as a writer.
    pub writer: Writer,
    /// Received bytes, of which the first `consumed` were served.
    pub input: Vec<u8>,
    pub consumed: usize,
    pub answers: Answers,
    /// Buffer for lines with a backslash.
    pub scratch: Vec<u8>,
    /// True if the client sends no more.
    pub ended: bool,
    /// True if lines wait until the client reads its answers.
    pub stalled: bool,
    /// True if nothing more is read or served: the connection ends when the client has its answers.
    pub closing: bool,
    /// Events that the event loop waits for.
    pub interest: EventFlags,
    /// Bytes that the connection held when they were counted last.
    pub counted: usize,
    /// Bytes sent up to the last look. `still`: number of looks in a row without progress.
    looked_at: u64,
    still: u32,
    /// Bytes of `answers.out` that have been sent.
    sent: usize,
    /// Bytes ever removed from `answers.out`.
    gone: u64,
    /// Answers that wait for a position of the journal: their end, counted as `gone` is, and the position.
    holds: VecDeque<(u64, Position)>,
    /// End of the answers that may be sent, counted likewise.
    free: u64,
}

/// State of a connection before a batch.
pub(super) struct Mark {
    consumed: usize,
    answers: kymo_wire::rrdcached::Mark,
}

/// Outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Some bytes, or none yet.
    Bytes,
    /// The client sends no more.
    End,
}

impl Connection {
    pub(super) fn new(
        socket: OwnedFd,
        permissions: Permissions,
        peer: Option<Peer>,
        writer: Writer,
    ) -> Connection {
        Connection {
            socket,
            permissions,
            peer,
            writer,
            input: Vec::new(),
            consumed: 0,
            answers: Answers::default(),
            scratch: Vec::new(),
            ended: false,
            stalled: false,
            closing: false,
            interest: EventFlags::empty(),
            counted: 0,
            looked_at: 0,
            still: 0,
            sent: 0,
            gone: 0,
            holds: VecDeque::new(),
            free: 0,
        }
    }

    /// Reads available bytes, through a buffer that all connections share.
    pub(super) fn read(&mut self, room: &mut Vec<u8>) -> io::Result<Came> {
        if self.consumed > 0 {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        room.clear();
        let spare = rustix::buffer::spare_capacity(room);
        match rustix::net::recv(&self.socket, spare, RecvFlags::empty()) {
            Ok((_, 0)) => Ok(Came::End),
            Ok(_) => {
                self.input.extend_from_slice(room);
                Ok(Came::Bytes)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Came::Bytes),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Frees the memory of served input.
    pub(super) fn rest(&mut self) {
        if self.consumed == self.input.len() {
            self.input = Vec::new();
            self.consumed = 0;
        }
        if self.scratch.capacity() > IDLE_BYTES {
            self.scratch = Vec::new();
        }
    }

    /// True if a line in the input is longer than allowed.
    pub(super) fn is_endless(&self) -> bool {
        self.input.len() - self.consumed > LINE_MAX
    }

    /// Bytes of memory for unsent answers, and for unfinished lines.
    pub(super) fn held(&self) -> usize {
        let input = self.input.capacity() + self.scratch.capacity();
        input + self.answers.out.capacity() + self.answers.batch_size()
    }

    /// Looks for progress; the caller looks at equal intervals. Returns the number of looks in a row at which the
    /// client had received nothing of what may be sent.
    pub(super) fn look_for_progress(&mut self) -> u32 {
        let taken = self.gone + self.sent as u64;
        self.still = match taken == self.looked_at && self.may_send() {
            true => self.still + 1,
            false => 0,
        };
        self.looked_at = taken;
        self.still
    }

    /// The current state, to go back to.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            consumed: self.consumed,
            answers: self.answers.mark(),
        }
    }

    /// Undoes everything since the mark.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.consumed = mark.consumed;
        self.answers.back_to(mark.answers);
    }

    /// Holds new answers until `position` is on the disk. True if there are any.
    pub(super) fn hold(&mut self, position: Position) -> bool {
        if self.holds.is_empty() {
            self.free = self.gone + self.sent as u64;
        }
        let end = self.gone + self.answers.out.len() as u64;
        let any = self.holds.back().map_or(self.free, |(held, _)| *held) < end;
        if any {
            self.holds.push_back((end, position));
        }
        any
    }

    /// The newest position that answers wait for.
    pub(super) fn waits_for(&self) -> Option<Position> {
        self.holds.back().map(|(_, position)| *position)
    }

    /// Releases answers, because everything before `position` is on the disk.
    pub(super) fn release(&mut self, position: Position) {
        while let Some((end, held)) = self.holds.front()
            && *held <= position
        {
            self.free = *end;
            self.holds.pop_front();
        }
    }

    /// True if some answers were not sent yet.
    pub(super) fn has_answers(&self) -> bool {
        self.sent < self.answers.out.len()
    }

    /// Removes and returns unsent answers, for a caller that sends them in another way.
    pub(super) fn take_unsent(&mut self) -> Vec<u8> {
        let out = std::mem::take(&mut self.answers.out);
        self.gone += out.len() as u64;
        out[std::mem::take(&mut self.sent)..].to_vec()
    }

    /// True if some answers may be sent now.
    pub(super) fn may_send(&self) -> bool {
        self.sent < self.sendable()
    }

    fn sendable(&self) -> usize {
        match self.holds.front() {
            None => self.answers.out.len(),
            Some(_) => (self.free - self.gone) as usize,
        }
    }

    /// Sends answers that may be sent, as many as the kernel accepts without waiting.
    pub(super) fn send(&mut self) -> io::Result<()> {
        while self.may_send() {
            let bytes = &self.answers.out[self.sent..self.sendable()];
            match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        if !self.has_answers() {
            self.gone += self.sent as u64;
            self.sent = 0;
            self.answers.out.clear();
            if self.answers.out.capacity() > IDLE_BYTES {
                self.answers.out = Vec::new();
            }
        }
        Ok(())
    }
}
