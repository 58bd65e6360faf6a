//! Sends the activity of programs to the recorder, once a second while it changes. The collector never waits for the pipe: a
//! sample without room is dropped and counted. Texts have neither literals nor secrets, as in answers.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use kymo_base::activity::{SAMPLE_MAX, packets};
use kymo_sys::packet_pipe::put_packet;
use kymo_wire::activity::{ALL, all_text, publisher_text, slot_text};
use kymo_wire::keeper::{ActiveSlot, Blockers, Publisher};

use super::publisher::{Moment, is_at_work};
use crate::shares::shares;

/// Shortest time between two samples of one a second, which come a little early or late.
const EVERY_NS: u64 = 900_000_000;
/// Time after which an unchanged sample is sent again while something is at work: the recorder trusts a sample only for a while.
const AGAIN_NS: u64 = 10_000_000_000;
/// Time after which an unchanged sample is sent again while nothing is at work: a restarted recorder needs one.
const AGAIN_IDLE_NS: u64 = 60_000_000_000;

type Texts = Vec<(Vec<u8>, Vec<u8>)>;

/// The pipe, and the last sample that was sent.
pub(super) struct Recording {
    pipe: OwnedFd,
    sample: u32,
    /// Times of the last look at the activity and of the last sample sent.
    looked_ns: u64,
    sent_ns: u64,
    /// The last sample without its time; `None`: the next sample must be sent.
    last: Option<Texts>,
    dropped: u64,
    is_news: bool,
}

impl Recording {
    pub(super) fn new(pipe: OwnedFd) -> Recording {
        Recording {
            pipe,
            sample: 0,
            looked_ns: 0,
            sent_ns: 0,
            last: None,
            dropped: 0,
            is_news: false,
        }
    }

    /// Number of dropped samples.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True once, after the first dropped sample.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.looked_ns == 0 || now.mono_ns.saturating_sub(self.looked_ns) >= EVERY_NS
    }

    /// Sends the activity of these publishers, by the epochs of their files, if it has changed or is due again.
    pub(super) fn say(&mut self, publishers: Vec<([u8; 16], Publisher)>, now: Moment) {
        self.looked_ns = now.mono_ns;
        let texts = texts(publishers);
        let works = texts.iter().any(|(name, _)| name.contains(&b'/'));
        let again_ns = match (texts.is_empty(), works) {
            (true, _) => u64::MAX,
            (false, true) => AGAIN_NS,
            (false, false) => AGAIN_IDLE_NS,
        };
        let is_same = self.last.as_ref() == Some(&texts);
        if is_same && now.mono_ns.saturating_sub(self.sent_ns) < again_ns {
            return;
        }
        let at_ns = u64::try_from(now.real_ns).unwrap_or(0);
        // This name sorts behind all epochs, which consist of digits and a to f.
        let all = (ALL.to_vec(), all_text(at_ns, self.dropped));
        let mut sample = texts;
        sample.push(all);
        self.sample = self.sample.wrapping_add(1);
        let packets = packets(self.sample, &sample);
        if packets.iter().all(|packet| put_packet(&self.pipe, packet)) {
            sample.pop();
            (self.last, self.sent_ns) = (Some(sample), now.mono_ns);
        } else {
            self.is_news |= self.dropped == 0;
            self.dropped += 1;
            self.last = None;
        }
    }
}

/// Texts of each publisher, and of each slot that is at work or holds others up, sorted by name. If there is no room for all,
/// each user has a share, because publishers choose the names.
fn texts(publishers: Vec<([u8; 16], Publisher)>) -> Texts {
    let mut wanted = BTreeMap::<u32, usize>::new();
    let sized = publishers.into_iter().map(|(epoch, mut publisher)| {
        let name: String = epoch.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut slots = std::mem::take(&mut publisher.slots);
        let blockers = Blockers::of(&slots);
        let is_blocker = |slot: &ActiveSlot| blockers.have(slot.pid, slot.xid);
        // Slots that hold others up get room first.
        slots.sort_by_key(|slot| !is_blocker(slot));
        let slots = slots.into_iter().map(|slot| {
            let is_said = is_at_work(slot.state) || is_blocker(&slot);
            let text = is_said.then(|| slot_text(&slot));
            (format!("{name}/{}", slot.number).into_bytes(), text)
        });
        let slots: Vec<(Vec<u8>, Option<Vec<u8>>)> = slots.collect();
        let bytes = slots.iter().map(|(name, text)| match text {
            Some(text) => name.len() + text.len(),
            None => 0,
        });
        let head = name.len() + publisher_text(&publisher).len() + 8;
        *wanted.entry(publisher.uid).or_default() += head + bytes.sum::<usize>();
        (name.into_bytes(), head, publisher, slots)
    });
    let sized: Vec<_> = sized.collect();
    // 128 bytes are left for the text about all publishers, which comes last.
    let bytes: Vec<usize> = wanted.values().copied().collect();
    let rooms = shares(&bytes, SAMPLE_MAX - 128);
    let mut rooms: BTreeMap<u32, usize> = wanted.into_keys().zip(rooms).collect();
    let mut texts = Texts::new();
    for (name, head, mut publisher, slots) in sized {
        let room = rooms.entry(publisher.uid).or_default();
        if head > *room {
            continue;
        }
        *room -= head;
        for (name, text) in slots {
            match text.filter(|text| name.len() + text.len() <= *room) {
                Some(text) => {
                    *room -= name.len() + text.len();
                    texts.push((name, text));
                }
                None => publisher.slots_left_out += 1,
            }
        }
        texts.push((name, publisher_text(&publisher)));
    }
    texts.sort();
    // A file's name may equal the id of a server that has no file.
    texts.dedup_by(|a, b| a.0 == b.0);
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::activity::{Assembler, PACKET_MAX, Taken};
    use kymo_sys::packet_pipe::{packet_pipe, take_packet};
    use kymo_wire::activity::{COMMAND_MAX, Recorded, read};
    use kymo_wire::keeper::PREPARED;

    const SECOND_NS: u64 = 1_000_000_000;

    fn slot(number: u32, state: u8, commands: u64, text: &[u8]) -> ActiveSlot {
        ActiveSlot {
            number,
            pid: 1,
            state,
            kind: 1,
            since_ns: 5,
            commands,
            text: text.to_vec(),
            ..ActiveSlot::default()
        }
    }

    fn publisher(number: u8, slots: Vec<ActiveSlot>) -> ([u8; 16], Publisher) {
        let publisher = Publisher {
            name: vec![b'p', number],
            user: b"ada".to_vec(),
            uid: 1,
            pid: 1,
            started_ns: number.into(),
            slots_used: 9,
            slots,
            ..Publisher::default()
        };
        ([number; 16], publisher)
    }

    fn at(seconds: u64) -> Moment {
        Moment {
            mono_ns: seconds * SECOND_NS,
            real_ns: i64::try_from(seconds * SECOND_NS).expect("a time"),
        }
    }

    /// The sample that the other end reads; `None`: no complete one.
    fn received(pipe: &OwnedFd, assembler: &mut Assembler) -> Option<Recorded> {
        let mut packet = [0; PACKET_MAX];
        let mut received = None;
        while let Some(bytes) = take_packet(pipe, &mut packet) {
            if assembler.take(&packet[..bytes], |_| true) == Taken::Whole {
                let texts = assembler.texts();
                received = read((0..texts.len()).map(|n| texts.get(n)));
            }
        }
        received
    }

    #[test]
    fn what_changes_is_said_and_what_goes_on_is_said_again() {
        let (read, write) = packet_pipe(1 << 20).expect("a pipe");
        let (mut recording, mut assembler) = (Recording::new(write), Assembler::default());
        let busy = |commands| {
            vec![
                publisher(2, vec![slot(0, 1, 9, b"COMMIT")]),
                publisher(
                    1,
                    vec![
                        slot(3, 2, commands, b"SELECT ?"),
                        slot(10, 3, 1, b"BEGIN"),
                        slot(11, 1, 1, b"x"),
                    ],
                ),
            ]
        };
        let mut hear = |recording: &mut Recording, seconds, publishers| {
            recording.say(publishers, at(seconds));
            received(&read, &mut assembler)
        };
        assert!(
            hear(&mut recording, 1, Vec::new()).is_some(),
            "who starts says so"
        );
        assert_eq!(hear(&mut recording, 9000, Vec::new()), None);
        let recorded = hear(&mut recording, 9001, busy(7)).expect("a change");
        assert_eq!(recorded.at_ns, 9001 * SECOND_NS);
        let publishers = recorded.programs.publishers;
        let numbers: Vec<Vec<u32>> = publishers
            .iter()
            .map(|each| each.slots.iter().map(|slot| slot.number).collect())
            .collect();
        assert_eq!(numbers, [vec![3, 10], vec![]], "what waits is not said");
        let others: Vec<u32> = publishers.iter().map(|each| each.slots_left_out).collect();
        assert_eq!(others, [1, 1]);
        assert_eq!(hear(&mut recording, 9010, busy(7)), None, "nothing changed");
        assert!(hear(&mut recording, 9011, busy(7)).is_some(), "it goes on");
        assert!(hear(&mut recording, 9012, busy(8)).is_some());
        let idle = || vec![publisher(1, vec![slot(3, 1, 9, b"SELECT ?")])];
        assert!(hear(&mut recording, 9013, idle()).is_some(), "the last one");
        assert_eq!(hear(&mut recording, 9072, idle()), None);
        assert!(hear(&mut recording, 9073, idle()).is_some());
    }

    /// An idle session with a lock was left out, because it is not at work.
    #[test]
    fn who_holds_others_up_is_said_first_whatever_the_state() {
        let filler = (10..1000).map(|number| slot(number, 2, 1, &[b'x'; COMMAND_MAX]));
        let mut slots: Vec<_> = filler.collect();
        let process = |number, pid, state| ActiveSlot {
            pid,
            ..slot(number, state, 1, b"SELECT ?")
        };
        slots.extend([
            process(1000, 20, 1),
            process(1001, 21, 0),
            process(1002, 22, 1),
        ]);
        slots.push(ActiveSlot {
            xid: 731,
            ..process(1003, 0, PREPARED)
        });
        slots[0].blocked_by = vec![20, 21];
        slots[0].blocked_by_xids = vec![731];
        let mut texts = texts(vec![publisher(1, slots)]);
        texts.push((ALL.to_vec(), all_text(1, 0)));
        let recorded = read(texts.iter().map(|(name, text)| (&name[..], &text[..])));
        let publisher = &recorded.expect("a sample").programs.publishers[0];
        let kept: Vec<u32> = publisher.slots.iter().map(|slot| slot.number).collect();
        assert!(
            kept.len() > 100 && kept.ends_with(&[1000, 1001, 1003]),
            "{kept:?}"
        );
    }

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (read, write) = packet_pipe(64 << 10).expect("a pipe");
        let (mut recording, mut assembler) = (Recording::new(write), Assembler::default());
        let busy = |commands| {
            let slots = (0..20).map(|n| slot(n, 2, commands, &[b'x'; COMMAND_MAX + 1]));
            vec![publisher(1, slots.collect())]
        };
        for seconds in 1..50 {
            recording.say(busy(seconds), at(seconds));
        }
        let dropped = recording.dropped();
        assert!((1..49).contains(&dropped), "{dropped} dropped");
        assert!(recording.take_news() && !recording.take_news());
        let recorded = received(&read, &mut assembler).expect("what came before");
        assert_eq!(
            recorded.programs.publishers[0].slots[0].commands,
            49 - dropped
        );
        // The incomplete sample in the pipe does not count.
        recording.say(busy(50), at(50));
        let recorded = received(&read, &mut assembler).expect("it is read again");
        assert_eq!(recorded.programs.dropped, dropped);
        let slot = &recorded.programs.publishers[0].slots[19];
        assert_eq!(
            (slot.commands, slot.is_cut, slot.text.len()),
            (50, true, COMMAND_MAX)
        );
        assert!(!recording.take_news(), "said once");
    }

    /// Publishers once got room in a sample in the order of their epochs, which their owners choose.
    #[test]
    fn each_user_has_a_share_of_a_sample() {
        let busy = |number, uid, count| {
            let slots = (0..count).map(|n| slot(n, 2, 1, &[b'x'; COMMAND_MAX]));
            let (epoch, mut publisher) = publisher(number, slots.collect());
            publisher.uid = uid;
            (epoch, publisher)
        };
        for greedy in [0..1, 0..100] {
            let mut all: Vec<_> = greedy.map(|number| busy(number, 1, 1000)).collect();
            all.extend([busy(200, 2, 20), busy(201, 3, 20)]);
            let mut texts = texts(all);
            let bytes: usize = texts
                .iter()
                .map(|(name, text)| name.len() + text.len())
                .sum();
            assert!(bytes <= SAMPLE_MAX, "{bytes} bytes");
            texts.push((ALL.to_vec(), all_text(1, 0)));
            let recorded = read(texts.iter().map(|(name, text)| (&name[..], &text[..])));
            let recorded = recorded.expect("a sample").programs.publishers;
            for name in [200, 201] {
                let found = recorded.iter().find(|each| each.name == [b'p', name]);
                assert_eq!(found.expect("is there").slots.len(), 20);
            }
            let first = recorded.iter().find(|each| each.name[1] < 200);
            assert!(first.expect("is there").slots.len() > 100);
        }
    }

    #[test]
    fn more_than_a_sample_holds_is_counted() {
        let slots = (0..1000).map(|n| slot(n, 2, 1, &[b'x'; COMMAND_MAX]));
        let texts = texts(vec![
            publisher(1, slots.collect()),
            publisher(2, Vec::new()),
        ]);
        let bytes: usize = texts
            .iter()
            .map(|(name, text)| name.len() + text.len())
            .sum();
        assert!(bytes <= SAMPLE_MAX, "{bytes} bytes");
        let mut texts = texts;
        texts.push((ALL.to_vec(), all_text(1, 0)));
        let recorded = read(texts.iter().map(|(name, text)| (&name[..], &text[..])));
        let first = &recorded.expect("a sample").programs.publishers[0];
        let (kept, left_out) = (first.slots.len(), first.slots_left_out);
        assert_eq!(kept + usize::try_from(left_out).expect("a count"), 1000);
        assert!(kept > 200, "{kept} kept");
    }
}
