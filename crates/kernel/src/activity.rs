//! The activity of publishing programs as a source. The keeper writes samples into a pipe; here they become a track with an
//! instance for each program and for each of its active slots, so that a command that continues or repeats needs only a few
//! numbers. The sampler never waits for the pipe, and treats its content as untrusted texts.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use kymo_base::activity::{Assembler, PACKET_MAX, Taken};
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_sys::packet_pipe::take_packet;

use crate::source::{self, Scope, kind};

/// Limit of packets read at a sample: as many as the pipe holds.
const PACKETS_MAX: usize = 1024;
/// The keeper repeats its sample each ten seconds while programs are active. After a longer silence it is gone, and the
/// activity of the programs is unknown.
const SILENCE_NS: u64 = 35_000_000_000;

/// The source of the programs' activity.
pub(crate) struct Activity {
    pipe: Arc<OwnedFd>,
    assembler: Assembler,
    track: TrackWriter,
    /// Names of instances, by slot of the track.
    names: Vec<Option<Vec<u8>>>,
    /// Slots of the track, by name of the instance.
    slots: BTreeMap<Vec<u8>, usize>,
    /// Arrival of the last sample (monotonic).
    arrived_ns: u64,
    /// Number of malformed packets, which no keeper writes.
    malformed: u64,
    malformed_said: bool,
}

impl Activity {
    pub(crate) fn new(pipe: Arc<OwnedFd>) -> Activity {
        let grammar = source::of(kind::ACTIVITY).map(|source| source.grammar);
        Activity {
            pipe,
            assembler: Assembler::default(),
            track: TrackWriter::new(grammar.unwrap_or(kymo_base::template::Grammar::Plain)),
            names: Vec::new(),
            slots: BTreeMap::new(),
            arrived_ns: 0,
            malformed: 0,
            malformed_said: false,
        }
    }

    /// Reads the samples that arrived since the last call; returns a section if there is news.
    pub(crate) fn sample(&mut self, now_ns: u64, key: bool) -> Option<&[u8]> {
        let has_come = self.listen();
        self.track.begin(key);
        if has_come {
            self.arrived_ns = now_ns;
            self.place();
        } else if self.is_at_work() && now_ns.saturating_sub(self.arrived_ns) > SILENCE_NS {
            self.forget();
        } else if key {
            let known = self.names.iter().enumerate();
            for (slot, _) in known.filter(|(_, name)| name.is_some()) {
                self.track.unread(slot, Why::NotDue);
            }
        }
        self.track.has_frames().then(|| self.track.end())
    }

    /// Returns true once after malformed packets arrived.
    pub(crate) fn take_malformed(&mut self) -> bool {
        let is_news = self.malformed > 0 && !self.malformed_said;
        self.malformed_said |= is_news;
        is_news
    }

    /// Empties the pipe; returns true if it held at least one whole sample. The last one counts.
    fn listen(&mut self) -> bool {
        let mut packet = [0; PACKET_MAX];
        let mut has_come = false;
        for _ in 0..PACKETS_MAX {
            let Some(bytes) = take_packet(&*self.pipe, &mut packet) else {
                break;
            };
            match self.assembler.take(&packet[..bytes], is_name) {
                Taken::Whole => has_come = true,
                Taken::Part => {}
                Taken::Malformed => self.malformed += 1,
            }
        }
        has_come
    }

    /// Returns true if the known instances include an active slot.
    fn is_at_work(&self) -> bool {
        self.slots.keys().any(|name| name.contains(&b'/'))
    }

    fn forget(&mut self) {
        for (slot, name) in self.names.iter_mut().enumerate() {
            if name.take().is_some() {
                self.track.gone(slot);
            }
        }
        self.slots.clear();
    }

    /// Writes the texts of the new sample into the track's slots.
    fn place(&mut self) {
        let Activity {
            assembler,
            track,
            names,
            slots,
            ..
        } = self;
        let texts = assembler.texts();
        let mut placed: Vec<Option<usize>> = vec![None; names.len()];
        let mut new = Vec::new();
        for n in 0..texts.len() {
            match slots.get(texts.get(n).0) {
                Some(&slot) => placed[slot] = Some(n),
                None => new.push(n),
            }
        }
        // New instances reuse the slots of instances that are gone.
        let mut new = new.into_iter();
        for place in placed.iter_mut().filter(|place| place.is_none()) {
            *place = new.next();
        }
        placed.extend(new.map(Some));
        names.resize(placed.len(), None);
        for (slot, (name, place)) in names.iter_mut().zip(&placed).enumerate() {
            let now = place.map(|n| texts.get(n));
            if name.as_deref() != now.map(|(name, _)| name) {
                if let Some(last) = name.take() {
                    track.gone(slot);
                    slots.remove(&last);
                }
                if let Some((new, _)) = now {
                    track.add(slot, new);
                    slots.insert(new.to_vec(), slot);
                    *name = Some(new.to_vec());
                }
            }
            if let Some((_, text)) = now {
                track.read(slot, text);
            }
        }
    }
}

fn is_name(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| source::is_instance(Scope::Program, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::activity::packets;
    use kymo_base::track::{State, Track};
    use kymo_sys::packet_pipe::{packet_pipe, put_packet};

    const ONE: &str = "00000000000000000000000000000001";
    const SECOND_NS: u64 = 1_000_000_000;

    /// A keeper, a recorder and a player of the recording.
    struct World {
        write: OwnedFd,
        activity: Activity,
        track: Track,
        sample: u32,
        now_ns: u64,
    }

    impl World {
        fn new() -> World {
            let (read, write) = packet_pipe(1 << 20).expect("a pipe");
            World {
                write,
                activity: Activity::new(Arc::new(read)),
                track: Track::default(),
                sample: 0,
                now_ns: SECOND_NS,
            }
        }

        fn say(&mut self, texts: &[(String, String)]) {
            self.sample += 1;
            let mut texts: Vec<_> = texts
                .iter()
                .map(|(name, text)| (name.clone().into_bytes(), text.clone().into_bytes()))
                .collect();
            texts.sort();
            for packet in packets(self.sample, &texts) {
                assert!(put_packet(&self.write, &packet));
            }
        }

        /// Returns the length of the section, and the known texts after it.
        fn record(&mut self, key: bool) -> (usize, Vec<(String, String)>) {
            self.now_ns += SECOND_NS;
            let section = self.activity.sample(self.now_ns, key);
            let bytes = section.map_or(0, <[u8]>::len);
            match section {
                Some(section) => self.track.apply(key, section).expect("a section"),
                None if key => self.track.restart(),
                None => {}
            }
            let known = self.track.instances().map(|(_, instance)| {
                let mut text = Vec::new();
                assert!(self.track.render(instance, &mut text));
                let name = String::from_utf8_lossy(&instance.name).into_owned();
                (name, String::from_utf8_lossy(&text).into_owned())
            });
            let mut known: Vec<_> = known.collect();
            known.sort();
            (bytes, known)
        }
    }

    fn slot(number: u32, text: &str) -> (String, String) {
        (format!("{ONE}/{number}"), text.into())
    }

    fn at(ns: u64) -> (String, String) {
        ("now".into(), format!("at={ns}\n"))
    }

    #[test]
    fn what_is_said_is_recorded_and_costs_little_when_it_stays() {
        let mut world = World::new();
        assert_eq!(world.record(true), (0, vec![]));
        let busy = vec![
            slot(0, "text=SELECT ?\ncommands=7\n"),
            slot(3, "text=SELECT 2\ncommands=1\n"),
            at(1),
        ];
        world.say(&busy);
        assert_eq!(world.record(false).1, busy);
        assert_eq!(world.record(false), (0, busy.clone()), "nothing came");
        assert_eq!(world.record(true).1, busy, "a key says it again");
        assert!(
            world
                .track
                .instances()
                .all(|(_, instance)| instance.state == State::Unread(Why::NotDue)),
            "and that it is what was known"
        );
        let later = vec![busy[0].clone(), busy[1].clone(), at(9)];
        world.say(&later);
        let (bytes, known) = world.record(false);
        assert!((1..=5).contains(&bytes), "{bytes} bytes");
        assert_eq!(known, later);
        // One command ends, others begin; slots are reused.
        let other = vec![
            slot(1, "text=COMMIT\ncommands=2\n"),
            slot(2, "text=BEGIN\ncommands=3\n"),
            slot(3, "text=SELECT 2\ncommands=2\n"),
            at(10),
        ];
        world.say(&busy);
        world.say(&other);
        assert_eq!(world.record(false).1, other, "the last sample counts");
        let idle = vec![at(11)];
        world.say(&idle);
        assert_eq!(world.record(true).1, idle);
        world.now_ns += 3600 * SECOND_NS;
        assert_eq!(world.record(true).1, idle, "that nothing works stays so");
    }

    #[test]
    fn a_keeper_that_says_nothing_more_is_not_believed_for_ever() {
        let mut world = World::new();
        let busy = vec![slot(0, "text=SELECT ?\n"), at(1)];
        world.say(&busy);
        assert_eq!(world.record(true).1, busy);
        world.now_ns += SILENCE_NS - 2 * SECOND_NS;
        assert_eq!(world.record(false).1, busy);
        world.now_ns += 2 * SECOND_NS;
        assert_eq!(world.record(false).1, vec![]);
        assert_eq!(world.record(true).1, vec![]);
        world.say(&busy);
        assert_eq!(world.record(false).1, busy);
    }

    #[test]
    fn noise_is_counted_and_said_once() {
        let mut world = World::new();
        let busy = vec![slot(0, "text=SELECT ?\n"), at(1)];
        assert!(put_packet(&world.write, b"noise"));
        world.say(&busy);
        assert!(put_packet(&world.write, &[0; 4096]));
        world.say(&[("../etc".into(), String::new())]);
        assert_eq!(world.record(true).1, busy);
        assert_eq!(world.activity.malformed, 3);
        assert!(world.activity.take_malformed() && !world.activity.take_malformed());
    }
}
