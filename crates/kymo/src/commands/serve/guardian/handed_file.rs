//! The AuthFile and types.db for the keeper, which cannot reach the files: it inherits copies in memory. The guardian writes
//! the copies at the start and at SIGHUP, and types.db also when it has changed. The keeper reads them when it starts, and
//! when the guardian passes SIGHUP on. The signal follows the write, so the last reading is of a complete copy.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use rustix::fs::{MemfdFlags, memfd_create};

/// Files, and a copy of all their texts in a row.
pub(crate) struct HandedFile {
    paths: Vec<PathBuf>,
    copy: File,
    /// State of the files when they were copied.
    changed: Cell<Changed>,
}

/// Newest time of the files, and the sum of their sizes.
type Changed = Option<(SystemTime, u64)>;

impl HandedFile {
    /// Copies these files.
    pub(crate) fn open(name: &str, paths: Vec<PathBuf>) -> Result<HandedFile> {
        let copy = memfd_create(name, MemfdFlags::CLOEXEC).map_err(io::Error::from);
        let file = HandedFile {
            paths,
            copy: copy.context("cannot make a file in memory")?.into(),
            changed: Cell::new(None),
        };
        file.copy_again()?;
        Ok(file)
    }

    /// Copies the files again. If one of them cannot be read, the copy stays as it is.
    pub(crate) fn copy_again(&self) -> Result<()> {
        self.changed.set(self.change());
        let mut text = Vec::new();
        for path in &self.paths {
            let read = std::fs::read(path);
            text.extend(read.with_context(|| format!("cannot read {}", path.display()))?);
            if !text.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        let written = self.copy.write_all_at(&text, 0);
        let written = written.and_then(|()| self.copy.set_len(text.len() as u64));
        written.context("cannot copy a file into memory")
    }

    /// True if the files have changed since they were copied.
    pub(crate) fn has_changed(&self) -> bool {
        let now = self.change();
        now.is_some() && now != self.changed.get()
    }

    fn change(&self) -> Changed {
        let mut newest: Changed = None;
        for path in &self.paths {
            let stat = std::fs::metadata(path).ok()?;
            let (time, size) = newest.unwrap_or((SystemTime::UNIX_EPOCH, 0));
            newest = Some((time.max(stat.modified().ok()?), size + stat.len()));
        }
        newest
    }

    /// File descriptor of the copy.
    pub(crate) fn number(&self) -> RawFd {
        self.copy.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_what_the_file_was_last() {
        let path = std::env::temp_dir().join(format!("kymo-auth-{}", std::process::id()));
        std::fs::write(&path, "a: long password\n").expect("a file");
        let file = HandedFile::open("auth_file", vec![path.clone()]).expect("a copy");
        let read = || {
            let mut text = vec![0; 100];
            let count = file.copy.read_at(&mut text, 0).expect("read");
            text.truncate(count);
            String::from_utf8(text).expect("text")
        };
        assert_eq!(read(), "a: long password\n");
        std::fs::write(&path, "b: c\n").expect("a file");
        assert!(file.has_changed());
        file.copy_again().expect("copied");
        assert!(!file.has_changed());
        assert_eq!(read(), "b: c\n");
        std::fs::remove_file(&path).expect("removed");
        assert!(file.copy_again().is_err() && read() == "b: c\n");
        assert!(!file.has_changed());
        assert!(HandedFile::open("auth_file", vec![path]).is_err());
    }
}
