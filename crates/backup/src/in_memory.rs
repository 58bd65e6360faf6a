//! A file's bytes in memory, as they were at one moment, for small files that others write meanwhile.

use std::io;

use kymo_sys::disk::{DiskFile, Metadata, NameKind, RecordLock};

/// Bytes that are read as a file.
pub struct InMemory(Vec<u8>);

impl InMemory {
    /// These bytes.
    pub(crate) fn of(bytes: Vec<u8>) -> InMemory {
        InMemory(bytes)
    }

    /// Reads a whole file of at most `most` bytes; `None`: it is longer, or changed its length meanwhile.
    pub fn read(file: &dyn DiskFile, most: u64) -> io::Result<Option<InMemory>> {
        let size = file.metadata()?.size_bytes;
        if size > most {
            return Ok(None);
        }
        InMemory::prefix(file, size)
    }

    /// Reads the first bytes of a file; `None`: it is shorter.
    pub fn prefix(file: &dyn DiskFile, bytes: u64) -> io::Result<Option<InMemory>> {
        let mut all = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        let count = file.read_at(&mut all, 0)?;
        Ok((count == all.len()).then_some(InMemory(all)))
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap_or(u64::MAX)
    }
}

impl DiskFile for InMemory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(offset..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(room), Some(bytes)) = (buffer.get_mut(..count), rest.get(..count)) {
            room.copy_from_slice(bytes);
        }
        Ok(count)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _size_bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata {
            kind: NameKind::File,
            size_bytes: self.bytes(),
            allocated_bytes: 0,
            inode: 0,
            device: 0,
            mtime_ns: 0,
            links: 1,
            owner: 0,
            mode: 0o640,
        })
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn try_record_lock(&self, _kind: RecordLock) -> io::Result<bool> {
        Ok(true)
    }
}
