//! Waiting for what several sockets are ready for, and a bell by which another thread is woken while it waits so.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// There is something to read, or the other end has gone.
    Read,
    /// There is something to read, the other end has gone, or there is room to write.
    ReadOrWrite,
}

/// Waits until one of the files is ready, at most so long. Says which are.
pub fn wait(files: &[(BorrowedFd<'_>, Interest)], at_most: Duration) -> Vec<bool> {
    let flags = |interest| match interest {
        Interest::Read => PollFlags::IN,
        Interest::ReadOrWrite => PollFlags::IN | PollFlags::OUT,
    };
    let polled = files.iter();
    let mut polled: Vec<PollFd> = polled
        .map(|(file, interest)| PollFd::new(file, flags(*interest)))
        .collect();
    let time = Timespec {
        tv_sec: i64::from(u32::try_from(at_most.as_secs()).unwrap_or(u32::MAX >> 2)),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // Interrupted or refused: then none is.
    let _ = poll(&mut polled, Some(&time));
    let ready = polled.iter().map(|file| !file.revents().is_empty());
    ready.collect()
}

/// Wakes a thread that waits for it.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// One that is silent.
    pub fn new() -> io::Result<Bell> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Bell(eventfd(0, flags)?))
    }

    /// Rings until it is heard.
    pub fn ring(&self) {
        // Full means that it rings already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Has it be silent again.
    pub fn hear(&self) {
        // Whatever the count is.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_is_heard_once() {
        let bell = Bell::new().unwrap();
        let rings = || wait(&[(bell.as_fd(), Interest::Read)], Duration::ZERO)[0];
        assert!(!rings());
        bell.ring();
        bell.ring();
        assert!(rings());
        bell.hear();
        assert!(!rings());
        let writes = wait(&[(bell.as_fd(), Interest::ReadOrWrite)], Duration::ZERO);
        assert_eq!(writes, [true]);
    }
}
