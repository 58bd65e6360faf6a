//! A configuration that was read, and how it is asked.

use super::evaluate::evaluate;
use super::expression::{Direction, Expression, Formulas, Rounding};
use super::globals::Globals;
use super::keyword::Keyword;
use super::options::Options;
use super::reading::{OidRange, Reading};
use super::secret::ConfigText;
use super::session::Session;
use super::text::{Text, Texts, wide};
use std::borrow::Cow;
use std::fmt;

/// What an mrtg.cfg says.
#[derive(Debug)]
pub struct Config {
    pub(super) texts: Texts,
    pub(super) globals: Globals,
    pub(super) paths: Vec<Vec<u8>>,
    pub(super) targets: Vec<Kept>,
    pub(super) values: Vec<Setting>,
    pub(super) readings: Vec<Reading>,
    pub(super) sessions: Vec<Session>,
    pub(super) oids: Vec<u32>,
    pub(super) formulas: Formulas,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) warnings: Vec<String>,
}

/// A target of a [`Config`].
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) config: &'a Config,
    pub(super) kept: &'a Kept,
}

/// What is kept of a target in any case; everything else is looked for among its keywords.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) name: Text,
    pub(super) file: u32,
    pub(super) line: u32,
    /// The first of its keywords, in [`Config`]'s list.
    pub(super) first_value: u32,
    pub(super) options: Options,
    pub(super) max_bytes: [u64; 2],
    pub(super) abs_max: Option<u64>,
    pub(super) expression: Expression,
}

/// A keyword of a target, and where the target's next one is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) text: Text,
    pub(super) next: u32,
    pub(super) keyword: Keyword,
    pub(super) is_forgotten: bool,
}

/// What [`Config::forget_pages`] forgets.
pub const PAGE_KEYWORDS: [Keyword; 5] = [
    Keyword::AddHead,
    Keyword::BodyTag,
    Keyword::PageFoot,
    Keyword::PageTop,
    Keyword::Target,
];

/// No next one.
pub(super) const LAST: u32 = u32::MAX;

/// A target that is not polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub target: Vec<u8>,
    /// The file and line of its `Target[]`.
    pub file: Vec<u8>,
    /// See [`LeftOut::file`].
    pub line: u32,
    /// Why, for people.
    pub why: String,
}

/// A fault that MRTG refuses a configuration for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was noticed.
    pub file: Vec<u8>,
    /// See [`Problem::file`]; 0: it belongs to no line.
    pub line: u32,
    /// What is wrong, with the keyword.
    pub what: String,
}

/// Why a configuration is not taken: one problem or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, target) = (
            String::from_utf8_lossy(&self.file),
            ConfigText(&self.target),
        );
        let (line, why) = (self.line, &self.why);
        write!(f, "cannot poll {target} of {file} line {line}: {why}")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = String::from_utf8_lossy(&self.file);
        match self.line {
            0 => write!(f, "cannot take {file}: {}", self.what),
            line => write!(f, "cannot take {file} line {line}: {}", self.what),
        }
    }
}

impl Config {
    /// What is said once for all targets.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// In the order of their first mention.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = Target<'_>> {
        let kept = self.targets.iter();
        kept.map(|kept| Target { config: self, kept })
    }

    /// One of [`Config::targets`] by its number; panics beyond their count.
    pub fn target(&self, number: usize) -> Target<'_> {
        Target {
            config: self,
            kept: &self.targets[number],
        }
    }

    /// What is to be read each cycle; expressions have the numbers of these.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Devices, and how each is asked; readings have the numbers of these.
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// Sub-identifiers.
    pub fn oid(&self, range: OidRange) -> &[u32] {
        &self.oids[wide(range.start)..][..range.len.into()]
    }

    /// The readings that an expression needs, each once.
    pub fn readings_of(&self, expression: Expression) -> Cow<'_, [u32]> {
        self.formulas.readings_of(expression)
    }

    /// Appends the decimal number that an expression has, or says `false` and appends nothing: unknown. `value_of` gives a
    /// reading's value as decimal text.
    pub fn evaluate<'v>(
        &self,
        expression: Expression,
        direction: Direction,
        rounding: Rounding,
        value_of: &dyn Fn(u32, Direction) -> Option<&'v [u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        evaluate(
            &self.formulas,
            expression,
            direction,
            rounding,
            value_of,
            out,
        )
    }

    /// A text.
    pub fn text(&self, text: Text) -> Cow<'_, [u8]> {
        self.texts.get(text)
    }

    /// Gives back the memory of the files, once what the pages show has been taken from them: from now on targets have no
    /// [`PAGE_KEYWORDS`], and nothing else changes.
    pub fn forget_pages(&mut self) {
        let mut kept = Texts::default();
        for target in &mut self.targets {
            target.name = kept.make(&self.texts.get(target.name));
        }
        // Targets of one `[_]` share a text, one after another.
        let mut last = (Text::EMPTY, Text::EMPTY);
        for value in &mut self.values {
            if PAGE_KEYWORDS.contains(&value.keyword) {
                value.is_forgotten = true;
                value.text = Text::EMPTY;
            } else if value.text == last.0 {
                value.text = last.1;
            } else {
                let text = kept.make(&self.texts.get(value.text));
                last = (std::mem::replace(&mut value.text, text), text);
            }
        }
        for reading in &mut self.readings {
            reading.for_each_text(&mut |text| *text = kept.make(&self.texts.get(*text)));
        }
        kept.shrink();
        self.texts = kept;
    }

    /// The paths of all files that were read, the first one is the configuration itself: what to watch for changes.
    pub fn file_paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// Targets that are not polled, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What MRTG warns of without refusing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn file_path(&self, file: u32) -> &[u8] {
        &self.paths[wide(file)]
    }

    pub(super) fn value(&self, kept: &Kept, keyword: Keyword) -> Option<Text> {
        let mut at = kept.first_value;
        while at != LAST {
            let value = self.values[wide(at)];
            if value.keyword == keyword {
                return (!value.is_forgotten).then_some(value.text);
            }
            at = value.next;
        }
        None
    }
}
