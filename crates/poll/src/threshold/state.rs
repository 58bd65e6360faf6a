//! Files that say which bounds are broken. They are empty; that they are there is all.

use std::fs::{self, File};
use std::io;
use std::path::Path;

pub(super) fn is_there(file: &Path) -> bool {
    file.exists()
}

pub(super) fn make(file: &Path) -> io::Result<()> {
    File::create(file).map(drop)
}

pub(super) fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)
}
