//! A stream copied into a file without a name, so that it can be read more than once. The file is opened again by the path
//! of its descriptor, each time from its beginning.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const DESCRIPTORS: &str = "/proc/self/fd";

/// A stream's bytes, as long as this is there.
#[derive(Debug)]
pub struct Spooled(File);

impl Spooled {
    /// Reads standard input to its end.
    pub fn standard_input() -> io::Result<Spooled> {
        Spooled::copy(io::stdin().lock())
    }

    fn copy(mut from: impl Read) -> io::Result<Spooled> {
        let path = std::env::temp_dir().join(format!("kymo-input-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path)?;
        remove_file(&path)?;
        io::copy(&mut from, &mut file)?;
        Ok(Spooled(file))
    }

    /// The path by which the bytes are opened.
    pub fn path(&self) -> PathBuf {
        Path::new(DESCRIPTORS).join(self.0.as_raw_fd().to_string())
    }

    /// True if a path leads to such a file.
    pub fn is_path(path: &Path) -> bool {
        path.starts_with(DESCRIPTORS)
    }
}
