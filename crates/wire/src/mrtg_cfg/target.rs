//! A target: a pair of numbers, and how to store and show them.

use super::config::Target;
use super::expression::Expression;
use super::keyword::Keyword;
use super::looks;
use super::options::{Choice, Options};
use std::borrow::Cow;

/// Kind of a target's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A count that only grows and wraps.
    Counter,
    /// A measurement.
    Gauge,
    /// A count since the last reading.
    Absolute,
    /// A count that grows and shrinks.
    Derive,
}

impl<'a> Target<'a> {
    /// The name in lower case, as in the names of its files. Any bytes.
    pub fn name(self) -> Cow<'a, [u8]> {
        self.config.text(self.kept.name)
    }

    /// File and line of the target's first keyword.
    pub fn place(self) -> (&'a [u8], u32) {
        (self.config.file_path(self.kept.file), self.kept.line)
    }

    /// The value of a keyword: its own, extended by `[^]` and `[$]`, or that of `[_]`.
    pub fn value(self, keyword: Keyword) -> Option<Cow<'a, [u8]>> {
        let text = self.config.value(self.kept, keyword)?;
        Some(self.config.text(text))
    }

    /// The expression for its numbers.
    pub fn expression(self) -> Expression {
        self.kept.expression
    }

    /// The words of its `Options[]`.
    pub fn options(self) -> Options {
        self.kept.options
    }

    /// Maximum of its numbers per second, in and out.
    pub fn max_bytes(self) -> [u64; 2] {
        self.kept.max_bytes
    }

    /// Maximum that replaces both [`Target::max_bytes`] as a limit.
    pub fn abs_max(self) -> Option<u64> {
        self.kept.abs_max
    }

    /// Names and colours of its `Colours[]`: four, or five with `dorelpercent`. `None`: it has none.
    pub fn colours(self) -> Option<Vec<(Vec<u8>, [u8; 3])>> {
        let count = match self.options().has(Choice::Dorelpercent) {
            true => 5,
            false => 4,
        };
        looks::colours(&self.value(Keyword::Colours)?, count)
    }

    /// The colour of a keyword, such as `Background`.
    pub fn colour(self, keyword: Keyword) -> Option<[u8; 3]> {
        looks::colour(&self.value(keyword)?)
    }

    /// Kind of its numbers. As in MRTG, the last one counts of: gauge, absolute, derive.
    pub fn source_kind(self) -> SourceKind {
        let kinds = [
            (Choice::Gauge, SourceKind::Gauge),
            (Choice::Absolute, SourceKind::Absolute),
            (Choice::Derive, SourceKind::Derive),
        ];
        let made = kinds
            .into_iter()
            .find(|(choice, _)| self.options().has(*choice));
        made.map_or(SourceKind::Counter, |(_, kind)| kind)
    }
}
