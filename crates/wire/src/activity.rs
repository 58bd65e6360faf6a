//! Activity of publishing programs in a recording, docs/formats/recording.md: one text per publisher and one per busy slot,
//! each with lines of `key=value`. The keeper writes the texts, the recorder copies them, and a reader of recordings parses
//! them here. A reader skips unknown keys, so that later versions can add some.

use std::collections::BTreeMap;

use kymo_base::activity::TEXT_MAX;

use crate::keeper::{ActiveSlot, Life, Programs, Publisher};

/// Instance name of the text about all programs.
pub const ALL: &[u8] = b"now";
/// Bytes recorded of a command; the rest is cut.
pub const COMMAND_MAX: usize = 1024;

const LABEL: &[u8] = b"label.";
/// Hexadecimal digits of an epoch, which names a publisher's file.
const EPOCH_DIGITS: usize = 32;
/// Most numbers written for `blocked_by` and for `blocked_by_xids`.
const BLOCKERS_MAX: usize = 32;

/// Activity of all programs at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// When the keeper looked, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The publishers. Metrics are missing, as they are series; idle slots are only counted, in `slots_left_out`.
    pub programs: Programs,
}

/// The text about all programs: when the keeper looked, and how many samples the recorder has missed so far.
pub fn all_text(at_ns: u64, dropped: u64) -> Vec<u8> {
    let mut text = Lines::default();
    text.number(b"at", at_ns);
    text.number(b"dropped", dropped);
    text.0
}

/// The text of a publisher, with the number of its slots that have no text of their own.
pub fn publisher_text(publisher: &Publisher) -> Vec<u8> {
    let mut text = Lines::default();
    text.put(b"name", &publisher.name);
    text.put(b"user", &publisher.user);
    text.number(b"uid", publisher.uid.into());
    text.number(b"pid", publisher.pid.into());
    text.number(b"started", publisher.started_ns);
    if publisher.life == Life::Ended {
        text.number(b"ended", 1);
    }
    text.number(b"used", publisher.slots_used.into());
    text.number(b"others", publisher.slots_left_out.into());
    text.labels(&publisher.labels);
    text.0
}

/// The text of a slot. Keys whose values change least from one text to the next come first.
pub fn slot_text(slot: &ActiveSlot) -> Vec<u8> {
    let mut text = Lines::default();
    let (command, rest) = slot.text.split_at(slot.text.len().min(COMMAND_MAX));
    text.put(b"text", command);
    if slot.is_cut || !rest.is_empty() {
        text.number(b"cut", 1);
    }
    text.number(b"kind", slot.kind.into());
    text.number(b"state", slot.state.into());
    text.number(b"pid", slot.pid.into());
    text.number(b"since", slot.since_ns);
    text.number(b"commands", slot.commands);
    if slot.xid != 0 {
        text.number(b"xid", slot.xid.into());
    }
    if slot.leader != 0 {
        text.number(b"leader", slot.leader.into());
    }
    if !slot.wait.is_empty() {
        text.put(b"wait", &slot.wait);
    }
    text.list(b"blocked_by", &slot.blocked_by);
    text.list(b"blocked_by_xids", &slot.blocked_by_xids);
    text.labels(&slot.labels);
    text.0
}

/// Reads pairs of name and text, in any order. `None`: no text says when the keeper looked.
pub fn read<'a>(texts: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<Recorded> {
    let (mut at_ns, mut dropped) = (None, 0);
    let mut publishers: BTreeMap<&[u8], Publisher> = BTreeMap::new();
    for (name, text) in texts {
        if name == ALL {
            for (key, value) in lines(text) {
                match &key[..] {
                    b"at" => at_ns = number(&value),
                    b"dropped" => dropped = number(&value).unwrap_or(0),
                    _ => {}
                }
            }
            continue;
        }
        let (epoch, slot) = name.split_at(name.len().min(EPOCH_DIGITS));
        let publisher = publishers.entry(epoch).or_default();
        match slot.strip_prefix(b"/") {
            Some(digits) => publisher.slots.push(read_slot(digits, text)),
            None => read_publisher(publisher, text),
        }
    }
    let mut publishers: Vec<Publisher> = publishers.into_values().collect();
    publishers
        .sort_by(|a, b| (&a.name, &a.user, a.started_ns).cmp(&(&b.name, &b.user, b.started_ns)));
    for publisher in &mut publishers {
        publisher.slots.sort_by_key(|slot| slot.number);
    }
    Some(Recorded {
        at_ns: at_ns?,
        programs: Programs {
            publishers,
            dropped,
            ..Programs::default()
        },
    })
}

fn read_publisher(publisher: &mut Publisher, text: &[u8]) {
    for (key, value) in lines(text) {
        match &key[..] {
            b"name" => publisher.name = value,
            b"user" => publisher.user = value,
            b"uid" => publisher.uid = small(&value),
            b"pid" => publisher.pid = small(&value),
            b"started" => publisher.started_ns = number(&value).unwrap_or(0),
            b"ended" => publisher.life = Life::Ended,
            b"used" => publisher.slots_used = small(&value),
            b"others" => publisher.slots_left_out = small(&value),
            _ => take_label(&mut publisher.labels, &key, value),
        }
    }
}

fn read_slot(digits: &[u8], text: &[u8]) -> ActiveSlot {
    let mut slot = ActiveSlot {
        number: small(digits),
        ..ActiveSlot::default()
    };
    for (key, value) in lines(text) {
        match &key[..] {
            b"text" => slot.text = value,
            b"cut" => slot.is_cut = true,
            b"kind" => slot.kind = u8::try_from(small(&value)).unwrap_or(0),
            b"state" => slot.state = u8::try_from(small(&value)).unwrap_or(0),
            b"pid" => slot.pid = small(&value),
            b"since" => slot.since_ns = number(&value).unwrap_or(0),
            b"commands" => slot.commands = number(&value).unwrap_or(0),
            b"leader" => slot.leader = small(&value),
            b"wait" => slot.wait = value,
            b"xid" => slot.xid = small(&value),
            b"blocked_by" => slot.blocked_by = list(&value),
            b"blocked_by_xids" => slot.blocked_by_xids = list(&value),
            _ => take_label(&mut slot.labels, &key, value),
        }
    }
    slot
}

/// Adds a label; skips any other key.
fn take_label(labels: &mut Vec<(Vec<u8>, Vec<u8>)>, key: &[u8], value: Vec<u8>) {
    if let Some(name) = key.strip_prefix(LABEL) {
        labels.push((name.to_vec(), value));
    }
}

/// A text built line by line. A line that would exceed [`TEXT_MAX`] is left out.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn number(&mut self, key: &[u8], value: u64) {
        self.put(key, value.to_string().as_bytes());
    }

    fn labels(&mut self, labels: &[(Vec<u8>, Vec<u8>)]) {
        for (name, value) in labels {
            self.put(&[LABEL, name].concat(), value);
        }
    }

    /// Writes no line for an empty list.
    fn list(&mut self, key: &[u8], numbers: &[u32]) {
        if !numbers.is_empty() {
            let numbers = numbers.iter().take(BLOCKERS_MAX);
            let numbers: Vec<String> = numbers.map(u32::to_string).collect();
            self.put(key, numbers.join(",").as_bytes());
        }
    }

    /// Escapes newlines, backslashes, and in keys `=`, because a newline ends a line and `=` ends a key.
    fn put(&mut self, key: &[u8], value: &[u8]) {
        let start = self.0.len();
        self.escaped(key, b'=');
        self.0.push(b'=');
        self.escaped(value, b'\n');
        self.0.push(b'\n');
        if self.0.len() > TEXT_MAX {
            self.0.truncate(start);
        }
    }

    fn escaped(&mut self, text: &[u8], end: u8) {
        for &byte in text {
            match byte {
                b'\n' => self.0.extend(b"\\n"),
                b'\\' => self.0.extend(b"\\\\"),
                b'=' if end == b'=' => self.0.extend(b"\\e"),
                byte => self.0.push(byte),
            }
        }
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|&byte| byte == b'=')?;
        Some((unescaped(&line[..at]), unescaped(&line[at + 1..])))
    })
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        out.push(match (byte, byte == b'\\') {
            (_, true) => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'e') => b'=',
                _ => b'\\',
            },
            (byte, false) => byte,
        });
    }
    out
}

fn list(text: &[u8]) -> Vec<u32> {
    text.split(|&byte| byte == b',').map(small).collect()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn small(text: &[u8]) -> u32 {
    number(text)
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(0)
}

/// Reads any bytes as texts of a recording; writing and reading the result again must not change it.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_activity(input: &[u8]) {
    let mut texts: Vec<(&[u8], &[u8])> = vec![(ALL, b"at=1\n")];
    for (n, text) in input.split(|&byte| byte == 0).enumerate() {
        texts.push(match n {
            0 => (b"00000000000000000000000000000001", text),
            _ => (b"00000000000000000000000000000001/7", text),
        });
    }
    texts.truncate(3);
    let read_again = |recorded: &Recorded| {
        let publisher = &recorded.programs.publishers[0];
        let texts = [
            (ALL.to_vec(), all_text(1, 0)),
            (texts[1].0.to_vec(), publisher_text(publisher)),
        ];
        let slots = publisher.slots.iter().map(slot_text);
        let slots = slots.map(|text| (b"00000000000000000000000000000001/7".to_vec(), text));
        let all: Vec<_> = texts.into_iter().chain(slots).collect();
        assert!(all.iter().all(|(_, text)| text.len() <= TEXT_MAX));
        read(all.iter().map(|(name, text)| (&name[..], &text[..])))
    };
    let Some(recorded) = read(texts.iter().copied()) else {
        unreachable!("BUG: the moment is there");
    };
    let once = read_again(&recorded).unwrap_or_default();
    // The first write already drops everything that has no room, so that the second one drops nothing.
    assert_eq!(read_again(&once).as_ref(), Some(&once));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &[u8] = b"00000000000000000000000000000001";

    fn slot(text: &[u8]) -> ActiveSlot {
        ActiveSlot {
            number: 12,
            pid: 2,
            xid: 14,
            leader: 3,
            state: 2,
            kind: 1,
            since_ns: 4,
            commands: 5,
            labels: vec![(b"a=b\n\\".to_vec(), b"c=d\n\\n".to_vec())],
            text: text.to_vec(),
            is_cut: false,
            wait: b"Lock:relation".to_vec(),
            blocked_by: vec![6, 7],
            blocked_by_xids: vec![15],
        }
    }

    fn publisher(slots: Vec<ActiveSlot>) -> Publisher {
        Publisher {
            name: b"example".to_vec(),
            labels: vec![(b"port".to_vec(), b"5432".to_vec())],
            user: b"ada".to_vec(),
            uid: 1000,
            pid: 8,
            started_ns: 9,
            life: Life::Ended,
            slots_used: 10,
            slots_left_out: 13,
            slots,
            ..Publisher::default()
        }
    }

    fn round(publisher: &Publisher) -> Recorded {
        let mut texts = vec![
            (ALL.to_vec(), all_text(77, 3)),
            (ONE.to_vec(), publisher_text(publisher)),
        ];
        texts.extend(publisher.slots.iter().map(|slot| {
            let name = [ONE, b"/", slot.number.to_string().as_bytes()].concat();
            (name, slot_text(slot))
        }));
        let texts = texts.iter().rev();
        read(texts.map(|(name, text)| (&name[..], &text[..]))).expect("a moment")
    }

    #[test]
    fn what_is_written_is_read() {
        let mut second = slot(b"");
        second.number = 13;
        let publisher = publisher(vec![slot(b"SELECT a\nFROM b = ?"), second]);
        let recorded = round(&publisher);
        assert_eq!((recorded.at_ns, recorded.programs.dropped), (77, 3));
        assert_eq!(recorded.programs.publishers, [publisher]);
    }

    #[test]
    fn a_later_key_is_skipped_and_without_a_moment_nothing_is_known() {
        let texts: [(&[u8], &[u8]); 3] = [
            (ALL, b"at=5\nlater=1\n"),
            (ONE, b"name=x\nlater\nlater=2\n"),
            (&[ONE, b"/3"].concat(), b"text=COMMIT\nlater=y\npid=z\n"),
        ];
        let recorded = read(texts.into_iter()).expect("a moment");
        let [publisher] = &recorded.programs.publishers[..] else {
            panic!("{recorded:?}");
        };
        assert_eq!((&publisher.name[..], publisher.slots.len()), (&b"x"[..], 1));
        let slot = &publisher.slots[0];
        assert_eq!(
            (slot.number, slot.pid, &slot.text[..]),
            (3, 0, &b"COMMIT"[..])
        );
        assert_eq!(read(texts.into_iter().skip(1)), None);
    }

    #[test]
    fn a_command_has_its_limit_and_a_text_too() {
        for (bytes, is_cut) in [(COMMAND_MAX, false), (COMMAND_MAX + 1, true)] {
            let recorded = round(&publisher(vec![slot(&vec![b'\n'; bytes])]));
            let slot = &recorded.programs.publishers[0].slots[0];
            assert_eq!((slot.text.len(), slot.is_cut), (COMMAND_MAX, is_cut));
        }
        let mut large = slot(b"SELECT");
        large.labels = (0..200).map(|n| (vec![b'k', n], vec![b'\n'; 60])).collect();
        large.blocked_by = (0..1000).collect();
        let text = slot_text(&large);
        assert!(text.len() <= TEXT_MAX && text.len() > TEXT_MAX - 200);
    }

    proptest! {
        #[test]
        fn any_texts_are_read(input: Vec<u8>, lines in "(text|label.a|pid|xid|cut|wait|blocked_by|blocked_by_xids|x)=[a-z0-9,\\\\=\n\\x00]{0,30}") {
            fuzz_activity(&input);
            fuzz_activity(lines.as_bytes());
        }
    }
}
