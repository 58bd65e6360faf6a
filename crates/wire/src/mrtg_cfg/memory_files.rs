//! Files in memory, for tests.

use super::files::Files;
use std::collections::{BTreeMap, BTreeSet};

/// Files by path. Paths that end with a slash, and `/tmp`, are directories.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(BTreeMap<Vec<u8>, Vec<u8>>);

impl MemoryFiles {
    /// Adds a file, or replaces it.
    pub fn add(&mut self, path: &str, bytes: &[u8]) {
        self.0.insert(path.into(), bytes.into());
    }
}

impl Files for MemoryFiles {
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| "No such file or directory".to_string())
    }

    fn is_readable(&mut self, path: &[u8]) -> bool {
        self.exists(path)
    }

    fn names(&mut self, folder: &[u8]) -> Vec<Vec<u8>> {
        let last = folder.iter().rposition(|byte| *byte != b'/');
        let folder = &folder[..last.map_or(0, |last| last + 1)];
        let below = |path: &Vec<u8>| match folder {
            b"." => Some(path.clone()),
            _ => Some(path.strip_prefix(folder)?.strip_prefix(b"/")?.to_vec()),
        };
        let first = |path: Vec<u8>| path.split(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
        let names: BTreeSet<_> = self.0.keys().filter_map(below).filter_map(first).collect();
        names.into_iter().collect()
    }

    fn is_dir(&mut self, path: &[u8]) -> bool {
        path.ends_with(b"/") || path == b"/tmp"
    }

    fn exists(&mut self, path: &[u8]) -> bool {
        self.is_dir(path) || self.0.contains_key(path)
    }
}
