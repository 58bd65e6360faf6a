//! Kernel files beneath a root folder: opened by path, kept open, read with pread.
//! It knows nothing of what is in them.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, RawDir};
pub use rustix::io::Errno;

/// `statfs` types of file systems whose files give fresh content at each pread.
const LIVE_FILE_SYSTEMS: [i64; 4] = [0x9fa0, 0x6265_6572, 0x27_e0eb, 0x6367_7270];

/// The folder below which all kernel files are looked up; `/` but for tests and containers.
pub struct Root {
    dir: OwnedFd,
    proc: OwnedFd,
    path: PathBuf,
    keeps: bool,
}

impl Root {
    /// Opens the root folder and its `proc`.
    pub fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty())?;
        let proc = rustix::fs::openat(&dir, "proc", flags, Mode::empty())?;
        let kind = rustix::fs::fstatfs(&proc)?.f_type as i64;
        Ok(Root {
            dir,
            proc,
            path: path.to_path_buf(),
            keeps: LIVE_FILE_SYSTEMS.contains(&kind),
        })
    }

    /// Where the root is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether files may be kept open: on anything but the kernel's own file systems a kept
    /// file may be an old one.
    pub fn keeps_files(&self) -> bool {
        self.keeps
    }

    /// Opens a file; `path` is relative to the root.
    pub fn file(&self, path: &str) -> Result<KernelFile, Errno> {
        let (dir, path) = match path.strip_prefix("proc/") {
            Some(rest) => (&self.proc, rest),
            None => (&self.dir, path),
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(KernelFile(rustix::fs::openat(
            dir,
            path,
            flags,
            Mode::empty(),
        )?))
    }

    /// Reads a whole small file at once.
    pub fn read(&self, path: &str, out: &mut Vec<u8>) -> Result<(), Errno> {
        out.clear();
        self.file(path)?.read_on(out, usize::MAX)
    }

    /// The target of a symbolic link.
    pub fn link(&self, path: &str) -> Result<Vec<u8>, Errno> {
        Ok(rustix::fs::readlinkat(&self.dir, path, Vec::new())?.into_bytes())
    }

    /// Opens a folder to list it again and again.
    pub fn folder(&self, path: &str) -> Result<Folder, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder(rustix::fs::openat(
            &self.dir,
            path,
            flags,
            Mode::empty(),
        )?))
    }
}

/// An open kernel file.
pub struct KernelFile(OwnedFd);

impl KernelFile {
    /// One pread of at most the buffer's spare room, appended.
    #[inline]
    pub fn pread(&self, out: &mut Vec<u8>, offset: u64) -> Result<usize, Errno> {
        loop {
            match rustix::io::pread(&self.0, rustix::buffer::spare_capacity(out), offset) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Reads on from the start until nothing comes, appended; EFBIG when there is more than `max`.
    pub fn read_on(&self, out: &mut Vec<u8>, max: usize) -> Result<(), Errno> {
        let start = out.len();
        loop {
            if out.capacity() - out.len() < 1024 {
                out.reserve(4096.max(out.len()));
            }
            let n = self.pread(out, (out.len() - start) as u64)?;
            if n == 0 {
                return Ok(());
            }
            if out.len() - start > max {
                return Err(Errno::FBIG);
            }
        }
    }
}

/// An open folder.
pub struct Folder(OwnedFd);

impl Folder {
    /// Calls `each` with every name, in the order the kernel gives.
    pub fn list(&self, mut each: impl FnMut(&CStr)) -> Result<(), Errno> {
        rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Start(0))?;
        let mut room = [MaybeUninit::<u8>::uninit(); 16 << 10];
        let mut dir = RawDir::new(self.0.as_fd(), &mut room);
        while let Some(entry) = dir.next() {
            each(entry?.file_name());
        }
        Ok(())
    }
}
