//! A recording in one file, for sending: a list of blocks, then the blocks. A reader sees the file as a folder of
//! these blocks. Layout: docs/formats/recording.md, "A recording in one file".

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_sys::disk::{Disk, DiskFile, Metadata, NameKind, OpenMode, RecordLock};
use kymo_sys::tree::{Reach, Tree};

use crate::folder::BlockName;
use crate::record::{SEQ_MAX, u32_at, u64_at};

/// The first eight bytes of a recording in one file.
pub const MAGIC: &[u8; 8] = b"KYMOFILE";
const VERSION: u32 = 0;
const HEADER_LEN: usize = 24;
const LIST_AT: u64 = 24;
const ENTRY_LEN: usize = 32;
/// Limit of the number of blocks in a file: a year of blocks of the usual 15 minutes.
pub const BLOCKS_MAX: usize = 36_000;

/// Name, offset and length of a block in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedBlock {
    name: BlockName,
    offset: u64,
    len: u64,
}

/// Writes the list of `blocks`, then each block with `copy`.
pub fn write(
    blocks: &[(BlockName, u64)],
    out: &mut dyn Write,
    mut copy: impl FnMut(BlockName, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if blocks.len() > BLOCKS_MAX {
        return Err(io::Error::other(format!(
            "{} blocks are more than the {BLOCKS_MAX} that a file may have",
            blocks.len()
        )));
    }
    out.write_all(&header(blocks))?;
    for &(name, _) in blocks {
        copy(name, out)?;
    }
    Ok(())
}

fn header(blocks: &[(BlockName, u64)]) -> Vec<u8> {
    let mut entries = Vec::with_capacity(blocks.len() * ENTRY_LEN);
    for (name, len) in blocks {
        for number in [name.first_seq, name.wall_min_s, name.wall_max_s, *len] {
            entries.extend_from_slice(&number.to_le_bytes());
        }
    }
    let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
    let mut header = Vec::with_capacity(HEADER_LEN + entries.len());
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&count.to_le_bytes());
    header.extend_from_slice(&crc32c::crc32c(&entries).to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&entries);
    header
}

/// Reads the list of blocks of a file of `size` bytes; the error describes the fault.
fn entries(
    read_at: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
    size: u64,
) -> Result<Vec<ListedBlock>, String> {
    let exactly = |len: usize, offset: u64| {
        let mut bytes = vec![0; len];
        match read_at(&mut bytes, offset) {
            Ok(got) if got == len => Ok(bytes),
            Ok(_) => Err("it is cut short".to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    let head = exactly(HEADER_LEN, 0)?;
    let version = u32_at(&head, 8);
    if version != VERSION {
        return Err(format!(
            "it is of version {version}, and {VERSION} is the latest known"
        ));
    }
    let count = usize::try_from(u32_at(&head, 12)).unwrap_or(usize::MAX);
    if count > BLOCKS_MAX {
        return Err(format!("it claims to have {count} blocks"));
    }
    let listed = exactly(count * ENTRY_LEN, LIST_AT)?;
    if crc32c::crc32c(&listed) != u32_at(&head, 16) {
        return Err("its list of blocks is damaged".into());
    }
    let mut offset = LIST_AT + u64::try_from(listed.len()).unwrap_or(u64::MAX);
    let mut entries = Vec::with_capacity(count);
    for entry in listed.chunks_exact(ENTRY_LEN) {
        let [first_seq, wall_min_s, wall_max_s, len] = [0, 8, 16, 24].map(|at| u64_at(entry, at));
        let end = offset.checked_add(len).filter(|_| first_seq <= SEQ_MAX);
        let end = end.ok_or("its list of blocks is wrong")?;
        let name = BlockName {
            first_seq,
            wall_min_s,
            wall_max_s,
        };
        entries.push(ListedBlock { name, offset, len });
        offset = end;
    }
    match offset == size {
        true => Ok(entries),
        // The blocks that are there can be read; reading a block beyond the end of the file fails.
        false if offset > size => Ok(entries),
        false => Err("there is something behind its last block".into()),
    }
}

/// Opens the file as a disk with one folder, named as the
/// file, that holds its blocks; `None` if it is no such file.
pub(crate) fn disk(real: &Arc<dyn Disk>, path: &Path) -> Option<Result<Exported, String>> {
    if real.name_kind(path).ok()? != NameKind::File {
        return None;
    }
    let file = real.open(path, OpenMode::Read).ok()?;
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0).ok()? != magic.len() || &magic != MAGIC {
        return None;
    }
    let size = file.metadata().ok()?.size_bytes;
    let entries = entries(&|bytes, offset| file.read_at(bytes, offset), size);
    Some(entries.map(|entries| Exported {
        real: real.clone(),
        path: path.into(),
        entries,
    }))
}

/// A disk that holds the blocks of one file.
pub(crate) struct Exported {
    real: Arc<dyn Disk>,
    path: PathBuf,
    entries: Vec<ListedBlock>,
}

impl Exported {
    fn entry(&self, path: &Path) -> io::Result<ListedBlock> {
        let name = path.strip_prefix(&self.path).ok().and_then(Path::to_str);
        let name = name.and_then(BlockName::parse);
        let found = self.entries.iter().find(|entry| Some(entry.name) == name);
        found.copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn no<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for Exported {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        no()
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        if mode != OpenMode::Read {
            return no();
        }
        let ListedBlock { offset, len, .. } = self.entry(path)?;
        let file = self.real.open(&self.path, OpenMode::Read)?;
        Ok(Box::new(BlockPart { file, offset, len }))
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        no()
    }

    fn unlink(&self, _: &Path) -> io::Result<()> {
        no()
    }

    fn rmdir(&self, _: &Path) -> io::Result<()> {
        no()
    }

    fn list(&self, dir: &Path, each: &mut dyn FnMut(&str, NameKind)) -> io::Result<()> {
        if dir != self.path {
            return Err(io::ErrorKind::NotFound.into());
        }
        for entry in &self.entries {
            each(&entry.name.format(), NameKind::File);
        }
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        no()
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let whole = self.real.metadata(&self.path)?;
        if path == self.path {
            return Ok(Metadata {
                kind: NameKind::Directory,
                ..whole
            });
        }
        Ok(Metadata {
            size_bytes: self.entry(path)?.len,
            ..whole
        })
    }

    fn name_kind(&self, path: &Path) -> io::Result<NameKind> {
        Ok(self.metadata(path)?.kind)
    }

    fn sync_file_system(&self, _: &Path) -> io::Result<()> {
        no()
    }

    fn user(&self) -> u32 {
        self.real.user()
    }

    fn tree(&self, _: &Path, _: Reach) -> io::Result<Box<dyn Tree>> {
        no()
    }
}

/// The part of the file that is one block.
struct BlockPart {
    file: Box<dyn DiskFile>,
    offset: u64,
    len: u64,
}

impl DiskFile for BlockPart {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        self.file
            .read_at(&mut buffer[..wanted], self.offset.saturating_add(offset))
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        no()
    }

    fn sync_data(&self) -> io::Result<()> {
        no()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        no()
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let whole = self.file.metadata()?;
        let there = whole.size_bytes.saturating_sub(self.offset);
        Ok(Metadata {
            size_bytes: self.len.min(there),
            ..whole
        })
    }

    fn try_lock(&self) -> io::Result<bool> {
        no()
    }

    fn try_record_lock(&self, _: RecordLock) -> io::Result<bool> {
        no()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<(BlockName, u64)> {
        let name = |first_seq| BlockName {
            first_seq,
            wall_min_s: 5,
            wall_max_s: 9,
        };
        vec![(name(1), 3), (name(7), 4)]
    }

    fn file() -> Vec<u8> {
        let mut out = Vec::new();
        let written = write(&blocks(), &mut out, |name, out| {
            out.write_all(if name.first_seq == 1 { b"abc" } else { b"defg" })
        });
        written.expect("memory has room");
        out
    }

    fn read(bytes: &[u8]) -> Result<Vec<ListedBlock>, String> {
        let read_at = |buffer: &mut [u8], offset: u64| {
            let offset = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            let count = buffer.len().min(bytes.len() - offset);
            buffer[..count].copy_from_slice(&bytes[offset..offset + count]);
            Ok(count)
        };
        entries(&read_at, u64::try_from(bytes.len()).expect("small"))
    }

    #[test]
    fn there_and_back() {
        let bytes = file();
        let entries = read(&bytes).expect("sound");
        let texts: Vec<&[u8]> = entries
            .iter()
            .map(|entry| {
                let start = usize::try_from(entry.offset).expect("small");
                &bytes[start..start + usize::try_from(entry.len).expect("small")]
            })
            .collect();
        assert_eq!(texts, [&b"abc"[..], b"defg"]);
    }

    /// A file that is cut anywhere is refused or has damaged
    /// last blocks; any flipped byte of the list is noticed.
    #[test]
    fn what_is_wrong_is_seen() {
        let bytes = file();
        let listed = HEADER_LEN + 2 * ENTRY_LEN;
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]).is_ok(), end >= listed, "{end}");
        }
        for at in 8..listed {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            let ignored = (20..24).contains(&at);
            assert_eq!(read(&bytes).is_ok(), ignored, "{at}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(read(&longer).is_err());
        let mut many = bytes;
        many[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(&many).is_err_and(|error| error.contains("claims")));
    }
}
