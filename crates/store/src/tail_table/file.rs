//! The file of tails: how far each has got. docs/formats/kept.md.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kymo_base::varint::{put, put_bytes, take, take_bytes};
use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{KeptFile, Kind, Old, Records, Sync};

use super::{NAME_MAX, TAILS_MAX, TailState};

/// The name of the file.
pub const TAILS_NAME: &str = "tails";
/// The file's format: the newest record of a name counts.
pub const TAILS_FILE: Kind = Kind {
    magic: *b"KYMOTAIL",
    version: 1,
    bytes_max: 1 << 20,
    old: Old {
        magic: *b"KYMOTAI",
        newest: 0,
        has_generation: false,
    },
};
/// The file is written again when it is longer.
const LENGTH_MAX: usize = 64 << 10;

/// True if a record of the file makes sense.
pub fn is_tail(_version: u32, body: &[u8]) -> bool {
    read(body).is_some()
}

/// The open file.
pub(super) struct TailsFile(KeptFile);

impl TailsFile {
    /// Opens the file and reads the tails in it. `None`: it cannot be used, which is in the notices.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        tails: &mut Vec<TailState>,
        notices: &mut Vec<String>,
    ) -> Option<TailsFile> {
        let path = folder.join(TAILS_NAME);
        let opened = KeptFile::open(disk, path.clone(), TAILS_FILE);
        let (kept, contents) = opened
            .inspect_err(|error| notices.push(format!("cannot open {}: {error}", path.display())))
            .ok()?;
        notices.extend(kept.notice(&contents));
        for tail in contents.bodies().filter_map(read) {
            tails.retain(|known| known.name != tail.name);
            if tails.len() < TAILS_MAX {
                tails.push(tail);
            }
        }
        (!kept.is_newer()).then_some(TailsFile(kept))
    }

    /// Writes down one of the tails, which has changed.
    pub(super) fn put(&mut self, tails: &[TailState], place: usize) -> io::Result<()> {
        let has_room = self.0.size().is_some_and(|(end, _)| end < LENGTH_MAX);
        let Some(tail) = tails.get(place).filter(|_| has_room) else {
            return self.rewrite(tails);
        };
        let mut records = self.0.records();
        records.put(|out| write(out, tail));
        self.0.append(&records, Sync::Now)
    }

    /// Writes all tails.
    pub(super) fn rewrite(&mut self, tails: &[TailState]) -> io::Result<()> {
        let generation = self.0.generation() + 1;
        let mut fill = |records: &mut Records| {
            for tail in tails {
                records.put(|out| write(out, tail));
            }
        };
        self.0.replace(generation, &mut fill, Sync::Now)
    }
}

fn write(out: &mut Vec<u8>, tail: &TailState) {
    put_bytes(out, tail.name.as_bytes());
    put(out, tail.position);
    put(out, tail.missed);
}

fn read(body: &[u8]) -> Option<TailState> {
    let mut rest = body;
    let name = take_bytes(&mut rest, NAME_MAX)?;
    let name = std::str::from_utf8(name).ok()?.to_string();
    let (position, missed) = (take(&mut rest)?, take(&mut rest)?);
    let is_end = rest.is_empty() && position < 1 << 62 && !name.is_empty();
    is_end.then_some(TailState {
        name,
        position,
        missed,
    })
}
