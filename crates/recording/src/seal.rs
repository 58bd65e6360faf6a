//! Sealing: writes the valid records of a tail into a block.
//!
//! The block gets its final name only after it was decoded again, compared with the tail byte by
//! byte, and synced; until then the tail stays unchanged. Memory is bounded whatever the tail's
//! size; buffers and zstd contexts are reused from seal to seal.

mod lanes;
mod pack;
mod scan;

pub(crate) use scan::{Scan, scan};

use crate::block::{self, Index, Unpacker};
use crate::error::{Error, Result, Tried};
use crate::folder::{BlockName, UNFINISHED_SUFFIX};
use crate::tail::{PIECE, TailHeader};
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use lanes::{Lanes, Piece, each_piece, each_piece_again};
use pack::{Compressor, Packer};
use std::io;
use std::path::Path;

/// A tail to seal, and the result of its scan.
pub(crate) struct Tail<'a> {
    pub(crate) file: &'a dyn DiskFile,
    pub(crate) header: &'a TailHeader,
    pub(crate) scan: &'a Scan,
}

/// A finished block.
pub(crate) struct Sealed {
    pub(crate) name: BlockName,
    pub(crate) bytes: u64,
    pub(crate) allocated_bytes: u64,
}

/// Buffers and contexts of sealing, reused for each tail.
pub(crate) struct Sealer {
    compressor: Compressor,
    unpacker: Unpacker,
    lanes: Lanes,
    decoded: Vec<u8>,
}

impl Sealer {
    /// Creates a sealer with zstd's compression level `level`.
    pub(crate) fn new(level: i32) -> Result<Self, &'static str> {
        Ok(Sealer {
            compressor: Compressor::new(level)?,
            unpacker: Unpacker::new()?,
            lanes: Lanes::default(),
            decoded: Vec::new(),
        })
    }

    /// Writes, checks, syncs and renames the block of
    /// a tail. After an error no file of it is left.
    pub(crate) fn seal(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
        tail: &Tail<'_>,
    ) -> Result<Sealed> {
        let name = tail.scan.name();
        let path = folder.join(name.format());
        let unfinished = folder.join(format!("{}{UNFINISHED_SUFFIX}", name.format()));
        let sealed = self
            .write_block(disk, &unfinished, tail)
            .and_then(|sealed| name_block(disk, folder, &unfinished, &path).map(|()| sealed));
        if sealed.is_err() {
            let _named_or_gone = disk.unlink(&unfinished);
        }
        sealed
    }

    fn write_block(&mut self, disk: &dyn Disk, path: &Path, tail: &Tail<'_>) -> Result<Sealed> {
        let file = make(disk, path)?;
        let index = self.pack(&*file, path, tail)?;
        self.compare(&*file, path, tail, &index)?;
        file.sync_data().tried("sync", path)?;
        let stat = file.metadata().tried("stat", path)?;
        Ok(Sealed {
            name: tail.scan.name(),
            bytes: stat.size_bytes,
            allocated_bytes: stat.allocated_bytes,
        })
    }

    fn pack(&mut self, file: &dyn DiskFile, path: &Path, tail: &Tail<'_>) -> Result<Index> {
        let context = tail.header.context.as_deref().unwrap_or("");
        let mut index = tail.scan.index();
        let mut packer = Packer::new(&mut self.compressor, file, path);
        packer.put(&block::encode_header(
            index.first_seq,
            tail.header.epoch,
            context,
        ))?;
        each_piece(tail, path, &mut self.lanes, &mut |piece| {
            index.streams.extend(packer.pack(piece)?);
            Ok(())
        })?;
        let mut end = Vec::new();
        index.encode(packer.position(), &mut end);
        packer.put(&end)?;
        packer.flush()?;
        Ok(index)
    }

    /// Decodes the written block and compares it with the tail.
    fn compare(
        &mut self,
        file: &dyn DiskFile,
        path: &Path,
        tail: &Tail<'_>,
        index: &Index,
    ) -> Result<()> {
        let (written, _) = block::read_index(file, path)?;
        if written != *index {
            return Err(Error::damaged(path, "its index was not written as meant"));
        }
        let (unpacker, decoded) = (&mut self.unpacker, &mut self.decoded);
        each_piece_again(tail, path, &mut self.lanes, &mut |piece| {
            if piece.first {
                let stream = written.streams[piece.number];
                unpacker
                    .start(stream)
                    .map_err(|cause| Error::damaged(path, cause))?;
            }
            compare_piece(unpacker, file, decoded, piece)
                .map_err(|cause| Error::damaged(path, cause))
        })
    }
}

/// Creates the file; removes the file of an earlier attempt first.
fn make(disk: &dyn Disk, path: &Path) -> Result<Box<dyn DiskFile>> {
    match disk.open(path, OpenMode::CreateNew) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            disk.unlink(path).tried("remove", path)?;
            disk.open(path, OpenMode::CreateNew).tried("make", path)
        }
        made => made.tried("make", path),
    }
}

fn name_block(disk: &dyn Disk, folder: &Path, unfinished: &Path, path: &Path) -> Result<()> {
    disk.rename(unfinished, path).tried("rename", unfinished)?;
    let synced = disk.sync_dir(folder).tried("sync", folder);
    if synced.is_err() {
        // The new name may not be on the disk, so remove
        // it: a tail must not count as sealed by it.
        let _made_again = disk.unlink(path);
    }
    synced
}

fn compare_piece(
    unpacker: &mut Unpacker,
    file: &dyn DiskFile,
    decoded: &mut Vec<u8>,
    piece: &Piece<'_>,
) -> Result<(), &'static str> {
    for bytes in piece.bytes.chunks(PIECE) {
        if decoded.len() < bytes.len() {
            decoded.resize(bytes.len(), 0);
        }
        let decoded = &mut decoded[..bytes.len()];
        if unpacker.fill(file, decoded)? < bytes.len() || decoded != bytes {
            return Err("it differs from its tail");
        }
    }
    match piece.last {
        true => unpacker.finish(file),
        false => Ok(()),
    }
}
