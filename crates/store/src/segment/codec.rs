//! Compression and decompression of frames; no other module uses zstd. Each frame names its codec, so that a store can
//! have frames of this and of later codecs.

use std::cell::RefCell;

/// The only codec so far.
pub(crate) const ZSTD: u8 = 0;

/// Compresses frames, reusing the same memory.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(crate) fn new(level: i32) -> std::io::Result<Packer> {
        zstd::bulk::Compressor::new(level).map(Packer)
    }

    /// Compresses and appends; returns the compressed length.
    pub(crate) fn append(&mut self, raw: &[u8], out: &mut Vec<u8>) -> std::io::Result<usize> {
        let offset = out.len();
        out.resize(offset + zstd::zstd_safe::compress_bound(raw.len()), 0);
        let len = self.0.compress_to_buffer(raw, &mut out[offset..])?;
        out.truncate(offset + len);
        Ok(len)
    }
}

thread_local! {
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses to exactly `len` bytes; `None` if the bytes are damaged or the codec is unknown.
pub(crate) fn unpack(codec: u8, bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    if codec != ZSTD {
        return None;
    }
    let content = zstd::zstd_safe::get_frame_content_size(bytes).ok()??;
    if content != len as u64 {
        return None;
    }
    let raw = UNPACKER.with_borrow_mut(|kept| {
        // Creating a context takes longer than decompressing most frames, so it is kept.
        let unpacker = match kept.take() {
            Some(unpacker) => unpacker,
            None => zstd::bulk::Decompressor::new().ok()?,
        };
        kept.insert(unpacker).decompress(bytes, len).ok()
    })?;
    (raw.len() == len).then_some(raw)
}
