//! Creates missing files as MRTG does: from the history of a .log, or else without one.

use super::super::Series;
use super::super::logs::FILE_MAX as LOG_MAX;
use super::super::rates::BEGINS_BEFORE_S;
use kymo_rrd::Error;
use kymo_sys::disk::NameKind;
use kymo_sys::tree::{Access, Existing, Safe, Tree};
use std::fmt::{self, Display};
use std::io;

/// Size of each write to a new file. For larger writes the kernel makes large folios, and then ext4 inspects each of their blocks
/// when an update changes a few bytes: twice the CPU of an update (docs/journal/2026-11-24-poll.md).
const PAGE_BYTES: usize = 4096;

/// Reasons why a file could not be made.
pub(super) enum Trouble {
    Rrd(Error),
    /// The .log that has the history cannot be converted.
    Log(String),
    Disk(io::Error),
}

impl Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Rrd(error) => error.fmt(f),
            Trouble::Log(cause) => {
                write!(
                    f,
                    "its .log cannot be converted ({cause}); move it away to begin without history"
                )
            }
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
    let made = match read_log(tree, series)? {
        Some(text) => series.convert_log(&text, random).map_err(Trouble::Log)?,
        None => {
            let start_s = Some(first_s - BEGINS_BEFORE_S);
            let made = series.create(start_s, first_s, random, &[]);
            made.map_err(Trouble::Rrd)?
        }
    };
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

/// The .log of a series; `None`: there is none.
fn read_log(tree: &dyn Tree, series: &Series) -> Result<Option<Vec<u8>>, Trouble> {
    let file = match tree.open(&series.path.with_extension("log"), Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Trouble::Disk)?,
    };
    let stat = file.metadata().map_err(Trouble::Disk)?;
    if stat.kind != NameKind::File || stat.size_bytes > LOG_MAX {
        return Err(Trouble::Log("it is no file, or larger than 1 MiB".into()));
    }
    let mut text = vec![0; usize::try_from(stat.size_bytes).unwrap_or(0)];
    let read = file.read_at(&mut text, 0).map_err(Trouble::Disk)?;
    text.truncate(read);
    Ok(Some(text))
}
