//! .rrd files of this machine: opened under the same lock as rrdtool's, read and written in place; new ones are
//! made beside their name and moved over an old one.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use kymo_rrd::header::MEMORY_CELLS_MAX;
use kymo_rrd::{Error, Header, Rows, Rrd};
use rustix::fs::{FlockOperation, fcntl_lock};

use super::message::Message;
use super::path::path;
use super::session::Session;

/// Bytes read at first: the header of most files.
const FIRST_READ: usize = 4096;
/// Bytes of `stat_head_t`.
const HEAD: u64 = 128;
/// Bytes of `ds_def_t` or `rra_def_t`.
const DEFINITION: u64 = 120;
/// Bytes of `pdp_prep_t`.
const PDP_PREP: u64 = 112;
/// Bytes of `cdp_prep_t`.
const CDP_PREP: u64 = 80;
/// Most attempts at a free name for a temporary file.
const TRIES: usize = 100;

/// Access for which a file is opened: the lock is shared or exclusive accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// An open file under its lock.
pub(super) struct RrdFile {
    file: File,
    /// Header of the file.
    pub header: Header,
    size_bytes: u64,
}

impl RrdFile {
    /// Opens a file and reads its header. `bytes` is a buffer, and has the header's bytes afterwards.
    pub(super) fn open(
        name: &[u8],
        access: Access,
        bytes: &mut Vec<u8>,
    ) -> Result<RrdFile, Message> {
        let mut options = OpenOptions::new();
        options.read(true).write(access == Access::Write);
        let file = options
            .open(path(name))
            .map_err(|error| Message::about("opening", name, &error))?;
        let operation = match access {
            Access::Read => FlockOperation::NonBlockingLockShared,
            Access::Write => FlockOperation::NonBlockingLockExclusive,
        };
        fcntl_lock(&file, operation).map_err(|_| Message::from("could not lock RRD"))?;
        let stat = file
            .metadata()
            .map_err(|error| Message::about("fstat", name, &error))?;
        // The original cannot read files that it cannot map.
        let cannot_map =
            |cause: &str| Message::of(&[b"mmaping file '", name, b"': ", cause.as_bytes()]);
        if !stat.is_file() {
            return Err(cannot_map("No such device"));
        }
        let size_bytes = stat.len();
        if size_bytes == 0 {
            return Err(cannot_map("Invalid argument"));
        }
        read_header(&file, size_bytes, bytes)
            .map_err(|error| Message::about("reading", name, &error))?;
        let header = Header::parse(bytes).map_err(|error| worded(error, name, bytes))?;
        let needed = header.file_size_bytes();
        if size_bytes < needed {
            let text = format!("' is too small (should be {needed} bytes)");
            return Err(Message::of(&[b"'", name, text.as_bytes()]));
        }
        Ok(RrdFile {
            file,
            header,
            size_bytes,
        })
    }

    /// The header, mutable, and the rows after it.
    pub(super) fn parts(&mut self) -> (&mut Header, FileRows<'_>) {
        let rows = FileRows {
            file: &self.file,
            begin: self.header.size_bytes(),
            end: self.size_bytes,
            first: 0,
            gathered: Vec::new(),
        };
        (&mut self.header, rows)
    }

    /// Writes the part of the header that updates change. `bytes` must have the header as it was read.
    pub(super) fn write_live(&self, bytes: &mut Vec<u8>, name: &[u8]) -> Result<(), Message> {
        let (live, end) = (self.header.live_offset(), self.header.size_bytes() as usize);
        bytes.truncate(end);
        self.header.encode_live(bytes);
        let (before, after) = bytes.split_at(end);
        if &before[live as usize..] != after {
            self.write(after, live, name)?;
        }
        Ok(())
    }

    /// Writes the whole header.
    pub(super) fn write_header(&self, name: &[u8]) -> Result<(), Message> {
        let mut bytes = Vec::new();
        self.header.encode(&mut bytes);
        self.write(&bytes, 0, name)
    }

    fn write(&self, bytes: &[u8], offset: u64, name: &[u8]) -> Result<(), Message> {
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|error| Message::about("writing", name, &error))
    }

    /// Loads the whole file into memory, still under the lock.
    pub(super) fn load(&mut self) -> Result<Rrd, Message> {
        let count = self.header.cell_count();
        // A file with holes may have more cells than there is memory.
        if count > MEMORY_CELLS_MAX {
            return Err(format!("cannot load {count} cells: more than {MEMORY_CELLS_MAX}").into());
        }
        let mut cells = vec![0.0; count as usize];
        let (header, mut rows) = self.parts();
        rows.read(0, &mut cells)?;
        let header = header.clone();
        Ok(Rrd { header, cells })
    }
}

/// Reads a whole file.
pub(super) fn load(session: &mut Session, name: &[u8]) -> Result<Rrd, Message> {
    RrdFile::open(name, Access::Read, &mut session.bytes)?.load()
}

fn read_header(file: &File, size_bytes: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.resize(FIRST_READ.min(size_bytes as usize), 0);
    file.read_exact_at(bytes, 0)?;
    let needed = header_bytes(bytes).unwrap_or(0).min(size_bytes) as usize;
    let have = bytes.len();
    bytes.resize(needed.max(HEAD as usize).min(size_bytes as usize), 0);
    if let Some(rest) = bytes.get_mut(have..) {
        file.read_exact_at(rest, have as u64)?;
    }
    Ok(())
}

/// Size of the header, from the counts in the first bytes of the file.
fn header_bytes(bytes: &[u8]) -> Option<u64> {
    sections(bytes)?.last().map(|section| section.1)
}

/// Parts of a header by rrdtool's names, and the end of each.
fn sections(bytes: &[u8]) -> Option<[(&'static str, u64); 7]> {
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let (sources, archives) = (word(24)?, word(32)?);
    let live: (&str, u64) = match bytes.get(4..8)? {
        b"0001" | b"0002" => ("rrd->legacy_last_up", 8),
        _ => ("rrd->live_head", 16),
    };
    let mut end = 0u64;
    let mut next = |name, count: u64, size: u64| {
        end = end.saturating_add(count.saturating_mul(size));
        (name, end)
    };
    Some([
        next("rrd->stat_head", 1, HEAD),
        next("rrd->ds_def", sources, DEFINITION),
        next("rrd->rra_def", archives, DEFINITION),
        next(live.0, 1, live.1),
        next("rrd->pdp_prep", sources, PDP_PREP),
        next("rrd->cdp_prep", sources.saturating_mul(archives), CDP_PREP),
        next("rrd->rra_ptr", archives, 8),
    ])
}

/// An error of a header in rrdtool's words: some begin with the file's name; for a header that is cut short,
/// the text names the missing part.
fn worded(error: Error, name: &[u8], bytes: &[u8]) -> Message {
    let size_bytes = bytes.len() as u64;
    if error.text.contains("cut short") {
        let cut = |section: &&(&'static str, u64)| size_bytes < section.1;
        let sections = sections(bytes);
        let section = sections.as_ref().and_then(|all| all.iter().find(cut));
        let section = section.map_or("rrd->stat_head", |section| section.0);
        return Message::from(format!("reached EOF while loading header {section}"));
    }
    match error.text.starts_with("is ") || error.text.starts_with("has ") {
        true => Message::of(&[b"'", name, b"' ", error.text.as_bytes()]),
        false => error.into(),
    }
}

/// Rows of an open file. Consecutive rows are gathered and written together.
pub(super) struct FileRows<'a> {
    file: &'a File,
    /// Offset of the first row.
    begin: u64,
    /// End of the file.
    end: u64,
    /// Index of the first cell in `gathered`.
    first: u64,
    gathered: Vec<u8>,
}

impl FileRows<'_> {
    /// Writes gathered rows. Must be called before the header is written.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let offset = self.offset(self.first, self.gathered.len());
        let written = offset.and_then(|offset| {
            let written = self.file.write_all_at(&self.gathered, offset);
            written.map_err(|error| failed("writing", &error))
        });
        self.gathered.clear();
        written
    }

    fn offset(&self, first: u64, len: usize) -> Result<u64, Error> {
        let offset = first
            .checked_mul(8)
            .and_then(|at| at.checked_add(self.begin));
        offset
            .filter(|&at| {
                at.checked_add(len as u64)
                    .is_some_and(|end| end <= self.end)
            })
            .ok_or_else(|| Error::new("a row lies outside the file"))
    }
}

fn failed(verb: &str, error: &io::Error) -> Error {
    let cause = kymo_base::errno::strerror(error);
    Error::new(format!("{verb} rows: {cause}"))
}

impl Rows for FileRows<'_> {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        self.finish()?;
        let mut bytes = vec![0; cells.len() * 8];
        let offset = self.offset(first, bytes.len())?;
        let read = self.file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| failed("reading", &error))?;
        for (cell, bytes) in cells.iter_mut().zip(bytes.as_chunks().0) {
            *cell = f64::from_le_bytes(*bytes);
        }
        Ok(())
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        if first != self.first + (self.gathered.len() / 8) as u64 {
            self.finish()?;
        }
        if self.gathered.is_empty() {
            self.first = first;
        }
        let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes());
        self.gathered.extend(bytes);
        Ok(())
    }
}

/// Replaces the file `name`, and keeps its mode; `-` is standard output. A connected daemon flushes the file
/// before, and forgets it afterwards.
pub(super) fn replace(session: &mut Session, name: &[u8], rrd: &Rrd) -> Result<(), Message> {
    let bytes = rrd.to_bytes();
    if name == b"-" {
        let written = session.out.write_all(&bytes);
        return written.map_err(|error| Message::about("writing", name, &error));
    }
    let (temporary, file) =
        temporary(name).map_err(|_| Message::from("Cannot create temporary file"))?;
    let done = fill_and_move(session, name, &temporary, file, &bytes);
    if done.is_err() {
        // If this fails, the temporary file stays: the error is about the file itself.
        let _ = std::fs::remove_file(path(&temporary));
    }
    done
}

fn fill_and_move(
    session: &mut Session,
    name: &[u8],
    temporary: &[u8],
    mut file: File,
    bytes: &[u8],
) -> Result<(), Message> {
    file.write_all(bytes)
        .map_err(|error| Message::about("writing", name, &error))?;
    let mode = std::fs::metadata(path(name)).map_or(0o644, |stat| stat.permissions().mode());
    file.set_permissions(Permissions::from_mode(mode & 0o7777))
        .map_err(|_| Message::from("Cannot chmod temporary file!"))?;
    drop(file);
    forget(session, name);
    std::fs::rename(path(temporary), path(name))
        .map_err(|_| Message::from("Cannot rename temporary file to final file!"))?;
    forget(session, name);
    Ok(())
}

/// Lets a connected daemon forget a file. It does not matter if the daemon knew the file.
pub(super) fn forget(session: &mut Session, name: &[u8]) {
    if session.client.is_any_connected() {
        let _ = session.client.forget(name);
    }
}

/// A new file beside `name`, only for its owner.
fn temporary(name: &[u8]) -> io::Result<(Vec<u8>, File)> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for _ in 0..TRIES {
        let mut random = [0; 6];
        kymo_sys::machine::random(&mut random)?;
        let letters = random.map(|byte| LETTERS[usize::from(byte) % LETTERS.len()]);
        let name = [name, &letters].concat();
        match open_new(path(&name), 0o600) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (name, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn open_new(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Writes a file that was restored from a dump: a new one, or with `force` over an existing one.
pub(super) fn write_restored(
    session: &mut Session,
    name: &[u8],
    rrd: &Rrd,
    force: bool,
) -> Result<(), Message> {
    let bytes = rrd.to_bytes();
    if name == b"-" {
        let written = session.out.write_all(&bytes);
        return written.map_err(|error| Message::about("writing", name, &error));
    }
    let creating = |error: io::Error| Message::about("creating", name, &error);
    let mut file = match force {
        true => OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .open(path(name)),
        false => open_new(path(name), 0o666),
    }
    .map_err(creating)?;
    file.write_all(&bytes).map_err(|error| {
        // Half a file is worse than no file.
        let _ = std::fs::remove_file(path(name));
        Message::about("a file error occurred while creating", name, &error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_gathered_and_stay_within_the_file() {
        let path = std::env::temp_dir().join(format!("kymo-rows-{}", std::process::id()));
        std::fs::write(&path, [0; 16 + 8 * 6]).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut rows = FileRows {
            file: &file,
            begin: 16,
            end: 16 + 8 * 6,
            first: 0,
            gathered: Vec::new(),
        };
        let on_disk = || {
            let mut bytes = [0; 8 * 6];
            file.read_exact_at(&mut bytes, 16).unwrap();
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|cell| f64::from_le_bytes(*cell))
                .collect::<Vec<_>>()
        };
        rows.write(2, &[2.0]).unwrap();
        rows.write(3, &[3.0, 4.0]).unwrap();
        assert_eq!(on_disk(), [0.0; 6], "written one by one");
        rows.write(0, &[9.0]).unwrap();
        assert_eq!(on_disk(), [0.0, 0.0, 2.0, 3.0, 4.0, 0.0]);
        let mut cells = [0.0; 3];
        rows.read(0, &mut cells).unwrap();
        assert_eq!(cells, [9.0, 0.0, 2.0]);
        assert!(rows.read(4, &mut cells).is_err());
        rows.write(6, &[1.0]).unwrap();
        assert!(rows.finish().is_err());
        rows.finish().unwrap();
        rows.write(u64::MAX / 4, &[1.0]).unwrap();
        assert!(rows.finish().is_err());
        assert_eq!(file.metadata().unwrap().len(), 16 + 8 * 6);
    }

    #[test]
    fn the_parts_of_a_header_end_where_the_next_begins() {
        let mut head = vec![0; 128];
        head[..8].copy_from_slice(b"RRD\x000003");
        head[24] = 1;
        head[32] = 15;
        // The head of one of collectd's files.
        assert_eq!(header_bytes(&head), Some(3496));
        head[7] = b'1';
        assert_eq!(header_bytes(&head), Some(3488));
        head[24..40].fill(0xff);
        assert_eq!(header_bytes(&head), Some(u64::MAX));
        assert_eq!(header_bytes(&head[..39]), None);
    }
}
