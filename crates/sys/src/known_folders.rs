//! Names of folders as they were listed last. Who goes through a ring of a gigabyte would list its thousands of names several times
//! at each step.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::FolderStamp;

/// Most folders, and most names of one, that are kept.
const FOLDERS_MAX: usize = 8;
const NAMES_MAX: usize = 1 << 16;

/// Names of the folders that were listed last, in the caller's form.
pub struct KnownFolders<T>(Mutex<VecDeque<(FolderStamp, Arc<[T]>)>>);

impl<T> Default for KnownFolders<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> KnownFolders<T> {
    /// No folders yet.
    pub const fn new() -> Self {
        KnownFolders(Mutex::new(VecDeque::new()))
    }

    /// The names of a folder, which `list` reads if the stamp from before is another one now, or none.
    pub fn names<E>(
        &self,
        stamp: Option<FolderStamp>,
        list: impl FnOnce() -> Result<Vec<T>, E>,
    ) -> Result<Arc<[T]>, E> {
        let is_it = |(known, _): &&(FolderStamp, Arc<[T]>)| Some(*known) == stamp;
        if let Some((_, names)) = self.lock().iter().find(is_it) {
            return Ok(names.clone());
        }
        let names: Arc<[T]> = list()?.into();
        if let Some(stamp) = stamp
            && names.len() <= NAMES_MAX
        {
            let mut known = self.lock();
            known.truncate(FOLDERS_MAX - 1);
            known.push_front((stamp, names.clone()));
        }
        Ok(names)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(FolderStamp, Arc<[T]>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk as _, RealDisk};
    use std::io;
    use std::time::Duration;
    use std::{fs, thread};

    /// A folder whose last change is old enough to be kept, and is then changed, has other names at once.
    #[test]
    fn a_change_is_seen_behind_a_kept_listing() {
        let dir = std::env::temp_dir().join(format!("kymo-known-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let known = KnownFolders::new();
        let names = |expected: &[&str], is_read: bool| {
            let mut was_read = false;
            let found = known.names(RealDisk.folder_stamp(&dir), || {
                was_read = true;
                let mut names = Vec::new();
                RealDisk.list(&dir, &mut |name, _| names.push(name.to_string()))?;
                names.sort();
                Ok::<_, io::Error>(names)
            });
            assert_eq!(*found.unwrap(), *expected);
            assert_eq!(was_read, is_read, "{expected:?}");
        };
        for name in ["a", "b"] {
            fs::write(dir.join(name), "").unwrap();
        }
        names(&["a", "b"], true);
        names(&["a", "b"], true);
        while RealDisk.folder_stamp(&dir).is_none() {
            thread::sleep(Duration::from_millis(100));
        }
        names(&["a", "b"], true);
        names(&["a", "b"], false);
        fs::write(dir.join("c"), "").unwrap();
        names(&["a", "b", "c"], true);
        fs::remove_file(dir.join("a")).unwrap();
        names(&["b", "c"], true);
        fs::remove_dir_all(&dir).unwrap();
    }
}
