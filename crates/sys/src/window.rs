//! A part of a file in memory: bytes that are copied there are the kernel's at once, as after `write`, without a system
//! call.
//!
//! If the file system finds no room for a page when it is first touched, the process ends. So only written parts are
//! mapped, and only on file systems that write a page where it is.

use rustix::fs::SeekFrom;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::ops::Range;

/// File systems that write a page in place: ext2 to ext4, tmpfs. Others may write a page elsewhere, where there may be no
/// room.
const IN_PLACE: [u32; 2] = [0xef53, 0x0102_1994];

pub(crate) struct Window {
    start: *mut u8,
    range: Range<u64>,
}

// SAFETY: the memory is the file's, not a thread's.
#[allow(unsafe_code)]
unsafe impl Send for Window {}

impl Window {
    /// Maps a range that begins at a page. `None`: it cannot be, or not all of it was written.
    #[allow(unsafe_code)]
    pub(crate) fn open(file: &File, range: Range<u64>) -> Option<Window> {
        let kind = rustix::fs::fstatfs(file).ok()?.f_type as u32;
        let len = range.end.checked_sub(range.start)? as usize;
        let whole = rustix::fs::seek(file, SeekFrom::Hole(range.start)).ok()? >= range.end;
        if !IN_PLACE.contains(&kind) || len == 0 || !whole {
            return None;
        }
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping at an address of the kernel's choice, which only this window knows.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                rights,
                MapFlags::SHARED,
                file,
                range.start,
            )
        };
        let start = start.ok()?.cast();
        Some(Window { start, range })
    }

    /// True if all of these bytes lie in the window.
    pub(crate) fn holds(&self, offset: u64, len: usize) -> bool {
        offset >= self.range.start
            && self.range.end - self.range.start >= len as u64
            && offset - self.range.start <= self.range.end - self.range.start - len as u64
    }

    /// Writes bytes that it [holds](Self::holds).
    #[allow(unsafe_code)]
    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) {
        assert!(self.holds(offset, bytes.len()), "BUG: beside the window");
        let at = (offset - self.range.start) as usize;
        // SAFETY: inside of the mapping, which lives as long as `self`; no other code of this process uses the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at), bytes.len()) };
    }
}

impl Drop for Window {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let len = (self.range.end - self.range.start) as usize;
        // SAFETY: what `open` has mapped, once. It cannot fail, and nothing could be done.
        let _unmapped = unsafe { munmap(self.start.cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_written_through_it_is_in_the_file() {
        let path = std::env::temp_dir().join(format!("kymo-window-{}", std::process::id()));
        let mut options = File::options();
        let file = options.create_new(true).read(true).write(true).open(&path);
        let file = file.unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all_at(&[7; 200_000], 0).unwrap();
        // Behind the end, and in a hole.
        assert!(Window::open(&file, 65536..200_001).is_none());
        file.write_all_at(&[7; 4096], 300_000).unwrap();
        assert!(Window::open(&file, 65536..304_096).is_none());
        // Not everywhere can it be.
        let Some(mut window) = Window::open(&file, 65536..200_000) else {
            return;
        };
        for (offset, len, holds) in [
            (65535, 2, false),
            (65536, 0, true),
            (65536, 134_464, true),
            (65536, 134_465, false),
            (199_999, 1, true),
            (200_000, 1, false),
            (u64::MAX, 2, false),
        ] {
            assert_eq!(window.holds(offset, len), holds, "{offset} {len}");
        }
        window.write(b"frame", 70_000);
        let mut read = [0; 7];
        file.read_exact_at(&mut read, 69_999).unwrap();
        assert_eq!(&read, b"\x07frame\x07");
        file.write_all_at(b"other", 70_000).unwrap();
        drop(window);
        file.read_exact_at(&mut read, 69_999).unwrap();
        assert_eq!(&read, b"\x07other\x07");
    }
}
