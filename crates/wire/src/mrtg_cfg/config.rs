//! A configuration, and access to its parts.

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

/// A configuration: an mrtg.cfg and its includes.
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
    pub(super) abouts: Vec<(u32, u32)>,
    /// Readings and sessions of numbers; those behind them are of [`Config::abouts`].
    pub(super) numbers: (usize, usize),
    pub(super) left_out: Vec<LeftOut>,
    pub(super) warnings: Vec<String>,
}

/// A target of a [`Config`].
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) config: &'a Config,
    pub(super) kept: &'a Kept,
}

/// The values kept for every target. All others are found in the list of its keywords.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) name: Text,
    pub(super) file: u32,
    pub(super) line: u32,
    /// Index of its first keyword in [`Config`]'s list.
    pub(super) first_value: u32,
    pub(super) options: Options,
    pub(super) max_bytes: [u64; 2],
    pub(super) abs_max: Option<u64>,
    pub(super) expression: Expression,
}

/// A keyword of a target, in a linked list of the target's keywords.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) text: Text,
    pub(super) next: u32,
    pub(super) keyword: Keyword,
    pub(super) is_forgotten: bool,
}

/// Keywords without a value after [`Config::forget_pages`].
pub const PAGE_KEYWORDS: [Keyword; 5] = [
    Keyword::AddHead,
    Keyword::BodyTag,
    Keyword::PageFoot,
    Keyword::PageTop,
    Keyword::Target,
];

/// Ends a list of keywords.
pub(super) const LAST: u32 = u32::MAX;

/// A target that is not polled, because its text cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the target.
    pub target: Vec<u8>,
    /// The file and line of its `Target[]`.
    pub file: Vec<u8>,
    /// See [`LeftOut::file`].
    pub line: u32,
    /// The reason, as a sentence for people.
    pub why: String,
}

/// A fault for which MRTG refuses a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File in which the fault was noticed.
    pub file: Vec<u8>,
    /// Line of [`Problem::file`]; 0 if the fault has none.
    pub line: u32,
    /// The fault, with its keyword.
    pub what: String,
}

/// Why a configuration is refused: one problem or more.
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
    /// Values of the global keywords.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The targets, in the order of their first mention.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = Target<'_>> {
        let kept = self.targets.iter();
        kept.map(|kept| Target { config: self, kept })
    }

    /// The target at this index of [`Config::targets`]. Panics if there is none.
    pub fn target(&self, number: usize) -> Target<'_> {
        Target {
            config: self,
            kept: &self.targets[number],
        }
    }

    /// The readings to make in each cycle. Expressions refer to them by index.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Devices with their SNMP parameters. Readings refer to them by index.
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// The sub-identifiers of an OID.
    pub fn oid(&self, range: OidRange) -> &[u32] {
        &self.oids[wide(range.start)..][..range.len.into()]
    }

    /// Indices of the readings that an expression needs, each once.
    pub fn readings_of(&self, expression: Expression) -> Cow<'_, [u32]> {
        self.formulas.readings_of(expression)
    }

    /// Targets, in their order, with readings of texts about their devices, which `RouterUptime` and `RouterName` name: how long the
    /// device has been up, and its name. A text that is not asked for is a `PseudoZero`.
    pub fn abouts(&self) -> &[(u32, u32)] {
        &self.abouts
    }

    /// True if this reading is one of [`Config::abouts`].
    pub fn is_about(&self, reading: usize) -> bool {
        reading >= self.numbers.0
    }

    /// Forgets [`Config::abouts`] with the devices that only they ask, where no pages are made.
    pub fn forget_abouts(&mut self) {
        self.abouts.clear();
        self.readings.truncate(self.numbers.0);
        self.sessions.truncate(self.numbers.1);
    }

    /// Appends an expression's value as a decimal number. `false`: the value is unknown, and nothing is appended.
    /// `value_of` returns a reading's value as decimal text.
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

    /// The bytes of a text.
    pub fn text(&self, text: Text) -> Cow<'_, [u8]> {
        self.texts.get(text)
    }

    /// Frees the memory of the files, once the caller has read all that pages show. Afterwards targets have no values of
    /// [`PAGE_KEYWORDS`]; nothing else changes.
    pub fn forget_pages(&mut self) {
        let mut kept = Texts::default();
        for target in &mut self.targets {
            target.name = kept.make(&self.texts.get(target.name));
        }
        // Targets with the same `[_]` share its text, and adjacent ones share the copy.
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

    /// Paths of all files that were read, for a watch on changes. The first one is the configuration itself.
    pub fn file_paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// Targets that are not polled, each with the reason.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Warnings of MRTG, which do not make it refuse the configuration.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn file_path(&self, file: u32) -> &[u8] {
        &self.paths[wide(file)]
    }

    pub(super) fn value(&self, kept: &Kept, keyword: Keyword) -> Option<Text> {
        value(&self.values, kept.first_value, keyword)
    }
}

/// The value of a keyword in a target's list.
pub(super) fn value(values: &[Setting], first: u32, keyword: Keyword) -> Option<Text> {
    let mut at = first;
    while at != LAST {
        let value = values[wide(at)];
        if value.keyword == keyword {
            return (!value.is_forgotten).then_some(value.text);
        }
        at = value.next;
    }
    None
}
