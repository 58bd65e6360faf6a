//! A target: one pair of numbers, how it is kept and what it looks like.

use super::config::Target;
use super::expression::Expression;
use super::keyword::Keyword;
use super::options::{Choice, Options};
use std::borrow::Cow;

/// What a target's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Counts up and wraps.
    Counter,
    /// Is what it is.
    Gauge,
    /// Counts since it was read.
    Absolute,
    /// Counts up and down.
    Derive,
}

impl<'a> Target<'a> {
    /// In lower case, as its files are called. Bytes from outside.
    pub fn name(self) -> Cow<'a, [u8]> {
        self.config.text(self.kept.name)
    }

    /// File and line of its first keyword.
    pub fn place(self) -> (&'a [u8], u32) {
        (self.config.file_path(self.kept.file), self.kept.line)
    }

    /// Its value of a keyword: its own, with what `[^]` and `[$]` add, or the one of `[_]`.
    pub fn value(self, keyword: Keyword) -> Option<Cow<'a, [u8]>> {
        let text = self.config.value(self.kept, keyword)?;
        Some(self.config.text(text))
    }

    /// How its numbers come about.
    pub fn expression(self) -> Expression {
        self.kept.expression
    }

    /// What `Options[]` says.
    pub fn options(self) -> Options {
        self.kept.options
    }

    /// Most that its numbers can be, in and out, each second.
    pub fn max_bytes(self) -> [u64; 2] {
        self.kept.max_bytes
    }

    /// Takes the place of both [`Target::max_bytes`] as a bound.
    pub fn abs_max(self) -> Option<u64> {
        self.kept.abs_max
    }

    /// What its numbers are; the last word counts, as in MRTG: gauge, absolute, derive.
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
