//! After a fork, slots of the parent must do nothing in the child: both would write them. The kernel is not asked at each update; a handler of
//! fork counts, and a slot compares. The child locks a byte of each file for itself, before it gives up rights.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, Weak};

use rustix::io::Errno;

use super::Shared;

/// Forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// A thread that forks, or that changes state which a child has to change, holds this lock: a child never finds such state halfway.
static HELD: AtomicBool = AtomicBool::new(false);

/// Files that this process publishes in. Locked only by who holds the above.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

extern "C" fn hold() {
    while HELD.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
}

extern "C" fn let_go() {
    HELD.store(false, Ordering::Release);
}

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    for shared in open.iter().filter_map(Weak::upgrade) {
        shared.begin_life();
    }
    drop(open);
    let_go();
}

/// Does something that no fork comes between. It must neither fork nor panic.
pub(super) fn between<T>(act: impl FnOnce() -> T) -> T {
    hold();
    let done = act();
    let_go();
    done
}

/// From now on children have lives of their own in this file.
pub(super) fn add(shared: Weak<Shared>) {
    between(|| {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|each| each.strong_count() > 0);
        open.push(shared);
    });
}

/// Counts forks from now on.
pub(super) fn watch() -> Result<(), Errno> {
    static WATCHED: OnceLock<i32> = OnceLock::new();
    let error = *WATCHED.get_or_init(|| {
        // SAFETY: the handlers change atomics and make system calls, which is allowed after a fork in a program with threads; the lock
        // that they take is held by no other thread.
        unsafe { libc::pthread_atfork(Some(hold), Some(let_go), Some(forked)) }
    });
    match error {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(error)),
    }
}

/// State that differs between a process and its children.
#[inline(always)]
pub(super) fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}
