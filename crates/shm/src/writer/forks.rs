//! After a fork, slots of the parent must do nothing in the child: both would write them. The kernel is not asked at each update; a handler of
//! fork counts, and a slot compares.

#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

/// Forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts forks from now on.
pub(super) fn watch() -> Result<(), Errno> {
    static WATCHED: OnceLock<i32> = OnceLock::new();
    let error = *WATCHED.get_or_init(|| {
        // SAFETY: the handler only adds to an atomic, which is allowed after a fork in a program with threads.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) }
    });
    match error {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(error)),
    }
}

/// What differs between a process and its children.
#[inline(always)]
pub(super) fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}
