//! A block: a sealed tail in one file, with one compressed stream for each kind of source.
//!
//! This module defines the layout and reads it; `seal` writes it. Every length is checked
//! before
//! memory is allocated for it. Layout: docs/formats/recording.md, "Block".

use crate::error::{Error, Result, Tried};
use crate::record::{SEQ_MAX, u32_at, u64_at};
use crate::tail::{CONTEXT_MAX, PIECE, VERSION};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use std::path::Path;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// The first eight bytes of a block.
pub const MAGIC: &[u8; 8] = b"KYMOBLCK";
/// The last eight bytes of a block.
pub const END_MAGIC: &[u8; 8] = b"KYMOBEND";
/// Largest zstd window that a reader accepts, as a power of two.
pub const WINDOW_LOG: u32 = 18;
/// Limit of the decoded bytes of all wanted streams of one block.
pub const DECODED_MAX: u64 = 48 << 20;
/// The id of the heads stream; the id of any other stream is its kind.
pub const HEADS: u16 = 256;

pub(crate) const HEADER_LEN: usize = 40;
pub(crate) const FOOTER_LEN: usize = 32;
const INDEX_LEN: usize = 96;
const STREAM_LEN: usize = 40;
const STREAMS_MAX: usize = 257;
const LAST_PIECE: usize = 4096;

/// Index entry of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// A kind of source, or [`HEADS`].
    pub id: u16,
    /// CRC-32C of the packed bytes.
    pub crc: u32,
    /// Offset from the start of the file.
    pub offset: u64,
    /// Length in the file, in bytes.
    pub packed_len: u64,
    /// Length after decoding, in bytes.
    pub raw_len: u64,
    /// Number of sections; in the heads stream, number of records.
    pub sections: u32,
}

/// The decoded index of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Sequence number of the first record.
    pub first_seq: u64,
    /// Sequence number of the last record.
    pub last_seq: u64,
    /// Earliest wall time, nanoseconds.
    pub real_min_ns: i64,
    /// Latest wall time, nanoseconds.
    pub real_max_ns: i64,
    /// Stamp of the first record.
    pub first: Stamp,
    /// Stamp of the last record.
    pub last: Stamp,
    /// Number of records.
    pub records: u32,
    /// Number of samples.
    pub samples: u32,
    /// Number of key samples.
    pub keys: u32,
    /// The streams, in file order.
    pub streams: Vec<Stream>,
}

/// Encodes the bytes before the first stream.
pub(crate) fn encode_header(first_seq: u64, epoch: u64, context: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + context.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&first_seq.to_le_bytes());
    bytes.extend_from_slice(&epoch.to_le_bytes());
    bytes.extend_from_slice(&(context.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(context.as_bytes());
    let crc = crc32c::crc32c(&bytes[16..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

impl Index {
    /// Appends index and footer, for an index that is written at file offset `offset`.
    pub(crate) fn encode(&self, offset: u64, out: &mut Vec<u8>) {
        let start = out.len();
        for number in [self.first_seq, self.last_seq] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for time in [self.real_min_ns, self.real_max_ns] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        for stamp in [self.first, self.last] {
            out.extend_from_slice(&stamp.real_ns.to_le_bytes());
            out.extend_from_slice(&stamp.mono_ns.to_le_bytes());
            out.extend_from_slice(&stamp.boot_ns.to_le_bytes());
        }
        let count = self.streams.len() as u32;
        for number in [self.records, self.samples, self.keys, count] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for stream in &self.streams {
            encode_stream(stream, out);
        }
        let length = (out.len() - start) as u32;
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&self.first_seq.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        let crc = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(END_MAGIC);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let fixed = bytes.get(..INDEX_LEN)?;
        let number = |at: usize| u64_at(fixed, at);
        let stamp = |at: usize| Stamp {
            real_ns: number(at) as i64,
            mono_ns: number(at + 8),
            boot_ns: number(at + 16),
        };
        let count = u32_at(fixed, 92) as usize;
        let rest = &bytes[INDEX_LEN..];
        let ordered = number(0) <= number(8) && number(8) <= SEQ_MAX;
        let whole = ordered && count <= STREAMS_MAX && rest.len() == count * STREAM_LEN;
        whole.then(|| Index {
            first_seq: number(0),
            last_seq: number(8),
            real_min_ns: number(16) as i64,
            real_max_ns: number(24) as i64,
            first: stamp(32),
            last: stamp(56),
            records: u32_at(fixed, 80),
            samples: u32_at(fixed, 84),
            keys: u32_at(fixed, 88),
            streams: rest.chunks_exact(STREAM_LEN).map(decode_stream).collect(),
        })
    }

    /// Returns the stream with this id.
    pub fn stream(&self, id: u16) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

fn encode_stream(stream: &Stream, out: &mut Vec<u8>) {
    out.extend_from_slice(&stream.id.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&stream.crc.to_le_bytes());
    for number in [stream.offset, stream.packed_len, stream.raw_len] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&stream.sections.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

fn decode_stream(bytes: &[u8]) -> Stream {
    Stream {
        id: u16::from_le_bytes([bytes[0], bytes[1]]),
        crc: u32_at(bytes, 4),
        offset: u64_at(bytes, 8),
        packed_len: u64_at(bytes, 16),
        raw_len: u64_at(bytes, 24),
        sections: u32_at(bytes, 32),
    }
}

/// An open block whose index has been read and checked.
pub(crate) struct BlockFile {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) index: Index,
    pub(crate) context: Option<String>,
    pub(crate) bytes_read: u64,
}

impl BlockFile {
    pub(crate) fn open(disk: &dyn Disk, path: &Path) -> Result<Self> {
        let file = disk.open(path, OpenMode::Read).tried("open", path)?;
        let (index, read) = read_index(&*file, path)?;
        let (context, header_read) = read_header(&*file, path, index.first_seq)?;
        Ok(BlockFile {
            file,
            index,
            context,
            bytes_read: read + header_read,
        })
    }
}

/// Reads footer and index; returns the index and the number of bytes read.
pub(crate) fn read_index(file: &dyn DiskFile, path: &Path) -> Result<(Index, u64)> {
    let size = file.metadata().tried("stat", path)?.size_bytes;
    let length = LAST_PIECE.min(usize::try_from(size).unwrap_or(LAST_PIECE));
    let mut last = vec![0; length];
    let start = size - length as u64;
    let mut read = file.read_at(&mut last, start).tried("read", path)?;
    if read < length || length < FOOTER_LEN || &last[length - 8..] != END_MAGIC {
        return Err(Error::damaged(path, "bad end"));
    }
    let footer = &last[length - FOOTER_LEN..];
    let (offset, index_len) = (u64_at(footer, 0), u32_at(footer, 16) as usize);
    let (first_seq, crc) = (u64_at(footer, 8), u32_at(footer, 20));
    let bounded = index_len <= INDEX_LEN + STREAMS_MAX * STREAM_LEN;
    let end = offset.checked_add((index_len + FOOTER_LEN) as u64);
    if !bounded || end != Some(size) {
        return Err(Error::damaged(path, "bad index place"));
    }
    let mut bytes = vec![0; index_len + 20];
    read += file.read_at(&mut bytes, offset).tried("read", path)?;
    let index = Index::decode(&bytes[..index_len]);
    match index {
        Some(index) if crc32c::crc32c(&bytes) == crc && index.first_seq == first_seq => {
            Ok((index, read as u64))
        }
        _ => Err(Error::damaged(path, "bad index")),
    }
}

/// Reads the header. An unknown version is an error; a damaged context gives `None`.
fn read_header(file: &dyn DiskFile, path: &Path, first_seq: u64) -> Result<(Option<String>, u64)> {
    let mut fixed = [0; HEADER_LEN];
    let count = file.read_at(&mut fixed, 0).tried("read", path)?;
    if u32_at(&fixed, 8) != VERSION && &fixed[..8] == MAGIC {
        let version = u32_at(&fixed, 8);
        return Err(Error::damaged(path, format!("unknown version {version}")));
    }
    let length = u32_at(&fixed, 32) as usize;
    if count < HEADER_LEN || &fixed[..8] != MAGIC || length > CONTEXT_MAX {
        return Ok((None, count as u64));
    }
    let mut context = vec![0; length];
    let read = file.read_at(&mut context, HEADER_LEN as u64);
    let read = read.tried("read", path)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&fixed[16..]), &context);
    let right = read == length && crc == u32_at(&fixed, 12) && u64_at(&fixed, 16) == first_seq;
    let context = right.then(|| String::from_utf8_lossy(&context).into_owned());
    Ok((context, (count + read) as u64))
}

/// Sequence number of the last record of a block; `None` if its index is unreadable.
pub(crate) fn last_seq(disk: &dyn Disk, path: &Path) -> Option<u64> {
    let file = disk.open(path, OpenMode::Read).ok()?;
    let (index, _) = read_index(&*file, path).ok()?;
    Some(index.last_seq)
}

/// Decodes streams piece by piece, one stream at a
/// time; each call gets the file as an argument.
pub(crate) struct Unpacker {
    stream: Stream,
    context: DCtx<'static>,
    packed: Vec<u8>,
    packed_at: usize,
    /// Set while zstd may hold decoded bytes that did not fit into the last output.
    holding: bool,
    read: u64,
    crc: u32,
}

impl Unpacker {
    pub(crate) fn new() -> Result<Self, &'static str> {
        let mut context = DCtx::try_create().ok_or("no memory")?;
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
            .map_err(zstd::zstd_safe::get_error_name)?;
        Ok(Unpacker {
            stream: Stream::default(),
            context,
            packed: Vec::new(),
            packed_at: 0,
            holding: false,
            read: 0,
            crc: 0,
        })
    }

    /// Begins to decode `stream`.
    pub(crate) fn start(&mut self, stream: Stream) -> Result<(), &'static str> {
        self.context
            .init()
            .map_err(zstd::zstd_safe::get_error_name)?;
        self.stream = stream;
        self.packed.clear();
        (self.packed_at, self.read, self.crc) = (0, 0, 0);
        self.holding = false;
        Ok(())
    }

    /// Bytes read from the file for the current stream.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Fills `out` until it is full or the stream ends; returns the number of bytes.
    pub(crate) fn fill(
        &mut self,
        file: &dyn DiskFile,
        out: &mut [u8],
    ) -> Result<usize, &'static str> {
        let mut filled = 0;
        while filled < out.len() {
            let empty = self.packed_at == self.packed.len();
            if empty && !self.holding && !self.read_more(file)? {
                break;
            }
            filled += self.decode(&mut out[filled..])?;
        }
        Ok(filled)
    }

    fn decode(&mut self, out: &mut [u8]) -> Result<usize, &'static str> {
        let room = out.len();
        let mut input = InBuffer::around(&self.packed[self.packed_at..]);
        let mut output = OutBuffer::around(out);
        self.context
            .decompress_stream(&mut output, &mut input)
            .map_err(zstd::zstd_safe::get_error_name)?;
        let (taken, made) = (input.pos(), output.pos());
        if taken == 0 && made == 0 && !self.holding {
            return Err("stream does not end");
        }
        self.holding = made == room;
        self.packed_at += taken;
        Ok(made)
    }

    fn read_more(&mut self, file: &dyn DiskFile) -> Result<bool, &'static str> {
        let left = self.stream.packed_len - self.read;
        self.packed.resize(PIECE.min(left as usize), 0);
        self.packed_at = 0;
        let offset = self.stream.offset + self.read;
        let count = file.read_at(&mut self.packed, offset);
        match count {
            Ok(count) if count == self.packed.len() => {}
            _ => return Err("cut short"),
        }
        self.read += self.packed.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, &self.packed);
        Ok(!self.packed.is_empty())
    }

    /// Checks that the stream has ended and that the checksum of its packed bytes matches.
    pub(crate) fn finish(&mut self, file: &dyn DiskFile) -> Result<(), &'static str> {
        let mut more = [0; 1];
        match self.fill(file, &mut more) {
            Ok(0) if self.crc == self.stream.crc => Ok(()),
            Ok(0) => Err("bad checksum"),
            Ok(_) => Err("longer than its index says"),
            Err(cause) => Err(cause),
        }
    }
}

/// Decodes a whole stream and subtracts its length
/// from `budget`; fails if it is longer than that.
pub(crate) fn unpack(
    unpacker: &mut Unpacker,
    file: &dyn DiskFile,
    stream: Stream,
    budget: &mut u64,
) -> Result<Vec<u8>, String> {
    if stream.raw_len > *budget {
        return Err(format!("{} bytes are too many", stream.raw_len));
    }
    // Limits the packed length: zstd stores incompressible
    // bytes as they are, so it adds little.
    if stream.packed_len > stream.raw_len + stream.raw_len / 64 + 1024 {
        return Err(format!("{} packed bytes are too many", stream.packed_len));
    }
    if stream.offset.checked_add(stream.packed_len).is_none() {
        return Err("bad place".to_string());
    }
    *budget -= stream.raw_len;
    unpacker.start(stream)?;
    let mut raw = vec![0; stream.raw_len as usize];
    let count = unpacker.fill(file, &mut raw)?;
    if count < raw.len() {
        return Err("shorter than its index says".to_string());
    }
    unpacker.finish(file)?;
    Ok(raw)
}
