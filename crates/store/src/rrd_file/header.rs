//! Reads the header of an .rrd file with one system call, and reports faults in rrdtool's words.

use crate::consolidation::schema::Schema;
use crate::error::FileError;
use crate::error::rrd_error;
use crate::folder::fence;
use crate::names;
use crate::read::rows::read_cells;
use crate::wal::record::Identity;
use kymo_base::limits::{RRD_HEADER_MAX, SERIES_STATE_MAX};
use kymo_base::name::DisplayName;
use kymo_rrd::Header;
use kymo_rrd::header::RraDef;
use kymo_sys::disk::{DiskFile, Metadata, RecordLock};
use kymo_sys::tree::{Access, Tree};
use std::io;

/// Length of the first read; most headers are shorter, collectd's have 3,496 bytes.
const FRONT: usize = 8192;

/// The identity of a file.
pub(crate) fn identity(stat: &Metadata) -> Identity {
    Identity {
        device: stat.device,
        inode: stat.inode,
        size_bytes: stat.size_bytes,
        mtime_ns: stat.mtime_ns,
    }
}

/// Reads the header into `raw` and parses it. `shown` is the file's name in error texts.
pub(crate) fn read_header(
    file: &dyn DiskFile,
    size_bytes: u64,
    raw: &mut Vec<u8>,
    shown: &[u8],
) -> Result<Header, FileError> {
    raw.resize(FRONT, 0);
    let count = file.read_at(raw, 0).map_err(FileError::Io)?;
    raw.truncate(count);
    if raw.is_empty() {
        // The stock rrdcached maps files, which fails for an empty one.
        let shown = DisplayName(shown);
        let text = format!("mmaping file '{shown}': Invalid argument");
        return Err(FileError::Rrd(text));
    }
    if let Some(needed) = header_len(raw).filter(|&needed| needed > raw.len() as u64) {
        if needed > RRD_HEADER_MAX {
            let text = format!("has a header of {needed} bytes, and {RRD_HEADER_MAX} are the most");
            return Err(rrd_error(shown, &text));
        }
        let wanted = needed.min(size_bytes) as usize;
        raw.resize(wanted.max(count), 0);
        let count = file.read_at(raw, 0).map_err(FileError::Io)?;
        raw.truncate(count);
    }
    let header = Header::parse(raw).map_err(|error| rrd_error(shown, &error.text))?;
    let needed = header.file_size_bytes();
    if needed > size_bytes {
        let text = format!("is too small (should be {needed} bytes)");
        return Err(rrd_error(shown, &text));
    }
    Ok(header)
}

/// Length of the header by the counts at its front; `None` if they are invalid or too large.
fn header_len(raw: &[u8]) -> Option<u64> {
    let word = |at: usize| {
        let bytes = raw.get(at..at + 8)?;
        Some(u64::from_le_bytes(std::array::from_fn(|i| bytes[i])))
    };
    let (ds, rra) = (word(24)?, word(32)?);
    let max = kymo_rrd::header::COUNT_MAX;
    (ds <= max && rra <= max)
        .then(|| 128 + 120 * (ds + rra) + 16 + 112 * ds + 80 * ds * rra + 8 * rra)
}

/// Refuses headers that are too large for a new series,
/// whose state is kept in memory and in the journal.
pub(crate) fn require_modest(header: &Header) -> Result<(), FileError> {
    let (ds, rra) = (header.ds.len() as u64, header.rra.len() as u64);
    let live = 16 + 112 * ds + 80 * ds * rra + 8 * rra;
    let seasonal = header.rra.iter().filter(|rra| rra.is_seasonal());
    let seasons = seasonal.map(|rra| rra.row_cnt.saturating_mul(8 * ds));
    let state = seasons.fold(live, u64::saturating_add);
    match state > SERIES_STATE_MAX {
        true => Err(FileError::Rrd(format!(
            "its sources, archives and seasons take {state} bytes, and {SERIES_STATE_MAX} are the most"
        ))),
        false => Ok(()),
    }
}

/// Reads the cells of the archives that updates change in place.
pub(crate) fn seasons(file: &dyn DiskFile, header: &Header) -> Result<Vec<Vec<f64>>, FileError> {
    let mut all = Vec::new();
    // The cells become state, whose size is limited, so check the limit before allocating.
    if header.rra.iter().any(RraDef::is_seasonal) && Schema::of(header).is_none() {
        return Err(FileError::Rrd("has a damaged header".into()));
    }
    for (archive, rra) in header.rra.iter().enumerate() {
        if !rra.is_seasonal() {
            continue;
        }
        let first = header.cell(archive, 0);
        let mut cells = vec![0.0; (rra.row_cnt * header.ds.len() as u64) as usize];
        read_cells(file, header.size_bytes(), first, &mut cells)
            .map_err(|error| FileError::Rrd(error.text))?;
        all.push(cells);
    }
    Ok(all)
}

/// Opens and locks a file; `None` if another process holds a lock on it.
pub(crate) fn open_locked(
    tree: &dyn Tree,
    path: &[u8],
    lock: RecordLock,
) -> Result<Option<Box<dyn DiskFile>>, FileError> {
    let access = match lock {
        RecordLock::Shared => Access::Read,
        RecordLock::Exclusive => Access::Write,
    };
    let file = tree.open(names::path(path), access).map_err(open_error)?;
    let locked = file.try_record_lock(lock).map_err(FileError::Io)?;
    Ok(locked.then_some(file))
}

/// Maps the error of an open or stat.
pub(crate) fn open_error(error: io::Error) -> FileError {
    match error.raw_os_error() {
        Some(2) => FileError::NoSuchFile,
        Some(fence::OUTSIDE) => FileError::Outside,
        Some(21) => FileError::NotRegular,
        Some(1 | 13 | 30) => FileError::Access(error),
        _ if error.kind() == io::ErrorKind::NotFound => FileError::NoSuchFile,
        _ => FileError::Io(error),
    }
}
