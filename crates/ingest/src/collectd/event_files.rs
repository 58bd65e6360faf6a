//! Two files of notifications, docs/formats/notifications.md, that take turns: the keeper appends new events to one;
//! when that has grown, it writes all events in memory into the other. So the disk has the same events as memory, and
//! a flood displaces the same ones. Nothing is synced: the files outlive the keeper, and a loss of power may cost the
//! last events.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{Contents, KeptFile, Kind, Old, Records, Sync};
use kymo_wire::keeper::Event;

use super::kept_event::Kept;

/// The files' names.
pub(crate) const NAMES: [&str; 2] = ["notifications-a", "notifications-b"];
/// Files of notifications. A longer file is not read: all events that fit into memory, with collectd's longest texts,
/// need less.
pub(crate) const FILE: Kind = Kind {
    magic: *b"KYMONOTE",
    version: 2,
    bytes_max: 32 << 20,
    old: Old {
        magic: *b"KYMONTF",
        newest: 1,
        has_generation: true,
    },
};
/// In this version a record does not name the sender.
const WITHOUT_FROM: u32 = 0;
/// Bytes that a file grows by before the other file begins.
const GROWS: usize = 1 << 20;

/// Both files.
pub(super) struct EventFiles {
    files: [KeptFile; 2],
    /// Generation of the newer file; 0: there is no file yet.
    generation: u64,
    /// The other file begins when the newer one would be longer.
    end_max: usize,
}

impl EventFiles {
    /// Reads both files: events, oldest first, and messages about damage. Writes a damaged file again without the
    /// damage.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
    ) -> io::Result<(EventFiles, Vec<Kept>, Vec<String>)> {
        let mut notices = Vec::new();
        let mut open = |name: &'static str| read(&disk, folder, name, &mut notices);
        let mut both = [open(NAMES[0])?, open(NAMES[1])?];
        let newest = both.iter().map(|file| file.contents.generation).max();
        for file in &mut both {
            if let Err(error) = file.write_again(newest.unwrap_or(0)) {
                notices.push(format!("cannot write {} again: {error}", file.name));
            }
        }
        both.sort_by_key(|file| file.contents.generation);
        let events = both
            .iter_mut()
            .flat_map(|file| std::mem::take(&mut file.events));
        let events = events.collect();
        both.sort_by_key(|file| file.name);
        let generation = both.iter().map(|file| file.kept.generation()).max();
        let mut files = EventFiles {
            files: both.map(|file| file.kept),
            generation: generation.unwrap_or(0),
            end_max: GROWS,
        };
        // The length that the file began with is unknown.
        let size = files.files[place(files.generation)].size();
        files.end_max = size.map_or(0, |(size, _)| size).max(GROWS);
        Ok((files, events, notices))
    }

    /// Appends events and removes them from `events`. Asks for all kept events if a file begins.
    pub(super) fn append(
        &mut self,
        events: &mut VecDeque<Kept>,
        all: impl FnOnce() -> Vec<Kept>,
    ) -> io::Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let file = &mut self.files[place(self.generation)];
        let mut records = file.records();
        put_all(&mut records, events.iter());
        match file.size() {
            Some((size, _)) if size + records.len() <= self.end_max => {
                file.append(&records, Sync::Later)?;
            }
            _ => self.begin(&all())?,
        }
        events.clear();
        Ok(())
    }

    /// Begins the other file with all kept events.
    fn begin(&mut self, all: &[Kept]) -> io::Result<()> {
        let generation = self.generation + 1;
        let file = &mut self.files[place(generation)];
        let mut fill = |records: &mut Records| put_all(records, all.iter());
        file.replace(generation, &mut fill, Sync::Later)?;
        self.generation = generation;
        self.end_max = file.size().map_or(0, |(size, _)| size) + GROWS;
        Ok(())
    }
}

/// The file of a generation.
fn place(generation: u64) -> usize {
    usize::from(generation.is_multiple_of(2))
}

fn put_all<'a>(records: &mut Records, events: impl Iterator<Item = &'a Kept>) {
    events.for_each(|kept| records.put(|out| put(out, kept)));
}

/// Appends the sender and the event.
fn put(out: &mut Vec<u8>, kept: &Kept) {
    let length = u16::try_from(kept.from.len()).unwrap_or(u16::MAX);
    out.extend(length.to_le_bytes());
    out.extend(&kept.from[..usize::from(length)]);
    kept.event.put(out);
}

fn take(body: &[u8]) -> Option<Kept> {
    let (length, rest) = body.split_first_chunk()?;
    let (from, event) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    Some(Kept::new(from, Event::read(event)?))
}

/// Reads a record of a file of this version. The version's digit of an older file may be damaged, so both layouts are
/// tried.
fn take_of(version: u32, body: &[u8]) -> Option<Kept> {
    let without = || Event::read(body).map(Kept::unsaid);
    match version {
        WITHOUT_FROM => without().or_else(|| take(body)),
        1 => take(body).or_else(without),
        _ => take(body),
    }
}

/// An opened file with its contents.
struct Opened {
    name: &'static str,
    kept: KeptFile,
    contents: Contents,
    events: Vec<Kept>,
}

fn read(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    name: &'static str,
    notices: &mut Vec<String>,
) -> io::Result<Opened> {
    let (mut kept, contents) = KeptFile::open(disk.clone(), folder.join(name), FILE)?;
    let events = contents
        .bodies()
        .filter_map(|body| take_of(contents.version, body));
    let events: Vec<Kept> = events.collect();
    if events.len() < contents.records.len() {
        kept.distrust(&contents);
    }
    let notice = kept.notice(&contents);
    if kept.is_newer() {
        return Err(io::Error::other(notice.unwrap_or_default()));
    }
    notices.extend(notice);
    Ok(Opened {
        name,
        kept,
        contents,
        events,
    })
}

impl Opened {
    /// Writes the readable events of a damaged or older file again. A file with a lost generation counts as the older
    /// one.
    fn write_again(&mut self, newest: u64) -> io::Result<()> {
        if self.kept.size().is_some() || self.contents.bytes.is_empty() {
            return Ok(());
        }
        let least = if self.name == NAMES[0] { 1 } else { 2 };
        let generation = match self.contents.generation {
            0 => newest.saturating_sub(1).max(least),
            generation => generation,
        };
        let events = &self.events;
        let mut fill = |records: &mut Records| put_all(records, events.iter());
        self.kept.replace(generation, &mut fill, Sync::Now)?;
        self.contents.generation = generation;
        Ok(())
    }
}

/// True if a record can be read.
pub(crate) fn is_record(version: u32, body: &[u8]) -> bool {
    take_of(version, body).is_some()
}

/// Reads any bytes as a file, and as an event: the readable part is written again as the same bytes.
#[cfg(feature = "testing")]
pub(crate) fn fuzz(input: &[u8]) {
    let found = kymo_sys::kept_file::parse(input.to_vec(), &FILE);
    if let kymo_sys::kept_file::Found::Read(contents) = found {
        let version = contents.version;
        contents
            .bodies()
            .for_each(|body| drop(take_of(version, body)));
    }
    if let Some(kept) = take(input) {
        let mut again = Vec::new();
        put(&mut again, &kept);
        assert_eq!(again, input, "an event changed");
    }
}

#[cfg(test)]
mod tests;
