//! A chunk: samples in Gorilla's compression as Prometheus has it, with differences of differences of times, and values
//! xor the value before.

use kymo_base::varint;

use super::bits::{BitReader, BitWriter};

/// Samples of a chunk at most: those of Prometheus' chunks.
pub const CHUNK_SAMPLES: u16 = 120;
/// Most leading zeros that a value says.
const LEADING_MAX: u32 = 31;
/// Codes of differences of differences: their bits, how many those are, and how many bits follow.
const STEPS: [(u64, u32, u32); 4] = [
    (0b10, 2, 14),
    (0b110, 3, 17),
    (0b1110, 4, 20),
    (0b1111, 4, 64),
];

/// The bytes are no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadChunk;

/// The bits of values that differ: zeros before and behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    leading: u32,
    trailing: u32,
}

/// A chunk that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkWriter {
    bits: BitWriter,
    count: u16,
    first_ms: i64,
    last_ms: i64,
    delta: u64,
    value: u64,
    window: Option<Window>,
}

impl ChunkWriter {
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Times of the first and the last sample.
    pub(super) fn range_ms(&self) -> (i64, i64) {
        (self.first_ms, self.last_ms)
    }

    /// Adds a later sample to one of less than [`CHUNK_SAMPLES`].
    pub(super) fn push(&mut self, t_ms: i64, v: f64) {
        let delta = t_ms.wrapping_sub(self.last_ms).cast_unsigned();
        let mut bytes = Vec::new();
        match self.count {
            0 => {
                self.first_ms = t_ms;
                varint::put_signed(&mut bytes, t_ms);
                self.bits.put_bytes(&bytes);
                self.bits.put(v.to_bits(), 64);
            }
            1 => {
                varint::put(&mut bytes, delta);
                self.bits.put_bytes(&bytes);
                self.put_value(v.to_bits());
            }
            _ => {
                self.put_step(delta.wrapping_sub(self.delta).cast_signed());
                self.put_value(v.to_bits());
            }
        }
        self.delta = if self.count == 0 { 0 } else { delta };
        self.last_ms = t_ms;
        self.value = v.to_bits();
        self.count = self.count.saturating_add(1);
    }

    fn put_step(&mut self, step: i64) {
        if step == 0 {
            return self.bits.put(0, 1);
        }
        let code = STEPS.iter().find(|(_, _, bits)| fits(step, *bits));
        if let Some(&(code, length, bits)) = code {
            self.bits.put(code, length);
            self.bits.put(step.cast_unsigned(), bits);
        }
    }

    fn put_value(&mut self, value: u64) {
        let differs = value ^ self.value;
        if differs == 0 {
            return self.bits.put(0, 1);
        }
        let now = Window {
            leading: differs.leading_zeros().min(LEADING_MAX),
            trailing: differs.trailing_zeros(),
        };
        let known = self
            .window
            .filter(|known| now.leading >= known.leading && now.trailing >= known.trailing);
        let window = known.unwrap_or(now);
        let length = 64 - window.leading - window.trailing;
        match known {
            Some(_) => self.bits.put(0b10, 2),
            None => {
                self.bits.put(0b11, 2);
                self.bits.put(u64::from(window.leading), 5);
                // 64 is written as 0.
                self.bits.put(u64::from(length), 6);
            }
        }
        self.bits.put(differs >> window.trailing, length);
        self.window = Some(window);
    }

    /// Appends the chunk's bytes, and begins another chunk.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(self.bits.bytes());
        let mut bits = std::mem::take(&mut self.bits);
        bits.clear();
        *self = ChunkWriter {
            bits,
            ..ChunkWriter::default()
        };
    }

    /// Bytes of the chunk.
    pub(super) fn size_bytes(&self) -> usize {
        2 + self.bits.bytes().len()
    }
}

/// True if a step fits into a number of bits. As Prometheus has it, the largest is one more than usual.
fn fits(step: i64, bits: u32) -> bool {
    if bits == 64 {
        return true;
    }
    let most = 1_i64 << (bits - 1);
    (1 - most..=most).contains(&step)
}

/// Appends the samples of a chunk, as milliseconds and values.
pub fn read_chunk(chunk: &[u8], out: &mut Vec<(i64, f64)>) -> Result<(), BadChunk> {
    let (count, bits) = chunk.split_first_chunk::<2>().ok_or(BadChunk)?;
    let mut reader = ChunkReader {
        bits: BitReader::of(bits),
        t_ms: 0,
        delta: 0,
        value: 0,
        window: Window {
            leading: 0,
            trailing: 0,
        },
    };
    for number in 0..u16::from_be_bytes(*count) {
        reader.take(number).ok_or(BadChunk)?;
        out.push((reader.t_ms, f64::from_bits(reader.value)));
    }
    Ok(())
}

struct ChunkReader<'a> {
    bits: BitReader<'a>,
    t_ms: i64,
    delta: u64,
    value: u64,
    window: Window,
}

impl ChunkReader<'_> {
    fn take(&mut self, number: u16) -> Option<()> {
        match number {
            0 => {
                self.t_ms = varint::unzigzag(self.bits.take_varint()?, 0).cast_signed();
                self.value = self.bits.take(64)?;
                return Some(());
            }
            1 => self.delta = self.bits.take_varint()?,
            _ => self.delta = self.delta.wrapping_add(self.take_step()?.cast_unsigned()),
        }
        self.t_ms = self.t_ms.wrapping_add(self.delta.cast_signed());
        self.take_value()
    }

    fn take_step(&mut self) -> Option<i64> {
        let mut ones = 0;
        while ones < 4 && self.bits.take(1)? == 1 {
            ones += 1;
        }
        let bits = match ones {
            0 => return Some(0),
            1 => 14,
            2 => 17,
            3 => 20,
            _ => return Some(self.bits.take(64)?.cast_signed()),
        };
        let number = self.bits.take(bits)?;
        let wraps = number > 1 << (bits - 1);
        let below = if wraps { 1_i64 << bits } else { 0 };
        Some(number.cast_signed() - below)
    }

    fn take_value(&mut self) -> Option<()> {
        if self.bits.take(1)? == 0 {
            return Some(());
        }
        if self.bits.take(1)? == 1 {
            let leading = u32::try_from(self.bits.take(5)?).ok()?;
            let length = u32::try_from(self.bits.take(6)?).ok()?;
            let length = if length == 0 { 64 } else { length };
            let trailing = 64_u32.checked_sub(leading)?.checked_sub(length)?;
            self.window = Window { leading, trailing };
        }
        let Window { leading, trailing } = self.window;
        let differs = self.bits.take(64 - leading - trailing)?;
        self.value ^= differs << trailing;
        Some(())
    }
}
