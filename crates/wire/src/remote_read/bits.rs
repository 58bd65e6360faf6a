//! Bits of a chunk, the highest bit of a byte first.

/// Bits that are appended to bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are free.
    free: u32,
}

impl BitWriter {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.free = 0;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the lowest `count` bits of a number, at most 64.
    pub(super) fn put(&mut self, number: u64, count: u32) {
        let mut left = count.min(64);
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = left.min(self.free);
            left -= taken;
            self.free -= taken;
            let [piece, ..] = (number >> left).to_le_bytes();
            let mask = u8::MAX >> (8 - taken);
            if let Some(last) = self.bytes.last_mut() {
                *last |= (piece & mask) << self.free;
            }
        }
    }

    /// Appends bytes. They begin where the last bit ends.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.put(u64::from(byte), 8);
        }
    }
}

/// Bits that are taken off bytes.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    rest: &'a [u8],
    /// Bits of the first byte that are taken already.
    taken: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader {
            rest: bytes,
            taken: 0,
        }
    }

    /// Takes `count` bits, at most 64, as a number. `None`: there are fewer.
    pub(super) fn take(&mut self, count: u32) -> Option<u64> {
        let (mut number, mut left) = (0, count.min(64));
        while left > 0 {
            let (&first, behind) = self.rest.split_first()?;
            let here = left.min(8 - self.taken);
            let piece = (first << self.taken) >> (8 - here);
            number = number << here | u64::from(piece);
            left -= here;
            self.taken += here;
            if self.taken == 8 {
                self.rest = behind;
                self.taken = 0;
            }
        }
        Some(number)
    }

    /// Takes an integer of seven bits a byte.
    pub(super) fn take_varint(&mut self) -> Option<u64> {
        let mut bytes = Vec::with_capacity(10);
        loop {
            let [byte, ..] = self.take(8)?.to_le_bytes();
            bytes.push(byte);
            if byte < 0x80 {
                return kymo_base::varint::take(&mut bytes.as_slice());
            }
            if bytes.len() > 10 {
                return None;
            }
        }
    }
}
