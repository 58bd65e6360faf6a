//! Connections to the keeper. Several threads ask by a few connections, and each request has one to itself.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::listen;

/// Time that a request may take.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// Longest wait for a piece of the answer.
    pub(super) piece: Duration,
    /// Monotonic nanoseconds at which all answers have to be there.
    pub(super) until_ns: Option<u64>,
}

impl Patience {
    /// Time left for the next piece; an error if there is none.
    fn left(self) -> io::Result<Duration> {
        let Some(until_ns) = self.until_ns else {
            return Ok(self.piece);
        };
        let left = Duration::from_nanos(until_ns.saturating_sub(RealClock.mono_ns()));
        match left.min(self.piece) {
            // A socket takes it for no limit.
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

/// All connections to one keeper.
pub(super) struct Connections {
    path: PathBuf,
    most: usize,
    usage: Mutex<Usage>,
    returned: Condvar,
}

#[derive(Default)]
struct Usage {
    /// Connections that were good the last time, and that no request uses now.
    idle: Vec<UnixStream>,
    /// Number of [`Permit`]s.
    used: usize,
}

/// Right of one request to a connection.
pub(super) struct Permit(Arc<Connections>);

impl Connections {
    /// At most `most` connections to the socket at `path`.
    pub(super) fn new(path: PathBuf, most: usize) -> Connections {
        Connections {
            path,
            most,
            usage: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    /// The keeper's socket.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer than `most` requests use a connection. `None`: that took too long.
    pub(super) fn place(self: &Arc<Self>, patience: Patience) -> Option<Permit> {
        let left = patience.left().ok()?;
        let is_full = |usage: &mut Usage| usage.used >= self.most;
        let waited = self
            .returned
            .wait_timeout_while(self.usage(), left, is_full);
        let (mut usage, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        usage.used += 1;
        Some(Permit(self.clone()))
    }

    /// A place that no other request needs now: one more is free. Does not wait.
    pub(super) fn spare_place(self: &Arc<Self>) -> Option<Permit> {
        let mut usage = self.usage();
        if usage.used + 1 >= self.most {
            return None;
        }
        usage.used += 1;
        Some(Permit(self.clone()))
    }
}

impl Permit {
    /// A connection that was good the last time.
    pub(super) fn old(&self) -> Option<UnixStream> {
        self.0.usage().idle.pop()
    }

    /// A new connection.
    pub(super) fn connect(&self, patience: Patience) -> io::Result<UnixStream> {
        listen::connect_within(&self.0.path, patience.left()?)
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(&self, stream: UnixStream) {
        self.0.usage().idle.push(stream);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.usage().used -= 1;
        self.0.returned.notify_one();
    }
}

/// A request and its answer on a connection, in time.
pub(super) struct Exchange {
    pub(super) stream: UnixStream,
    pub(super) patience: Patience,
}

impl Read for Exchange {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.patience.left()?))?;
        self.stream.read(bytes)
    }
}

impl Write for Exchange {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.patience.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Patience = Patience {
        piece: Duration::from_millis(20),
        until_ns: None,
    };

    #[test]
    fn a_place_is_free_again_once_its_request_has_ended() {
        let connections = Arc::new(Connections::new("/nowhere".into(), 2));
        let first = connections.place(SOON).expect("a place");
        let _second = connections.place(SOON).expect("a place");
        assert!(connections.place(SOON).is_none());
        assert!(connections.spare_place().is_none());
        drop(first);
        assert!(
            connections.spare_place().is_none(),
            "the last one is not spare"
        );
        let third = connections.place(SOON).expect("a place");
        // A connection outlives its place.
        assert!(third.old().is_none());
        let (stream, _other) = UnixStream::pair().expect("sockets");
        third.keep(stream);
        drop(third);
        assert!(connections.place(SOON).expect("a place").old().is_some());
    }

    #[test]
    fn a_moment_that_has_passed_leaves_no_time() {
        let passed = Patience {
            piece: Duration::from_secs(5),
            until_ns: Some(0),
        };
        let error = passed.left().expect_err("no time");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let far = Patience {
            until_ns: Some(u64::MAX),
            ..passed
        };
        assert_eq!(far.left().expect("time"), passed.piece);
    }
}
