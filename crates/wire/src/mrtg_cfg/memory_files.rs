//! Files in memory, for tests.

use super::files::Files;
use std::collections::BTreeMap;

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
        self.0.contains_key(path)
    }

    fn glob(&mut self, pattern: &[u8]) -> Vec<Vec<u8>> {
        let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
            return Vec::new();
        };
        let (before, after) = (&pattern[..star], &pattern[star + 1..]);
        let fits = |path: &&Vec<u8>| path.starts_with(before) && path.ends_with(after);
        self.0.keys().filter(fits).cloned().collect()
    }

    fn is_dir(&mut self, path: &[u8]) -> bool {
        path.ends_with(b"/") || path == b"/tmp"
    }

    fn exists(&mut self, path: &[u8]) -> bool {
        self.is_dir(path) || self.0.contains_key(path)
    }
}
