//! Lines as values.

use std::borrow::Cow;

use crate::metric_type::MetricType;

/// Longest line, in bytes; texts of HELP are the longest.
pub const LINE_MAX: usize = 65_536;
/// Most labels of a sample.
pub const LABELS_MAX: usize = 128;

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Escapes {
    /// As it is.
    None,
    /// `\\` and `\n`.
    Help,
    /// `\\`, `\n` and `\"`.
    Quoted,
}

/// A text as the line has it. A backslash before any other character than those that are escaped stands for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EscapedText<'a> {
    raw: &'a str,
    escapes: Escapes,
}

impl<'a> EscapedText<'a> {
    /// `escapes` are those that may be in it.
    pub(super) fn new(raw: &'a str, escapes: Escapes) -> EscapedText<'a> {
        let has_escapes = escapes != Escapes::None && raw.contains('\\');
        EscapedText {
            raw,
            escapes: if has_escapes { escapes } else { Escapes::None },
        }
    }

    /// With its escapes.
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// The text itself; allocates only if it has escapes.
    pub fn text(self) -> Cow<'a, str> {
        if self.escapes == Escapes::None {
            return Cow::Borrowed(self.raw);
        }
        let mut text = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((before, behind)) = rest.split_once('\\') {
            text.push_str(before);
            let mut following = behind.chars();
            let meant = match (following.next(), self.escapes) {
                (Some('\\'), _) => Some('\\'),
                (Some('n'), _) => Some('\n'),
                (Some('"'), Escapes::Quoted) => Some('"'),
                _ => None,
            };
            text.push(meant.unwrap_or('\\'));
            rest = if meant.is_some() {
                following.as_str()
            } else {
                behind
            };
        }
        text.push_str(rest);
        Cow::Owned(text)
    }
}

/// A label as the line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExposedLabel<'a> {
    /// Not empty.
    pub name: EscapedText<'a>,
    /// May be empty, which is as good as no label.
    pub value: EscapedText<'a>,
}

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExposedSample<'r, 'a> {
    /// The series as the line spells it, name and labels. Of one scrape target equal texts are one series, so that a
    /// caller who remembers them need not look at the labels again.
    pub series: &'a str,
    /// The metric's name, not empty.
    pub name: EscapedText<'a>,
    /// In the program's order. A name may come twice: that is for the caller's label set to refuse.
    pub labels: &'r [ExposedLabel<'a>],
    /// Any, NaN and infinite ones as well; never the marker of a series that has ended.
    pub value: f64,
    /// Milliseconds since 1970; `None`: of the moment of the scrape.
    pub t_ms: Option<i64>,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExposedLine<'r, 'a> {
    /// A value.
    Sample(ExposedSample<'r, 'a>),
    /// The type of a family.
    Type {
        /// The family's name.
        family: EscapedText<'a>,
        /// How its values are made.
        metric_type: MetricType,
    },
    /// A sentence about a family.
    Help {
        /// The family's name.
        family: EscapedText<'a>,
        /// May be empty.
        help: EscapedText<'a>,
    },
    /// The unit of a family; OpenMetrics only.
    Unit {
        /// The family's name.
        family: EscapedText<'a>,
        /// May be empty.
        unit: &'a str,
    },
}
