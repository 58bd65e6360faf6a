//! Numbers and texts of a frame's body.

use super::VERSION;

/// Appends numbers and texts.
pub(super) trait Put {
    fn u8(&mut self, value: u8);
    fn u16(&mut self, value: usize);
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    fn i64(&mut self, value: i64);
    fn length(&mut self, length: usize);
    fn f64(&mut self, value: f64);
    fn text(&mut self, text: &[u8]);
    fn cells(&mut self, cells: impl ExactSizeIterator<Item = f64>);
}

impl Put for Vec<u8> {
    fn u8(&mut self, value: u8) {
        self.push(value);
    }

    /// A 16-bit count; a larger one is a bug of the caller.
    fn u16(&mut self, value: usize) {
        debug_assert!(value <= usize::from(u16::MAX), "BUG: a count of {value}");
        self.extend((value.min(usize::from(u16::MAX)) as u16).to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend(value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.extend(value.to_le_bytes());
    }

    /// The 32-bit length of a list. A longer list is too long for a frame
    /// anyway.
    fn length(&mut self, length: usize) {
        self.u32(u32::try_from(length).unwrap_or(u32::MAX));
    }

    fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// A 16-bit length, and the text, cut off at the greatest length.
    fn text(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(usize::from(u16::MAX))];
        self.u16(text.len());
        self.extend_from_slice(text);
    }

    fn cells(&mut self, cells: impl ExactSizeIterator<Item = f64>) {
        let at = self.len();
        self.resize(at + 8 * cells.len(), 0);
        let room = self.get_mut(at..).unwrap_or_default();
        let (room, _) = room.as_chunks_mut();
        for (room, cell) in room.iter_mut().zip(cells) {
            *room = cell.to_le_bytes();
        }
    }
}

/// Reads numbers and texts; `None`: too few bytes are left.
#[derive(Clone)]
pub(super) struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    /// Reads the head of a frame: its kind, and its body.
    pub(super) fn begin(frame: &'a [u8]) -> Result<(u8, Take<'a>), &'static str> {
        match frame {
            [VERSION, kind, body @ ..] => Ok((*kind, Take(body))),
            [_, _, ..] => Err("is of another version of kymo"),
            _ => Err("has no kind"),
        }
    }

    /// Reads bytes without a frame's head.
    pub(super) fn of(bytes: &'a [u8]) -> Take<'a> {
        Take(bytes)
    }

    /// The unread bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Fails if bytes are left.
    pub(super) fn end(&self) -> Result<(), &'static str> {
        match self.0 {
            [] => Ok(()),
            _ => Err("is longer than what it says"),
        }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A count of at most `most`.
    pub(super) fn count(&mut self, most: usize) -> Option<usize> {
        let count = usize::from(self.array().map(u16::from_le_bytes)?);
        (count <= most).then_some(count)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let count = usize::from(self.array().map(u16::from_le_bytes)?);
        self.bytes(count)
    }

    /// `count` whole numbers of 8 bytes; a false count allocates nothing.
    pub(super) fn stamps(&mut self, count: usize) -> Option<Vec<i64>> {
        let bytes = self.bytes(count.checked_mul(8)?)?;
        let (stamps, _) = bytes.as_chunks();
        Some(
            stamps
                .iter()
                .map(|stamp| i64::from_le_bytes(*stamp))
                .collect(),
        )
    }

    /// `count` numbers; a false count allocates nothing.
    pub(super) fn cells(&mut self, count: usize) -> Option<Vec<f64>> {
        let bytes = self.bytes(count.checked_mul(8)?)?;
        let (cells, _) = bytes.as_chunks();
        Some(cells.iter().map(|cell| f64::from_le_bytes(*cell)).collect())
    }
}
