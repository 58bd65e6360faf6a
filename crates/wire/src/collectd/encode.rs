//! The sender's side: packets as collectd 5.12 makes them. A packet contains a field only when its value changes, and room
//! for a signature, even if it gets none.

use sha1::{Digest, Sha1};

use super::cdtime::Cdtime;
use super::identifier::Identifier;
use super::parts::{MESSAGE_MAX, NAME_MAX, Notification, part};
use super::users::{Keys, USER_MAX};
use super::value::{VALUES_MAX, Value};

/// Packet size in bytes; collectd's default of `MaxPacketSize`.
pub const PACKET_DEFAULT: usize = 1452;
/// Bytes that the sender reserves for a signature or encryption: 42, and the longest name of a user.
const SECURITY_ROOM: usize = 42 + USER_MAX;
/// Bytes of a part with a number.
const NUMBER_PART: usize = part::HEAD + 8;

/// Values of one series for [`Encoder::push`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueList<'a> {
    /// The name; each field has at most 127 bytes and no NUL.
    pub identifier: Identifier<'a>,
    /// Time of the values.
    pub time: Cdtime,
    /// Interval until the next values.
    pub interval: Cdtime,
    /// At most [`VALUES_MAX`].
    pub values: &'a [Value],
}

/// Result of [`Encoder::push`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The packet contains the values.
    Added,
    /// The values do not fit; the caller sends the packet and pushes them again.
    Full,
    /// No packet can contain the values: a name has too many bytes or a NUL, or there are too many values.
    Refused,
}

/// Fills one packet after the other.
#[derive(Clone, Debug)]
pub struct Encoder {
    payload: Vec<u8>,
    payload_max: usize,
    last: LastParts,
}

/// The latest value of each field in the packet.
#[derive(Clone, Debug, Default)]
struct LastParts {
    texts: [Vec<u8>; 5],
    time: Cdtime,
    interval: Cdtime,
}

impl Encoder {
    /// An encoder for packets of at most `packet_max` bytes, signature included.
    pub fn new(packet_max: usize) -> Encoder {
        let payload_max = packet_max
            .min(usize::from(u16::MAX))
            .saturating_sub(SECURITY_ROOM);
        Encoder {
            payload: Vec::with_capacity(payload_max),
            payload_max,
            last: LastParts::default(),
        }
    }

    /// The packet so far.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Begins the next packet.
    pub fn clear(&mut self) {
        self.payload.clear();
        self.last.time = Cdtime::ZERO;
        self.last.interval = Cdtime::ZERO;
        for text in &mut self.last.texts {
            text.clear();
        }
    }

    /// Adds values, and before them the fields that changed.
    pub fn push(&mut self, list: &ValueList) -> Pushed {
        let texts = texts(&list.identifier);
        if list.values.len() > VALUES_MAX || !texts.iter().all(|text| is_text(text, NAME_MAX)) {
            return Pushed::Refused;
        }
        if self.payload.len() + self.size_of(list, &texts) > self.payload_max {
            return match self.payload.is_empty() {
                true => Pushed::Refused,
                false => Pushed::Full,
            };
        }
        let (last, out) = (&mut self.last, &mut self.payload);
        for (at, (kind, text)) in TEXT_PARTS.into_iter().zip(texts).enumerate() {
            // collectd's order: host, time, interval, then the other names.
            if at == 1 {
                for (kind, last, now) in [
                    (part::TIME_HR, &mut last.time, list.time),
                    (part::INTERVAL_HR, &mut last.interval, list.interval),
                ] {
                    if *last != now {
                        put_number(out, kind, now.0);
                        *last = now;
                    }
                }
            }
            let last = &mut last.texts[at];
            if last != text {
                put_text(out, kind, text);
                last.clear();
                last.extend_from_slice(text);
            }
        }
        put_values(out, list.values);
        Pushed::Added
    }

    /// Bytes that [`Encoder::push`] adds.
    fn size_of(&self, list: &ValueList, texts: &[&[u8]; 5]) -> usize {
        let changed = self
            .last
            .texts
            .iter()
            .zip(texts)
            .filter(|(last, text)| last != *text);
        let names: usize = changed.map(|(_, text)| part::HEAD + text.len() + 1).sum();
        let numbers = usize::from(self.last.time != list.time)
            + usize::from(self.last.interval != list.interval);
        names + numbers * NUMBER_PART + values_size(list.values.len())
    }
}

const TEXT_PARTS: [u16; 5] = [
    part::HOST,
    part::PLUGIN,
    part::PLUGIN_INSTANCE,
    part::TYPE,
    part::TYPE_INSTANCE,
];

fn texts<'a>(identifier: &Identifier<'a>) -> [&'a [u8]; 5] {
    [
        identifier.host,
        identifier.plugin,
        identifier.plugin_instance,
        identifier.type_name,
        identifier.type_instance,
    ]
}

fn is_text(text: &[u8], max: usize) -> bool {
    text.len() <= max && !text.contains(&0)
}

fn put_head(out: &mut Vec<u8>, kind: u16, size: usize) {
    // The limits of texts, values and packets keep `size` within 16 bits.
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(size as u16).to_be_bytes());
}

fn put_number(out: &mut Vec<u8>, kind: u16, number: u64) {
    put_head(out, kind, NUMBER_PART);
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, kind: u16, text: &[u8]) {
    put_head(out, kind, part::HEAD + text.len() + 1);
    out.extend_from_slice(text);
    out.push(0);
}

fn values_size(count: usize) -> usize {
    part::HEAD + 2 + 9 * count
}

fn put_values(out: &mut Vec<u8>, values: &[Value]) {
    put_head(out, part::VALUES, values_size(values.len()));
    out.extend_from_slice(&(values.len() as u16).to_be_bytes());
    out.extend(values.iter().map(|value| value.kind().code()));
    for value in values {
        out.extend_from_slice(&value.cell());
    }
}

/// Appends a notification as a packet of its own. `false`: a text has a NUL or is too long; nothing is appended.
pub fn put_notification(out: &mut Vec<u8>, notification: &Notification) -> bool {
    let texts = texts(notification.identifier);
    let fits = texts.iter().all(|text| is_text(text, NAME_MAX));
    if !fits || !is_text(notification.message, MESSAGE_MAX) {
        return false;
    }
    put_number(out, part::TIME_HR, notification.time.0);
    put_number(out, part::SEVERITY, notification.severity.code());
    for (kind, text) in TEXT_PARTS.into_iter().zip(texts) {
        if !text.is_empty() {
            put_text(out, kind, text);
        }
    }
    put_text(out, part::MESSAGE, notification.message);
    true
}

/// Appends `payload` signed with a user's password; the user's name has 1 to 64 bytes.
pub fn sign(out: &mut Vec<u8>, user: &[u8], password: &[u8], payload: &[u8]) {
    let message = [user, payload].concat();
    let mac = Keys::new(password).sign(&message);
    put_head(out, part::SIGN_SHA256, part::HEAD + mac.len() + user.len());
    out.extend_from_slice(&mac);
    out.extend_from_slice(&message);
}

/// Appends `payload` encrypted with a user's password; the name has 1 to 64 bytes. Each packet needs a different `iv`.
pub fn encrypt(out: &mut Vec<u8>, user: &[u8], password: &[u8], iv: &[u8; 16], payload: &[u8]) {
    let checksum = Sha1::digest(payload);
    let crypted_size = checksum.len() + payload.len();
    let size = part::HEAD + 2 + user.len() + iv.len() + crypted_size;
    put_head(out, part::ENCR_AES256, size);
    out.extend_from_slice(&(user.len() as u16).to_be_bytes());
    out.extend_from_slice(user);
    out.extend_from_slice(iv);
    let from = out.len();
    out.extend_from_slice(&checksum);
    out.extend_from_slice(payload);
    Keys::new(password).crypt(iv, &mut out[from..]);
}

#[cfg(test)]
mod tests;
