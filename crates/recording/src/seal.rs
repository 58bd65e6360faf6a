//! Sealing: turns what is valid in a tail into a block, one pass over the tail a stream.
//!
//! Nothing is held but one piece of the tail, one of the block and zstd's context, whatever the
//! tail's size. The block gets its name only after it was decoded again, compared with the tail
//! byte by byte, and synced; until then the tail stays as it is.

use crate::block::{self, HEADS, Index, Stream, Unpacker, WINDOW_LOG};
use crate::error::{Error, Result, Tried};
use crate::folder::{BlockName, UNFINISHED_SUFFIX};
use crate::heads;
use crate::record::{HEAD_LEN, RawHead, RecordType, SECTION_HEAD_LEN, u32_at};
use crate::tail::{PIECE, Step, TailHeader, Walk, Window};
use crate::varint;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use std::io;
use std::path::Path;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

/// What a first pass over a tail finds.
pub(crate) struct Scan {
    pub(crate) records: u32,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) damages: u64,
    end: u64,
    samples: u32,
    keys: u32,
    real_min_ns: i64,
    real_max_ns: i64,
    first: Stamp,
    last: Stamp,
    context_len: usize,
    /// Sections and bytes of each kind.
    kinds: Vec<(u32, u64)>,
}

impl Scan {
    fn new(header: &TailHeader, end: u64) -> Self {
        Scan {
            records: 0,
            first_seq: 0,
            last_seq: 0,
            damages: 0,
            end,
            samples: 0,
            keys: 0,
            real_min_ns: i64::MAX,
            real_max_ns: i64::MIN,
            first: Stamp::default(),
            last: Stamp::default(),
            context_len: header.context.as_ref().map_or(0, String::len),
            kinds: vec![(0, 0); 256],
        }
    }

    fn add(&mut self, raw: &RawHead) {
        let head = &raw.head;
        if self.records == 0 {
            (self.first_seq, self.first) = (head.seq, head.stamp);
        }
        (self.last_seq, self.last) = (head.seq, head.stamp);
        self.real_min_ns = self.real_min_ns.min(head.stamp.real_ns);
        self.real_max_ns = self.real_max_ns.max(head.stamp.real_ns);
        self.records += 1;
        self.samples += u32::from(head.record_type == RecordType::Sample);
        self.keys += u32::from(head.key);
    }

    fn name(&self) -> BlockName {
        let seconds = |ns: i64| (ns.max(0) / 1_000_000_000) as u64;
        BlockName {
            first_seq: self.first_seq,
            wall_min_s: seconds(self.real_min_ns),
            wall_max_s: seconds(self.real_max_ns),
        }
    }

    /// The most that a block of these records can take: zstd stores what it cannot pack, and a
    /// head in the heads stream is at most 16 bytes longer than in the tail.
    pub(crate) fn block_bytes_max(&self) -> u64 {
        let streams = 1 + self.kinds.iter().filter(|kind| kind.0 > 0).count() as u64;
        let bytes = self.end + 16 * u64::from(self.records);
        bytes + bytes / 64 + self.context_len as u64 + 1024 * (streams + 1)
    }
}

/// Looks through a tail, of which the first `end` bytes may hold records.
pub(crate) fn scan(file: &dyn DiskFile, header: &TailHeader, end: u64) -> Scan {
    let (mut window, mut walk) = (Window::new(file, end), Walk::new(header));
    let mut scan = Scan::new(header, end);
    loop {
        match walk.step(&mut window) {
            Step::Record(offset, raw) => {
                scan.add(&raw);
                for_each_section(&mut window, offset, &raw, &mut |_, kind, _, _, length| {
                    let (sections, bytes) = &mut scan.kinds[usize::from(kind)];
                    *sections += 1;
                    *bytes += (varint::len(length as u64) + length) as u64;
                });
            }
            Step::Damage { .. } => scan.damages += 1,
            Step::End => return scan,
        }
    }
}

type EachSection<'a> = dyn FnMut(&mut Window<'_>, u8, u8, u64, usize) + 'a;

/// Calls `each` with the kind, cost, place and length of each section of a sample.
fn for_each_section(window: &mut Window<'_>, offset: u64, raw: &RawHead, each: &mut EachSection) {
    if raw.head.record_type != RecordType::Sample {
        return;
    }
    for_each_part(window, offset, raw, each);
}

fn for_each_part(window: &mut Window<'_>, offset: u64, raw: &RawHead, each: &mut EachSection) {
    let (mut at, end) = (offset + HEAD_LEN as u64, offset + raw.length as u64);
    for _ in 0..raw.sections {
        let Some(&[kind, cost, ref length @ ..]) = window
            .get(at, SECTION_HEAD_LEN)
            .first_chunk::<SECTION_HEAD_LEN>()
        else {
            return;
        };
        let length = u32_at(length, 0) as usize;
        at += SECTION_HEAD_LEN as u64;
        if length as u64 > end.saturating_sub(at) {
            return;
        }
        each(window, kind, cost, at, length);
        at += length as u64;
    }
}

/// Calls `sink` with the bytes of one stream, piece by piece.
fn emit(
    file: &dyn DiskFile,
    header: &TailHeader,
    scan: &Scan,
    id: u16,
    sink: &mut dyn FnMut(&[u8]),
) {
    let (mut window, mut walk) = (Window::new(file, scan.end), Walk::new(header));
    let mut heads = HeadsPass::default();
    loop {
        match walk.step(&mut window) {
            Step::Record(offset, raw) if id == HEADS => {
                heads.emit(&mut window, offset, &raw, sink);
            }
            Step::Record(offset, raw) => emit_kind(&mut window, offset, &raw, id, sink),
            Step::Damage { .. } => {}
            Step::End => return,
        }
    }
}

fn emit_kind(
    window: &mut Window<'_>,
    offset: u64,
    raw: &RawHead,
    id: u16,
    sink: &mut dyn FnMut(&[u8]),
) {
    let mut prefix = Vec::with_capacity(10);
    for_each_section(window, offset, raw, &mut |window, kind, _, at, length| {
        if u16::from(kind) == id {
            prefix.clear();
            varint::push(&mut prefix, length as u64);
            sink(&prefix);
            window.pieces(at, length, sink);
        }
    });
}

#[derive(Default)]
struct HeadsPass {
    encoder: heads::Encoder,
    kinds: Vec<u8>,
    costs: Vec<u8>,
    bytes: Vec<u8>,
}

impl HeadsPass {
    fn emit(
        &mut self,
        window: &mut Window<'_>,
        offset: u64,
        raw: &RawHead,
        sink: &mut dyn FnMut(&[u8]),
    ) {
        self.kinds.clear();
        self.costs.clear();
        self.bytes.clear();
        if raw.head.record_type == RecordType::Sample {
            for_each_part(window, offset, raw, &mut |_, kind, cost, _, _| {
                self.kinds.push(kind);
                self.costs.push(cost);
            });
            let (kinds, costs) = (&self.kinds, &self.costs);
            self.encoder
                .sample(&mut self.bytes, &raw.head, kinds, costs);
            sink(&self.bytes);
        } else {
            let mut text = (offset, 0);
            for_each_part(window, offset, raw, &mut |_, _, _, at, length| {
                text = (at, length);
            });
            self.encoder.text(&mut self.bytes, &raw.head, text.1);
            sink(&self.bytes);
            window.pieces(text.0, text.1, sink);
        }
    }
}

/// A block that has its name.
pub(crate) struct Sealed {
    pub(crate) name: BlockName,
    pub(crate) bytes: u64,
    pub(crate) allocated_bytes: u64,
}

/// Writes, checks, syncs and names the block of a tail. On an error nothing is left of it.
pub(crate) fn seal(
    disk: &dyn Disk,
    folder: &Path,
    tail: &dyn DiskFile,
    header: &TailHeader,
    scan: &Scan,
    level: i32,
) -> Result<Sealed> {
    let name = scan.name();
    let path = folder.join(name.format());
    let unfinished = folder.join(format!("{}{UNFINISHED_SUFFIX}", name.format()));
    match disk.unlink(&unfinished) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("remove", &unfinished, cause));
        }
        _ => {}
    }
    let sealed = write_block(disk, &unfinished, tail, header, scan, level)
        .and_then(|sealed| name_block(disk, folder, &unfinished, &path).map(|()| sealed));
    if sealed.is_err() {
        let _named_or_gone = disk.unlink(&unfinished);
    }
    sealed
}

fn name_block(disk: &dyn Disk, folder: &Path, unfinished: &Path, path: &Path) -> Result<()> {
    disk.rename(unfinished, path).tried("rename", unfinished)?;
    let synced = disk.sync_dir(folder).tried("sync", folder);
    if synced.is_err() {
        // A name that may not be on the disk must not pass for one by which the tail is safe.
        let _made_again = disk.unlink(path);
    }
    synced
}

fn write_block(
    disk: &dyn Disk,
    path: &Path,
    tail: &dyn DiskFile,
    header: &TailHeader,
    scan: &Scan,
    level: i32,
) -> Result<Sealed> {
    let file = disk.open(path, OpenMode::CreateNew).tried("make", path)?;
    let index = pack(&*file, path, tail, header, scan, level)?;
    compare(&*file, path, tail, header, scan, &index)?;
    file.sync_data().tried("sync", path)?;
    let stat = file.metadata().tried("stat", path)?;
    Ok(Sealed {
        name: scan.name(),
        bytes: stat.size_bytes,
        allocated_bytes: stat.allocated_bytes,
    })
}

fn pack(
    file: &dyn DiskFile,
    path: &Path,
    tail: &dyn DiskFile,
    header: &TailHeader,
    scan: &Scan,
    level: i32,
) -> Result<Index> {
    let damaged = |cause: &'static str| Error::damaged(path, cause);
    let mut index = scan.index();
    let mut packer = Packer::new(file, level).map_err(damaged)?;
    packer.put(&block::encode_header(
        scan.first_seq,
        header.epoch,
        header.context.as_deref().unwrap_or(""),
    ));
    let ids = (0..256u16).filter(|id| scan.kinds[usize::from(*id)].0 > 0);
    for id in std::iter::once(HEADS).chain(ids) {
        let raw_len = scan.kinds.get(usize::from(id)).map(|kind| kind.1);
        packer.begin(id, raw_len).map_err(damaged)?;
        emit(tail, header, scan, id, &mut |bytes| packer.pack(bytes));
        let mut stream = packer.end().map_err(damaged)?;
        stream.sections = scan
            .kinds
            .get(usize::from(id))
            .map_or(scan.records, |kind| kind.0);
        index.streams.push(stream);
    }
    let mut end = Vec::new();
    index.encode(packer.position(), &mut end);
    packer.put(&end);
    packer.finish().tried("write", path)?;
    Ok(index)
}

impl Scan {
    fn index(&self) -> Index {
        Index {
            first_seq: self.first_seq,
            last_seq: self.last_seq,
            real_min_ns: self.real_min_ns,
            real_max_ns: self.real_max_ns,
            first: self.first,
            last: self.last,
            records: self.records,
            samples: self.samples,
            keys: self.keys,
            streams: Vec::new(),
        }
    }
}

/// Packs streams into a file, one after the other. The first error of the disk stays.
struct Packer<'a> {
    file: &'a dyn DiskFile,
    context: CCtx<'static>,
    buffer: Vec<u8>,
    flushed: u64,
    /// Where in `buffer` bytes begin that are not in the stream's checksum yet.
    unsummed: usize,
    stream: Stream,
    failed: Option<io::Error>,
    packing: Result<(), &'static str>,
}

impl<'a> Packer<'a> {
    fn new(file: &'a dyn DiskFile, level: i32) -> Result<Self, &'static str> {
        let mut context = CCtx::try_create().ok_or("no memory")?;
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::WindowLog(WINDOW_LOG),
        ] {
            context.set_parameter(parameter).map_err(get_error_name)?;
        }
        Ok(Packer {
            file,
            context,
            buffer: Vec::with_capacity(PIECE),
            flushed: 0,
            unsummed: 0,
            stream: Stream::default(),
            failed: None,
            packing: Ok(()),
        })
    }

    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Appends bytes as they are.
    fn put(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            if self.buffer.len() + piece.len() > PIECE {
                self.flush();
            }
            self.buffer.extend_from_slice(piece);
        }
    }

    fn begin(&mut self, id: u16, raw_len: Option<u64>) -> Result<(), &'static str> {
        let context = &mut self.context;
        context
            .reset(ResetDirective::SessionOnly)
            .map_err(get_error_name)?;
        context
            .set_pledged_src_size(raw_len)
            .map_err(get_error_name)?;
        self.unsummed = self.buffer.len();
        self.stream = Stream {
            id,
            offset: self.position(),
            ..Stream::default()
        };
        Ok(())
    }

    fn pack(&mut self, bytes: &[u8]) {
        self.stream.raw_len += bytes.len() as u64;
        let mut input = InBuffer::around(bytes);
        while input.pos() < bytes.len() && self.packing.is_ok() {
            self.make_room();
            let at = self.buffer.len();
            let mut output = OutBuffer::around_pos(&mut self.buffer, at);
            let packed = self.context.compress_stream(&mut output, &mut input);
            self.packing = packed.map(drop).map_err(get_error_name);
        }
    }

    fn end(&mut self) -> Result<Stream, &'static str> {
        std::mem::replace(&mut self.packing, Ok(()))?;
        loop {
            self.make_room();
            let at = self.buffer.len();
            let mut output = OutBuffer::around_pos(&mut self.buffer, at);
            if self
                .context
                .end_stream(&mut output)
                .map_err(get_error_name)?
                == 0
            {
                break;
            }
        }
        self.sum();
        self.stream.packed_len = self.position() - self.stream.offset;
        Ok(self.stream)
    }

    fn make_room(&mut self) {
        if self.buffer.len() == self.buffer.capacity() {
            self.sum();
            self.flush();
        }
    }

    fn sum(&mut self) {
        let new = &self.buffer[self.unsummed..];
        self.stream.crc = crc32c::crc32c_append(self.stream.crc, new);
        self.unsummed = self.buffer.len();
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.file.write_at(&self.buffer, self.flushed).err();
        }
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        self.unsummed = 0;
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush();
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// Decodes the written block and compares it with the tail.
fn compare(
    file: &dyn DiskFile,
    path: &Path,
    tail: &dyn DiskFile,
    header: &TailHeader,
    scan: &Scan,
    index: &Index,
) -> Result<()> {
    let (written, _) = block::read_index(file, path)?;
    if written != *index {
        return Err(Error::damaged(path, "its index was not written as meant"));
    }
    let Some(first) = index.streams.first() else {
        return Ok(());
    };
    let damaged = |cause: &'static str| Error::damaged(path, cause);
    let mut unpacker = Unpacker::new(file, *first).map_err(damaged)?;
    let mut decoded = vec![0; PIECE];
    for stream in &index.streams {
        unpacker.restart(*stream).map_err(damaged)?;
        let mut same = Ok(());
        emit(tail, header, scan, stream.id, &mut |bytes| {
            if same.is_ok() {
                same = compare_piece(&mut unpacker, &mut decoded, bytes);
            }
        });
        same.and_then(|()| unpacker.finish()).map_err(damaged)?;
    }
    Ok(())
}

fn compare_piece(
    unpacker: &mut Unpacker<'_>,
    decoded: &mut [u8],
    bytes: &[u8],
) -> Result<(), &'static str> {
    for piece in bytes.chunks(decoded.len()) {
        let decoded = &mut decoded[..piece.len()];
        if unpacker.fill(decoded)? < piece.len() || decoded != piece {
            return Err("it differs from its tail");
        }
    }
    Ok(())
}
