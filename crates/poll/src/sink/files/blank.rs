//! Creates missing files as MRTG does.

use super::super::Series;
use super::super::rates::BEGINS_BEFORE_S;
use kymo_rrd::Error;
use kymo_rrd::create::{Create, create};
use kymo_sys::tree::{Existing, Safe, Tree};
use std::fmt::{self, Display};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Size of each write to a new file. For larger writes the kernel makes large folios, and then ext4 inspects each of their blocks
/// when an update changes a few bytes: twice the CPU of an update (docs/journal/2026-11-24-poll.md).
const PAGE_BYTES: usize = 4096;

/// Reasons why a file could not be made.
pub(super) enum Trouble {
    Rrd(Error),
    Disk(io::Error),
}

impl Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Rrd(error) => error.fmt(f),
            Trouble::Disk(error) => error.fmt(f),
        }
    }
}

/// Makes the file, and its folder if needed, for a value of this second.
pub(super) fn create_file(
    tree: &dyn Tree,
    series: &Series,
    first_s: i64,
    random: &mut u64,
) -> Result<(), Trouble> {
    let sources = series.sources();
    let words = sources.iter().chain(series.archives.iter());
    let words: Vec<&[u8]> = words.map(|word| &word[..]).collect();
    let request = Create {
        file_name: series.path.as_os_str().as_bytes(),
        step: u64::from(series.step_s),
        start: Some(first_s - BEGINS_BEFORE_S),
        definitions: &words,
    };
    let made = create(&request, first_s, random, None, &[]).map_err(Trouble::Rrd)?;
    let bytes = made.to_bytes();
    let put = || {
        let mut write = |out: &mut dyn io::Write| {
            let mut pages = bytes.chunks(PAGE_BYTES);
            pages.try_for_each(|page| out.write_all(page))
        };
        tree.put_pieces(&series.path, &mut write, Existing::Keep, Safe::Unsynced)
    };
    let done = match (put(), series.path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            tree.make_folders(folder).and_then(|()| put())
        }
        (done, _) => done,
    };
    match done {
        // Another process made the file first; it is treated as any other file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done.map(|_| ()).map_err(Trouble::Disk),
    }
}
