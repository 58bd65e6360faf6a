//! Snappy's block format, in which each message is sent.

use std::fmt;

use snap::raw;

/// Most bytes that one byte of a block becomes, rounded up: three bytes are a copy of 64 at most.
const EXPANSION_MAX: usize = 22;

/// Why a block is not unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadSnappy {
    /// The bytes are no block of Snappy.
    Malformed,
    /// More bytes than the limit would come out.
    Size,
}

impl BadSnappy {
    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            BadSnappy::Malformed => "not a block of Snappy",
            BadSnappy::Size => "too many bytes when unpacked",
        }
    }
}

impl fmt::Display for BadSnappy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// Replaces `out` with the message in a block, at most `limit_bytes` long. Memory is taken only for a size that so long
/// a block can have.
pub fn decompress(block: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), BadSnappy> {
    out.clear();
    let size = raw::decompress_len(block).map_err(|_| BadSnappy::Malformed)?;
    if size > limit_bytes {
        return Err(BadSnappy::Size);
    }
    if size > block.len().saturating_mul(EXPANSION_MAX) {
        return Err(BadSnappy::Malformed);
    }
    out.resize(size, 0);
    let unpacked = raw::Decoder::new().decompress(block, out);
    match unpacked {
        Ok(count) if count == size => Ok(()),
        Ok(_) | Err(_) => {
            out.clear();
            Err(BadSnappy::Malformed)
        }
    }
}

/// Replaces `out` with a block of the message, which has less than 4 GiB.
pub fn compress(message: &[u8], out: &mut Vec<u8>) -> Result<(), BadSnappy> {
    out.clear();
    let size = raw::max_compress_len(message.len());
    if size == 0 {
        return Err(BadSnappy::Size);
    }
    out.resize(size, 0);
    let packed = raw::Encoder::new().compress(message, out);
    out.truncate(packed.map_err(|_| BadSnappy::Size)?);
    Ok(())
}
