//! Kernel files beneath a root folder: opened by path, kept open, read with pread.
//! This module knows nothing of their content.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::clock::process_cpu_ns;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
pub use rustix::io::Errno;

/// `statfs` type of procfs.
const PROC_FILE_SYSTEM: i64 = 0x9fa0;
/// `statfs` types of file systems whose files give fresh content at each pread.
const LIVE_FILE_SYSTEMS: [i64; 4] = [PROC_FILE_SYSTEM, 0x6265_6572, 0x27_e0eb, 0x6367_7270];

/// The folder below which all kernel files are looked up; `/` but for tests and containers.
pub struct Root {
    dir: OwnedFd,
    proc: OwnedFd,
    path: PathBuf,
    keeps: bool,
    has_own_pids: bool,
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
            path: path.to_path_buf(),
            keeps: LIVE_FILE_SYSTEMS.contains(&kind),
            has_own_pids: kind == PROC_FILE_SYSTEM && has_own_pids(&proc),
            proc,
        })
    }

    /// Where the root is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if files may be kept open: on anything but the kernel's own file systems a kept file may be an old one.
    pub fn keeps_files(&self) -> bool {
        self.keeps
    }

    /// True if a pid below `proc` is the pid that this process uses, so that [`Root::process_cpu_ns`] works.
    pub fn has_own_pids(&self) -> bool {
        self.has_own_pids
    }

    /// The CPU time of a process and all its threads, for the price of a system call. `None`: no such process, or pids are
    /// those of another pid namespace, or made up.
    pub fn process_cpu_ns(&self, pid: u32) -> Option<u64> {
        match self.has_own_pids {
            true => process_cpu_ns(pid),
            false => None,
        }
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
        self.read_at_most(path, out, usize::MAX)
    }

    /// Reads a whole file at once; EFBIG when it has more than `max` bytes.
    pub fn read_at_most(&self, path: &str, out: &mut Vec<u8>, max: usize) -> Result<(), Errno> {
        out.clear();
        self.file(path)?.read_on(out, max)
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

/// True if this process has one pid below that folder, its own: a `proc` of an outer pid namespace lists two.
fn has_own_pids(proc: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(proc, "self/status", flags, Mode::empty()) else {
        return false;
    };
    let mut text = Vec::new();
    let is_read = KernelFile(file).read_on(&mut text, usize::MAX).is_ok();
    let pids = text
        .split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(b"NSpid:"));
    let own = std::process::id().to_string();
    is_read && pids.is_some_and(|pids| pids.trim_ascii() == own.as_bytes())
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

/// Identity of a folder below another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FolderNode {
    /// Inode number.
    pub inode: u64,
    /// False: the folder has no folders, as the number of links says on file systems that count folders as links.
    pub may_have_folders: bool,
}

impl Folder {
    /// A folder below this one, by the names on the way to it. No link is followed, and nothing outside of this folder is
    /// reached.
    pub fn below(&self, path: &[u8]) -> Result<Folder, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut at: Option<OwnedFd> = None;
        let names = path.split(|&b| b == b'/').filter(|name| !name.is_empty());
        for name in std::iter::once(&b"."[..]).chain(names) {
            if name == b".." {
                return Err(Errno::ACCESS);
            }
            let from = at.as_ref().unwrap_or(&self.0);
            at = Some(rustix::fs::openat(from, name, flags, Mode::empty())?);
        }
        at.map(Folder).ok_or(Errno::NOENT)
    }

    /// A file in this folder that is no link.
    pub fn file(&self, name: &str) -> Result<KernelFile, Errno> {
        if name.contains('/') {
            return Err(Errno::ACCESS);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.0, name, flags | OFlags::NONBLOCK, Mode::empty())?;
        Ok(KernelFile(file))
    }

    /// Identity of this folder.
    pub fn node(&self) -> Result<FolderNode, Errno> {
        Ok(FolderNode::of(&rustix::fs::fstat(&self.0)?))
    }

    /// Calls `each` with every folder in this one, in the order the kernel gives. One that goes meanwhile is left out.
    pub fn folders(&self, mut each: impl FnMut(&[u8], FolderNode)) -> Result<(), Errno> {
        rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Start(0))?;
        let mut room = [MaybeUninit::<u8>::uninit(); 16 << 10];
        let mut dir = RawDir::new(self.0.as_fd(), &mut room);
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name();
            let is_other = matches!(name.to_bytes(), b"." | b"..")
                || !matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if is_other {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                each(name.to_bytes(), FolderNode::of(&stat));
            }
        }
        Ok(())
    }

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

impl FolderNode {
    fn of(stat: &rustix::fs::Stat) -> FolderNode {
        FolderNode {
            inode: stat.st_ino,
            // Itself, its `.`, and the `..` of each folder in it. Some file systems do not count: there it is 1.
            may_have_folders: stat.st_nlink != 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_proc_has_no_pids_of_ours() {
        let folder = std::env::temp_dir().join(format!("kymo-own-pids-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("proc/self")).expect("a folder");
        let status = format!("NSpid:\t{}\n", std::process::id());
        std::fs::write(folder.join("proc/self/status"), status).expect("a file");
        let root = Root::open(&folder).expect("a root");
        assert!(!root.has_own_pids());
        assert_eq!(root.process_cpu_ns(std::process::id()), None);
        std::fs::remove_dir_all(folder).expect("no folder");
    }

    #[test]
    fn the_clock_of_a_process_grows_as_it_works_and_ends_with_it() {
        let root = Root::open(Path::new("/")).expect("a root");
        if !root.has_own_pids() {
            return crate::skipped::skipped("/proc has the pids of another namespace");
        }
        let own = || root.process_cpu_ns(std::process::id()).expect("a clock");
        let before = own();
        while own() <= before {}
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id();
        assert!(root.process_cpu_ns(pid).is_some(), "not waited for yet");
        child.wait().expect("an end");
        assert_eq!(root.process_cpu_ns(pid), None);
    }
}
