//! Words of a file, by `pread` or from a mapping.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use kymo_base::errno::strerror;
use rustix::io::{Errno, pread};

use crate::mapping::{Mapping, bytes_of};
use crate::version::{Memory, Word};

/// Why a file that was open cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The file became shorter.
    #[error("it is shorter than it was")]
    Short,
    /// The system refused.
    #[error("cannot read it: {}", strerror(&(*.0).into()))]
    System(Errno),
}

/// Where the words come from.
pub(crate) enum Bytes {
    File(OwnedFd),
    /// A mapping, and the file for its lock.
    Mapped(Mapping, OwnedFd),
    /// Bytes of a fuzzer.
    #[cfg(any(test, feature = "testing"))]
    Made(Vec<u8>),
}

impl Bytes {
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        match self {
            Bytes::File(file) | Bytes::Mapped(_, file) => file.as_fd(),
            #[cfg(any(test, feature = "testing"))]
            Bytes::Made(_) => rustix::stdio::stdin(),
        }
    }

    /// Words from `at`, a multiple of 8, each of them whole: the kernel copies from and to aligned addresses by words or more.
    pub(crate) fn read_words(&self, at: u64, words: &mut [u64]) -> Result<(), ReadError> {
        match self {
            Bytes::File(file) => read_file(file, at, bytes_of(words)),
            Bytes::Mapped(mapping, _) => {
                let first = usize::try_from(at / 8).map_err(|_| ReadError::Short)?;
                let found = mapping
                    .words()
                    .get(first..)
                    .and_then(|found| found.get(..words.len()));
                for (word, found) in words.iter_mut().zip(found.ok_or(ReadError::Short)?) {
                    *word = found.get();
                }
                Ok(())
            }
            #[cfg(any(test, feature = "testing"))]
            Bytes::Made(made) => {
                let length = words.len() * 8;
                let first = usize::try_from(at).map_err(|_| ReadError::Short)?;
                let found = made.get(first..).and_then(|found| found.get(..length));
                bytes_of(words).copy_from_slice(found.ok_or(ReadError::Short)?);
                Ok(())
            }
        }
    }
}

fn read_file(file: &OwnedFd, at: u64, mut bytes: &mut [u8]) -> Result<(), ReadError> {
    let mut at = at;
    while !bytes.is_empty() {
        match pread(file, &mut *bytes, at) {
            Ok(0) => return Err(ReadError::Short),
            Ok(length) => {
                bytes = &mut bytes[length..];
                at += length as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(ReadError::System(error)),
        }
    }
    Ok(())
}

impl Memory for Bytes {
    type Error = ReadError;

    fn read(&self, at: u64, words: &mut [u64]) -> Result<(), ReadError> {
        self.read_words(at, words)
    }

    fn acquire(&self) {
        fence(Ordering::Acquire);
    }
}
