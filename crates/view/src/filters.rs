//! Filters of instances: `--dskfilt`, `--netfilt`, `--cpufilt`, `--intfilt`, `--slabfilt`. Instances that do not pass are
//! removed from the reading before rates and sums are computed, in every format.

use kymo_base::context::Context;
use kymo_base::reading::{MISSING, Reading, Row};
use kymo_kernel::subsystem::{Subsystem, Summary, disk};
use regex_lite::Regex;

/// A filter of one subsystem's instances by name.
pub(crate) struct Names {
    tests: Vec<Word>,
    keep: Keep,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Keeps instances that match.
    Matching,
    /// `^` in front: keeps instances that do not match.
    Others,
}

enum Word {
    /// A regular expression that the name matches.
    Pattern(Regex),
    /// A range that the name, a number, is in.
    Numbers(u64, u64),
    /// A prefix of the name.
    Start(Vec<u8>),
}

/// Meaning of a filter's words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Regular expressions.
    Patterns,
    /// Numbers and ranges of them.
    Numbers,
    /// Prefixes.
    Starts,
}

impl Names {
    /// Parses `[^]WORD[,WORD...]`.
    pub(crate) fn parse(switch: &str, text: &str, words: Spelling) -> Result<Names, String> {
        let wrong = |cause: String| format!("cannot use {switch} {}: {cause}", text.escape_debug());
        let bare = text.replace(['\'', '"'], "");
        let (keep, rest) = match bare.strip_prefix('^') {
            Some(rest) => (Keep::Others, rest),
            None => (Keep::Matching, bare.as_str()),
        };
        let tests = rest.split(',').map(|word| Word::parse(word, words));
        Ok(Names {
            tests: tests.collect::<Result<_, _>>().map_err(wrong)?,
            keep,
        })
    }

    fn passes(&self, row: &Row) -> bool {
        let matches = self.tests.iter().any(|test| test.passes(row));
        matches == (self.keep == Keep::Matching)
    }
}

impl Word {
    fn parse(word: &str, words: Spelling) -> Result<Word, String> {
        if word.is_empty() {
            return Err("an empty name".into());
        }
        match words {
            Spelling::Patterns => Regex::new(word)
                .map(Word::Pattern)
                .map_err(|error| format!("not a regular expression: {error}").replace('\n', " ")),
            Spelling::Starts => Ok(Word::Start(word.into())),
            Spelling::Numbers => {
                let (low, high) = word
                    .split_once("..")
                    .or_else(|| word.split_once('-'))
                    .unwrap_or((word, word));
                match (low.parse(), high.parse()) {
                    (Ok(low), Ok(high)) if low <= high => Ok(Word::Numbers(low, high)),
                    _ => Err(format!("{} is no number nor range", word.escape_debug())),
                }
            }
        }
    }

    fn passes(&self, row: &Row) -> bool {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Word::Pattern(regex) => {
                let labels = row.labels.iter().map(Vec::as_slice);
                let mut texts = std::iter::once(row.name.as_slice()).chain(labels);
                texts.any(|bytes| regex.is_match(&text(bytes)))
            }
            Word::Numbers(low, high) => {
                let number = text(&row.name).parse::<u64>();
                number.is_ok_and(|number| (*low..=*high).contains(&number))
            }
            Word::Start(start) => row.name.starts_with(start),
        }
    }
}

/// `--dskremap`: replaces names of disks.
pub(crate) struct Renames(Vec<(Regex, String)>);

impl Renames {
    /// Parses `PATTERN:TEXT[,PATTERN:TEXT...]`.
    pub(crate) fn parse(switch: &str, text: &str) -> Result<Renames, String> {
        let wrong = |cause: &str| format!("cannot use {switch} {}: {cause}", text.escape_debug());
        let rename = |word: &str| {
            let (pattern, text) = word
                .split_once(':')
                .ok_or_else(|| wrong("it takes PATTERN:TEXT"))?;
            let regex = Regex::new(pattern).map_err(|_| wrong("not a regular expression"))?;
            Ok((regex, text.to_string()))
        };
        text.split(',')
            .map(rename)
            .collect::<Result<_, _>>()
            .map(Renames)
    }

    fn apply(&self, row: &mut Row) {
        for (regex, text) in &self.0 {
            let name = String::from_utf8_lossy(&row.name).into_owned();
            row.name = regex.replace(&name, text.as_str()).as_bytes().to_vec();
        }
    }
}

/// All filters and renames.
#[derive(Default)]
pub(crate) struct Filters {
    names: Vec<(char, Names)>,
    renames: Option<Renames>,
}

impl Filters {
    /// Adds a filter for the subsystem with this letter.
    pub(crate) fn add(&mut self, letter: char, names: Names) {
        self.names.push((letter, names));
    }

    /// True if there is a filter for the subsystem with this letter.
    pub(crate) fn is_for(&self, letter: char) -> bool {
        self.names.iter().any(|(of, _)| *of == letter)
    }

    /// Sets the renames of disks.
    pub(crate) fn rename(&mut self, renames: Renames) {
        self.renames = Some(renames);
    }

    /// Renames disks, and removes instances that do not pass.
    pub(crate) fn narrow(&self, subsystem: &Subsystem, reading: &mut Reading, context: &Context) {
        if let Some(renames) = self.renames.as_ref().filter(|_| subsystem.letter == 'd') {
            reading.rows.iter_mut().for_each(|row| renames.apply(row));
        }
        for (_, names) in self.names.iter().filter(|(of, _)| *of == subsystem.letter) {
            reading.rows.retain(|row| names.passes(row));
            // As in collectl, all interfaces that pass a filter count in the sum.
            if subsystem.letter == 'n' {
                reading.rows.iter_mut().for_each(|row| row.counted = true);
            }
            if subsystem.letter == 'd' && names.keep == Keep::Matching {
                disk::count_named(&mut reading.rows, context);
            }
            if subsystem.summary == Summary::Globals {
                add_up(subsystem, reading);
            }
        }
    }
}

/// Replaces the machine's numbers by the sums of the remaining instances, where both have a number of the same name.
fn add_up(subsystem: &Subsystem, reading: &mut Reading) {
    for (at, field) in subsystem.globals.iter().enumerate() {
        let Some(of_each) = subsystem
            .fields
            .iter()
            .position(|each| each.name == field.name)
        else {
            continue;
        };
        let values = reading.rows.iter().map(|row| row.values[of_each]);
        let known = values.filter(|&value| value != MISSING);
        reading.globals[at] = known.fold(MISSING, |sum, value| match sum {
            MISSING => value,
            sum => sum.saturating_add(value),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, words, name, expect) in [
            ("sd", Spelling::Patterns, "sda", true),
            ("^sd", Spelling::Patterns, "sda", false),
            ("^sd", Spelling::Patterns, "vda", true),
            ("sd,vd[ab]", Spelling::Patterns, "vdb", true),
            ("a$", Spelling::Patterns, "sdab", false),
            ("1-3", Spelling::Numbers, "2", true),
            ("1..3,7", Spelling::Numbers, "7", true),
            ("^1-3", Spelling::Numbers, "2", false),
            ("1-3", Spelling::Numbers, "12", false),
            ("kmalloc", Spelling::Starts, "kmalloc-64", true),
            ("kmalloc", Spelling::Starts, "dma-kmalloc", false),
        ] {
            let names = Names::parse("--filt", text, words).expect(text);
            let row = Row {
                name: name.into(),
                ..Row::default()
            };
            assert_eq!(names.passes(&row), expect, "{text} {name}");
        }
        for (text, words) in [
            ("", Spelling::Patterns),
            ("(", Spelling::Patterns),
            ("a,,b", Spelling::Starts),
            ("3-1", Spelling::Numbers),
            ("x", Spelling::Numbers),
        ] {
            let error = Names::parse("--filt", text, words).err();
            assert!(
                error.is_some_and(|error| error.starts_with("cannot use --filt")),
                "{text}"
            );
        }
    }

    #[test]
    fn renames() {
        let renames = Renames::parse("--dskremap", "^vd(.):disk-$1,x:y").expect("sound");
        let mut row = Row {
            name: b"vda".to_vec(),
            ..Row::default()
        };
        renames.apply(&mut row);
        assert_eq!(row.name, b"disk-a");
        assert!(Renames::parse("--dskremap", "a").is_err());
    }
}
