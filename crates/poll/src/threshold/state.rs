//! Empty files that record broken bounds: a file exists while its bound is broken.

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
