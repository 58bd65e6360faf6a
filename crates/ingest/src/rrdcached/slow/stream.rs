//! A socket that a worker writes to: the worker waits for a client that does not read, up to a limit.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use kymo_base::limits::TAKEN_AT_LEAST;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::SendFlags;

/// A client's socket.
pub(super) struct Stream<'a> {
    socket: &'a OwnedFd,
    patience: Duration,
    /// Time waited, and bytes that the client took, since it last took enough.
    waited: Duration,
    taken: usize,
}

impl<'a> Stream<'a> {
    /// Waits at most `patience` for the client to take [`TAKEN_AT_LEAST`] bytes: a client that takes a byte now and
    /// then holds up others as much as one that takes none.
    pub(super) fn new(socket: &'a OwnedFd, patience: Duration) -> Stream<'a> {
        Stream {
            socket,
            patience,
            waited: Duration::ZERO,
            taken: 0,
        }
    }

    fn took(&mut self, count: usize) {
        self.taken += count;
        if self.taken >= TAKEN_AT_LEAST {
            (self.taken, self.waited) = (0, Duration::ZERO);
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let left = self.patience.saturating_sub(self.waited);
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let begun = Instant::now();
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(self.socket, PollFlags::OUT)];
        let ready = rustix::event::poll(&mut polled, Some(&left));
        self.waited += begun.elapsed();
        match ready {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::net::send(self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.took(count);
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait()?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_takes_a_byte_now_and_then_takes_nothing() {
        let (ours, mut theirs) = UnixStream::pair().expect("two sockets");
        ours.set_nonblocking(true).expect("a socket");
        let socket = OwnedFd::from(ours);
        let mut stream = Stream::new(&socket, Duration::from_millis(300));
        // As long as the kernel takes them.
        let all = vec![7; 16 << 20];
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let reader = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(5)).is_err() {
                theirs.read_exact(&mut [0]).expect("bytes");
            }
        });
        let error = stream.write_all(&all).expect_err("too slow");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        stop.send(()).expect("a reader");
        reader.join().expect("no panic");
    }
}
