//! A name in the file system that this process made and removes at its end: a socket's, a pid file's. If the
//! name belongs to another file by then, it stays.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A name, and the identity of its file when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnName {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OwnName {
    /// The name as it is now. Relative ones are kept as they are seen from the current folder.
    pub fn of(path: &Path) -> io::Result<OwnName> {
        let found = std::fs::symlink_metadata(path)?;
        let (device, inode) = number(&found);
        Ok(OwnName {
            path: std::path::absolute(path)?,
            device,
            inode,
        })
    }

    /// Removes the name, unless it stands for something else by now.
    pub fn remove(&self) -> io::Result<()> {
        let found = std::fs::symlink_metadata(&self.path)?;
        match number(&found) == (self.device, self.inode) {
            true => std::fs::remove_file(&self.path),
            false => Ok(()),
        }
    }
}

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_still_ours_is_removed() {
        let folder = std::env::temp_dir().join(format!("kymo-own-name-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (path, other) = (folder.join("a"), folder.join("b"));
        std::fs::write(&path, "ours").unwrap();
        let own = OwnName::of(&path).unwrap();
        std::fs::write(&other, "another's").unwrap();
        std::fs::rename(&other, &path).unwrap();
        own.remove().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "another's");
        OwnName::of(&path).unwrap().remove().unwrap();
        assert!(!path.exists());
        assert!(own.remove().is_err() && OwnName::of(&path).is_err());
        std::fs::remove_dir(folder).unwrap();
    }
}
