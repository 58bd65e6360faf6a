//! Detects changes of a configuration: of the main file or of one that it includes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Files and their last seen state.
#[derive(Clone, Debug)]
pub struct Watch(Vec<(PathBuf, Option<Look>)>);

/// Attributes of a file, at least one of which differs after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    device: u64,
    inode: u64,
    size_bytes: u64,
    /// Modification time, seconds and nanoseconds.
    modified: (i64, i64),
}

impl Look {
    fn of(found: &Metadata) -> Look {
        Look {
            device: found.dev(),
            inode: found.ino(),
            size_bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl Watch {
    /// The current state of the files. Take it before the files are read, so that no change is missed.
    pub fn of(files: impl IntoIterator<Item = PathBuf>) -> Watch {
        let look = |file: PathBuf| {
            let now = file.metadata().ok();
            (file, now.as_ref().map(Look::of))
        };
        Watch(files.into_iter().map(look).collect())
    }

    /// True if a file has changed or appeared since the last call. A missing file does not count: it is being
    /// replaced, or else another file no longer includes it, which is a change of that file.
    pub fn changed(&mut self) -> bool {
        let mut changed = false;
        for (file, before) in &mut self.0 {
            let now = file.metadata().ok().as_ref().map(Look::of);
            if now.is_some() && now != *before {
                *before = now;
                changed = true;
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_change_is_seen_once() {
        let folder = std::env::temp_dir().join(format!("kymo-watch-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (main, other) = (folder.join("main"), folder.join("other"));
        fs::write(&main, "a").unwrap();
        let mut watch = Watch::of([main.clone(), other.clone()]);
        assert!(!watch.changed());
        let changes: [(&str, &dyn Fn()); 5] = [
            ("it comes", &|| fs::write(&other, "b").unwrap()),
            ("it grows", &|| fs::write(&main, "ab").unwrap()),
            ("another takes its place", &|| {
                fs::write(folder.join("new"), "xy").unwrap();
                fs::rename(folder.join("new"), &main).unwrap();
            }),
            ("it is touched", &|| {
                let file = fs::File::options().write(true).open(&main).unwrap();
                file.set_modified(std::time::UNIX_EPOCH).unwrap();
            }),
            ("it goes and comes", &|| {
                fs::remove_file(&other).unwrap();
                fs::write(folder.join("new"), "z").unwrap();
                fs::rename(folder.join("new"), &other).unwrap();
            }),
        ];
        for (what, change) in changes {
            change();
            assert!(watch.changed(), "{what}");
            assert!(!watch.changed(), "{what}: said twice");
        }
        fs::remove_file(&other).unwrap();
        assert!(!watch.changed(), "it is being replaced");
        fs::remove_dir_all(&folder).unwrap();
    }
}
