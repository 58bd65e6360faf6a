//! The values of one series that are in no block, in the journal's encoding, with one allocation for each series
//! rather than for each value.

use crate::hole;
use crate::wal::value::stamp_of;
use crate::wal::value::{Field, Stamps, Value, skip_value, take_fields, take_value};
use kymo_sys::prefetch::prefetch;

/// Encoded values, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    stamps: Stamps,
    count: u32,
    /// Length up to the last hole.
    holed: usize,
}

/// A position to which [`Pending::truncate`] can return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    len: usize,
    stamps: Stamps,
    count: u32,
}

/// Values as they were sent, all in one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Reads values one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Values<'a> {
    input: &'a [u8],
    stamps: Stamps,
    pub(crate) left: usize,
}

impl<'a> Values<'a> {
    /// Calls `each` with the fields of the next value.
    pub(crate) fn fields(&mut self, each: &mut impl FnMut(Field<'a>)) {
        self.left -= 1;
        take_fields(&mut self.input, &mut self.stamps, each);
    }

    /// Appends the next value as it was sent.
    pub(crate) fn text(&mut self, text: &mut Vec<u8>) {
        self.left -= 1;
        take_value(&mut self.input, &mut self.stamps, text);
    }
}

impl Texts {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let text = &self.bytes[from..end];
            from = end;
            text
        })
    }
}

impl Pending {
    pub(crate) fn push(&mut self, text: &[u8]) {
        let mut value = Value::default();
        value.read(text);
        self.push_value(&value);
        if hole::is_one(text) {
            self.holed = self.bytes.len();
        }
    }

    /// Adds a hole after the value with the stamp `after`, unless there is one.
    pub(crate) fn push_hole(&mut self, after: f64) {
        if self.holed == 0 || self.holed != self.bytes.len() {
            self.push(&hole::text(after));
        }
    }

    pub(crate) fn push_value(&mut self, value: &Value) {
        let (len, room) = (self.bytes.len(), value.len_max());
        if self.bytes.capacity() - len < room {
            // Grows by a quarter: doubling would leave most of the many buffers half empty.
            self.bytes.reserve_exact(room + (len / 4).max(16));
        }
        value.put(&mut self.bytes, &mut self.stamps);
        self.count += 1;
    }

    /// Prefetches the end of the buffer, to which a value will soon be added.
    pub(crate) fn expect_push(&self) {
        self.bytes.last().into_iter().for_each(prefetch);
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            len: self.bytes.len(),
            stamps: self.stamps,
            count: self.count,
        }
    }

    pub(crate) fn truncate(&mut self, mark: Mark) {
        self.bytes.truncate(mark.len);
        self.stamps = mark.stamps;
        self.count = mark.count;
    }

    /// The encoded values, as in the journal and in the names of suspended series.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the values of [`Pending::raw`] and [`Pending::len`]; `None` if these do not fit together.
    pub(crate) fn from_raw(bytes: &[u8], count: u64) -> Option<Pending> {
        let mut pending = Pending {
            bytes: bytes.to_vec(),
            stamps: Stamps::default(),
            count: u32::try_from(count).ok()?,
            holed: 0,
        };
        let (mut input, mut text) = (bytes, Vec::new());
        for _ in 0..count {
            text.clear();
            take_value(&mut input, &mut pending.stamps, &mut text)?;
            if hole::is_one(&text) {
                pending.holed = bytes.len() - input.len();
            }
        }
        input.is_empty().then_some(pending)
    }

    /// Appends all values as texts.
    pub(crate) fn texts_into(&self, texts: &mut Texts) {
        self.texts_from(0, texts);
    }

    /// Appends the values after the first `skip` ones as texts.
    pub(crate) fn texts_from(&self, skip: usize, texts: &mut Texts) {
        let (mut input, mut stamps) = (&self.bytes[..], Stamps::default());
        for _ in 0..skip.min(self.len()) {
            if skip_value(&mut input, &mut stamps).is_none() {
                return;
            }
        }
        for _ in skip..self.len() {
            if take_value(&mut input, &mut stamps, &mut texts.bytes).is_none() {
                return;
            }
            texts.ends.push(texts.bytes.len());
        }
    }

    /// Calls `each` with the stamps, in order.
    pub(crate) fn each_stamp(&self, each: &mut dyn FnMut(f64)) {
        let (mut input, mut stamps, mut text) = (&self.bytes[..], Stamps::default(), Vec::new());
        for _ in 0..self.count {
            let (mut value, before) = (input, stamps);
            let stamp = match skip_value(&mut input, &mut stamps) {
                None => return,
                Some(Some(stamp)) => Some(stamp),
                Some(None) => {
                    text.clear();
                    let taken = take_value(&mut value, &mut { before }, &mut text);
                    taken.and_then(|()| stamp_of(&text))
                }
            };
            stamp.into_iter().for_each(&mut *each);
        }
    }

    /// A reader of the values from the first on.
    pub(crate) fn values(&self) -> Values<'_> {
        Values {
            input: &self.bytes,
            stamps: Stamps::default(),
            left: self.len(),
        }
    }

    /// All values as texts.
    pub(crate) fn texts(&self) -> Texts {
        let mut texts = Texts::default();
        self.texts_into(&mut texts);
        texts
    }

    /// Drops the values with later stamps; returns their number.
    pub(crate) fn cut_after(&mut self, stamp: f64) -> usize {
        let before = self.len();
        // A hole has no stamp of its own and stays.
        self.retain(&mut |_, text| stamp_of(text).is_none_or(|at| at <= stamp));
        before - self.len()
    }

    /// Keeps the values for which `keep`, called with index and text, returns true.
    pub(crate) fn retain(&mut self, keep: &mut dyn FnMut(usize, &[u8]) -> bool) {
        let mut texts = Texts::default();
        self.texts_into(&mut texts);
        *self = Pending::default();
        for (at, text) in texts.iter().enumerate() {
            if keep(at, text) {
                self.push(text);
            }
        }
    }

    /// Inserts older values before the present ones.
    pub(crate) fn prepend(&mut self, older: &Pending) {
        let mut texts = Texts::default();
        older.texts_into(&mut texts);
        self.texts_into(&mut texts);
        *self = Pending::default();
        texts.iter().for_each(|text| self.push(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pending: &Pending) -> Vec<String> {
        let mut texts = Texts::default();
        pending.texts_into(&mut texts);
        let texts = texts.iter();
        texts
            .map(|text| String::from_utf8(text.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn values_come_back_in_their_order() {
        let (mut old, mut new) = (Pending::default(), Pending::default());
        for text in ["1000000010:1", "1000000020.500000:2", "1000000030:x"] {
            old.push(text.as_bytes());
        }
        new.push(b"1000000040:4");
        let mark = new.mark();
        new.push(b"1000000050:5");
        new.truncate(mark);
        new.push(b"1000000060:6");
        new.prepend(&old);
        let all = [
            "1000000010:1",
            "1000000020.500000:2",
            "1000000030:x",
            "1000000040:4",
            "1000000060:6",
        ];
        assert_eq!(shown(&new), all);
        let again = Pending::from_raw(new.raw(), new.len() as u64).unwrap();
        assert_eq!(shown(&again), all);
        assert!(Pending::from_raw(new.raw(), 4).is_none());
        assert_eq!(new.cut_after(1000000030.0), 2);
        new.retain(&mut |at, _| at != 1);
        assert_eq!(shown(&new), [all[0], all[2]]);
    }
}
