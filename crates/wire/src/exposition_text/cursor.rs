//! The rest of a line, from which names, texts and words are taken.

use memchr::memchr2;

use super::fault::BadExposition;
use super::model::{EscapedText, Escapes, ExposedLabel, LABELS_MAX};

/// Where blanks may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blanks {
    /// Any number of blanks and tabs between any two parts, as in 0.0.4.
    Free,
    /// One blank between fields, and none in labels, as in OpenMetrics.
    Single,
}

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a str,
    pub(super) blanks: Blanks,
}

impl<'a> Cursor<'a> {
    /// Passes over blanks where any number of them may be.
    #[inline]
    pub(super) fn pass_blanks(&mut self) {
        if self.blanks == Blanks::Free {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
        }
    }

    /// Passes over the end of a field: any blanks, or the one that has to be.
    #[inline]
    pub(super) fn end_field(&mut self) -> bool {
        match self.blanks {
            Blanks::Free => {
                self.pass_blanks();
                true
            }
            Blanks::Single => self.eat(" "),
        }
    }

    #[inline]
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    #[inline]
    fn take(&mut self, size: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(size).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// A metric's name without quotes.
    #[inline]
    pub(super) fn take_metric_name(&mut self) -> Option<&'a str> {
        self.take_name(|byte| is_name_byte(byte) || byte == b':')
    }

    #[inline]
    fn take_name(&mut self, is_in: impl Fn(u8) -> bool) -> Option<&'a str> {
        let bytes = self.rest.as_bytes();
        let end = bytes.iter().position(|&byte| !is_in(byte));
        let begins = bytes.first().is_some_and(|byte| !byte.is_ascii_digit());
        match end.unwrap_or(bytes.len()) {
            0 => None,
            _ if !begins => None,
            end => Some(self.take(end)),
        }
    }

    /// A text in quotes.
    #[inline]
    pub(super) fn take_quoted(&mut self) -> Option<EscapedText<'a>> {
        let inner = self.rest.strip_prefix('"')?;
        let (bytes, mut at) = (inner.as_bytes(), 0);
        loop {
            at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
            match bytes.get(at) {
                Some(b'"') => break,
                // A character behind a backslash does not end the text.
                _ => at += 2,
            }
        }
        let raw = inner.get(..at)?;
        self.rest = inner.get(at + 1..)?;
        Some(EscapedText::new(raw, Escapes::Quoted))
    }

    /// Bytes up to the next blank or `stop`.
    #[inline]
    pub(super) fn take_word(&mut self, stop: u8) -> &'a str {
        let mut bytes = self.rest.bytes();
        let end = bytes.position(|byte| byte == b' ' || byte == b'\t' || byte == stop);
        self.take(end.unwrap_or(self.rest.len()))
    }

    /// Labels behind `{`, and the metric's name among them if it is in quotes. `name`: a name that was in front.
    pub(super) fn take_labels(
        &mut self,
        mut name: Option<EscapedText<'a>>,
        labels: &mut Vec<ExposedLabel<'a>>,
    ) -> Result<Option<EscapedText<'a>>, BadExposition> {
        loop {
            self.pass_blanks();
            if self.eat("}") {
                return Ok(name);
            }
            let is_quoted = self.rest.starts_with('"');
            let found = match is_quoted {
                true => self.take_quoted(),
                false => {
                    let found = self.take_name(is_name_byte);
                    found.map(|text| EscapedText::new(text, Escapes::None))
                }
            };
            let found = found.ok_or(BadExposition::Labels)?;
            self.pass_blanks();
            if self.eat("=") {
                self.pass_blanks();
                let value = self.take_quoted().ok_or(BadExposition::Labels)?;
                if found.raw().is_empty() {
                    return Err(BadExposition::Labels);
                }
                if labels.len() >= LABELS_MAX {
                    return Err(BadExposition::LabelCount);
                }
                labels.push(ExposedLabel { name: found, value });
            } else if !is_quoted {
                return Err(BadExposition::Labels);
            } else if name.is_some() || found.raw().is_empty() {
                return Err(BadExposition::Name);
            } else {
                name = Some(found);
            }
            self.pass_blanks();
            // A comma may be behind the last one.
            if !self.eat(",") && !self.rest.starts_with('}') {
                return Err(BadExposition::Labels);
            }
        }
    }
}

#[inline]
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
