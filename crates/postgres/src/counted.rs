//! Counts the bytes that a server sends. Whatever lengths and amounts it sends, an answer does not exceed its memory
//! limit. A message of the protocol begins with a letter and a length of four bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use kymo_base::limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// Bytes of a message's head: a letter and a length. The length includes its own four bytes.
const HEAD_BYTES: usize = 5;
const LENGTH_BYTES: u32 = 4;
/// Letter of a message with a setting of the server. The client keeps settings as long as it is connected.
const SETTING: u8 = b'S';

/// Bytes that may still arrive for the current query. The sender of queries and the reader of answers share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    left: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Room {
    /// Sets the limit for the next answer.
    pub(super) fn for_answer(&self) {
        self.left
            .store(limits::PG_ANSWER_BYTES_MAX, Ordering::Relaxed);
    }

    /// The reason why reading has stopped; `None`: no limit is exceeded.
    pub(super) fn refusal(&self) -> Option<String> {
        let is_over = self.is_over.load(Ordering::Relaxed);
        is_over.then(|| "it sends more than an answer may have".into())
    }

    fn takes(&self, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let take = |left: u64| left.checked_sub(bytes);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }
}

/// A connection to a server.
pub(super) struct Counted {
    stream: UnixStream,
    messages: Messages,
    room: Room,
}

impl Counted {
    /// A connection; the login has the limit of an answer.
    pub(super) fn new(stream: UnixStream, room: Room) -> Counted {
        room.for_answer();
        Counted {
            stream,
            messages: Messages::default(),
            room,
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let fresh = buffer.filled().get(before..).unwrap_or_default();
        let fits = self.room.takes(fresh.len()) && self.messages.follow(fresh);
        if !fits {
            self.room.is_over.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The position in a server's stream of messages.
#[derive(Default)]
struct Messages {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes left of the current message behind its head.
    left: usize,
    /// Bytes of all settings since the login.
    settings: usize,
}

impl Messages {
    /// Follows the stream through these bytes; false if a limit is exceeded.
    fn follow(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let wanted = match self.left {
                0 => HEAD_BYTES - self.head_bytes,
                left => left,
            };
            let (now, later) = bytes.split_at(wanted.min(bytes.len()));
            bytes = later;
            if self.left > 0 {
                self.left -= now.len();
                continue;
            }
            let end = self.head_bytes + now.len();
            self.head[self.head_bytes..end].copy_from_slice(now);
            self.head_bytes = end % HEAD_BYTES;
            if self.head_bytes == 0 && !self.begin() {
                return false;
            }
        }
        true
    }

    /// Handles a complete head; false if a limit is exceeded.
    fn begin(&mut self) -> bool {
        let [letter, a, b, c, d] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]).checked_sub(LENGTH_BYTES);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|&length| length <= limits::PG_MESSAGE_BYTES_MAX) else {
            return false;
        };
        self.left = length;
        if letter == SETTING {
            self.settings += length;
        }
        self.settings <= limits::PG_MESSAGE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, length: u32, body: usize) -> Vec<u8> {
        let head = [&[letter][..], &length.to_be_bytes()].concat();
        [head, vec![b'x'; body]].concat()
    }

    #[test]
    fn lengths_have_limits_wherever_reads_end() {
        let large = limits::PG_MESSAGE_BYTES_MAX;
        let length = u32::try_from(large).expect("a length");
        let settings = message(b'S', length / 2 + 4, large / 2).repeat(3);
        for (name, bytes, fits) in [
            ("short ones", message(b'Z', 5, 1).repeat(3), true),
            ("an empty one", message(b'1', 4, 0), true),
            ("the longest", message(b'D', length + 4, large), true),
            ("a longer one", message(b'D', length + 5, 0), false),
            ("2 GiB", message(b'D', 0x7fff_ffff, 0), false),
            ("4 GiB", message(b'D', u32::MAX, 0), false),
            ("shorter than its head", message(b'D', 3, 0), false),
            ("many settings", settings, false),
        ] {
            for piece in [1, 3, 4096, bytes.len()] {
                let mut messages = Messages::default();
                let follows = bytes.chunks(piece).all(|piece| messages.follow(piece));
                assert_eq!(follows, fits, "{name} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn an_answer_has_a_limit_and_the_next_one_has_it_again() {
        let room = Room::default();
        assert!(!room.takes(1), "nothing was asked");
        room.for_answer();
        let half = usize::try_from(limits::PG_ANSWER_BYTES_MAX / 2).expect("a size");
        assert!(room.takes(half) && room.takes(half) && !room.takes(1));
        room.for_answer();
        assert!(room.takes(1));
    }
}
