//! State of an instance that a track's writer keeps between samples: the last text, to be compared with the next one. Where instances
//! are many and seldom change, the packed values of the text replace it.

use std::sync::Arc;

use crate::limits;
use crate::text::Text;
use crate::varint;

/// An instance as last read. There may be thousands, with six tracks each.
pub(crate) struct Held {
    pub(crate) name: Arc<[u8]>,
    /// `None`: there is no text, or it is packed.
    text: Option<Box<Text>>,
    /// The values of the last text that was packed, as varints.
    packed: Box<[u8]>,
    /// Index of the template; `None`: no text yet, or kept as bytes.
    pub(crate) template: Option<u16>,
    /// Key group in which it was last stated.
    pub(crate) stated: u32,
    /// `None` for most: their texts are alike.
    novelty: Option<Box<Novelty>>,
}

/// History of an instance whose texts are not alike.
#[derive(Default)]
struct Novelty {
    /// New templates since `since`.
    count: u8,
    since: u64,
    /// Kept as bytes until this sample.
    bytes_until: u64,
    /// Not read in pieces until this sample.
    whole_until: u64,
}

impl Held {
    /// An instance that has no text yet.
    pub(crate) fn new(name: Arc<[u8]>) -> Held {
        Held {
            name: match name.len() > limits::NAME_MAX {
                true => name[..limits::NAME_MAX].into(),
                false => name,
            },
            text: None,
            packed: Box::default(),
            template: None,
            stated: 0,
            novelty: None,
        }
    }

    /// True if packed values stand for the text.
    pub(crate) fn is_packed(&self) -> bool {
        self.text.is_none() && self.template.is_some()
    }

    /// True if the instance has a text, and not an empty one.
    pub(crate) fn has_text(&self) -> bool {
        self.is_packed() || !self.bytes().is_empty()
    }

    /// The last text; empty where there is none, or it is packed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.as_deref().map_or(&[], |text| &text.bytes)
    }

    /// The last text and its template, where it has one and is not packed.
    pub(crate) fn text_by_template(&mut self) -> Option<(&mut Text, u16)> {
        Some((self.text.as_deref_mut()?, self.template?))
    }

    /// Buffers for the next text, which has been seen to differ from a packed one.
    pub(crate) fn open_text(&mut self) -> &mut Text {
        self.text.get_or_insert_default()
    }

    /// As [`Held::open_text`], with buffers from elsewhere.
    pub(crate) fn open(&mut self, text: Box<Text>) {
        self.text = Some(text);
    }

    /// Keeps the values alone; hands out the buffers that are not needed any more.
    pub(crate) fn pack(&mut self) -> Option<Box<Text>> {
        self.template?;
        let mut text = self.text.take_if(|text| !text.bytes.is_empty())?;
        // Packing ends the use of the text, so its buffer takes the packed values.
        text.bytes.clear();
        for &value in &text.values {
            varint::put(&mut text.bytes, value);
        }
        match self.packed.len() == text.bytes.len() {
            true => self.packed.copy_from_slice(&text.bytes),
            false => self.packed = text.bytes.as_slice().into(),
        }
        text.bytes.clear();
        Some(text)
    }

    /// The values of the last text; `unpacked` is where they go if they are packed.
    pub(crate) fn values<'a>(&'a self, unpacked: &'a mut Vec<u64>) -> &'a [u64] {
        if let Some(text) = &self.text {
            return &text.values;
        }
        unpacked.clear();
        unpacked.extend(self.packed_values());
        unpacked
    }

    /// Value `i` of the last text.
    pub(crate) fn value(&self, index: usize) -> Option<u64> {
        self.template?;
        match &self.text {
            Some(text) => text.values.get(index).copied(),
            None => self.packed_values().nth(index),
        }
    }

    pub(crate) fn packed_values(&self) -> impl Iterator<Item = u64> + '_ {
        let mut rest = &*self.packed;
        std::iter::from_fn(move || varint::take(&mut rest))
    }

    /// Forgets the text.
    pub(crate) fn forget_text(&mut self) {
        self.template = None;
        if let Some(text) = &mut self.text {
            text.bytes.clear();
        }
    }

    /// True if the writer keeps texts without a known template as bytes.
    pub(crate) fn is_kept_as_bytes(&self, sample: u64) -> bool {
        let novelty = self.novelty.as_ref();
        novelty.is_some_and(|novelty| novelty.bytes_until > sample)
    }

    /// True if the reader takes the instance whole and not in pieces.
    pub(crate) fn is_read_whole(&self, sample: u64) -> bool {
        let novelty = self.novelty.as_ref();
        novelty.is_some_and(|novelty| novelty.whole_until > sample)
    }

    /// Reads the instance whole for a while, as its numbers have left their places.
    pub(crate) fn read_whole_from(&mut self, sample: u64) {
        self.novelty.get_or_insert_default().whole_until = sample + limits::NOVELTY_SAMPLES;
    }

    /// Counts a new template; after too many of them the instance's texts are kept as bytes.
    pub(crate) fn note_novelty(&mut self, sample: u64) {
        let novelty = self.novelty.get_or_insert_default();
        if sample - novelty.since >= limits::NOVELTY_SAMPLES {
            (novelty.count, novelty.since) = (0, sample);
        }
        novelty.count += 1;
        if novelty.count > limits::NOVELTY_MAX {
            novelty.bytes_until = sample + limits::NOVELTY_SAMPLES;
            novelty.count = 0;
        }
    }
}
