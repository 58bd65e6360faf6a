//! Protobuf's wire format, read and written field by field without a schema: what the messages of remote write and of
//! OTLP are made of. Unknown fields and groups are passed over; a known field with another wire type counts as unknown.

#[cfg(test)]
mod tests;
mod write;

use kymo_base::varint;

#[cfg(test)]
pub(crate) use write::put_fixed64;
pub(crate) use write::{put_bytes, put_double, put_message, put_number};

/// Deepest nesting of groups that is passed over. No message of today has a group.
const GROUPS_MAX: usize = 16;
/// Largest number of a field.
const FIELD_MAX: u64 = (1 << 29) - 1;

/// The bytes are no protobuf message: cut short, a field without a number, or an integer of more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadProtobuf;

/// One field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire<'a> {
    /// Whole numbers, enums and booleans.
    Varint(u64),
    /// Bits of a double or of a number of 64 bits.
    Fixed64(u64),
    /// A text, bytes, a message or a packed list.
    Bytes(&'a [u8]),
    /// Bits of a float or of a number of 32 bits, or a group: none of the messages here has them.
    Other,
}

/// The fields of a message in the order they were written. After an error there are no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFields<'a> {
    rest: &'a [u8],
}

impl<'a> MessageFields<'a> {
    /// The message's own fields; those of messages in it are read by another one.
    pub(crate) fn of(message: &'a [u8]) -> MessageFields<'a> {
        MessageFields { rest: message }
    }

    #[inline]
    fn take(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = varint::take(&mut self.rest)?;
        let number = tag >> 3;
        if number == 0 || number > FIELD_MAX {
            return None;
        }
        let wire = match tag & 7 {
            0 => Wire::Varint(varint::take(&mut self.rest)?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.take_array()?)),
            2 => Wire::Bytes(varint::take_bytes(&mut self.rest, usize::MAX)?),
            3 => {
                self.pass_group(number)?;
                Wire::Other
            }
            5 => {
                self.take_array::<4>()?;
                Wire::Other
            }
            _ => return None,
        };
        Some((number, wire))
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    /// Passes over the fields of a group and its end, which has the number of its beginning.
    fn pass_group(&mut self, number: u64) -> Option<()> {
        let mut open = [number; GROUPS_MAX];
        let mut depth = 1;
        while depth > 0 {
            let tag = varint::take(&mut self.rest)?;
            let number = tag >> 3;
            match tag & 7 {
                0 => {
                    varint::take(&mut self.rest)?;
                }
                1 => {
                    self.take_array::<8>()?;
                }
                2 => {
                    varint::take_bytes(&mut self.rest, usize::MAX)?;
                }
                3 => {
                    *open.get_mut(depth)? = number;
                    depth += 1;
                }
                4 => {
                    depth -= 1;
                    if open.get(depth) != Some(&number) {
                        return None;
                    }
                }
                5 => {
                    self.take_array::<4>()?;
                }
                _ => return None,
            }
        }
        Some(())
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = Result<(u64, Wire<'a>), BadProtobuf>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.take().ok_or(BadProtobuf);
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Numbers of eight bytes of a repeated field: one by one, or packed into bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbers<'a> {
    /// One that stands alone.
    One(u64),
    /// All of them behind each other.
    Packed(&'a [u8]),
}

impl<'a> Numbers<'a> {
    /// The numbers of a field; `None`: they do not take eight bytes each.
    pub(crate) fn of_fixed64(wire: Wire<'a>) -> Option<Numbers<'a>> {
        match wire {
            Wire::Fixed64(number) => Some(Numbers::One(number)),
            Wire::Bytes(bytes) => Some(Numbers::Packed(bytes)),
            Wire::Varint(_) | Wire::Other => None,
        }
    }
}

impl Iterator for Numbers<'_> {
    type Item = Result<u64, BadProtobuf>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let found = match self {
            Numbers::Packed([]) => return None,
            Numbers::One(number) => Some(*number),
            Numbers::Packed(rest) => rest.split_first_chunk::<8>().map(|(bytes, behind)| {
                *rest = behind;
                u64::from_le_bytes(*bytes)
            }),
        };
        if found.is_none() || matches!(self, Numbers::One(_)) {
            *self = Numbers::Packed(&[]);
        }
        Some(found.ok_or(BadProtobuf))
    }
}
