//! The writing side of a track: texts in, one section a sample out. What did not change
//! costs a byte for all of it; what moved, the numbers that moved. Nothing is allocated once
//! the templates and words are known.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::held::Held;
use crate::limits;
use crate::scan;
use crate::template::{Class, Grammar, Template, derive};
use crate::text::{Alignment, Change, Text};
use crate::track::{Why, op};
use crate::varint;
use crate::words::Words;

/// EFBIG: what a reader would refuse is not written.
const TOO_LARGE: u16 = 27;

/// The writing side: one for each kind of source.
pub struct TrackWriter {
    grammar: Grammar,
    templates: Vec<Known>,
    words: Words,
    /// Key group in which each word id was last defined.
    words_defined: Vec<u32>,
    instances: Vec<Option<Box<Held>>>,
    section: Vec<u8>,
    run: Option<(u64, u64)>,
    changes: Vec<Change>,
    /// Values of an instance that was packed.
    unpacked: Vec<u64>,
    /// The buffers of the text that was packed last, for the next one that is not.
    spare: Option<Box<Text>>,
    group: u32,
    /// Slots of templates that were written by runs in this key group.
    run_slots: usize,
    /// Zeros that were counted, not written, in this key group.
    zeros: usize,
    sample: u64,
}

/// Buffers for texts that are read.
#[derive(Default)]
pub struct Buffers {
    /// A whole text.
    pub text: Vec<u8>,
    /// A piece of one; only long texts need it.
    piece: Vec<u8>,
}

struct Known {
    template: Arc<Template>,
    /// Some of its values are words.
    has_words: bool,
    /// The template as it is written by runs; empty until it is.
    runs: Vec<u8>,
    defined: u32,
    last_used: u64,
}

impl TrackWriter {
    /// A track whose texts are cut by `grammar`.
    pub fn new(grammar: Grammar) -> TrackWriter {
        TrackWriter {
            grammar,
            templates: Vec::new(),
            words: Words::default(),
            words_defined: Vec::new(),
            instances: Vec::new(),
            section: Vec::new(),
            run: None,
            changes: Vec::new(),
            unpacked: Vec::new(),
            spare: None,
            group: 0,
            run_slots: 0,
            zeros: 0,
            sample: 0,
        }
    }

    /// Begins a sample's section. Frames then follow in ascending order of slot.
    pub fn begin(&mut self, key: bool) {
        self.section.clear();
        self.run = None;
        self.sample += 1;
        if key {
            self.group += 1;
            self.run_slots = 0;
            self.zeros = 0;
            if self.words.bytes() > limits::WORDS_KEPT_BYTES
                || self.words.len() > 4 * self.instances.len() + 1024
            {
                self.forget_unused_words();
            }
        }
    }

    /// Adds an instance. A writer that reuses a slot first says [`TrackWriter::gone`].
    pub fn add(&mut self, slot: usize, name: &[u8]) {
        self.add_shared(slot, name.into());
    }

    /// As [`TrackWriter::add`], with a name that other tracks have too.
    pub fn add_shared(&mut self, slot: usize, name: Arc<[u8]>) {
        if slot >= self.instances.len() {
            self.instances.resize_with(slot + 1, || None);
        }
        self.instances[slot] = Some(Box::new(Held::new(name)));
    }

    /// Removes an instance; said before any frame of a higher slot.
    pub fn gone(&mut self, slot: usize) {
        if let Some(held) = self.instances.get_mut(slot).and_then(Option::take)
            && held.stated == self.group
        {
            self.flush();
            varint::put(&mut self.section, op::GONE | (slot as u64) << 3);
        }
    }

    /// The instance was read: `text` is its text. Tells whether it differs from the last.
    pub fn read(&mut self, slot: usize, text: &[u8]) -> bool {
        let changed = self.frame(slot, text);
        if changed && let Some(held) = self.held(slot) {
            let bytes = &mut held.open_text().bytes;
            bytes.clear();
            bytes.extend_from_slice(text);
        }
        changed
    }

    /// Keeps the values of the instance's text only, which take a tenth of its memory; worth it where texts are many and seldom
    /// change. The next text is parsed from end to end.
    pub fn pack(&mut self, slot: usize) {
        let held = self.instances.get_mut(slot).and_then(Option::as_deref_mut);
        if let Some(text) = held.and_then(Held::pack) {
            self.spare = Some(text);
        }
    }

    /// As [`TrackWriter::read`], where the text's buffer may be exchanged for another: a long text is not copied.
    pub fn read_exchanging(&mut self, slot: usize, text: &mut Vec<u8>) -> bool {
        if text.len() <= limits::TEXT_COPIED_MAX {
            return self.read(slot, text);
        }
        let changed = self.frame(slot, text);
        if changed && let Some(held) = self.held(slot) {
            std::mem::swap(&mut held.open_text().bytes, text);
        }
        changed
    }

    /// True if [`TrackWriter::read_in_pieces`] is the way to read the instance: its last text is long, and its numbers keep their
    /// places.
    pub fn goes_in_pieces(&self, slot: usize) -> bool {
        let held = self.instances.get(slot).and_then(Option::as_deref);
        held.is_some_and(|held| {
            let template = held.template.map(|id| &self.templates[usize::from(id)]);
            held.bytes().len() > limits::TEXT_COPIED_MAX
                && !held.is_read_whole(self.sample)
                && template.is_some_and(|known| !known.has_words)
        })
    }

    /// As [`TrackWriter::read_exchanging`], of an instance that [`TrackWriter::goes_in_pieces`]: each piece is compared while it
    /// is in the CPU's cache, and an unchanged piece is not copied. `more` appends the next bytes to a buffer that is not full, 0
    /// bytes at the end. After an error the caller calls [`TrackWriter::failed`].
    pub fn read_in_pieces<E>(
        &mut self,
        slot: usize,
        Buffers { text, piece }: &mut Buffers,
        mut more: impl FnMut(&mut Vec<u8>) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        let mut place = Alignment::default();
        let patched = self.patch(slot, piece, &mut more, (&mut place, &mut changes));
        self.changes = changes;
        let Some(rest) = patched? else {
            self.frame_advanced(slot);
            return Ok(!self.changes.is_empty());
        };
        text.clear();
        let sample = self.sample;
        if let Some(held) = self.held(slot) {
            held.read_whole_from(sample);
            text.reserve(held.bytes().len() + limits::PIECE_READ);
            text.extend_from_slice(&held.bytes()[..rest]);
        }
        text.extend_from_slice(piece);
        while text.len() <= limits::TEXT_RECORDED_MAX {
            text.reserve(limits::PIECE_READ);
            if more(text)? == 0 {
                break;
            }
        }
        let is_recorded = self.frame_from(place, slot, text);
        if is_recorded && let Some(held) = self.held(slot) {
            std::mem::swap(&mut held.open_text().bytes, text);
        }
        Ok(is_recorded)
    }

    /// Reads on as long as numbers keep their places; `None`: to the end. Else the length up to which the instance's text has the
    /// new values; `piece` has the bytes that were read beyond it.
    fn patch<E>(
        &mut self,
        slot: usize,
        piece: &mut Vec<u8>,
        more: &mut impl FnMut(&mut Vec<u8>) -> Result<usize, E>,
        (place, changes): (&mut Alignment, &mut Vec<Change>),
    ) -> Result<Option<usize>, E> {
        piece.clear();
        piece.reserve_exact(limits::PIECE_READ);
        let TrackWriter {
            instances,
            templates,
            words,
            ..
        } = self;
        let held = instances.get_mut(slot).and_then(Option::as_deref_mut);
        let Some((last, id)) = held.and_then(Held::text_by_template) else {
            return Ok(Some(0));
        };
        let template = &templates[usize::from(id)].template;
        let mut start = 0;
        loop {
            let is_end = more(piece)? == 0;
            let lines = match is_end {
                true => piece.len(),
                false => scan::last_line_end(piece),
            };
            let is_too_long = lines == 0 && piece.len() == piece.capacity();
            let next = (start, &piece[..lines]);
            if is_too_long || !last.patch(place, next, template, words, changes) {
                return Ok(Some(start));
            }
            start += lines;
            piece.drain(..lines);
            if is_end {
                return Ok((start != last.bytes.len()).then_some(start));
            }
        }
    }

    /// The instance's text is the last one, as is known without reading it. False, and nothing is said, where there is none.
    pub fn same(&mut self, slot: usize) -> bool {
        let has_text = self.held(slot).is_some_and(|held| held.has_text());
        if !has_text {
            return false;
        }
        if self.is_stated(slot) {
            self.extend_run(op::SAME);
        } else {
            self.state_name(slot);
            self.state_full(slot);
        }
        true
    }

    /// The instance was not read in this sample.
    pub fn unread(&mut self, slot: usize, why: Why) {
        if self.is_stated(slot) {
            self.extend_run(op::UNREAD | (why as u64) << 8);
            return;
        }
        let has_text = self.held(slot).is_some_and(|held| held.has_text());
        self.state_name(slot);
        varint::put(&mut self.section, op::OTHER | op::HELD << 3);
        self.section.push(why as u8);
        if has_text {
            self.state_full(slot)
        } else {
            self.state_bytes(slot, &[])
        }
    }

    /// Reading the instance failed.
    pub fn failed(&mut self, slot: usize, errno: u16) {
        if !self.is_stated(slot) {
            self.state_name(slot);
        }
        self.flush();
        if let Some(held) = self.held(slot) {
            held.forget_text();
        }
        varint::put(&mut self.section, op::OTHER | op::FAILED << 3);
        varint::put(&mut self.section, errno.into());
    }

    /// Ends the sample and hands out its section.
    pub fn end(&mut self) -> &[u8] {
        self.flush();
        &self.section
    }

    /// True if the sample's section has frames.
    pub fn has_frames(&self) -> bool {
        !self.section.is_empty() || self.run.is_some()
    }

    /// True if packed values stand for an instance's text.
    pub fn is_packed(&self, slot: usize) -> bool {
        let held = self.instances.get(slot).and_then(Option::as_deref);
        held.is_some_and(Held::is_packed)
    }

    /// The last text of an instance; empty when there is none, or it is packed.
    #[cfg(test)]
    pub(crate) fn text(&self, slot: usize) -> &[u8] {
        let held = self.instances.get(slot).and_then(Option::as_deref);
        held.map_or(&[], Held::bytes)
    }

    /// A value of the instance's last text.
    pub fn value(&self, slot: usize, index: usize) -> Option<u64> {
        self.instances.get(slot)?.as_deref()?.value(index)
    }

    /// The template of an instance's last text.
    pub fn template(&self, slot: usize) -> Option<&Arc<Template>> {
        let id = self.instances.get(slot)?.as_deref()?.template?;
        Some(&self.templates[usize::from(id)].template)
    }

    /// The word under `id`.
    pub fn word(&self, id: u64) -> &[u8] {
        self.words.get(id).unwrap_or_default()
    }

    fn held(&mut self, slot: usize) -> Option<&mut Held> {
        self.instances.get_mut(slot)?.as_deref_mut()
    }

    fn is_stated(&self, slot: usize) -> bool {
        self.instances
            .get(slot)
            .and_then(Option::as_deref)
            .is_some_and(|held| held.stated == self.group)
    }

    /// Says what became of one text that was read; true when it differs from the last.
    fn frame(&mut self, slot: usize, text: &[u8]) -> bool {
        if self.words.capacity() >= limits::WORDS_MAX {
            self.failed(slot, TOO_LARGE);
            return false;
        }
        let Some(held) = self.instances.get(slot).and_then(Option::as_deref) else {
            return false;
        };
        if held.is_packed() {
            return self.frame_packed(slot, text);
        }
        let same = held.bytes() == text && !(text.is_empty() && held.template.is_none());
        self.changes.clear();
        if same {
            self.frame_advanced(slot);
            return false;
        }
        self.frame_from(Alignment::default(), slot, text)
    }

    /// Says what became of a text that differs from the last one behind `place`, up to which `changes` has what moved; false when it is too
    /// long.
    fn frame_from(&mut self, place: Alignment, slot: usize, text: &[u8]) -> bool {
        if text.len() > limits::TEXT_RECORDED_MAX {
            self.failed(slot, TOO_LARGE);
            return false;
        }
        if self.advance_from(place, slot, text) {
            self.frame_advanced(slot);
            return true;
        }
        self.state_new_text(slot, text);
        true
    }

    /// As [`TrackWriter::frame`], of an instance that is packed.
    fn frame_packed(&mut self, slot: usize, text: &[u8]) -> bool {
        if text.len() > limits::TEXT_RECORDED_MAX {
            self.failed(slot, TOO_LARGE);
            return false;
        }
        if self.advance_packed(slot, text) {
            self.frame_advanced(slot);
            return !self.changes.is_empty();
        }
        self.state_new_text(slot, text);
        true
    }

    /// Compares the next text with the packed values of an instance, and unpacks the instance unless both are the same.
    fn advance_packed(&mut self, slot: usize, text: &[u8]) -> bool {
        let TrackWriter {
            instances,
            templates,
            words,
            changes,
            unpacked,
            spare,
            ..
        } = self;
        changes.clear();
        let Some(held) = instances[slot].as_deref_mut() else {
            return false;
        };
        let Some(id) = held.template else {
            return false;
        };
        let template = &templates[usize::from(id)].template;
        if template.makes(text, held.packed_values(), words) {
            return true;
        }
        let mut next = spare.take().unwrap_or_default();
        let fits = template.matches(text, words, &mut next.values, &mut next.ends);
        if fits {
            let last = held.values(unpacked).iter().copied();
            let pairs = last.zip(&next.values).zip(0..);
            let moved = pairs.filter(|((last, next), _)| last != *next);
            changes.extend(moved.map(|((last, _), slot)| Change { slot, last }));
        }
        held.open(next);
        fits
    }

    /// Says what the template's values have become; `changes` has which moved.
    fn frame_advanced(&mut self, slot: usize) {
        let has_changed = !self.changes.is_empty();
        match self.is_stated(slot) {
            true if has_changed => self.state_changes(slot),
            true => self.extend_run(op::SAME),
            false => {
                self.state_name(slot);
                self.state_full(slot);
            }
        }
    }

    /// The cheap way: the current template fits.
    fn advance_from(&mut self, place: Alignment, slot: usize, text: &[u8]) -> bool {
        let TrackWriter {
            instances,
            templates,
            words,
            changes,
            ..
        } = self;
        let Some(held) = instances[slot].as_deref_mut() else {
            return false;
        };
        let Some((last, id)) = held.text_by_template() else {
            return false;
        };
        let template = &templates[usize::from(id)].template;
        last.advance_from(place, template, words, text, changes)
    }

    /// States the numbers that moved.
    fn state_changes(&mut self, slot: usize) {
        let TrackWriter {
            instances,
            templates,
            words,
            changes,
            section,
            run,
            words_defined,
            group,
            ..
        } = self;
        let Some(held) = instances[slot].as_deref_mut() else {
            return;
        };
        let Some((text, id)) = held.text_by_template() else {
            return;
        };
        let known = &templates[usize::from(id)];
        flush_run(run, section);
        for change in changes.iter().filter(|_| known.has_words) {
            if let Class::Word(_) = known.template.slots()[change.slot as usize].class {
                define_word(
                    words,
                    words_defined,
                    *group,
                    text.values[change.slot as usize],
                    section,
                );
            }
        }
        varint::put(section, op::CHANGED | (changes.len() as u64) << 3);
        let mut next = 0;
        for change in changes.iter() {
            varint::put(section, u64::from(change.slot - next));
            varint::put(
                section,
                varint::zigzag(text.values[change.slot as usize], change.last),
            );
            next = change.slot + 1;
        }
    }

    /// Finds or derives a template for `text`, and states all values.
    fn state_new_text(&mut self, slot: usize, text: &[u8]) {
        self.flush();
        if !self.is_stated(slot) {
            self.state_name(slot);
        }
        let fitting = self.find_template(slot, text);
        let sample = self.sample;
        let Some(held) = self.held(slot) else {
            return;
        };
        if fitting.is_none() && held.is_kept_as_bytes(sample) {
            held.template = None;
            return self.state_bytes(slot, text);
        }
        let id = match fitting {
            Some(id) => id,
            None => {
                held.note_novelty(sample);
                match self.learn(slot, text) {
                    Some(id) => id,
                    None => return self.state_bytes(slot, text),
                }
            }
        };
        self.templates[usize::from(id)].last_used = sample;
        if let Some(held) = self.held(slot) {
            held.template = Some(id);
        }
        self.state_full(slot);
    }

    /// A known template that fits, tried from the latest used one; leaves values and ends in place.
    fn find_template(&mut self, slot: usize, text: &[u8]) -> Option<u16> {
        let TrackWriter {
            instances,
            templates,
            words,
            spare,
            ..
        } = self;
        let held = instances.get_mut(slot)?.as_deref_mut()?;
        if held.bytes().is_empty()
            && let Some(buffers) = spare.take()
        {
            held.open(buffers);
        }
        let Text { values, ends, .. } = held.open_text();
        let mut order: Vec<u16> = (0..templates.len() as u16).collect();
        order.sort_unstable_by_key(|&id| Reverse(templates[usize::from(id)].last_used));
        order.into_iter().find(|&id| {
            let template = &templates[usize::from(id)].template;
            template.matches(text, words, values, ends)
        })
    }

    /// Derives a template from `text` and remembers it; `None` when there is no room for it.
    fn learn(&mut self, slot: usize, text: &[u8]) -> Option<u16> {
        let id = self.free_template()?;
        let TrackWriter {
            instances,
            templates,
            words,
            grammar,
            ..
        } = self;
        let held = instances.get_mut(slot)?.as_deref_mut()?;
        let Text { values, ends, .. } = held.open_text();
        let template = derive(text, *grammar, words, values, ends);
        let known = Known {
            has_words: template.has_words(),
            runs: Vec::new(),
            template: Arc::new(template),
            defined: 0,
            last_used: self.sample,
        };
        match templates.get_mut(usize::from(id)) {
            Some(place) => *place = known,
            None => templates.push(known),
        }
        Some(id)
    }

    /// A place for a template: a new one, or that of the least recently used which no instance holds.
    fn free_template(&mut self) -> Option<u16> {
        if self.templates.len() < limits::TEMPLATES_MAX {
            return u16::try_from(self.templates.len()).ok();
        }
        let mut held = vec![false; self.templates.len()];
        for id in self.instances.iter().flatten().filter_map(|i| i.template) {
            held[usize::from(id)] = true;
        }
        let free = (0..self.templates.len()).filter(|&id| !held[id]);
        free.min_by_key(|&id| self.templates[id].last_used)
            .and_then(|id| u16::try_from(id).ok())
    }

    fn state_name(&mut self, slot: usize) {
        self.flush();
        let group = self.group;
        varint::put(&mut self.section, op::NEW | (slot as u64) << 3);
        if let Some(held) = self.instances[slot].as_deref_mut() {
            held.stated = group;
            varint::put_bytes(&mut self.section, &held.name);
        }
    }

    /// States the instance's present template and values in full.
    fn state_full(&mut self, slot: usize) {
        let TrackWriter {
            instances,
            templates,
            words,
            section,
            words_defined,
            group,
            run_slots,
            zeros,
            unpacked,
            ..
        } = self;
        let Some(held) = instances[slot].as_deref_mut() else {
            return;
        };
        let Some(id) = held.template else {
            let bytes = std::mem::take(&mut held.open_text().bytes);
            self.state_bytes(slot, &bytes);
            if let Some(held) = self.held(slot) {
                held.open_text().bytes = bytes;
            }
            return;
        };
        let values = held.values(unpacked);
        let known = &mut templates[usize::from(id)];
        if known.defined != *group {
            known.defined = *group;
            let slots = known.template.len();
            let by_runs = slots >= limits::TEMPLATE_RUNS_FROM
                && slots <= limits::TEMPLATE_RUNS_SLOTS_MAX - *run_slots;
            if by_runs {
                *run_slots += slots;
                if known.runs.is_empty() {
                    known.template.write_runs(&mut known.runs);
                }
                varint::put(section, op::DEFINE | 2 << 3);
                varint::put(section, id.into());
                varint::put_bytes(section, &known.runs);
            } else {
                let mut bytes = Vec::new();
                known.template.write(&mut bytes);
                varint::put(section, op::DEFINE);
                varint::put(section, id.into());
                varint::put_bytes(section, &bytes);
            }
        }
        if known.has_words {
            for (slot, &value) in known.template.slots().iter().zip(values) {
                if let Class::Word(_) = slot.class {
                    define_word(words, words_defined, *group, value, section);
                }
            }
        }
        let none = match values.len() >= limits::TEMPLATE_RUNS_FROM {
            true => values.iter().filter(|&&value| value == 0).count(),
            false => 0,
        };
        if none > values.len() / 2 && none <= limits::SPARSE_ZEROS_MAX - *zeros {
            *zeros += none;
            varint::put(section, op::OTHER | op::SPARSE << 3);
            varint::put(section, id.into());
            return put_sparse(section, values);
        }
        varint::put(section, op::FULL | u64::from(id) << 3);
        values.iter().for_each(|&value| varint::put(section, value));
    }

    fn state_bytes(&mut self, slot: usize, text: &[u8]) {
        if let Some(held) = self.held(slot) {
            held.template = None;
        }
        varint::put(&mut self.section, op::OTHER | op::BYTES << 3);
        varint::put_bytes(&mut self.section, text);
    }

    fn extend_run(&mut self, code: u64) {
        match &mut self.run {
            Some((same, n)) if *same == code => *n += 1,
            _ => {
                self.flush();
                self.run = Some((code, 1));
            }
        }
    }

    fn flush(&mut self) {
        flush_run(&mut self.run, &mut self.section);
    }

    fn forget_unused_words(&mut self) {
        let mut used = vec![false; self.words.capacity()];
        for held in self.instances.iter().flatten() {
            let Some(id) = held.template else { continue };
            let slots = self.templates[usize::from(id)].template.slots();
            let values = held.values(&mut self.unpacked);
            for (slot, &value) in slots.iter().zip(values) {
                if let Class::Word(_) = slot.class
                    && let Some(mark) = used.get_mut(value as usize)
                {
                    *mark = true;
                }
            }
        }
        self.words.keep(&used);
    }
}

fn flush_run(run: &mut Option<(u64, u64)>, section: &mut Vec<u8>) {
    if let Some((code, n)) = run.take() {
        varint::put(section, (code & 7) | n << 3);
        if code & 7 == op::UNREAD {
            section.push((code >> 8) as u8);
        }
    }
}

/// Numbers of which most are 0: again and again how many zeros come, how many others, and these.
fn put_sparse(out: &mut Vec<u8>, values: &[u64]) {
    let mut rest = values;
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|&&value| value == 0).count();
        let others = rest[zeros..].iter().take_while(|&&value| value != 0);
        let others = others.count();
        varint::put_count(out, zeros);
        varint::put_count(out, others);
        let (now, later) = rest.split_at(zeros + others);
        now[zeros..]
            .iter()
            .for_each(|&value| varint::put(out, value));
        rest = later;
    }
}

fn define_word(words: &Words, defined: &mut Vec<u32>, group: u32, id: u64, section: &mut Vec<u8>) {
    let index = id as usize;
    if index >= defined.len() {
        defined.resize(index + 1, 0);
    }
    if defined[index] != group {
        defined[index] = group;
        varint::put(section, op::DEFINE | 1 << 3);
        varint::put(section, id);
        varint::put_bytes(section, words.get(id).unwrap_or_default());
    }
}
