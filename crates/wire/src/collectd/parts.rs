//! The parts of a packet: values and notifications, each with the fields that earlier parts set. Nothing is allocated or
//! copied. Damage ends the packet; parts before the damage count.

use std::fmt;

use memchr::memchr;

use super::cdtime::Cdtime;
use super::identifier::Identifier;
use super::value::{RawValues, VALUES_MAX};

/// Type codes of parts.
pub(super) mod part {
    pub(crate) const HOST: u16 = 0x0000;
    pub(crate) const TIME: u16 = 0x0001;
    pub(crate) const PLUGIN: u16 = 0x0002;
    pub(crate) const PLUGIN_INSTANCE: u16 = 0x0003;
    pub(crate) const TYPE: u16 = 0x0004;
    pub(crate) const TYPE_INSTANCE: u16 = 0x0005;
    pub(crate) const VALUES: u16 = 0x0006;
    pub(crate) const INTERVAL: u16 = 0x0007;
    pub(crate) const TIME_HR: u16 = 0x0008;
    pub(crate) const INTERVAL_HR: u16 = 0x0009;
    pub(crate) const MESSAGE: u16 = 0x0100;
    pub(crate) const SEVERITY: u16 = 0x0101;
    pub(crate) const SIGN_SHA256: u16 = 0x0200;
    pub(crate) const ENCR_AES256: u16 = 0x0210;
    /// Bytes of a part before its body: type and length.
    pub(crate) const HEAD: usize = 4;
}

/// Longest name, in bytes, without the NUL behind it.
pub const NAME_MAX: usize = 127;
/// Longest text of a notification, in bytes, without the NUL behind it.
pub const MESSAGE_MAX: usize = 255;

/// Why the rest of a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bad {
    /// Fewer bytes are left than a part's head has.
    Head,
    /// A part's length is less than its head; a packet padded with zeros has such a part.
    PartLength,
    /// A part's length exceeds the rest: the packet was truncated.
    Cut,
    /// A number has other than 8 bytes.
    NumberLength,
    /// A text is empty, without even a NUL, or too long.
    TextLength,
    /// A text does not end with a NUL.
    Unterminated,
    /// The length of a VALUES part contradicts its count.
    ValuesLength,
    /// A value has an unknown kind.
    ValueKind,
    /// A signature or an encrypted part behind plain parts or inside another one.
    Misplaced,
    /// A signature or an encrypted part is too short, or its user's name is empty or too long.
    SecurityLength,
    /// [`super::Users`] has no such user.
    UnknownUser,
    /// The signature does not match the user's password and the bytes.
    Signature,
    /// The decrypted bytes do not match their checksum: another password, or changed bytes.
    Checksum,
    /// The packet is not signed or not encrypted, and the listener requires it.
    Unprotected,
}

impl Bad {
    /// All reasons, in the order of their numbers: `bad as usize` is an index into a table of counters.
    pub const ALL: [Bad; 14] = [
        Bad::Head,
        Bad::PartLength,
        Bad::Cut,
        Bad::NumberLength,
        Bad::TextLength,
        Bad::Unterminated,
        Bad::ValuesLength,
        Bad::ValueKind,
        Bad::Misplaced,
        Bad::SecurityLength,
        Bad::UnknownUser,
        Bad::Signature,
        Bad::Checksum,
        Bad::Unprotected,
    ];

    /// The reason as text for a message.
    pub fn why(self) -> &'static str {
        match self {
            Bad::Head => "less than the head of a part at the end",
            Bad::PartLength => "a part of less than 4 bytes",
            Bad::Cut => "a part longer than the rest of the packet",
            Bad::NumberLength => "a number of other than 8 bytes",
            Bad::TextLength => "a text that is empty or too long",
            Bad::Unterminated => "a text without a NUL at its end",
            Bad::ValuesLength => "values of another length than their count says",
            Bad::ValueKind => "a value of unknown kind",
            Bad::Misplaced => "a signed or encrypted part behind plain ones or inside of another",
            Bad::SecurityLength => "a signed or encrypted part of wrong length",
            Bad::UnknownUser => "a user without a password",
            Bad::Signature => "a wrong signature",
            Bad::Checksum => "a wrong checksum of decrypted bytes",
            Bad::Unprotected => "neither signed nor encrypted as is asked for",
        }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// Why values or a notification are left out. Parts behind them still count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// The packet has set no time, or 0.
    Timeless,
    /// Values without host, plugin or type.
    Nameless,
    /// A part with a count of 0.
    NoValues,
    /// More values than [`VALUES_MAX`].
    TooManyValues,
    /// A notification with an unknown severity.
    Severity,
    /// A notification without a text.
    NoMessage,
}

impl Dropped {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Dropped; 6] = [
        Dropped::Timeless,
        Dropped::Nameless,
        Dropped::NoValues,
        Dropped::TooManyValues,
        Dropped::Severity,
        Dropped::NoMessage,
    ];

    /// The reason as text for a message.
    pub fn why(self) -> &'static str {
        match self {
            Dropped::Timeless => "no time",
            Dropped::Nameless => "no host, plugin or type",
            Dropped::NoValues => "no values",
            Dropped::TooManyValues => "more than 63 values",
            Dropped::Severity => "an unknown severity",
            Dropped::NoMessage => "no message",
        }
    }
}

/// Fields that the packet has set since the previous values. A field that is not in this set is unchanged; one in the set
/// may be equal to before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed(u8);

impl Changed {
    /// The host.
    pub const HOST: Changed = Changed(1);
    /// The plugin.
    pub const PLUGIN: Changed = Changed(2);
    /// The plugin instance.
    pub const PLUGIN_INSTANCE: Changed = Changed(4);
    /// The type.
    pub const TYPE: Changed = Changed(8);
    /// The type instance.
    pub const TYPE_INSTANCE: Changed = Changed(16);
    /// The time.
    pub const TIME: Changed = Changed(32);
    /// The interval.
    pub const INTERVAL: Changed = Changed(64);
    /// All fields; the first values of a packet have this.
    pub const ALL: Changed = Changed(127);
    /// The five fields of a name.
    pub const NAME: Changed = Changed(31);

    /// True if one of `fields` was set.
    pub fn has(self, fields: Changed) -> bool {
        self.0 & fields.0 != 0
    }

    fn add(&mut self, field: Changed) {
        self.0 |= field.0;
    }
}

/// Values of one series at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'p, 'a> {
    /// Host, plugin and type are not empty. A field has no NUL, but any other bytes.
    pub identifier: &'p Identifier<'a>,
    /// Not 0.
    pub time: Cdtime,
    /// 0: the packet has set no interval; collectd uses its own then.
    pub interval: Cdtime,
    /// 1 to [`VALUES_MAX`] values.
    pub values: RawValues<'a>,
    /// Fields set since the previous [`Item::Values`] of the packet.
    pub changed: Changed,
}

/// Severity of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Code 1 in a packet.
    Failure,
    /// Code 2.
    Warning,
    /// Code 4.
    Okay,
}

impl Severity {
    /// The severity for a packet's code; `None` for any other code.
    pub fn of_code(code: u64) -> Option<Severity> {
        match code {
            1 => Some(Severity::Failure),
            2 => Some(Severity::Warning),
            4 => Some(Severity::Okay),
            _ => None,
        }
    }

    /// The severity as collectd spells it.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Failure => "failure",
            Severity::Warning => "warning",
            Severity::Okay => "okay",
        }
    }

    /// The code in a packet.
    pub fn code(self) -> u64 {
        match self {
            Severity::Failure => 1,
            Severity::Warning => 2,
            Severity::Okay => 4,
        }
    }
}

/// A notification: an event with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification<'p, 'a> {
    /// Any field may be empty.
    pub identifier: &'p Identifier<'a>,
    /// Not 0.
    pub time: Cdtime,
    /// Severity.
    pub severity: Severity,
    /// The text: not empty, without a NUL, any other bytes.
    pub message: &'a [u8],
}

/// An item of [`Parts`]. The packet's bytes are borrowed for `'a`, the parser's fields until the next item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'p, 'a> {
    /// A VALUES part.
    Values(Values<'p, 'a>),
    /// A MESSAGE part.
    Notification(Notification<'p, 'a>),
    /// A part that is left out.
    Dropped(Dropped),
}

/// Reads the parts of a packet, or of a section of it. All fields are empty at first. No items follow an error.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    rest: &'a [u8],
    identifier: Identifier<'a>,
    time: Cdtime,
    interval: Cdtime,
    severity: u64,
    changed: Changed,
}

impl<'a> Parts<'a> {
    /// Reads a whole plain datagram, or [`super::Section::payload`]. The caller must drop a datagram that the receive
    /// buffer truncated, because its last name may be incomplete.
    pub fn new(payload: &'a [u8]) -> Parts<'a> {
        Parts {
            rest: payload,
            identifier: Identifier::default(),
            time: Cdtime::ZERO,
            interval: Cdtime::ZERO,
            severity: 0,
            changed: Changed::ALL,
        }
    }

    /// Bytes not read yet. Each item consumes at least one.
    pub fn rest_bytes(&self) -> usize {
        self.rest.len()
    }

    /// Reads one part. The caller makes the item, because an item is large and most parts are fields.
    #[inline]
    fn step(&mut self) -> Result<Step<'a>, Bad> {
        let (kind, body, rest) = take_part(self.rest)?;
        self.rest = rest;
        match kind {
            part::HOST => {
                self.identifier.host = name(body)?;
                self.changed.add(Changed::HOST);
            }
            part::PLUGIN => {
                self.identifier.plugin = name(body)?;
                self.changed.add(Changed::PLUGIN);
            }
            part::PLUGIN_INSTANCE => {
                self.identifier.plugin_instance = name(body)?;
                self.changed.add(Changed::PLUGIN_INSTANCE);
            }
            part::TYPE => {
                self.identifier.type_name = name(body)?;
                self.changed.add(Changed::TYPE);
            }
            part::TYPE_INSTANCE => {
                self.identifier.type_instance = name(body)?;
                self.changed.add(Changed::TYPE_INSTANCE);
            }
            part::VALUES => return values_of(body).map(Step::Values),
            part::TIME => self.set_time(Cdtime::from_seconds(number(body)?)),
            part::TIME_HR => self.set_time(Cdtime(number(body)?)),
            part::INTERVAL => self.set_interval(Cdtime::from_seconds(number(body)?)),
            part::INTERVAL_HR => self.set_interval(Cdtime(number(body)?)),
            part::SEVERITY => self.severity = number(body)?,
            part::MESSAGE => return text(body, MESSAGE_MAX).map(Step::Message),
            part::SIGN_SHA256 | part::ENCR_AES256 => return Err(Bad::Misplaced),
            _ => {}
        }
        Ok(Step::Field)
    }

    /// The next item. After an error there are none.
    #[inline]
    pub fn next_item(&mut self) -> Option<Result<Item<'_, 'a>, Bad>> {
        while !self.rest.is_empty() {
            match self.step() {
                Ok(Step::Field) => {}
                Ok(Step::Values(values)) => return Some(Ok(self.values(values))),
                Ok(Step::Message(message)) => return Some(Ok(self.notification(message))),
                Err(bad) => {
                    self.rest = &[];
                    return Some(Err(bad));
                }
            }
        }
        None
    }

    fn set_time(&mut self, time: Cdtime) {
        self.time = time;
        self.changed.add(Changed::TIME);
    }

    fn set_interval(&mut self, interval: Cdtime) {
        self.interval = interval;
        self.changed.add(Changed::INTERVAL);
    }

    #[inline]
    fn values(&mut self, values: RawValues<'a>) -> Item<'_, 'a> {
        if let Some(dropped) = self.unfit(values.len()) {
            return Item::Dropped(dropped);
        }
        let changed = std::mem::take(&mut self.changed);
        Item::Values(Values {
            identifier: &self.identifier,
            time: self.time,
            interval: self.interval,
            values,
            changed,
        })
    }

    fn unfit(&self, count: usize) -> Option<Dropped> {
        let Identifier {
            host,
            plugin,
            type_name,
            ..
        } = self.identifier;
        match count {
            0 => Some(Dropped::NoValues),
            count if count > VALUES_MAX => Some(Dropped::TooManyValues),
            _ if self.time == Cdtime::ZERO => Some(Dropped::Timeless),
            _ if host.is_empty() || plugin.is_empty() || type_name.is_empty() => {
                Some(Dropped::Nameless)
            }
            _ => None,
        }
    }

    #[cold]
    fn notification(&self, message: &'a [u8]) -> Item<'_, 'a> {
        let Some(severity) = Severity::of_code(self.severity) else {
            return Item::Dropped(Dropped::Severity);
        };
        if self.time == Cdtime::ZERO {
            return Item::Dropped(Dropped::Timeless);
        }
        if message.is_empty() {
            return Item::Dropped(Dropped::NoMessage);
        }
        Item::Notification(Notification {
            identifier: &self.identifier,
            time: self.time,
            severity,
            message,
        })
    }
}

/// Result of one part.
enum Step<'a> {
    /// The part set a field, or its type is unknown.
    Field,
    /// A VALUES part.
    Values(RawValues<'a>),
    /// A MESSAGE part with its text.
    Message(&'a [u8]),
}

/// The type of the first part, its body, and the bytes behind it.
#[inline]
fn take_part(input: &[u8]) -> Result<(u16, &[u8], &[u8]), Bad> {
    let &[kind_high, kind_low, size_high, size_low] = input.first_chunk().ok_or(Bad::Head)?;
    let size = usize::from(u16::from_be_bytes([size_high, size_low]));
    if size < part::HEAD {
        return Err(Bad::PartLength);
    }
    let (whole, rest) = input.split_at_checked(size).ok_or(Bad::Cut)?;
    let kind = u16::from_be_bytes([kind_high, kind_low]);
    Ok((kind, &whole[part::HEAD..], rest))
}

#[inline]
fn values_of(body: &[u8]) -> Result<RawValues<'_>, Bad> {
    let (count, body) = body.split_first_chunk().ok_or(Bad::ValuesLength)?;
    let count = usize::from(u16::from_be_bytes(*count));
    let (codes, cells) = body.split_at_checked(count).ok_or(Bad::ValuesLength)?;
    let (cells, behind) = cells.as_chunks();
    if cells.len() != count || !behind.is_empty() {
        return Err(Bad::ValuesLength);
    }
    RawValues::new(codes, cells).ok_or(Bad::ValueKind)
}

#[inline]
fn number(body: &[u8]) -> Result<u64, Bad> {
    let cell = <[u8; 8]>::try_from(body).map_err(|_| Bad::NumberLength)?;
    Ok(u64::from_be_bytes(cell))
}

#[inline]
fn name(body: &[u8]) -> Result<&[u8], Bad> {
    text(body, NAME_MAX)
}

/// A text up to its first NUL, as C reads it; the last byte must be a NUL.
#[inline]
fn text(body: &[u8], max: usize) -> Result<&[u8], Bad> {
    let (&last, text) = body.split_last().ok_or(Bad::TextLength)?;
    if text.len() > max {
        return Err(Bad::TextLength);
    }
    if last != 0 {
        return Err(Bad::Unterminated);
    }
    match has_nul(text) {
        false => Ok(text),
        true => Ok(memchr(0, text).map_or(text, |end| &text[..end])),
    }
}

/// Checks eight bytes at a time, which is quicker than `memchr` for short names.
#[inline]
fn has_nul(text: &[u8]) -> bool {
    /// Nonzero if a byte of `word` is zero: only then does the subtraction set a high bit that `word` lacks.
    fn zero(word: u64) -> bool {
        const ONES: u64 = u64::MAX / 255;
        word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
    }
    if let Some(&last) = text.last_chunk() {
        let words = text.as_chunks().0;
        return zero(u64::from_le_bytes(last))
            || words.iter().any(|&word| zero(u64::from_le_bytes(word)));
    }
    match (text.first_chunk(), text.last_chunk()) {
        (Some(&first), Some(&last)) => {
            zero(u64::from(u32::from_le_bytes(first)) << 32 | u64::from(u32::from_le_bytes(last)))
        }
        _ => text.contains(&0),
    }
}

#[cfg(test)]
mod tests;
