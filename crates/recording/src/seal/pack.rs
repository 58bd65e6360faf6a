//! Writes streams to the block's file, one zstd frame each,
//! through one buffer; an ordinary block needs one write.

use super::lanes::Piece;
use crate::block::{Stream, WINDOW_LOG};
use crate::error::{Error, Result, Tried};
use crate::tail::PIECE;
use kymo_sys::disk::DiskFile;
use std::path::Path;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{self, CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// Context and buffer of compression, reused from block to block.
pub(super) struct Compressor {
    context: CCtx<'static>,
    buffer: Vec<u8>,
}

impl Compressor {
    pub(super) fn new(level: i32) -> Result<Self, &'static str> {
        let mut context = CCtx::try_create().ok_or("no memory")?;
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::WindowLog(WINDOW_LOG),
        ] {
            context
                .set_parameter(parameter)
                .map_err(zstd_safe::get_error_name)?;
        }
        Ok(Compressor {
            context,
            buffer: Vec::with_capacity(PIECE),
        })
    }
}

/// A block that is being written.
pub(super) struct Packer<'a> {
    context: &'a mut CCtx<'static>,
    buffer: &'a mut Vec<u8>,
    file: &'a dyn DiskFile,
    path: &'a Path,
    flushed: u64,
    /// Position in `buffer` after the bytes that the stream's checksum covers.
    unsummed: usize,
    stream: Stream,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        compressor: &'a mut Compressor,
        file: &'a dyn DiskFile,
        path: &'a Path,
    ) -> Self {
        compressor.buffer.clear();
        Packer {
            context: &mut compressor.context,
            buffer: &mut compressor.buffer,
            file,
            path,
            flushed: 0,
            unsummed: 0,
            stream: Stream::default(),
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Appends bytes uncompressed.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE) {
            if self.buffer.len() + piece.len() > PIECE {
                self.flush()?;
            }
            self.buffer.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Compresses a piece; returns the stream's index entry after its last piece.
    pub(super) fn pack(&mut self, piece: &Piece<'_>) -> Result<Option<Stream>> {
        if piece.first {
            self.begin(piece)?;
        }
        let end = match piece.last {
            true => ZSTD_EndDirective::ZSTD_e_end,
            false => ZSTD_EndDirective::ZSTD_e_continue,
        };
        let mut input = InBuffer::around(piece.bytes);
        loop {
            if self.buffer.len() == self.buffer.capacity() {
                self.flush()?;
            }
            let at = self.buffer.len();
            let mut output = OutBuffer::around_pos(&mut *self.buffer, at);
            let packed = self.context.compress_stream2(&mut output, &mut input, end);
            let held = packed.map_err(|code| self.failed(code))?;
            let done = if piece.last { held == 0 } else { true };
            if done && input.pos() == piece.bytes.len() {
                break;
            }
        }
        Ok(piece.last.then(|| self.end()))
    }

    fn begin(&mut self, piece: &Piece<'_>) -> Result<()> {
        // If the buffer has room for the whole frame,
        // zstd compresses it at once, without a copy.
        let bound = zstd_safe::compress_bound(piece.bytes.len());
        let room = self.buffer.capacity() - self.buffer.len();
        if room < bound && bound <= self.buffer.capacity() {
            self.flush()?;
        }
        self.context
            .reset(ResetDirective::SessionOnly)
            .and_then(|_| {
                self.context
                    .set_pledged_src_size(Some(piece.stream.raw_len))
            })
            .map_err(|code| self.failed(code))?;
        self.unsummed = self.buffer.len();
        self.stream = Stream {
            id: piece.stream.id,
            offset: self.position(),
            raw_len: piece.stream.raw_len,
            sections: piece.stream.sections,
            ..Stream::default()
        };
        Ok(())
    }

    fn end(&mut self) -> Stream {
        self.sum();
        Stream {
            packed_len: self.position() - self.stream.offset,
            ..self.stream
        }
    }

    fn sum(&mut self) {
        let new = &self.buffer[self.unsummed..];
        self.stream.crc = crc32c::crc32c_append(self.stream.crc, new);
        self.unsummed = self.buffer.len();
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.sum();
        self.file
            .write_at(self.buffer, self.flushed)
            .tried("write", self.path)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        self.unsummed = 0;
        Ok(())
    }

    fn failed(&self, code: usize) -> Error {
        Error::damaged(self.path, zstd_safe::get_error_name(code))
    }
}
