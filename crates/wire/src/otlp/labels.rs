//! The labels of a sample, in one buffer that all samples use.

use super::attribute;
use super::limits::OtlpLimits;
use super::names::put_label_name;
use super::refusal::{BadDataPoint, Unread};

pub(super) const METRIC_NAME: &str = "__name__";

/// A place in the buffer's text.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct LabelEntry {
    name: Span,
    value: Span,
}

/// Labels as they are put together.
#[derive(Debug, Default)]
pub(super) struct LabelBuffer {
    text: String,
    /// Attributes as they came, or the labels that all samples of a point share.
    base: Vec<LabelEntry>,
    /// Bytes of text that these use.
    base_bytes: usize,
    /// Labels of one sample.
    whole: Vec<LabelEntry>,
}

/// Labels of a sample.
#[derive(Clone, Copy, Debug)]
pub struct OtlpLabels<'r> {
    buffer: &'r LabelBuffer,
}

impl<'r> OtlpLabels<'r> {
    /// Names and values, neither of them empty, sorted by names, each name once.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (&'r str, &'r str)> + Clone + use<'r> {
        let buffer = self.buffer;
        let labels = buffer.whole.iter();
        labels.map(|entry| (buffer.at(entry.name), buffer.at(entry.value)))
    }
}

impl LabelBuffer {
    /// Begins a point, or a resource.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.base.clear();
        self.base_bytes = 0;
    }

    fn at(&self, span: Span) -> &str {
        self.text.get(span.from..span.to).unwrap_or_default()
    }

    fn append(&mut self, text: &str) -> Span {
        let from = self.text.len();
        self.text.push_str(text);
        let to = self.text.len();
        Span { from, to }
    }

    /// Adds an attribute under its own key. `skip`: keys that are no labels.
    pub(super) fn push_attribute(
        &mut self,
        message: &[u8],
        skip: &[&str],
        limits: &OtlpLimits,
    ) -> Result<(), Unread> {
        let (key, value) = attribute::read(message)?;
        if skip.contains(&key) {
            return Ok(());
        }
        if self.base.len() >= limits.attributes {
            return Err(BadDataPoint::AttributeCount.into());
        }
        let name = self.append(key);
        let from = self.text.len();
        attribute::put_value(&mut self.text, value)?;
        let to = self.text.len();
        if to > limits.attribute_bytes {
            return Err(BadDataPoint::AttributeBytes.into());
        }
        let value = Span { from, to };
        self.base.push(LabelEntry { name, value });
        Ok(())
    }

    /// True without any attribute.
    pub(super) fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// Makes labels of the attributes. Keys that become one name have one label, their values in the order of the keys
    /// with `;` between them. `fixed` labels win over attributes.
    pub(super) fn finish(&mut self, fixed: &[(&str, &str)]) -> Result<(), BadDataPoint> {
        let LabelBuffer { text, base, .. } = self;
        let at = |span: Span| text.get(span.from..span.to).unwrap_or_default();
        base.sort_by(|a, b| at(a.name).cmp(at(b.name)));
        for entry in base.iter_mut() {
            let (key, from) = (entry.name, text.len());
            let key = text.get(key.from..key.to).unwrap_or_default().to_owned();
            if !put_label_name(text, &key) {
                return Err(BadDataPoint::AttributeKey);
            }
            let to = text.len();
            entry.name = Span { from, to };
        }
        let at = |span: Span| text.get(span.from..span.to).unwrap_or_default();
        base.sort_by(|a, b| at(a.name).cmp(at(b.name)));
        self.join_equal();
        self.base.retain(|entry| entry.value.from < entry.value.to);
        std::mem::swap(&mut self.base, &mut self.whole);
        for (name, value) in fixed {
            self.set(name, value);
        }
        std::mem::swap(&mut self.base, &mut self.whole);
        self.base_bytes = self.text.len();
        Ok(())
    }

    fn join_equal(&mut self) {
        let mut joined: Vec<LabelEntry> = Vec::with_capacity(self.base.len());
        for entry in std::mem::take(&mut self.base) {
            match joined.last().copied() {
                Some(last) if self.at(last.name) == self.at(entry.name) => {
                    let value = match self.at(last.value) {
                        "" => self.at(entry.value).to_owned(),
                        before => format!("{before};{}", self.at(entry.value)),
                    };
                    let value = self.append(&value);
                    if let Some(last) = joined.last_mut() {
                        last.value = value;
                    }
                }
                _ => joined.push(entry),
            }
        }
        self.base = joined;
    }

    /// The labels of one sample: those of its point, and these, which win.
    pub(super) fn of_sample(&mut self, own: &[(&str, &str)]) -> OtlpLabels<'_> {
        self.text.truncate(self.base_bytes);
        self.whole.clone_from(&self.base);
        for (name, value) in own {
            self.set(name, value);
        }
        OtlpLabels { buffer: self }
    }

    /// An empty value is as good as no label.
    fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let found = self
            .whole
            .binary_search_by(|entry| self.at(entry.name).cmp(name));
        let value = self.append(value);
        match found {
            Ok(at) => {
                if let Some(entry) = self.whole.get_mut(at) {
                    entry.value = value;
                }
            }
            Err(at) => {
                let name = self.append(name);
                self.whole.insert(at, LabelEntry { name, value });
            }
        }
    }
}
