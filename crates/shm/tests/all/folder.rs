//! A folder in memory of a test's own, gone with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kymo_shm::{Access, Reader};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = PathBuf::from(format!("/dev/shm/kymo-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder in memory");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Names of files.
    pub(crate) fn names(&self) -> Vec<OsString> {
        let entries = std::fs::read_dir(&self.0).expect("the folder");
        entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect()
    }

    /// The one publisher that is there.
    pub(crate) fn open(&self, access: Access) -> Reader {
        let names = self.names();
        assert_eq!(names.len(), 1, "{names:?}");
        let folder = std::fs::File::open(&self.0).expect("the folder");
        Reader::open(folder, &names[0], access).expect("a publisher")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}
