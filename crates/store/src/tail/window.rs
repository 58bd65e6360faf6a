//! Bytes of a journal file from a position on, read in pieces.

use crate::wal::frame::{FRAMES_OFFSET, FileHead, Frame, frame_of};
use kymo_sys::disk::DiskFile;
use std::io;

/// Bytes of one read; more if a frame is longer.
const PIECE: usize = 256 << 10;

/// A part of a file's frames.
#[derive(Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Start of the bytes that are not used yet.
    at: usize,
}

impl Window {
    /// Drops all bytes.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }

    /// The bytes that are not used yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn take(&mut self, len: u64) {
        self.at += usize::try_from(len).unwrap_or(usize::MAX);
        self.at = self.at.min(self.bytes.len());
    }

    /// The frame at a position, with which the unused bytes begin, if it ends before `limit`.
    pub(super) fn frame(
        &mut self,
        file: &dyn DiskFile,
        head: &FileHead,
        position: u64,
        limit: u64,
    ) -> io::Result<Option<Frame>> {
        loop {
            let frame = frame_of(self.rest(), head, position);
            if let Some(frame) = frame.filter(|frame| frame.end <= limit) {
                return Ok(Some(frame));
            }
            let there = u64::try_from(self.rest().len()).unwrap_or(u64::MAX);
            if there >= limit - position {
                return Ok(None);
            }
            let offset = position - head.base + FRAMES_OFFSET;
            if self.read(file, offset, limit - position)? == 0 {
                // The file has become shorter.
                return Ok(None);
            }
        }
    }

    /// Reads on, up to `most` bytes from the unused bytes on, which lie at this offset; returns the
    /// number of new bytes.
    fn read(&mut self, file: &dyn DiskFile, offset: u64, most: u64) -> io::Result<usize> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let there = self.bytes.len();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let len = (2 * there).max(PIECE).min(most).max(there);
        self.bytes.resize(len, 0);
        let offset = offset.saturating_add(u64::try_from(there).unwrap_or(u64::MAX));
        let count = file.read_at(&mut self.bytes[there..], offset)?;
        self.bytes.truncate(there + count);
        Ok(count)
    }
}
