//! Two files of notifications that alternate, docs/formats/notifications.md: what is new is appended to one of them; when it is
//! full, the other one begins again. Nothing is synced: they are to outlive the keeper, and may lack what came just before the
//! machine lost its power.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use kymo_wire::keeper::Event;

const NAMES: [&str; 2] = ["notifications-a", "notifications-b"];
const MAGIC: &[u8; 8] = b"KYMONTF0";
/// Magic, generation, checksum.
const HEAD: usize = 20;
/// Length and checksum of an event.
const FRAME: usize = 8;
/// Bytes of a file at most.
const FILE_MAX: usize = 1 << 20;

/// The files.
pub(super) struct EventFiles {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The one that is appended to, and where it ends; `None`: none was written yet.
    open: Option<Open>,
    generation: u64,
}

struct Open {
    file: Box<dyn DiskFile>,
    end: usize,
}

/// What a file has.
struct Found {
    generation: u64,
    events: Vec<Event>,
    /// Where what can be read ends.
    end: usize,
    size: usize,
}

impl EventFiles {
    /// Reads what there is: events, oldest first, and what was damaged. A damaged end is cut off.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
    ) -> io::Result<(EventFiles, Vec<Event>, Vec<String>)> {
        let (mut all, mut notices) = (Vec::new(), Vec::new());
        for name in NAMES {
            let Some(found) = read(&*disk, &folder.join(name))? else {
                continue;
            };
            if found.end < found.size {
                let bytes = found.size - found.end;
                notices.push(format!(
                    "{name}: {bytes} damaged bytes at the end are left out"
                ));
            }
            all.push((name, found));
        }
        all.sort_by_key(|(_, found)| found.generation);
        let mut files = EventFiles {
            disk,
            folder: folder.to_path_buf(),
            open: None,
            generation: 0,
        };
        if let Some((name, found)) = all.last().filter(|(_, found)| found.generation > 0) {
            let file = files.disk.open(&folder.join(name), OpenMode::Write)?;
            if found.end < found.size {
                file.set_len(offset(found.end))?;
            }
            let end = found.end;
            (files.open, files.generation) = (Some(Open { file, end }), found.generation);
        }
        let events = all.into_iter().flat_map(|(_, found)| found.events);
        Ok((files, events.collect(), notices))
    }

    /// Appends events, and takes those away that were written.
    pub(super) fn append(&mut self, events: &mut VecDeque<Arc<Event>>) -> io::Result<()> {
        while !events.is_empty() {
            let from = self.open.as_ref().map_or(FILE_MAX, |open| open.end);
            let (bytes, count) = frames(events, FILE_MAX - from.min(FILE_MAX));
            let Some(open) = self.open.as_mut().filter(|_| count > 0) else {
                self.begin()?;
                continue;
            };
            open.file.write_at(&bytes, offset(open.end))?;
            open.end += bytes.len();
            events.drain(..count);
        }
        Ok(())
    }

    /// The next file begins again.
    fn begin(&mut self) -> io::Result<()> {
        let generation = self.generation + 1;
        let name = NAMES[usize::from(generation.is_multiple_of(2))];
        let file = self.disk.open(&self.folder.join(name), OpenMode::Create)?;
        file.set_len(0)?;
        let mut head = MAGIC.to_vec();
        head.extend(generation.to_le_bytes());
        head.extend(crc32c::crc32c(&head).to_le_bytes());
        file.write_at(&head, 0)?;
        self.generation = generation;
        self.open = Some(Open { file, end: HEAD });
        Ok(())
    }
}

fn offset(end: usize) -> u64 {
    u64::try_from(end).unwrap_or(u64::MAX)
}

/// Frames of as many events as there is room for, and how many these are.
fn frames(events: &VecDeque<Arc<Event>>, room: usize) -> (Vec<u8>, usize) {
    let (mut bytes, mut frame) = (Vec::new(), Vec::new());
    for (count, event) in events.iter().enumerate() {
        frame.clear();
        put(&mut frame, event);
        if bytes.len() + frame.len() > room {
            return (bytes, count);
        }
        bytes.extend_from_slice(&frame);
    }
    (bytes, events.len())
}

/// A frame: length, checksum of length and body, body.
fn put(out: &mut Vec<u8>, event: &Event) {
    out.resize(FRAME, 0);
    event.put(out);
    // Six texts of 64 KiB at most: an event of collectd has less than 1 KiB, and so always has room in a file.
    let length = u32::try_from(out.len() - FRAME)
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    let checksum = checksum(length, &out[FRAME..]);
    out[..4].copy_from_slice(&length);
    out[4..FRAME].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(length: [u8; 4], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), body)
}

/// `None`: there is no such file.
fn read(disk: &dyn Disk, path: &Path) -> io::Result<Option<Found>> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let size = usize::try_from(file.metadata()?.size_bytes).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size.min(FILE_MAX)];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(Some(parse(&bytes, size)))
}

/// What the bytes say, up to where they are damaged. A head that is damaged is generation 0.
fn parse(bytes: &[u8], size: usize) -> Found {
    let mut found = Found {
        generation: 0,
        events: Vec::new(),
        end: 0,
        size,
    };
    let Some(generation) = head(bytes) else {
        return found;
    };
    (found.generation, found.end) = (generation, HEAD);
    while let Some((event, length)) = bytes.get(found.end..).and_then(take) {
        found.events.push(event);
        found.end += length;
    }
    found
}

fn head(bytes: &[u8]) -> Option<u64> {
    let (head, rest) = bytes.split_at_checked(HEAD - 4)?;
    let checksum = u32::from_le_bytes(*rest.first_chunk()?);
    let generation = head.strip_prefix(MAGIC)?.first_chunk()?;
    (crc32c::crc32c(head) == checksum).then(|| u64::from_le_bytes(*generation))
}

/// An event, and how long its frame is.
fn take(bytes: &[u8]) -> Option<(Event, usize)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (wanted, rest) = rest.split_first_chunk()?;
    let body = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let is_right = checksum(*length, body) == u32::from_le_bytes(*wanted);
    let event = Event::read(body).filter(|_| is_right)?;
    Some((event, FRAME + body.len()))
}

/// Any bytes as a file: what can be read of them is written again as the same bytes.
#[cfg(feature = "testing")]
pub(crate) fn fuzz(input: &[u8]) {
    let found = parse(input, input.len());
    assert!(found.end <= input.len(), "more than there is");
    let mut again = input[..found.end.min(HEAD)].to_vec();
    for event in &found.events {
        let mut frame = Vec::new();
        put(&mut frame, event);
        again.extend(frame);
    }
    assert_eq!(again, input[..found.end], "an event changed");
}

#[cfg(test)]
mod tests;
