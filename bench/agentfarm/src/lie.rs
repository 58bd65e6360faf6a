//! Wrong replies of a device.

use kymo_wire::snmp::{Message, MessageHead, ObjectValue, put_message, put_varbind};

/// The fault in each reply of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Another id.
    Id,
    /// Other names: those of distant instances,
    /// which the request did not have.
    Names,
    /// Another community.
    Community,
    /// Another source address.
    Address,
    /// The last varbind is missing.
    Fewer,
    /// The last varbind is repeated.
    More,
    /// The varbinds are in reverse order.
    Reversed,
    /// Texts in the place of numbers.
    Texts,
    /// A table never ends: GETNEXT always finds one more.
    Endless,
    /// GETNEXT returns the requested name itself.
    Stuck,
    /// The bytes are no BER, or no response.
    Broken(Broken),
}

/// The fault in the bytes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// No byte at all.
    Empty,
    /// Half of the reply.
    Half,
    /// The last byte is missing.
    Cut,
    /// One byte after the end.
    Trailing,
    /// A stated length of 4 GB.
    Endless,
    /// An indefinite length.
    Indefinite,
    /// Version 3.
    Version3,
    /// A trap.
    Trap,
    /// The last value is longer than its varbind.
    Value,
    /// Numbers of 0 bytes.
    NoDigits,
    /// Numbers of 12 bytes.
    Digits,
    /// Random bytes.
    Noise,
}

impl Broken {
    /// All variants, with their words.
    pub const ALL: [(&str, Broken); 12] = [
        ("empty", Broken::Empty),
        ("half", Broken::Half),
        ("cut", Broken::Cut),
        ("trailing", Broken::Trailing),
        ("endless", Broken::Endless),
        ("indefinite", Broken::Indefinite),
        ("version3", Broken::Version3),
        ("trap", Broken::Trap),
        ("value", Broken::Value),
        ("no-digits", Broken::NoDigits),
        ("digits", Broken::Digits),
        ("noise", Broken::Noise),
    ];
}

impl Lie {
    /// All but the broken ones, with their words.
    pub const ALL: [(&str, Lie); 10] = [
        ("id", Lie::Id),
        ("names", Lie::Names),
        ("community", Lie::Community),
        ("address", Lie::Address),
        ("fewer", Lie::Fewer),
        ("more", Lie::More),
        ("reversed", Lie::Reversed),
        ("texts", Lie::Texts),
        ("endless", Lie::Endless),
        ("stuck", Lie::Stuck),
    ];

    /// The wrong reply. `random` is any number.
    pub(crate) fn spoil(self, reply: &[u8], random: u64) -> Vec<u8> {
        match self {
            Lie::Broken(broken) => broken.spoil(reply, random),
            Lie::Address | Lie::Endless | Lie::Stuck => reply.to_vec(),
            Lie::Id => written(reply, |head, _| head.id ^= 1),
            Lie::Community => written(reply, |head, _| head.community = b"other"),
            Lie::Names => written(reply, |_, varbinds| {
                varbinds.iter_mut().for_each(other_name)
            }),
            Lie::Fewer => written(reply, |_, varbinds| drop(varbinds.pop())),
            Lie::More => written(reply, |_, varbinds| {
                varbinds.extend(varbinds.last().cloned())
            }),
            Lie::Reversed => written(reply, |_, varbinds| varbinds.reverse()),
            Lie::Texts => written(reply, |_, varbinds| {
                let no_number = ObjectValue::OctetString(b"n/a");
                varbinds
                    .iter_mut()
                    .for_each(|(_, value)| *value = no_number);
            }),
        }
    }
}

type Varbind<'a> = (Vec<u8>, ObjectValue<'a>);

/// The reply after a change, encoded again.
fn written(reply: &[u8], change: impl FnOnce(&mut MessageHead, &mut Vec<Varbind>)) -> Vec<u8> {
    let Ok(Message { mut head, varbinds }) = Message::decode(reply) else {
        return reply.to_vec();
    };
    let read = varbinds.flatten();
    let mut varbinds = read.map(|(name, value)| (name.to_vec(), value)).collect();
    change(&mut head, &mut varbinds);
    let (mut list, mut out) = (Vec::new(), Vec::new());
    for (name, value) in varbinds {
        put_varbind(&mut list, &name, value);
    }
    put_message(&mut out, &head, &list);
    out
}

fn other_name((name, _): &mut Varbind) {
    if let Some(last) = name.last_mut() {
        *last = (*last + 0x40) % 0x80;
    }
}

impl Broken {
    fn spoil(self, reply: &[u8], random: u64) -> Vec<u8> {
        let whole = reply.to_vec();
        match self {
            Broken::Empty => Vec::new(),
            Broken::Half => whole[..whole.len() / 2].to_vec(),
            Broken::Cut => whole[..whole.len() - 1].to_vec(),
            Broken::Trailing => [&whole[..], &[0]].concat(),
            Broken::Endless => with_length(&whole, &[0x84, 0xff, 0xff, 0xff, 0xff]),
            Broken::Indefinite => with_length(&[&whole[..], &[0, 0]].concat(), &[0x80]),
            Broken::Version3 => changed(whole, version_at(reply), 3),
            Broken::Trap => {
                let community = Message::decode(reply).map_or(0, |read| read.head.community.len());
                changed(whole, version_at(reply) + 3 + community, 0xa7)
            }
            Broken::Value => {
                let at = last_length_at(reply);
                changed(whole, at, 0x7f)
            }
            Broken::NoDigits => with_numbers(reply, &[]),
            Broken::Digits => with_numbers(reply, &[0xff; 12]),
            Broken::Noise => {
                let mut state = random | 1;
                let noise = std::iter::repeat_with(|| {
                    state = crate::traffic::scatter(state);
                    state as u8
                });
                noise.take(whole.len()).collect()
            }
        }
    }
}

fn changed(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    if let Some(place) = bytes.get_mut(at) {
        *place = byte;
    }
    bytes
}

/// Bytes of the message's tag and length.
fn head_bytes(whole: &[u8]) -> usize {
    match whole[1] {
        long @ 0x81.. => 2 + usize::from(long & 0x7f),
        _ => 2,
    }
}

fn with_length(whole: &[u8], length: &[u8]) -> Vec<u8> {
    [&whole[..1], length, &whole[head_bytes(whole)..]].concat()
}

/// Offset of the version: after the header and `02 01`.
fn version_at(whole: &[u8]) -> usize {
    head_bytes(whole) + 2
}

fn last_length_at(whole: &[u8]) -> usize {
    let last = Message::decode(whole)
        .ok()
        .and_then(|read| read.varbinds.flatten().last());
    let mut value = Vec::new();
    if let Some((name, last)) = last {
        put_varbind(&mut value, name, last);
        // 30 LENGTH 06 LENGTH NAME TAG LENGTH
        return whole.len() - value.len() + 4 + name.len() + 1;
    }
    whole.len() - 1
}

fn with_numbers(reply: &[u8], content: &'static [u8]) -> Vec<u8> {
    written(reply, |_, varbinds| {
        for (_, value) in varbinds {
            let tag = match value {
                ObjectValue::Counter32(_) => 0x41,
                ObjectValue::Gauge32(_) => 0x42,
                ObjectValue::TimeTicks(_) => 0x43,
                ObjectValue::Counter64(_) => 0x46,
                ObjectValue::Integer(_) => 0x02,
                _ => continue,
            };
            *value = ObjectValue::Other { tag, content };
        }
    })
}
