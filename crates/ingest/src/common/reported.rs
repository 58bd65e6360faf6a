//! Number of reported dropped datagrams of each socket, in a file in memory that outlives the keeper, as the sockets do.
//! The kernel counts from the making of a socket. So a restarted keeper reports datagrams dropped since the last report,
//! also while there was no keeper, and none twice.

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The file: a count for each socket, in the order of the sockets of all listeners.
#[derive(Clone, Debug)]
pub struct Reported {
    file: Option<Arc<OwnedFd>>,
    /// Number of sockets of other listeners before those of this listener.
    before: usize,
}

const COUNT_BYTES: usize = size_of::<u32>();

impl Reported {
    /// `None`: the sockets end with this process, so that no file is needed.
    pub fn new(file: Option<OwnedFd>) -> Reported {
        Reported {
            file: file.map(Arc::new),
            before: 0,
        }
    }

    /// The counts of a listener whose sockets come behind `sockets` others.
    pub fn behind(&self, sockets: usize) -> Reported {
        Reported {
            file: self.file.clone(),
            before: self.before + sockets,
        }
    }

    /// Reported drops of a socket, modulo 2^32.
    pub fn of(&self, socket: usize) -> u32 {
        let mut count = [0; COUNT_BYTES];
        // If the file is too short or unreadable, the count stays zero.
        if let Some(file) = &self.file {
            let _ = rustix::io::pread(file, &mut count, self.place(socket));
        }
        u32::from_ne_bytes(count)
    }

    /// Notes the number of reported drops.
    pub fn note(&self, socket: usize, dropped: u32) {
        if let Some(file) = &self.file {
            // If this fails, the same drops are reported again.
            let _ = rustix::io::pwrite(file, &dropped.to_ne_bytes(), self.place(socket));
        }
    }

    fn place(&self, socket: usize) -> u64 {
        u64::try_from((self.before + socket) * COUNT_BYTES).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    #[test]
    fn counts_outlive_who_noted_them() {
        let file = memfd_create("reported", MemfdFlags::CLOEXEC).unwrap();
        let reported = Reported::new(Some(file.try_clone().unwrap()));
        assert_eq!((reported.of(0), reported.of(1)), (0, 0));
        reported.note(1, u32::MAX);
        drop(reported);
        let reported = Reported::new(Some(file));
        assert_eq!(
            (reported.of(0), reported.of(1), reported.of(2)),
            (0, u32::MAX, 0)
        );
        let others = reported.behind(1);
        others.note(1, 9);
        assert_eq!((others.of(0), reported.of(2)), (u32::MAX, 9));
        let without = Reported::new(None);
        without.note(0, 7);
        assert_eq!(without.of(0), 0);
    }
}
