//! The AuthFile for the keeper, which cannot reach the file itself: a copy in memory that it inherits. The guardian writes it
//! at the start and at SIGHUP; the keeper reads it when it starts, and when the guardian passes SIGHUP on. Signals come
//! behind writes, so the last reading is of a whole copy.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::{MemfdFlags, memfd_create};

/// A file of users, and its copy.
pub(crate) struct AuthFile {
    path: PathBuf,
    copy: File,
}

impl AuthFile {
    /// Of a file that is there.
    pub(crate) fn open(path: &Path) -> Result<AuthFile> {
        let copy = memfd_create("auth_file", MemfdFlags::CLOEXEC).map_err(io::Error::from);
        let file = AuthFile {
            path: path.to_path_buf(),
            copy: copy.context("cannot make a file in memory")?.into(),
        };
        file.copy_again()?;
        Ok(file)
    }

    /// Takes over what the file says now. One that cannot be read leaves the copy as it is.
    pub(crate) fn copy_again(&self) -> Result<()> {
        let path = self.path.display();
        let text = std::fs::read(&self.path).with_context(|| format!("cannot read {path}"))?;
        let written = self.copy.set_len(text.len() as u64);
        let written = written.and_then(|()| self.copy.write_all_at(&text, 0));
        written.with_context(|| format!("cannot copy {path}"))
    }

    /// The number of the copy.
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
        let file = AuthFile::open(&path).expect("a copy");
        let read = || {
            let mut text = vec![0; 100];
            let count = file.copy.read_at(&mut text, 0).expect("read");
            text.truncate(count);
            String::from_utf8(text).expect("text")
        };
        assert_eq!(read(), "a: long password\n");
        std::fs::write(&path, "b: c\n").expect("a file");
        file.copy_again().expect("copied");
        assert_eq!(read(), "b: c\n");
        std::fs::remove_file(&path).expect("removed");
        assert!(file.copy_again().is_err() && read() == "b: c\n");
        assert!(AuthFile::open(&path).is_err());
    }
}
