//! A track is the stream of frames of one kind of source: one section a sample. Here a
//! section becomes templates and values again; `track_writer` makes sections of texts.
//! A key section depends on nothing before it. The bytes are described in
//! docs/formats/recording.md, "Section payloads".

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits;
use crate::template::{Grammar, Template, derive};
use crate::varint;
use crate::words::Words;

/// Low three bits of an operation's code; the rest is its argument n.
pub(crate) mod op {
    /// The next n instances were read and are identical.
    pub(crate) const SAME: u64 = 0;
    /// The next n instances were not read; one byte says why.
    pub(crate) const UNREAD: u64 = 1;
    /// The next instance: n values changed, each (slots since the last, zigzag step).
    pub(crate) const CHANGED: u64 = 2;
    /// The next instance: template n and all its values.
    pub(crate) const FULL: u64 = 3;
    /// A new instance in slot n, its name follows; it is the next instance.
    pub(crate) const NEW: u64 = 4;
    /// The instance in slot n is no more.
    pub(crate) const GONE: u64 = 5;
    /// Template (0) or word (1) number follows, then its bytes.
    pub(crate) const DEFINE: u64 = 6;
    /// The next instance: FAILED, BYTES or SPARSE; or HELD, said before a FULL, BYTES or SPARSE.
    pub(crate) const OTHER: u64 = 7;

    pub(crate) const FAILED: u64 = 0;
    pub(crate) const BYTES: u64 = 1;
    pub(crate) const HELD: u64 = 2;
    /// As FULL, of a template whose number follows; zeros in a row are counted.
    pub(crate) const SPARSE: u64 = 3;
}

/// Why a source was not read in a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Why {
    /// The source is due in a later sample.
    NotDue = 0,
    /// The source's reads were slow, so its stride was doubled.
    Slow = 1,
    /// The kernel says nothing in it can have changed.
    Idle = 2,
}

impl Why {
    fn from_code(code: u8) -> Option<Why> {
        Some(match code {
            0 => Why::NotDue,
            1 => Why::Slow,
            2 => Why::Idle,
            _ => return None,
        })
    }
}

/// State of an instance in a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Read, and not as before.
    Changed,
    /// Read, identical to the last.
    Same,
    /// Not read.
    Unread(Why),
    /// The kernel answered with this errno.
    Failed(u16),
}

/// A section that does not say what a writer would say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

/// The reading side: the present state of every instance of one kind of source.
#[derive(Default)]
pub struct Track {
    templates: Vec<Option<Arc<Template>>>,
    /// Templates by their bytes, so that a key section does not make them again: those written slot by slot, and by runs.
    seen: [HashMap<Vec<u8>, Arc<Template>>; 2],
    /// Slots of templates that were defined by runs since the last key.
    run_slots: usize,
    /// Zeros that were counted, not written, since the last key.
    zeros: usize,
    words: Words,
    instances: Vec<Option<Box<Instance>>>,
    /// True: the last sample had a section of this kind.
    pub sampled: bool,
}

/// An instance of a source as of the last sample.
#[derive(Debug)]
pub struct Instance {
    /// Name among the instances of its kind: `1234` for process 1234, empty where there is but one.
    pub name: Vec<u8>,
    /// State in the last sample.
    pub state: State,
    /// How its text is made; `None`: `bytes` holds it verbatim.
    pub template: Option<Arc<Template>>,
    /// The template's values.
    pub values: Vec<u64>,
    /// The text where no template is used.
    pub bytes: Vec<u8>,
}

impl Track {
    /// Takes in the next sample's section. After an error the track is empty until the next key.
    pub fn apply(&mut self, key: bool, section: &[u8]) -> Result<(), Damaged> {
        if key {
            self.restart();
        }
        self.sampled = true;
        // Instances that the section does not name were not read.
        for instance in self.instances.iter_mut().flatten() {
            instance.state = State::Unread(Why::NotDue);
        }
        let done = self.apply_ops(section);
        if done.is_none() {
            self.restart();
        }
        done.ok_or(Damaged)
    }

    /// Forgets all instances, as at a gap.
    pub fn restart(&mut self) {
        self.templates.clear();
        self.run_slots = 0;
        self.zeros = 0;
        self.words.clear();
        self.instances.clear();
    }

    /// The instances, with their slots.
    pub fn instances(&self) -> impl Iterator<Item = (usize, &Instance)> {
        self.instances
            .iter()
            .enumerate()
            .filter_map(|(slot, held)| Some((slot, held.as_deref()?)))
    }

    /// The instance in `slot`.
    pub fn instance(&self, slot: usize) -> Option<&Instance> {
        self.instances.get(slot)?.as_deref()
    }

    /// The words of the values of word slots.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The only instance of a kind that has one.
    pub fn single(&self) -> Option<&Instance> {
        self.instances.first()?.as_deref()
    }

    /// The word under `id`.
    pub fn word(&self, id: u64) -> &[u8] {
        self.words.get(id).unwrap_or_default()
    }

    /// Appends an instance's text, exactly as the kernel gave it.
    pub fn render(&self, instance: &Instance, out: &mut Vec<u8>) -> bool {
        match &instance.template {
            Some(template) => template.render(&instance.values, &self.words, out),
            None => {
                out.extend_from_slice(&instance.bytes);
                true
            }
        }
    }

    /// Puts a text in place by hand, for readers of other formats.
    pub fn put_text(&mut self, slot: usize, name: &[u8], text: &[u8], grammar: Grammar) {
        if slot >= self.instances.len() {
            self.instances.resize_with(slot + 1, || None);
        }
        self.sampled = true;
        let Track {
            instances, words, ..
        } = self;
        let held = instances[slot].get_or_insert_with(|| Box::new(Instance::new(name)));
        if held.name != name {
            **held = Instance::new(name);
        }
        let mut ends = Vec::new();
        held.state = State::Changed;
        if let Some(template) = &held.template
            && template.matches(text, words, &mut held.values, &mut ends)
        {
            return;
        }
        held.template = Some(Arc::new(derive(
            text,
            grammar,
            words,
            &mut held.values,
            &mut ends,
        )));
    }

    /// Takes an instance out by hand.
    pub fn remove(&mut self, slot: usize) {
        if let Some(held) = self.instances.get_mut(slot) {
            *held = None;
        }
    }

    fn apply_ops(&mut self, section: &[u8]) -> Option<()> {
        let mut input = section;
        let mut cursor = 0;
        let mut held_back = None;
        while !input.is_empty() {
            let code = varint::take(&mut input)?;
            let n = code >> 3;
            match code & 7 {
                op::SAME => self.mark(&mut cursor, n, State::Same)?,
                op::UNREAD => {
                    let why = Why::from_code(take_byte(&mut input)?)?;
                    self.mark(&mut cursor, n, State::Unread(why))?;
                }
                op::CHANGED => self.next(&mut cursor)?.change(n, &mut input)?,
                op::FULL => {
                    let template = self.templates.get(usize::try_from(n).ok()?)?.clone()?;
                    let state = held_back.take().unwrap_or(State::Changed);
                    self.next(&mut cursor)?.fill(template, state, &mut input)?;
                }
                op::NEW => cursor = self.place(n, &mut input)?,
                op::GONE => *self.instances.get_mut(usize::try_from(n).ok()?)? = None,
                op::DEFINE => self.define(n, &mut input)?,
                _ if n == op::HELD => {
                    held_back = Some(State::Unread(Why::from_code(take_byte(&mut input)?)?))
                }
                _ if n == op::SPARSE => {
                    let id = usize::try_from(varint::take(&mut input)?).ok()?;
                    let template = self.templates.get(id)?.clone()?;
                    let state = held_back.take().unwrap_or(State::Changed);
                    let mut left = limits::SPARSE_ZEROS_MAX - self.zeros;
                    let next = self.next(&mut cursor)?;
                    next.fill_sparse((template, state), &mut left, &mut input)?;
                    self.zeros = limits::SPARSE_ZEROS_MAX - left;
                }
                _ => {
                    let state = held_back.take().unwrap_or(State::Changed);
                    self.next(&mut cursor)?.other(n, state, &mut input)?;
                }
            }
        }
        Some(())
    }

    /// The next live instance at or after the cursor, which moves past it.
    fn next(&mut self, cursor: &mut usize) -> Option<&mut Instance> {
        let rest = self.instances.get_mut(*cursor..)?;
        let skip = rest.iter().position(Option::is_some)?;
        *cursor += skip + 1;
        rest[skip].as_deref_mut()
    }

    fn mark(&mut self, cursor: &mut usize, n: u64, state: State) -> Option<()> {
        for _ in 0..n {
            self.next(cursor)?.state = state;
        }
        Some(())
    }

    fn place(&mut self, n: u64, input: &mut &[u8]) -> Option<usize> {
        let slot = usize::try_from(n)
            .ok()
            .filter(|&slot| slot < limits::INSTANCES_MAX)?;
        let name = varint::take_bytes(input, limits::NAME_MAX)?;
        if slot >= self.instances.len() {
            self.instances.resize_with(slot + 1, || None);
        }
        self.instances[slot] = Some(Box::new(Instance::new(name)));
        Some(slot)
    }

    fn define(&mut self, n: u64, input: &mut &[u8]) -> Option<()> {
        let id = usize::try_from(varint::take(input)?).ok()?;
        let bytes = varint::take_bytes(input, limits::TEXT_MAX)?;
        match n {
            0 | 2 if id < limits::TEMPLATES_MAX => {
                if id >= self.templates.len() {
                    self.templates.resize(id + 1, None);
                }
                self.templates[id] = Some(self.template(n == 2, bytes)?);
            }
            1 if id < limits::WORDS_MAX => self.words.define(id as u32, bytes),
            _ => return None,
        }
        Some(())
    }

    fn template(&mut self, by_runs: bool, bytes: &[u8]) -> Option<Arc<Template>> {
        let left = limits::TEMPLATE_RUNS_SLOTS_MAX - self.run_slots;
        if let Some(template) = self.seen[usize::from(by_runs)].get(bytes) {
            if by_runs {
                self.run_slots += template.len().min(left);
            }
            return Some(template.clone());
        }
        let template = match by_runs {
            true => {
                let template = Template::read_runs(bytes, left)?;
                self.run_slots += template.len();
                template
            }
            false => {
                let mut input = bytes;
                let template = Template::read(&mut input)?;
                input.is_empty().then_some(template)?
            }
        };
        let seen = &mut self.seen[usize::from(by_runs)];
        let is_full = match by_runs {
            true => {
                let slots: usize = seen.values().map(|known| known.len()).sum();
                slots + template.len() > limits::TEMPLATE_RUNS_SLOTS_MAX
            }
            false => seen.len() >= 4 * limits::TEMPLATES_MAX,
        };
        if is_full {
            seen.clear();
        }
        let template = Arc::new(template);
        seen.insert(bytes.to_vec(), template.clone());
        Some(template)
    }
}

/// The tracks of all kinds of source, by kind.
#[derive(Default)]
pub struct Tracks(Vec<Track>);

impl Tracks {
    /// The track of `kind`; an empty one where nothing was ever recorded.
    pub fn get(&self, kind: u8) -> &Track {
        static NONE: std::sync::LazyLock<Track> = std::sync::LazyLock::new(Track::default);
        self.0.get(usize::from(kind)).unwrap_or(&NONE)
    }

    /// The track of `kind`, made when missing.
    pub fn get_mut(&mut self, kind: u8) -> &mut Track {
        let index = usize::from(kind);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Track::default);
        }
        &mut self.0[index]
    }

    /// Marks every track as not sampled, before the sections of the next sample.
    pub fn begin_sample(&mut self) {
        for track in &mut self.0 {
            track.sampled = false;
        }
    }

    /// Forgets everything, as at a gap.
    pub fn restart(&mut self) {
        for track in &mut self.0 {
            track.restart();
        }
    }
}

impl Instance {
    fn new(name: &[u8]) -> Instance {
        Instance {
            name: name.to_vec(),
            state: State::Changed,
            template: None,
            values: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn change(&mut self, n: u64, input: &mut &[u8]) -> Option<()> {
        self.template.as_ref()?;
        let mut next = 0usize;
        for _ in 0..n {
            let slot = next.checked_add(usize::try_from(varint::take(input)?).ok()?)?;
            let value = self.values.get_mut(slot)?;
            *value = varint::unzigzag(varint::take(input)?, *value);
            next = slot + 1;
        }
        self.state = State::Changed;
        Some(())
    }

    fn fill(&mut self, template: Arc<Template>, state: State, input: &mut &[u8]) -> Option<()> {
        self.values.clear();
        self.bytes.clear();
        for _ in 0..template.len() {
            self.values.push(varint::take(input)?);
        }
        self.template = Some(template);
        self.state = state;
        Some(())
    }

    /// At most `left` zeros, of which it takes those that there are.
    fn fill_sparse(
        &mut self,
        (template, state): (Arc<Template>, State),
        left: &mut usize,
        input: &mut &[u8],
    ) -> Option<()> {
        self.values.clear();
        self.bytes.clear();
        let room = |values: &Vec<u64>, count| {
            let count = usize::try_from(count).ok()?;
            (count <= template.len() - values.len()).then_some(count)
        };
        while self.values.len() < template.len() {
            let zeros = room(&self.values, varint::take(input)?)?;
            *left = left.checked_sub(zeros)?;
            self.values.resize(self.values.len() + zeros, 0);
            for _ in 0..room(&self.values, varint::take(input)?)? {
                self.values.push(varint::take(input)?);
            }
        }
        self.template = Some(template);
        self.state = state;
        Some(())
    }

    fn other(&mut self, n: u64, state: State, input: &mut &[u8]) -> Option<()> {
        self.template = None;
        self.values.clear();
        self.bytes.clear();
        match n {
            op::FAILED => self.state = State::Failed(u16::try_from(varint::take(input)?).ok()?),
            op::BYTES => {
                self.bytes
                    .extend_from_slice(varint::take_bytes(input, limits::TEXT_MAX)?);
                self.state = state;
            }
            _ => return None,
        }
        Some(())
    }
}

fn take_byte(input: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = input.split_first()?;
    *input = rest;
    Some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track_writer::{Buffers, TrackWriter};
    use proptest::prelude::*;

    /// Step of a test for one instance in one sample.
    #[derive(Clone, Debug)]
    enum Act {
        Read(Vec<u8>),
        Again,
        Skip,
        Fail(u16),
        Die,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            4 => "[a-c]{0,2} [0-9]{1,4} [0-9]{1,3}\\.[0-9]{2}( ){1,3}[0-9]{1,5}\n?".prop_map(|t| Act::Read(t.into_bytes())),
            1 => any::<Vec<u8>>().prop_map(Act::Read),
            1 => "[0-9]{1,3} \\([a-z )]{0,5}\\) [RS] [0-9]{1,4} -?[0-9]".prop_map(|t| Act::Read(t.into_bytes())),
            3 => Just(Act::Again), 2 => Just(Act::Skip), 1 => (1u16..200).prop_map(Act::Fail), 1 => Just(Act::Die),
        ]
    }

    /// Expected state of one instance in the reader.
    #[derive(Clone, PartialEq, Debug)]
    struct Expected {
        text: Vec<u8>,
        state: State,
    }

    fn run_and_compare(grammar: Grammar, samples: &[Vec<Act>], key_each: usize, drop_from: usize) {
        let mut writer = TrackWriter::new(grammar);
        let mut track = Track::default();
        let mut truth: Vec<Option<Expected>> = Vec::new();
        let mut synced = false;
        for (i, acts) in samples.iter().enumerate() {
            let key = i % key_each == 0;
            writer.begin(key);
            truth.resize(truth.len().max(acts.len()), None);
            for (slot, act) in acts.iter().enumerate() {
                if matches!(act, Act::Die) {
                    writer.gone(slot);
                    truth[slot] = None;
                }
            }
            for (slot, truth) in truth.iter_mut().enumerate() {
                let act = acts.get(slot).unwrap_or(&Act::Skip);
                if truth.is_none() {
                    if !matches!(act, Act::Read(_) | Act::Fail(_)) {
                        continue;
                    }
                    writer.add(slot, slot.to_string().as_bytes());
                }
                let last = truth.clone();
                let now = step(&mut writer, slot, act, last);
                if now.text.len().is_multiple_of(3) {
                    writer.pack(slot);
                }
                *truth = Some(now);
            }
            let section = writer.end().to_vec();
            synced = key || (synced && i != drop_from);
            if i == drop_from && !key {
                continue;
            }
            if synced {
                track.apply(key, &section).expect("a writer's own section");
                compare(&track, &truth);
            }
        }
    }

    fn step(writer: &mut TrackWriter, slot: usize, act: &Act, last: Option<Expected>) -> Expected {
        let failed = last
            .as_ref()
            .is_some_and(|l| matches!(l.state, State::Failed(_)));
        let last_text = last.map(|l| l.text).unwrap_or_default();
        match act {
            Act::Read(text) => {
                let changed = writer.read(slot, text);
                Expected {
                    text: text.clone(),
                    state: if changed { State::Changed } else { State::Same },
                }
            }
            Act::Again if !failed && !last_text.is_empty() => {
                // Read again, or known without reading: the same is written.
                match last_text.len() % 2 {
                    0 => assert!(!writer.read(slot, &last_text)),
                    _ => assert!(writer.same(slot)),
                }
                Expected {
                    text: last_text,
                    state: State::Same,
                }
            }
            Act::Fail(errno) => {
                writer.failed(slot, *errno);
                Expected {
                    text: Vec::new(),
                    state: State::Failed(*errno),
                }
            }
            _ => {
                assert!(
                    !matches!(act, Act::Again) || !writer.same(slot),
                    "there is no text"
                );
                writer.unread(slot, Why::NotDue);
                Expected {
                    text: last_text,
                    state: State::Unread(Why::NotDue),
                }
            }
        }
    }

    fn compare(track: &Track, truth: &[Option<Expected>]) {
        let mut shown: Vec<Option<Expected>> = vec![None; truth.len()];
        for (slot, instance) in track.instances() {
            let mut text = Vec::new();
            assert!(track.render(instance, &mut text));
            assert_eq!(instance.name, slot.to_string().as_bytes());
            shown[slot] = Some(Expected {
                text,
                state: instance.state,
            });
        }
        for (slot, (shown, truth)) in shown.iter().zip(truth).enumerate() {
            let (Some(shown), Some(truth)) = (shown, truth) else {
                assert_eq!(shown.is_none(), truth.is_none(), "slot {slot}");
                continue;
            };
            assert_eq!(shown.text, truth.text, "slot {slot}");
            // At a key a text that is the same is stated again.
            if !(shown.state == State::Changed && truth.state == State::Same) {
                assert_eq!(shown.state, truth.state, "slot {slot}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            samples in proptest::collection::vec(proptest::collection::vec(act(), 0..5), 1..40),
            key_each in 1usize..9, drop_from in 0usize..60,
        ) {
            for grammar in [Grammar::Plain, Grammar::Stat, Grammar::Keyed, Grammar::Word] {
                run_and_compare(grammar, &samples, key_each, drop_from);
            }
        }

        #[test]
        fn damaged_sections_are_refused_or_read(bytes: Vec<u8>, key: bool) {
            let mut track = Track::default();
            for _ in 0..2 {
                if track.apply(key, &bytes).is_ok() {
                    let mut out = Vec::new();
                    for (_, instance) in track.instances() {
                        out.clear();
                        track.render(instance, &mut out);
                    }
                }
            }
        }
    }

    /// A table like /proc/interrupts: a line a device, a column a CPU.
    fn table(lines: usize, columns: usize, moved: usize) -> Vec<u8> {
        let mut text = String::new();
        for line in 0..lines {
            text += &format!("{line:4}:");
            for column in 0..columns {
                let is_busy = (line * 7 + column) % 50 == 0;
                let number = if is_busy { 997 * (line + 1) + moved } else { 0 };
                text += &format!("{number:11}");
            }
            text += &format!("  IR-PCI-MSIX {line}-edge      nvme{line}\n");
        }
        text.into_bytes()
    }

    #[test]
    fn a_large_table_is_a_few_bytes_a_line_and_a_number_that_is_not_0_in_a_key() {
        let (lines, columns) = (100, 256);
        let mut writer = TrackWriter::new(Grammar::Counts);
        let mut track = Track::default();
        writer.begin(true);
        writer.add(0, b"");
        let mut buffer = Vec::new();
        for sample in 0..6 {
            if sample > 0 {
                writer.begin(sample % 2 == 0);
            }
            let text = table(lines, columns, 600 * sample);
            buffer.clone_from(&text);
            assert!(writer.read_exchanging(0, &mut buffer));
            let section = writer.end();
            let busy = lines * columns / 50;
            assert!(section.len() < lines * 64 + busy * 6, "{}", section.len());
            track
                .apply(sample % 2 == 0, section)
                .expect("its own section");
            let (_, instance) = track.instances().next().expect("an instance");
            let mut out = Vec::new();
            assert!(track.render(instance, &mut out) && out == text);
            assert!(writer.text(0) == text, "what it compares with next");
        }
    }

    /// Reads `text` as the kernel gives it, `step` bytes at a time.
    fn read_in_pieces(writer: &mut TrackWriter, text: &[u8], step: usize) -> bool {
        let mut offset = 0;
        let more = |out: &mut Vec<u8>| {
            let room = out.capacity() - out.len();
            assert!(room > 0, "a full buffer is not read into");
            let n = room.min(step).min(text.len() - offset);
            out.extend_from_slice(&text[offset..offset + n]);
            offset += n;
            Ok::<_, u16>(n)
        };
        let read = writer.read_in_pieces(0, &mut Buffers::default(), more);
        read.expect("nothing fails")
    }

    /// Changes of a table between two samples.
    fn happened(text: &mut Vec<u8>, what: u8, at: usize) {
        let at = at % text.len();
        let number = text[at..].iter().position(u8::is_ascii_digit);
        match (what, number) {
            // A number moves and keeps its place.
            (0..=5, Some(digit)) => text[at + digit] = b'1' + what,
            // A line comes, a line goes, a number outgrows its column, a name changes, the end is lost.
            (6, _) => text.extend_from_slice(b"  NEW:          1          2\n"),
            (7, _) => text.truncate(text.len() - 500),
            (8, Some(digit)) => {
                text.splice(at + digit..at + digit, *b"123456789012");
            }
            (9, _) => text[at] = b'~',
            _ => text.truncate(at + 1),
        }
    }

    proptest! {
        #[test]
        fn a_text_in_pieces_is_the_text(
            samples in proptest::collection::vec(
                (proptest::collection::vec((0u8..6, any::<usize>()), 0..9), any::<bool>(), 1usize..200_000), 1..8),
            upheaval in proptest::option::of((0usize..8, 6u8..11, any::<usize>())),
        ) {
            let mut writer = TrackWriter::new(Grammar::Counts);
            let mut track = Track::default();
            let mut text = table(40, 256, 0);
            writer.begin(true);
            writer.add(0, b"");
            writer.read_exchanging(0, &mut text.clone());
            prop_assert_eq!(track.apply(true, writer.end()), Ok(()));
            for (n, (moves, key, step)) in samples.into_iter().enumerate() {
                let before = text.clone();
                for (what, at) in moves {
                    happened(&mut text, what, at);
                }
                if let Some((_, what, at)) = upheaval.filter(|upheaval| upheaval.0 == n) {
                    happened(&mut text, what, at);
                }
                writer.begin(key);
                let changed = match writer.goes_in_pieces(0) {
                    true => read_in_pieces(&mut writer, &text, step),
                    false => writer.read_exchanging(0, &mut text.clone()),
                };
                prop_assert_eq!(changed, before != text);
                let section = writer.end();
                prop_assert_eq!(track.apply(key, section), Ok(()));
                let (_, instance) = track.instances().next().expect("an instance");
                let mut out = Vec::new();
                prop_assert!(track.render(instance, &mut out) && out == text);
                prop_assert!(writer.text(0) == text);
            }
        }
    }

    #[test]
    fn numbers_in_place_are_read_in_pieces_and_a_read_that_fails_leaves_nothing() {
        let mut writer = TrackWriter::new(Grammar::Counts);
        writer.begin(true);
        writer.add(0, b"");
        assert!(!writer.goes_in_pieces(0), "there is no text yet");
        writer.read_exchanging(0, &mut table(40, 256, 100));
        writer.begin(false);
        assert!(writer.goes_in_pieces(0));
        assert!(read_in_pieces(&mut writer, &table(40, 256, 200), 4096));
        let moved = writer.end().len();
        assert!(moved < 40 * 256 / 8, "{moved} bytes: what moved alone");
        assert!(writer.goes_in_pieces(0));
        writer.begin(false);
        let mut parts = [table(40, 256, 300), Vec::new()].into_iter();
        let failing = |out: &mut Vec<u8>| {
            let part = parts.next().filter(|part| !part.is_empty()).ok_or(5u16)?;
            out.extend_from_slice(&part[..100_000]);
            Ok(100_000)
        };
        let result = writer.read_in_pieces(0, &mut Buffers::default(), failing);
        assert_eq!(result, Err(5));
        writer.failed(0, 5);
        assert!(writer.text(0).is_empty() && !writer.goes_in_pieces(0));
    }

    #[test]
    fn a_few_bytes_define_no_more_slots_than_there_may_be() {
        let define = |slots: u64| {
            let mut template = Vec::new();
            varint::put_bytes(&mut template, b"");
            varint::put(&mut template, slots);
            template.extend([0, 0]);
            let mut section = Vec::new();
            for id in 0..2 {
                varint::put(&mut section, op::DEFINE | 2 << 3);
                varint::put(&mut section, id);
                varint::put_bytes(&mut section, &template);
            }
            section
        };
        let max = limits::TEMPLATE_RUNS_SLOTS_MAX as u64;
        let applied = |slots| Track::default().apply(true, &define(slots));
        assert_eq!(applied(max), Ok(()), "the second one is the first");
        assert_eq!(applied(max + 1), Err(Damaged));
        assert_eq!(applied(u64::MAX), Err(Damaged));
        let mut both = define(max);
        both.extend(define(max - 1));
        assert_eq!(Track::default().apply(true, &both), Err(Damaged));
    }

    #[test]
    fn a_few_bytes_are_no_more_zeros_than_there_may_be() {
        let section = |zeros: u64, times: u64| {
            let mut template = Vec::new();
            varint::put_bytes(&mut template, b"");
            varint::put(&mut template, 1 << 19);
            template.extend([0, 0]);
            let mut section = Vec::new();
            varint::put(&mut section, op::DEFINE | 2 << 3);
            varint::put(&mut section, 0);
            varint::put_bytes(&mut section, &template);
            for slot in 0..times {
                varint::put(&mut section, op::NEW | slot << 3);
                varint::put_bytes(&mut section, b"");
                varint::put(&mut section, op::OTHER | op::SPARSE << 3);
                for number in [0, zeros, 0] {
                    varint::put(&mut section, number);
                }
            }
            section
        };
        let applied = |zeros, times| Track::default().apply(true, &section(zeros, times));
        assert_eq!(applied(1 << 19, 2), Ok(()));
        assert_eq!(applied(1 << 19, 3), Err(Damaged));
        assert_eq!(applied((1 << 19) + 1, 1), Err(Damaged), "more than slots");
        assert_eq!(applied((1 << 19) - 1, 1), Err(Damaged), "less than slots");
        assert_eq!(applied(u64::MAX, 1), Err(Damaged));
    }

    #[test]
    fn ever_new_texts_end_up_as_bytes() {
        let mut writer = TrackWriter::new(Grammar::Plain);
        let mut lengths = Vec::new();
        for i in 0..20u8 {
            writer.begin(i == 0);
            if i == 0 {
                writer.add(0, b"");
            }
            writer.read(0, format!("key{} 1 2 3\n", (b'a' + i) as char).as_bytes());
            lengths.push(writer.end().len());
        }
        assert!(lengths[10] < lengths[1], "{lengths:?}");
    }

    /// A line like /proc/PID/stat.
    fn stat(ticks: u64, rss: u64) -> String {
        let zeros = " 0".repeat(25);
        format!(
            "4242 (a worker) S 1 4242 4242 0 -1 4194304 {ticks} 0 12 0 7 3 0 0 20 0 1{zeros} {rss}\n"
        )
    }

    #[test]
    fn what_is_packed_is_written_as_what_is_not() {
        let texts = [
            stat(7, 900),
            stat(7, 900),
            stat(8, 901),
            stat(8, 901).replace(" S ", " R "),
            stat(8, 901).replace(" 0\n", "\n"),
            stat(u64::MAX, 3),
            "9 (b) S 1 -1\n".into(),
            "9 (b) S 1 -1\n".into(),
            String::new(),
            stat(1, 1),
        ];
        let [mut open, mut packed] = [0; 2].map(|_| TrackWriter::new(Grammar::Stat));
        for (sample, text) in texts.iter().enumerate() {
            let write = |writer: &mut TrackWriter, packs: bool| {
                writer.begin(sample % 5 == 0);
                if sample == 0 {
                    writer.add(0, b"4242");
                }
                let changed = writer.read(0, text.as_bytes());
                if packs {
                    writer.pack(0);
                }
                (changed, writer.value(0, 2), writer.end().to_vec())
            };
            let expected = write(&mut open, false);
            assert_eq!(write(&mut packed, true), expected, "sample {sample}");
            assert!(packed.text(0).is_empty(), "sample {sample}");
        }
    }

    #[test]
    fn what_did_not_change_costs_one_byte() {
        let mut writer = TrackWriter::new(Grammar::Plain);
        for i in 0..2 {
            writer.begin(i == 0);
            for slot in 0..12 {
                if i == 0 {
                    writer.add(slot, b"x");
                }
                writer.read(slot, b"a 1\n");
            }
            if i == 1 {
                assert_eq!(writer.end().len(), 1);
            } else {
                writer.end();
            }
        }
    }
}
