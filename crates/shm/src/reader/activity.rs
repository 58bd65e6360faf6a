//! Reads the states of a publisher's slots: the heads of all, and texts whose generation has changed.

use crate::head::{Head, Kind, Owner, State, halves};
use crate::header::Header;
use crate::layout::{
    GENERATION, HEAD_WORDS, IDENTITY, IDENTITY_AT, IDENTITY_FIXED, LABEL_BYTES, LIVE_BYTES,
    TAKEN_AT, TEXT_FIXED,
};
use crate::mapping::as_bytes;
use crate::reader::bytes::{Bytes, ReadError};
use crate::reader::lives::{Lives, Tenure};
use crate::reader::totals::{Scratch, slots_in};
use crate::version::{Memory, read_whole};

/// Heads that are read at once.
const HEADS_AT_ONCE: usize = 128;
/// Bytes of a text that are read with its length: most texts are shorter, and a second read is dearer than copying them.
const FIRST_BYTES: usize = 480;

/// A command that a slot began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Kind of the text.
    pub kind: Kind,
    /// When it began, by the publisher's clock.
    pub stamp: u64,
    /// The available text: any bytes, maybe cut within a character.
    pub text: Vec<u8>,
    /// Bytes that the text had; `u32::MAX`: as many or more.
    pub whole_bytes: u32,
    /// Equal commands have equal ones; 0: none.
    pub query_id: u64,
    /// The state that the slot had from then on.
    begun: State,
}

impl Command {
    /// True: the text is only the beginning of the command.
    pub fn is_truncated(&self) -> bool {
        usize::try_from(self.whole_bytes).is_ok_and(|bytes| bytes > self.text.len())
    }
}

/// A label of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Any bytes, 63 at most.
    pub text: Vec<u8>,
    /// True: the text is only the beginning of the command.
    pub is_truncated: bool,
}

/// Owner of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pub pid: u32,
    /// The leader of processes that work together.
    pub leader: Option<u32>,
    /// When the session began, by the publisher's clock; 0: unknown.
    pub stamp: u64,
    /// In the order of [`Header::label_names`].
    pub labels: Vec<Label>,
}

/// A slot at the last sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The process that has it.
    pub owner: Option<Owner>,
    /// True if the owner ended without giving the slot back: the values are its last ones. Also true while a process takes the
    /// slot over.
    pub has_ended: bool,
    /// Commands that ever began in this slot, under any owner.
    pub commands: u64,
    /// State of the slot.
    pub state: State,
    /// The command that its owner began last.
    pub command: Option<Command>,
    /// Identity that the owner gives.
    pub identity: Option<Identity>,
    /// True: something differs from the sample before.
    pub is_changed: bool,
    /// True: the slot changed too quickly to be read, and the values are of the sample before.
    pub is_busy: bool,
    /// The generation of identities that was copied, and for which owner.
    identified: (u64, Option<Owner>),
}

/// Counts of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Slots that differ from the sample before.
    pub changed: usize,
    /// Texts that were copied.
    pub copied: usize,
    /// Slots that changed too quickly to be read.
    pub busy: usize,
}

/// All slots of a publisher.
#[derive(Default)]
pub(crate) struct Activities {
    pub(crate) slots: Vec<Activity>,
}

const UNUSED: Activity = Activity {
    owner: None,
    has_ended: false,
    commands: 0,
    state: State::None,
    command: None,
    identity: None,
    is_changed: false,
    is_busy: false,
    identified: (0, None),
};

impl Activities {
    pub(crate) fn sample(
        &mut self,
        bytes: &Bytes,
        header: &Header,
        most: usize,
        lives: &mut Lives,
        scratch: &mut Scratch,
    ) -> Result<Sampled, ReadError> {
        lives.begin();
        let used = slots_in_use(bytes, header)?.min(most);
        self.slots.resize(used, UNUSED);
        let mut sampled = Sampled::default();
        let stride = usize::try_from(header.heads.stride / 8).map_err(|_| ReadError::Short)?;
        let mut heads = Vec::new();
        for (chunk, slots) in self.slots.chunks_mut(HEADS_AT_ONCE).enumerate() {
            let first = chunk * HEADS_AT_ONCE;
            let at = header.heads.offset + header.heads.stride * first as u64;
            heads.resize(slots.len() * stride, 0);
            bytes.read(at, &mut heads)?;
            bytes.acquire();
            for (number, (slot, words)) in
                slots.iter_mut().zip(heads.chunks_exact(stride)).enumerate()
            {
                let mut head = Head::default();
                head.0.copy_from_slice(&words[..HEAD_WORDS]);
                let place = SlotRef {
                    bytes,
                    header,
                    slot: (first + number) as u64,
                };
                slot.update(&place, head, scratch, &mut sampled)?;
                let tenure = lives.of(first + number, &head, header, bytes);
                let has_ended = matches!(tenure, Tenure::Ended | Tenure::Begins);
                if slot.has_ended != has_ended {
                    sampled.changed += usize::from(!slot.is_changed);
                    (slot.has_ended, slot.is_changed) = (has_ended, true);
                }
            }
        }
        lives.end();
        Ok(sampled)
    }
}

/// Slots that the publisher says are in use.
pub(crate) fn slots_in_use(bytes: &Bytes, header: &Header) -> Result<usize, ReadError> {
    let mut live = [0; LIVE_BYTES / 8];
    bytes.read(header.live, &mut live)?;
    Ok(slots_in(&live, header))
}

/// A slot of a file.
struct SlotRef<'a> {
    bytes: &'a Bytes,
    header: &'a Header,
    slot: u64,
}

impl SlotRef<'_> {
    fn head(&self) -> u64 {
        self.header.heads.offset + self.header.heads.stride * self.slot
    }

    /// The buffer of texts of a generation.
    fn text(&self, generation: u64) -> u64 {
        let section = &self.header.texts;
        section.offset + section.stride * self.slot + (generation & 1) * (section.stride / 2)
    }

    fn identity(&self, generation: u64) -> u64 {
        let section = &self.header.identities;
        section.offset + section.stride * self.slot + (generation & 1) * (section.stride / 2)
    }
}

impl Activity {
    fn update(
        &mut self,
        place: &SlotRef,
        head: Head,
        scratch: &mut Scratch,
        sampled: &mut Sampled,
    ) -> Result<(), ReadError> {
        let before = (self.owner, self.commands, self.state, self.identified);
        self.is_busy = false;
        let mut head = head;
        if head.0[GENERATION] != self.commands || head.owner() != self.owner {
            head = self.update_command(place, head, scratch, sampled)?;
        }
        if !self.is_busy {
            self.owner = head.owner();
            let begun = self
                .command
                .as_ref()
                .map_or(State::None, |command| command.begun);
            self.state = head.state().unwrap_or(begun);
            if (head.0[IDENTITY], self.owner) != self.identified {
                self.update_identity(place, head, scratch)?;
            }
        }
        sampled.busy += usize::from(self.is_busy);
        self.is_changed = before != (self.owner, self.commands, self.state, self.identified);
        sampled.changed += usize::from(self.is_changed);
        Ok(())
    }

    /// Copies the newest command, if it is the owner's. The head as it was afterwards.
    fn update_command(
        &mut self,
        place: &SlotRef,
        head: Head,
        scratch: &mut Scratch,
        sampled: &mut Sampled,
    ) -> Result<Head, ReadError> {
        let mut length = 0;
        let copied = read_whole(
            place.bytes,
            place.head(),
            GENERATION,
            head.0,
            |generation| {
                length = copy_text(place, generation, scratch)?;
                Ok(())
            },
        )?;
        let Some(after) = copied.map(Head) else {
            self.is_busy = true;
            return Ok(head);
        };
        self.commands = after.0[GENERATION];
        self.command = None;
        if after.owner().is_some() && after.0[TAKEN_AT] != after.0[GENERATION] {
            self.command = Some(command(&scratch.words, length, place.header));
            sampled.copied += 1;
        }
        Ok(after)
    }

    fn update_identity(
        &mut self,
        place: &SlotRef,
        head: Head,
        scratch: &mut Scratch,
    ) -> Result<(), ReadError> {
        let fixed = place.header.identities.record;
        let labels = place.header.label_names.len() * (LABEL_BYTES / 8);
        let copied = read_whole(place.bytes, place.head(), IDENTITY, head.0, |generation| {
            let (of_fixed, of_labels) = scratch
                .room(IDENTITY_FIXED / 8 + labels)
                .split_at_mut(IDENTITY_FIXED / 8);
            place.bytes.read(place.identity(generation), of_fixed)?;
            place
                .bytes
                .read(place.identity(generation) + fixed, of_labels)
        })?;
        let Some(after) = copied else {
            self.is_busy = true;
            return Ok(());
        };
        self.identified = (after[IDENTITY], self.owner);
        self.identity = None;
        if self.owner.is_some() && after[IDENTITY] != after[IDENTITY_AT] {
            self.identity = Some(identity(&scratch.words[..IDENTITY_FIXED / 8 + labels]));
        }
        Ok(())
    }
}

/// Copies a buffer into the scratch memory, the fixed part before the text. Bytes of the text.
fn copy_text(place: &SlotRef, generation: u64, scratch: &mut Scratch) -> Result<usize, ReadError> {
    let (fixed, room) = (place.header.texts.record, place.header.text_bytes);
    let (at, first) = (place.text(generation), FIRST_BYTES.min(room));
    let words = scratch.room((TEXT_FIXED + room) / 8);
    if fixed == TEXT_FIXED as u64 {
        place
            .bytes
            .read(at, &mut words[..(TEXT_FIXED + first) / 8])?;
    } else {
        place.bytes.read(at, &mut words[..TEXT_FIXED / 8])?;
        place.bytes.read(
            at + fixed,
            &mut words[TEXT_FIXED / 8..(TEXT_FIXED + first) / 8],
        )?;
    }
    let [stored, _] = halves(words[1]);
    let stored = usize::try_from(stored).unwrap_or(room).min(room);
    if stored > first {
        let rest =
            &mut words[(TEXT_FIXED + first) / 8..(TEXT_FIXED + stored.next_multiple_of(8)) / 8];
        place.bytes.read(at + fixed + first as u64, rest)?;
    }
    Ok(stored)
}

fn command(words: &[u64], length: usize, header: &Header) -> Command {
    let [kind, begun, ..] = words[2].to_le_bytes();
    let kind = Kind::of(kind);
    let length = match kind {
        Kind::Secret => 0,
        Kind::Sql | Kind::Plain => length.min(header.text_bytes),
    };
    Command {
        kind,
        stamp: words[0],
        text: as_bytes(&words[TEXT_FIXED / 8..])[..length].to_vec(),
        whole_bytes: halves(words[1])[1],
        query_id: words[3],
        begun: State::of(begun),
    }
}

fn identity(words: &[u64]) -> Identity {
    let [pid, leader] = halves(words[0]);
    let labels = words[IDENTITY_FIXED / 8..].chunks_exact(LABEL_BYTES / 8);
    Identity {
        pid,
        leader: (leader != 0).then_some(leader),
        stamp: words[1],
        labels: labels.map(label).collect(),
    }
}

fn label(words: &[u64]) -> Label {
    let bytes = as_bytes(words);
    let length = usize::from(bytes[0] & 0x7f).min(LABEL_BYTES - 1);
    Label {
        text: bytes[1..=length].to_vec(),
        is_truncated: bytes[0] & 0x80 != 0,
    }
}
