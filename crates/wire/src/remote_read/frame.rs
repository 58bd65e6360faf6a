//! Frames of an answer in chunks: a length, a checksum, and a message with chunks of one series.

use kymo_base::varint;

use super::chunk::{CHUNK_SAMPLES, ChunkWriter};
use super::request::text;
use crate::protobuf::{MessageFields, Wire, put_message, put_number};

/// Bytes after which a frame gets no further chunk: those of Prometheus' frames.
pub const FRAME_BYTES: usize = 1 << 20;
/// Most bytes of a frame that is read.
const FRAME_MAX: usize = 16 * FRAME_BYTES;
/// Number of the encoding of chunks.
const XOR: u64 = 1;

/// Chunks of one series, encoded.
#[derive(Clone, Debug, Default)]
pub struct SeriesChunks {
    open: ChunkWriter,
    /// Fields of chunks that are full.
    fields: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl SeriesChunks {
    /// Adds a later sample.
    pub fn push(&mut self, t_ms: i64, v: f64) {
        self.open.push(t_ms, v);
        if self.open.count() >= CHUNK_SAMPLES {
            self.finish();
        }
    }

    /// Ends the last chunk, full or not.
    pub fn finish(&mut self) {
        if self.open.count() == 0 {
            return;
        }
        let (first_ms, last_ms) = self.open.range_ms();
        let open = &mut self.open;
        put_message(&mut self.fields, 2, |out| {
            for (number, t_ms) in [(1, first_ms), (2, last_ms)] {
                if t_ms != 0 {
                    put_number(out, number, t_ms.cast_unsigned());
                }
            }
            put_number(out, 3, XOR);
            put_message(out, 4, |out| open.finish(out));
        });
        self.ends.push(self.fields.len());
    }

    /// True without any sample.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.open.count() == 0
    }

    /// Bytes in memory, about.
    pub fn size_bytes(&self) -> usize {
        self.fields.len() + self.open.size_bytes()
    }
}

/// Appends the frames of a finished series, with its encoded labels ([`super::put_labels`]) in each.
pub fn put_frames(out: &mut Vec<u8>, query: u64, labels: &[u8], chunks: &SeriesChunks) {
    let mut from = 0;
    while from < chunks.fields.len() {
        let full = chunks.ends.iter().find(|&&end| end >= from + FRAME_BYTES);
        let end = full.copied().unwrap_or(chunks.fields.len());
        put_frame(
            out,
            query,
            labels,
            chunks.fields.get(from..end).unwrap_or_default(),
        );
        from = end;
    }
}

fn put_frame(out: &mut Vec<u8>, query: u64, labels: &[u8], chunks: &[u8]) {
    let mut message = Vec::with_capacity(labels.len() + chunks.len() + 24);
    put_message(&mut message, 1, |out| {
        out.extend_from_slice(labels);
        out.extend_from_slice(chunks);
    });
    if query != 0 {
        put_number(&mut message, 2, query);
    }
    varint::put_count(out, message.len());
    out.extend_from_slice(&crc32c::crc32c(&message).to_be_bytes());
    out.extend_from_slice(&message);
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// The frame is cut short, or longer than a limit.
    Length,
    /// The checksum is that of other bytes.
    Checksum,
    /// The message in the frame is none.
    Malformed,
}

/// Chunks of a series, as they are in one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkedSeries<'a> {
    /// Place of its query in the request.
    pub query: u64,
    /// Labels, in the order of their names.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Bytes of each chunk.
    pub chunks: Vec<&'a [u8]>,
}

/// Takes a frame off the front of an answer.
pub fn take_frame<'a>(answer: &mut &'a [u8]) -> Result<ChunkedSeries<'a>, BadFrame> {
    let mut rest = *answer;
    let size = varint::take(&mut rest).ok_or(BadFrame::Length)?;
    let (crc, behind) = rest.split_first_chunk::<4>().ok_or(BadFrame::Length)?;
    let size = usize::try_from(size).ok().filter(|&size| size <= FRAME_MAX);
    let cut = size.and_then(|size| behind.split_at_checked(size));
    let (message, behind) = cut.ok_or(BadFrame::Length)?;
    if crc32c::crc32c(message) != u32::from_be_bytes(*crc) {
        return Err(BadFrame::Checksum);
    }
    let series = series_of(message).ok_or(BadFrame::Malformed)?;
    *answer = behind;
    Ok(series)
}

fn series_of(message: &[u8]) -> Option<ChunkedSeries<'_>> {
    let mut series = ChunkedSeries::default();
    for field in MessageFields::of(message) {
        match field.ok()? {
            (1, Wire::Bytes(fields)) => read_series(fields, &mut series)?,
            (2, Wire::Varint(query)) => series.query = query,
            _ => {}
        }
    }
    Some(series)
}

fn read_series<'a>(fields: &'a [u8], series: &mut ChunkedSeries<'a>) -> Option<()> {
    for field in MessageFields::of(fields) {
        match field.ok()? {
            (1, Wire::Bytes(label)) => series.labels.push(label_of(label)?),
            (2, Wire::Bytes(chunk)) => {
                for field in MessageFields::of(chunk) {
                    if let (4, Wire::Bytes(bytes)) = field.ok()? {
                        series.chunks.push(bytes);
                    }
                }
            }
            _ => {}
        }
    }
    Some(())
}

fn label_of(fields: &[u8]) -> Option<(&str, &str)> {
    let mut label = ("", "");
    for field in MessageFields::of(fields) {
        match field.ok()? {
            (1, Wire::Bytes(name)) => label.0 = text(name).ok()?,
            (2, Wire::Bytes(value)) => label.1 = text(value).ok()?,
            _ => {}
        }
    }
    Some(label)
}
