//! The track of the names of control groups. The slow lane finds a name once a group is new, and again later: a runtime may
//! write its files after it makes the group, and may give a container another name.

use std::sync::Arc;

use kymo_base::template::Grammar;
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;

use crate::identity::{GroupSubject, Lane};

/// Ages at which the lane looks again for a group without a name.
const AGAIN_NS: [u64; 3] = [2_000_000_000, 10_000_000_000, 60_000_000_000];
/// Time between two looks at any group.
const AGED_NS: u64 = 600_000_000_000;

/// A group whose name is known or looked for.
struct Named {
    path: Arc<[u8]>,
    generation: u64,
    /// Number of questions about this group.
    looks: usize,
    /// Time of the next question.
    next_ns: u64,
    has_text: bool,
}

/// Names of the groups, by slot of their table.
pub(crate) struct GroupNames {
    track: TrackWriter,
    named: Vec<Option<Named>>,
    generation: u64,
    /// No question is due before this time.
    next_ns: u64,
    questions: Vec<GroupSubject>,
    answers: Vec<(GroupSubject, Vec<u8>)>,
}

impl Default for GroupNames {
    fn default() -> GroupNames {
        GroupNames {
            track: TrackWriter::new(Grammar::Keyed),
            named: Vec::new(),
            generation: 0,
            next_ns: 0,
            questions: Vec::new(),
            answers: Vec::new(),
        }
    }
}

impl GroupNames {
    /// Begins a sample.
    pub(crate) fn begin(&mut self, key: bool) {
        self.track.begin(key);
    }

    /// Adds a group to a free slot.
    pub(crate) fn add(&mut self, slot: usize, path: &[u8]) {
        let path: Arc<[u8]> = path.into();
        self.track.add_shared(slot, path.clone());
        self.generation += 1;
        self.named
            .resize_with(self.named.len().max(slot + 1), || None);
        if let Some(place) = self.named.get_mut(slot) {
            *place = Some(Named {
                path,
                generation: self.generation,
                looks: 0,
                next_ns: 0,
                has_text: false,
            });
        }
        self.next_ns = 0;
    }

    /// Removes the group of a slot.
    pub(crate) fn gone(&mut self, slot: usize) {
        self.track.gone(slot);
        if let Some(place) = self.named.get_mut(slot) {
            *place = None;
        }
    }

    /// Exchanges questions and answers with the slow lane; returns the section if it has news.
    pub(crate) fn identify(&mut self, lane: &Lane, key: bool, now_ns: u64) -> Option<&[u8]> {
        if now_ns >= self.next_ns {
            self.collect_due(now_ns);
        }
        lane.ask_groups(&mut self.questions);
        lane.group_answers(&mut self.answers);
        if !key && self.answers.is_empty() && !self.track.has_frames() {
            return None;
        }
        self.write(key);
        Some(self.track.end()).filter(|section| !section.is_empty())
    }

    /// Collects the questions that are due.
    fn collect_due(&mut self, now_ns: u64) {
        self.next_ns = now_ns.saturating_add(AGED_NS);
        for (slot, place) in self.named.iter_mut().enumerate() {
            let Some(named) = place else { continue };
            if now_ns >= named.next_ns {
                self.questions.push(GroupSubject {
                    slot,
                    generation: named.generation,
                    path: named.path.clone(),
                });
                let again = AGAIN_NS.get(named.looks).filter(|_| !named.has_text);
                named.next_ns = now_ns.saturating_add(again.copied().unwrap_or(AGED_NS));
                named.looks += 1;
            }
            self.next_ns = self.next_ns.min(named.next_ns);
        }
    }

    /// Writes the answers; at a key, the texts of all groups that have one.
    fn write(&mut self, key: bool) {
        let mut answers = self.answers.drain(..).peekable();
        for (slot, place) in self.named.iter_mut().enumerate() {
            let Some(named) = place else { continue };
            let mut latest = None;
            while let Some((subject, text)) = answers.next_if(|(subject, _)| subject.slot <= slot) {
                // An answer may be about an earlier group of this slot.
                latest = (subject.slot == slot && subject.generation == named.generation)
                    .then_some(text);
            }
            match latest {
                // A file that is gone does not take the name away: the group may be at its end.
                Some(text) if !text.is_empty() => {
                    self.track.read(slot, &text);
                    self.track.pack(slot);
                    named.has_text = true;
                }
                Some(_) | None if named.has_text && key => self.track.unread(slot, Why::NotDue),
                Some(_) | None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MadeRoot;
    use kymo_base::track::Track;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A table of names beside a lane whose thread runs for the test.
    struct NamesWorld {
        made: MadeRoot,
        names: GroupNames,
        track: Track,
    }

    impl NamesWorld {
        /// Takes a sample, and lets the lane answer all its questions before the next one.
        fn sample(&mut self, lane: &Lane, key: bool, second: u64) -> Vec<String> {
            self.names.begin(key);
            self.after_begin(lane, key, second)
        }

        fn after_begin(&mut self, lane: &Lane, key: bool, second: u64) -> Vec<String> {
            let section = self.names.identify(lane, key, second * SECOND_NS);
            match section {
                Some(section) => self.track.apply(key, section).expect("a section"),
                None if key => self.track.apply(true, &[]).expect("an empty section"),
                None => {}
            }
            lane.answer_waiting(&self.made.root);
            let texts = self.track.instances().map(|(_, instance)| {
                let mut text = Vec::new();
                self.track.render(instance, &mut text);
                let name = String::from_utf8_lossy(&instance.name).into_owned();
                format!(
                    "{name} {}",
                    String::from_utf8_lossy(&text).replace(['\t', '\n'], " ")
                )
            });
            texts.collect()
        }
    }

    #[test]
    fn a_name_is_looked_for_until_it_is_there_and_stays() {
        let (lane, id) = (Lane::default(), "ab".repeat(32));
        let mut world = NamesWorld {
            made: MadeRoot::new(),
            names: GroupNames::default(),
            track: Track::default(),
        };
        let path = format!("/docker/{id}");
        world.names.begin(true);
        world.names.add(0, b"/");
        world.names.add(1, path.as_bytes());
        assert_eq!(world.after_begin(&lane, true, 0), [""; 0]);
        assert_eq!(world.sample(&lane, false, 1), [""; 0]);
        let file = format!("var/lib/docker/containers/{id}/config.v2.json");
        world
            .made
            .write(&file, r#"{"Name":"/web","Config":{"Image":"nginx"}}"#);
        assert_eq!(world.sample(&lane, false, 3), [""; 0], "asked again now");
        let expect = format!("{path} runtime: docker name: web image: nginx ");
        let expect = std::slice::from_ref(&expect);
        assert_eq!(world.sample(&lane, false, 4), expect);
        world.made.remove(&file);
        for (key, second) in [(true, 60), (false, 700), (true, 701)] {
            assert_eq!(world.sample(&lane, key, second), expect, "{second}");
        }
        world.names.begin(false);
        world.names.gone(1);
        assert_eq!(world.after_begin(&lane, false, 702), [""; 0]);
    }
}
