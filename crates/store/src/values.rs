//! The pending values of one file as they were sent: one allocation a file, not one a value.

use kymo_base::varint;

/// Texts in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    bytes: Vec<u8>,
    count: u32,
}

impl Values {
    pub(crate) fn push(&mut self, text: &[u8]) {
        if self.bytes.capacity() == 0 {
            // Most files get a few values between two writes; doubling from eight would copy them thrice.
            self.bytes.reserve_exact(4 * (text.len() + 1));
        }
        varint::put_bytes(&mut self.bytes, text);
        self.count += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What [`Values::truncate`] needs to come back here.
    pub(crate) fn mark(&self) -> (usize, u32) {
        (self.bytes.len(), self.count)
    }

    pub(crate) fn truncate(&mut self, (len, count): (usize, u32)) {
        self.bytes.truncate(len);
        self.count = count;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut left = &self.bytes[..];
        std::iter::from_fn(move || varint::take_bytes(&mut left, usize::MAX))
    }

    /// Puts older values before these.
    pub(crate) fn prepend(&mut self, older: &Values) {
        let mut bytes = older.bytes.clone();
        bytes.extend_from_slice(&self.bytes);
        self.bytes = bytes;
        self.count += older.count;
    }
}
