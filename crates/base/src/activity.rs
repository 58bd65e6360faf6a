//! The activity of programs, on its way from the keeper, which collects it, to the recorder. A sample is a list of named
//! texts, in packets of a pipe. The recorder has rights that the keeper has not, so the recorder believes nothing: it drops
//! a sample whose packets do not all come in order. Neither end of the pipe interprets a text.

/// The longest packet: up to this length (PIPE_BUF) the kernel writes a packet to a pipe whole or not at all.
pub const PACKET_MAX: usize = 4096;
/// Names and texts of a sample, in bytes.
pub const SAMPLE_MAX: usize = 256 << 10;
/// A name, in bytes.
pub const NAME_MAX: usize = 64;
/// A text, in bytes: with its name it fits into one packet.
pub const TEXT_MAX: usize = PACKET_MAX - HEAD - 3 - NAME_MAX;

/// First bytes of a packet; the last one is the version.
const MAGIC: [u8; 4] = *b"KYA0";
/// Signature, number of the sample, number of the packet in the sample, count of its packets.
const HEAD: usize = 12;

/// Packs a sample. `texts` are sorted by their names, which differ; the caller guarantees the limits of names and texts.
pub fn packets(sample: u32, texts: &[(Vec<u8>, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for (name, text) in texts {
        assert!(
            name.len() <= NAME_MAX && text.len() <= TEXT_MAX,
            "BUG: an unlimited text"
        );
        let bytes = 3 + name.len() + text.len();
        let has_room = |packet: &Vec<u8>| packet.len() + bytes <= PACKET_MAX;
        if !packets.last().is_some_and(has_room) {
            packets.push(vec![0; HEAD]);
        }
        if let Some(packet) = packets.last_mut() {
            packet.extend(u8::try_from(name.len()));
            packet.extend_from_slice(name);
            packet.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
            packet.extend_from_slice(text);
        }
    }
    let count = u16::try_from(packets.len()).unwrap_or(u16::MAX);
    for (number, packet) in (0..count).zip(&mut packets) {
        packet[..4].copy_from_slice(&MAGIC);
        packet[4..8].copy_from_slice(&sample.to_le_bytes());
        packet[8..10].copy_from_slice(&number.to_le_bytes());
        packet[10..HEAD].copy_from_slice(&count.to_le_bytes());
    }
    packets
}

/// Result of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The packet was the last one of its sample, which is whole now.
    Whole,
    /// More of its sample is to come, or its beginning was lost.
    Part,
    /// No collector writes such a packet.
    Malformed,
}

/// Puts packets together.
#[derive(Debug, Default)]
pub struct Assembler {
    /// The sample under way, its packets, and which one is next; 0 packets: none.
    sample: u32,
    count: u16,
    next: u16,
    gathered: Texts,
    whole: Texts,
}

/// Texts of a sample, by rising names.
#[derive(Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    /// Where each name begins, where its text does, and where that ends.
    places: Vec<[usize; 3]>,
}

impl Texts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there are no texts.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Name and text number `n`; empty where there is none.
    pub fn get(&self, n: usize) -> (&[u8], &[u8]) {
        match self.places.get(n) {
            Some(&[name, text, end]) => (&self.bytes[name..text], &self.bytes[text..end]),
            None => (b"", b""),
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// `None`: the name does not rise, or there is no room.
    fn push(&mut self, name: &[u8], text: &[u8]) -> Option<()> {
        let last = self.places.len().checked_sub(1).map(|n| self.get(n).0);
        let rises = last.is_none_or(|last| last < name);
        if !rises || self.bytes.len() + name.len() + text.len() > SAMPLE_MAX {
            return None;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(text);
        let end = self.bytes.len();
        self.places.push([start, start + name.len(), end]);
        Some(())
    }
}

impl Assembler {
    /// Takes the next packet; names that `is_name` does not know are malformed.
    pub fn take(&mut self, packet: &[u8], is_name: impl Fn(&[u8]) -> bool) -> Taken {
        let taken = self.gather(packet, is_name);
        match taken {
            None => {
                self.count = 0;
                Taken::Malformed
            }
            Some(Taken::Whole) => {
                self.count = 0;
                std::mem::swap(&mut self.whole, &mut self.gathered);
                Taken::Whole
            }
            Some(taken) => taken,
        }
    }

    /// The last sample that was whole.
    pub fn texts(&self) -> &Texts {
        &self.whole
    }

    fn gather(&mut self, packet: &[u8], is_name: impl Fn(&[u8]) -> bool) -> Option<Taken> {
        let (head, mut rest) = packet.split_first_chunk::<HEAD>()?;
        let [a, b, c, d, s0, s1, s2, s3, n0, n1, c0, c1] = *head;
        let sample = u32::from_le_bytes([s0, s1, s2, s3]);
        let (number, count) = (u16::from_le_bytes([n0, n1]), u16::from_le_bytes([c0, c1]));
        if [a, b, c, d] != MAGIC || number >= count {
            return None;
        }
        if number == 0 {
            (self.sample, self.count, self.next) = (sample, count, 0);
            self.gathered.clear();
        }
        if (sample, count, number) != (self.sample, self.count, self.next) {
            // The packets before it were lost, because the pipe was full or because another process read them.
            self.count = 0;
            return Some(Taken::Part);
        }
        while !rest.is_empty() {
            let name = take(&mut rest, 1)?;
            let name = take(&mut rest, usize::from(*name.first()?))?;
            let length: [u8; 2] = take(&mut rest, 2)?.try_into().ok()?;
            let text = take(&mut rest, usize::from(u16::from_le_bytes(length)))?;
            if name.len() > NAME_MAX || !is_name(name) {
                return None;
            }
            self.gathered.push(name, text)?;
        }
        self.next += 1;
        Some(match self.next == self.count {
            true => Taken::Whole,
            false => Taken::Part,
        })
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_name(_: &[u8]) -> bool {
        true
    }

    fn texts() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
        let name = proptest::collection::vec(any::<u8>(), 0..8);
        let text = proptest::collection::vec(any::<u8>(), 0..1500);
        let map = proptest::collection::btree_map(name, text, 1..30);
        map.prop_map(|map| map.into_iter().collect())
    }

    fn owned(texts: &Texts) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = (0..texts.len()).map(|n| texts.get(n));
        all.map(|(name, text)| (name.to_vec(), text.to_vec()))
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_is_put_together_whatever_came_before(
            one in texts(), other in texts(), lost in any::<proptest::sample::Index>(), noise: Vec<u8>,
        ) {
            let mut assembler = Assembler::default();
            let first = packets(1, &one);
            let lost = lost.index(first.len());
            for (n, packet) in first.iter().enumerate() {
                prop_assert!(packet.len() <= PACKET_MAX);
                if n != lost {
                    prop_assert_eq!(assembler.take(packet, any_name), Taken::Part);
                }
            }
            assembler.take(&noise, any_name);
            prop_assert!(assembler.texts().is_empty(), "no half sample");
            for (sample, texts) in [(2, &one), (3, &other)] {
                let packets = packets(sample, texts);
                for (n, packet) in packets.iter().enumerate() {
                    let taken = assembler.take(packet, any_name);
                    prop_assert_eq!(taken == Taken::Whole, n + 1 == packets.len());
                }
                prop_assert_eq!(&owned(assembler.texts()), texts);
            }
        }

        #[test]
        fn any_bytes_are_taken_and_what_is_kept_has_its_limit(
            packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20),
            number in 0_u16..3, count in 0_u16..4,
        ) {
            let mut assembler = Assembler::default();
            for mut packet in packets {
                assembler.take(&packet, any_name);
                if packet.len() >= HEAD {
                    packet[..4].copy_from_slice(&MAGIC);
                    packet[8..10].copy_from_slice(&number.to_le_bytes());
                    packet[10..12].copy_from_slice(&count.to_le_bytes());
                }
                assembler.take(&packet, any_name);
            }
        }
    }

    #[test]
    fn what_no_collector_writes_is_malformed() {
        let good = &packets(
            7,
            &[
                (b"a".to_vec(), b"x".to_vec()),
                (b"b".to_vec(), b"y".to_vec()),
            ],
        )[0];
        assert_eq!(Assembler::default().take(good, any_name), Taken::Whole);
        for end in 0..good.len() {
            // Without its second text it is a packet as well.
            let expected = [HEAD, HEAD + 5].contains(&end);
            let taken = Assembler::default().take(&good[..end], any_name);
            assert_eq!(taken == Taken::Whole, expected, "{end} bytes");
        }
        let unknown = |name: &[u8]| name == b"a";
        assert_eq!(Assembler::default().take(good, unknown), Taken::Malformed);
        for (at, byte, why) in [
            (3, b'1', "a later version"),
            (10, 0, "a packet of none"),
            (13, b'c', "names that do not rise"),
            (13, b'b', "the same name twice"),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            let taken = Assembler::default().take(&bad, any_name);
            assert_eq!(taken, Taken::Malformed, "{why}");
        }
    }

    #[test]
    fn a_sample_has_a_limit() {
        let mut assembler = Assembler::default();
        let large = |n: u16| (n.to_be_bytes().to_vec(), vec![0; TEXT_MAX]);
        let fits = u16::try_from(SAMPLE_MAX / (TEXT_MAX + 2)).expect("a few");
        for (count, expected) in [(fits, Taken::Whole), (fits + 1, Taken::Malformed)] {
            let texts: Vec<_> = (0..count).map(large).collect();
            let taken = packets(1, &texts)
                .iter()
                .map(|packet| assembler.take(packet, any_name))
                .last();
            assert_eq!(taken, Some(expected), "{count} texts");
        }
    }
}
