//! A made-up `/proc` and `/sys`, for the tests of several modules.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kymo_sys::kernel_file::Root;

/// A temporary folder with a made-up `proc`.
pub(crate) struct MadeRoot {
    folder: PathBuf,
    /// The open folder.
    pub(crate) root: Root,
}

impl MadeRoot {
    /// Creates a root without files.
    pub(crate) fn new() -> MadeRoot {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("kymo-made-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("proc")).expect("a folder");
        let root = Root::open(&folder).expect("a root");
        MadeRoot { folder, root }
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    /// Writes a file of bytes, and the folders above it.
    pub(crate) fn write_bytes(&self, path: &str, text: &[u8]) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    /// Makes a symbolic link, and the folders above it.
    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::os::unix::fs::symlink(target, path).expect("a link");
    }

    /// Removes a file or a folder.
    pub(crate) fn remove(&self, path: &str) {
        let path = self.folder.join(path);
        match path.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        }
        .expect("removed");
    }
}

impl Drop for MadeRoot {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
