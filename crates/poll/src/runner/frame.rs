//! Packets between the poller and the runner: requests have numbers, answers have values and sentences. The text of a
//! command is in none. The layout may differ between builds, as both ends are the same program.

use crate::threshold::{Action, Bound, Direction, Event, Value};

/// Longest packet, bytes.
pub(super) const PACKET_BYTES: usize = 8 << 10;
/// Longest line of a command's output, or of a message, bytes; longer ones are cut.
pub const LINE_BYTES: usize = 1 << 10;

/// A request of the poller. Its generation says which load of the configuration its numbers refer to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ask {
    /// Read the configuration again.
    Load {
        /// The generation from now on.
        generation: u32,
    },
    /// Run the command of a reading.
    Run {
        /// See [`Ask`].
        generation: u32,
        /// The reading's place in the configuration.
        number: u32,
    },
    /// Run a program of a threshold.
    Act {
        /// See [`Ask`].
        generation: u32,
        /// The event that the program is run for.
        action: Action,
    },
}

/// A message of the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Say {
    /// The configuration was read.
    Loaded {
        /// The generation of the request; 0 at the start.
        generation: u32,
        /// Hash of all commands and programs: the poller's own reading must give the same.
        fingerprint: u64,
    },
    /// Output of a command, once for each run. It is empty if the command cannot be run.
    Answer {
        /// The generation of the request.
        generation: u32,
        /// The number of the request.
        number: u32,
        /// The parsed output.
        answer: Answer,
    },
    /// A line to be logged.
    Line(Vec<u8>),
}

/// The four lines that a command prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Decimal numbers with the command's digits; `None`: unknown.
    pub values: [Option<Vec<u8>>; 2],
    /// How long the device has been up, in words.
    pub uptime: Option<Vec<u8>>,
    /// The device's name.
    pub name: Option<Vec<u8>>,
}

impl Ask {
    /// Appends the packet.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let head = |out: &mut Vec<u8>, kind: u8, generation: u32| {
            out.push(kind);
            out.extend(generation.to_le_bytes());
        };
        match self {
            Ask::Load { generation } => head(out, b'L', *generation),
            Ask::Run { generation, number } => {
                head(out, b'R', *generation);
                out.extend(number.to_le_bytes());
            }
            Ask::Act { generation, action } => {
                head(out, b'A', *generation);
                out.extend(action.target.to_le_bytes());
                let (value, percent) = match action.value {
                    Value::Rate(value) => (value, false),
                    Value::Percent(value) => (value, true),
                };
                out.extend([
                    u8::from(action.event == Event::Mended),
                    u8::from(action.direction == Direction::Out),
                    // There are four.
                    u8::try_from(action.bound.place()).unwrap_or(0),
                    u8::from(percent),
                ]);
                out.extend(value.to_bits().to_le_bytes());
            }
        }
    }

    /// Parses a packet; `None`: it is malformed.
    pub(super) fn of(packet: &[u8]) -> Option<Ask> {
        let mut rest = Rest(packet);
        let kind = rest.byte()?;
        let generation = rest.number()?;
        let ask = match kind {
            b'L' => Ask::Load { generation },
            b'R' => Ask::Run {
                generation,
                number: rest.number()?,
            },
            b'A' => Ask::Act {
                generation,
                action: rest.action()?,
            },
            _ => return None,
        };
        rest.0.is_empty().then_some(ask)
    }
}

impl Say {
    /// Appends the packet.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Say::Loaded {
                generation,
                fingerprint,
            } => {
                out.push(b'l');
                out.extend(generation.to_le_bytes());
                out.extend(fingerprint.to_le_bytes());
            }
            Say::Answer {
                generation,
                number,
                answer,
            } => {
                out.push(b'a');
                out.extend(generation.to_le_bytes());
                out.extend(number.to_le_bytes());
                let [input, output] = &answer.values;
                for text in [input, output, &answer.uptime, &answer.name] {
                    put_text(out, text.as_deref());
                }
            }
            Say::Line(line) => {
                out.push(b's');
                put_text(out, Some(line));
            }
        }
    }

    /// Parses a packet; `None`: it is malformed.
    pub(super) fn of(packet: &[u8]) -> Option<Say> {
        let mut rest = Rest(packet);
        let say = match rest.byte()? {
            b'l' => Say::Loaded {
                generation: rest.number()?,
                fingerprint: rest.long()?,
            },
            b'a' => Say::Answer {
                generation: rest.number()?,
                number: rest.number()?,
                answer: Answer {
                    values: [rest.text()?, rest.text()?],
                    uptime: rest.text()?,
                    name: rest.text()?,
                },
            },
            b's' => Say::Line(rest.text()??),
            _ => return None,
        };
        rest.0.is_empty().then_some(say)
    }
}

/// Appends the length plus one in two bytes, then the text; a length of 0 means `None`.
fn put_text(out: &mut Vec<u8>, text: Option<&[u8]>) {
    let text = text.map(|text| &text[..text.len().min(LINE_BYTES)]);
    let length = text.map_or(0, |text| text.len() as u16 + 1);
    out.extend(length.to_le_bytes());
    out.extend(text.unwrap_or_default());
}

/// The unparsed rest of a packet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<Option<Vec<u8>>> {
        let Some(length) = usize::from(self.take().map(u16::from_le_bytes)?).checked_sub(1) else {
            return Some(None);
        };
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        (length <= LINE_BYTES).then(|| Some(text.to_vec()))
    }

    fn action(&mut self) -> Option<Action> {
        let target = self.number()?;
        let event = match self.byte()? {
            0 => Event::Broken,
            1 => Event::Mended,
            _ => return None,
        };
        let direction = match self.byte()? {
            0 => Direction::In,
            1 => Direction::Out,
            _ => return None,
        };
        let bound = *Bound::ALL.get(usize::from(self.byte()?))?;
        let percent = self.byte()?;
        let value = f64::from_bits(self.long()?);
        let value = match percent {
            0 => Value::Rate(value),
            1 => Value::Percent(value),
            _ => return None,
        };
        Some(Action {
            target,
            event,
            direction,
            bound,
            value,
        })
    }
}

/// Fuzzes the parsers with any bytes: a valid packet is encoded to the same bytes.
#[cfg(any(test, feature = "testing"))]
pub(super) fn fuzz_frames(input: &[u8]) {
    let mut again = Vec::new();
    if let Some(ask) = Ask::of(input) {
        ask.put(&mut again);
    } else if let Some(say) = Say::of(input) {
        say.put(&mut again);
    } else {
        return;
    }
    assert_eq!(again, input);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets() -> Vec<Vec<u8>> {
        let action = Action {
            target: 3,
            event: Event::Mended,
            direction: Direction::Out,
            bound: Bound::Max,
            value: Value::Percent(12.5),
        };
        let rate = Action {
            event: Event::Broken,
            direction: Direction::In,
            bound: Bound::HwMax,
            value: Value::Rate(1e9),
            ..action
        };
        let answer = Answer {
            values: [Some(b"12".to_vec()), None],
            uptime: Some(Vec::new()),
            name: Some(vec![b'n'; LINE_BYTES]),
        };
        let (generation, number) = (7, 1 << 30);
        let asks = [
            Ask::Load { generation },
            Ask::Run { generation, number },
            Ask::Act { generation, action },
            Ask::Act {
                generation,
                action: rate,
            },
        ];
        let says = [
            Say::Loaded {
                generation,
                fingerprint: u64::MAX,
            },
            Say::Answer {
                generation,
                number,
                answer,
            },
            Say::Line(b"words".to_vec()),
        ];
        let mut packets = Vec::new();
        for ask in asks {
            let mut packet = Vec::new();
            ask.put(&mut packet);
            assert_eq!(Ask::of(&packet), Some(ask));
            packets.push(packet);
        }
        for say in says {
            let mut packet = Vec::new();
            say.put(&mut packet);
            assert_eq!(Say::of(&packet), Some(say));
            packets.push(packet);
        }
        packets
    }

    #[test]
    fn packets_come_back_and_nothing_shorter_or_longer_is_one() {
        for mut packet in packets() {
            assert!(packet.len() <= PACKET_BYTES);
            for cut in 0..packet.len() {
                let piece = &packet[..cut];
                assert!(
                    Ask::of(piece).is_none() && Say::of(piece).is_none(),
                    "{piece:?}"
                );
            }
            fuzz_frames(&packet);
            packet.push(0);
            assert!(Ask::of(&packet).is_none() && Say::of(&packet).is_none());
        }
    }

    #[test]
    fn a_long_text_is_cut_and_one_that_claims_to_be_longer_is_refused() {
        let mut packet = Vec::new();
        Say::Line(vec![b'x'; PACKET_BYTES]).put(&mut packet);
        assert_eq!(Say::of(&packet), Some(Say::Line(vec![b'x'; LINE_BYTES])));
        packet.push(b'x');
        packet[1..3].copy_from_slice(&(LINE_BYTES as u16 + 2).to_le_bytes());
        assert_eq!(Say::of(&packet), None);
    }
}
