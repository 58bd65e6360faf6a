//! A backup in the making: files are split into pieces, and a piece is sent if the target lacks it. A file that was appended to
//! since the backup before keeps its pieces, and its new part is one more, so that little more is sent than was written.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use kymo_sys::disk::DiskFile;

use crate::error::{Error, Result};
use crate::hash::{ContentHash, Hasher};
use crate::manifest::{BackedUpFile, Manifest, Piece, Version};
use crate::store::{Content, Put, read_parts};
use crate::target::Target;

/// Most bytes of a piece, but of a sealed file.
const APPENDED_MAX: u64 = 64 << 20;
/// Bytes of the pieces of a file that is written in place: little is sent where little has changed.
const IN_PLACE: u64 = 64 << 10;

/// A file to back up.
pub struct Source {
    /// Path below the data folder.
    pub path: String,
    /// Where it lies.
    pub place: PathBuf,
    /// The file, open for reading.
    pub file: Box<dyn DiskFile>,
    /// Bytes from its beginning that belong to the backup.
    pub bytes: u64,
    /// State of the file.
    pub version: Version,
    /// How it is written.
    pub writing: Writing,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Never again.
    Sealed,
    /// At its end, or as a whole.
    Appended,
    /// Anywhere.
    InPlace,
}

/// Trust in the contents that a target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A content is whole if it has its number of bytes.
    Length,
    /// A content is read, and sent again if it has changed.
    Hash,
}

/// Numbers of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Moment of the backup, milliseconds since 1970.
    pub time_ms: i64,
    /// Files of the backup.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Bytes that were copied, those of the manifest included.
    pub sent_bytes: u64,
    /// Bytes that were taken over by hard links.
    pub linked_bytes: u64,
    /// Contents that had changed in the target and were sent again.
    pub mended: u64,
}

/// A backup in the making.
pub struct Sender<'a> {
    target: &'a mut Target,
    /// The backup before.
    before: Manifest,
    /// Contents that the target has.
    contents: HashMap<ContentHash, u64>,
    trust: Trust,
    /// Contents that were read and are whole.
    whole: HashSet<ContentHash>,
    manifest: Manifest,
    sent: Sent,
}

impl<'a> Sender<'a> {
    /// Begins a backup of this moment, which is later than the last one's. A damaged backup before is passed over.
    pub fn begin(
        target: &'a mut Target,
        time_ms: i64,
        host: &str,
        trust: Trust,
    ) -> Result<Sender<'a>> {
        let times_ms = target.times_ms()?;
        let before = times_ms
            .iter()
            .rev()
            .find_map(|time| target.manifest(*time).ok());
        let newest = times_ms
            .last()
            .map_or(i64::MIN, |last| last.saturating_add(1));
        let manifest = Manifest {
            time_ms: time_ms.max(newest),
            host: host.into(),
            files: Vec::new(),
        };
        Ok(Sender {
            contents: target.contents()?,
            trust,
            whole: HashSet::new(),
            target,
            before: before.unwrap_or_default(),
            manifest,
            sent: Sent {
                time_ms: time_ms.max(newest),
                ..Sent::default()
            },
        })
    }

    /// Numbers so far.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// Adds a file. An error [`Error::Changed`] says that the file is to be opened again.
    pub fn add(&mut self, source: &Source) -> Result<()> {
        let before = self.before.file(&source.path);
        let before = before.map(|file| (file.version, file.pieces.clone()));
        let pieces = match before {
            Some((version, pieces)) if is_same(source, version, &pieces) => pieces,
            before => {
                let known = before.map(|(_, pieces)| pieces).unwrap_or_default();
                pieces_of(source, &known, self.target.piece_max())?
            }
        };
        let mut offset = 0;
        for piece in &pieces {
            if !self.has(*piece)? {
                self.send(source, *piece, offset)?;
            }
            offset += piece.bytes;
        }
        self.sent.files += 1;
        self.sent.bytes += offset;
        self.manifest.files.push(BackedUpFile {
            path: source.path.clone(),
            version: source.version,
            pieces,
        });
        Ok(())
    }

    /// True if the target has a content.
    fn has(&mut self, piece: Piece) -> Result<bool> {
        if self.contents.get(&piece.hash) != Some(&piece.bytes) {
            return Ok(false);
        }
        if self.trust == Trust::Length || self.whole.contains(&piece.hash) {
            return Ok(true);
        }
        let is_whole = self.target.get(piece, &mut |_| Ok(()))?.is_ok();
        match is_whole {
            true => self.whole.insert(piece.hash),
            false => {
                self.sent.mended += 1;
                false
            }
        };
        Ok(is_whole)
    }

    fn send(&mut self, source: &Source, piece: Piece, offset: u64) -> Result<()> {
        let is_all = piece.bytes == source.bytes && source.writing == Writing::Sealed;
        let linked = is_all
            && self
                .target
                .link(piece, &source.place, source.version.inode)?;
        if linked {
            self.sent.linked_bytes += piece.bytes;
        } else {
            let content = Content {
                file: &*source.file,
                path: &source.place,
                offset,
                piece,
            };
            match self.target.put(&content)? {
                Put::Done => self.sent.sent_bytes += piece.bytes,
                Put::Changed => return Err(changed(source)),
            }
        }
        self.contents.insert(piece.hash, piece.bytes);
        self.whole.insert(piece.hash);
        Ok(())
    }

    /// Ends the backup: from now on it is there.
    pub fn finish(mut self) -> Result<Sent> {
        self.manifest.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.sent.sent_bytes += self.target.publish(&self.manifest)?;
        Ok(self.sent)
    }
}

/// True if the file is as it was at the backup before, as its version says.
fn is_same(source: &Source, version: Version, pieces: &[Piece]) -> bool {
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    version != Version::default() && version == source.version && bytes == source.bytes
}

/// The pieces of a file: those that are `known`, as far as the file still begins with them, and others of at most `most`
/// bytes.
fn pieces_of(source: &Source, known: &[Piece], most: u64) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut offset = 0;
    if source.writing != Writing::InPlace {
        for piece in known {
            let fits = offset + piece.bytes <= source.bytes;
            if !fits || hash_of(source, offset, piece.bytes)? != piece.hash {
                break;
            }
            offset += piece.bytes;
            pieces.push(*piece);
        }
    }
    let most = match source.writing {
        // One piece can be taken over by a hard link.
        Writing::Sealed => most,
        Writing::Appended => most.min(APPENDED_MAX),
        Writing::InPlace => IN_PLACE,
    };
    while offset < source.bytes {
        let bytes = most.min(source.bytes - offset);
        let hash = hash_of(source, offset, bytes)?;
        pieces.push(Piece { hash, bytes });
        offset += bytes;
    }
    Ok(pieces)
}

fn hash_of(source: &Source, offset: u64, bytes: u64) -> Result<ContentHash> {
    let mut hasher = Hasher::default();
    let from = (&*source.file, source.place.as_path());
    let whole = read_parts(from, offset, bytes, &mut |bytes| {
        hasher.add(bytes);
        Ok(())
    })?;
    match whole {
        true => Ok(hasher.end()),
        false => Err(changed(source)),
    }
}

fn changed(source: &Source) -> Error {
    Error::Changed {
        path: source.place.clone(),
    }
}
