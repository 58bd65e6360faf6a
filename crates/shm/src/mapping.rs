//! A file in memory, as words that are read and written by atomic loads and stores alone.

#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Access to a mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    Read,
    ReadWrite,
}

/// A mapped file; it stays mapped, and its open file open, until this is dropped.
pub(crate) struct Mapping {
    base: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: all that can be reached through it are atomic words.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes, a multiple of 8. The file must not become shorter while it is mapped: a load beyond its end is a
    /// SIGBUS. Publishers never shorten theirs, and readers map no other user's.
    pub(crate) fn new(file: impl AsFd, length: usize, rights: Rights) -> Result<Mapping, Errno> {
        let protection = match rights {
            Rights::Read => ProtFlags::READ,
            Rights::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: the kernel chooses the address, so that no other object is touched.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        let base = NonNull::new(base.cast::<AtomicU64>()).ok_or(Errno::NOMEM)?;
        Ok(Mapping {
            base,
            words: length / 8,
        })
    }

    /// All words. Of a mapping with [`Rights::Read`] they must only be loaded.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `base` is aligned to a page, has `words` words, and stays mapped as long as `self`. Other processes store into
        // them too, by atomic stores: that is what atomic words are for.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }

    /// A view for a caller that keeps the mapping alive beside it.
    ///
    /// # Safety
    /// The caller must not use the view after the mapping was dropped.
    pub(crate) unsafe fn words_unbound(&self) -> &'static [AtomicU64] {
        // SAFETY: as in `words`; the caller sees to the time.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped, once; no slice of it is left, or whoever has one promised not to use it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.words * 8) };
        debug_assert!(unmapped.is_ok(), "BUG: a mapping that cannot be unmapped");
    }
}

/// Words as the bytes that a system call fills.
pub(crate) fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    let length = size_of_val(words);
    // SAFETY: any byte of a u64 may have any value, and a u8 needs no alignment.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), length) }
}

/// Words as the bytes that they are in the file.
pub(crate) fn as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: a u64 has no padding, and a u8 needs no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
