//! How others see that a process lives, in whatever namespace it is: it has locked a byte of the publisher's file. A mapping that
//! children do not inherit holds the lock, so that no descriptor stays open, and the kernel gives the lock back when the process ends.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_short};
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of the mapping: a page, of which nothing is ever touched.
const MAPPED: usize = 4096;

/// The lock of this process. Who forks must forget it in the child, where there is no such mapping.
pub(crate) struct Life {
    byte: u32,
    page: NonNull<std::ffi::c_void>,
}

// SAFETY: the page is never touched.
unsafe impl Send for Life {}

impl Life {
    /// Locks a byte by a file that was opened for this alone, and by this process.
    pub(crate) fn begin(file: impl AsFd, byte: u32) -> Result<Life, Errno> {
        lock(file.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, byte)?;
        let (kind, access) = (MapFlags::SHARED, ProtFlags::empty());
        // SAFETY: the kernel chooses the address, so that no other object is touched.
        let page = unsafe { mmap(std::ptr::null_mut(), MAPPED, access, kind, file, 0) }?;
        let page = NonNull::new(page).ok_or(Errno::NOMEM)?;
        let life = Life { byte, page };
        // SAFETY: a mapping that no other code knows.
        unsafe { madvise(page.as_ptr(), MAPPED, Advice::LinuxDontFork) }?;
        Ok(life)
    }

    /// The byte: 1 or more.
    pub(crate) fn byte(&self) -> u32 {
        self.byte
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // SAFETY: what `begin` mapped, once.
        let unmapped = unsafe { munmap(self.page.as_ptr(), MAPPED) };
        debug_assert!(unmapped.is_ok(), "BUG: a mapping that cannot be unmapped");
    }
}

/// True if no process has this byte locked; `false` as well where that cannot be known.
pub(crate) fn is_free(file: impl AsFd, byte: u32) -> bool {
    lock(file, libc::F_OFD_GETLK, libc::F_RDLCK, byte) == Ok(libc::F_UNLCK)
}

/// Asks for the lock of a byte, or takes it: what the kernel says that it is.
fn lock(file: impl AsFd, command: c_int, kind: c_int, byte: u32) -> Result<c_int, Errno> {
    let mut lock = libc::flock {
        l_type: c_short::try_from(kind).unwrap_or(0),
        l_whence: c_short::try_from(libc::SEEK_SET).unwrap_or(0),
        l_start: byte.into(),
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and `lock` is what these commands take.
    match unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &mut lock) } {
        0 => Ok(lock.l_type.into()),
        _ => Err(std::io::Error::last_os_error()
            .raw_os_error()
            .map_or(Errno::IO, Errno::from_raw_os_error)),
    }
}
