//! Files of the repository that the program writes. `UPDATE_GOLDEN=1` writes them again; the diff goes with the commit.

use std::fs;
use std::path::Path;

/// Returns true if golden files are to be written.
pub fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Compares files of `folder` with their expected contents, or writes them. Panics with the names of files that differ.
pub fn judge(folder: &Path, expected: impl IntoIterator<Item = (String, Vec<u8>)>) {
    let mut stale = Vec::new();
    for (name, content) in expected {
        let path = folder.join(&name);
        if is_update() {
            fs::write(&path, &content).expect("a golden file");
        } else if fs::read(&path).unwrap_or_default() != content {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "{} has other files than the program writes: {stale:?}; if the program is right, run with UPDATE_GOLDEN=1",
        folder.display()
    );
}
