//! Options of a view: selection and format. They are checked once, when they are set.

pub(crate) mod export;
pub(crate) mod tree;

use kymo_kernel::subsystem::{self, Subsystem, Summary};

use crate::exceptions::{Hidden, Limits};
use crate::filters::Filters;
use crate::form::Shortening;
use crate::layouts::Layouts;
use crate::processes::{self, Filter, States, Top};
use crate::time::Span;
use crate::totals::TotalLines;
use export::Export;
use tree::TreeOptions;

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One line per interval.
    Brief,
    /// Separate lines for each subsystem.
    Verbose,
    /// collectl's plot format, all subsystems on one line.
    Plot,
    /// collectl's plot format, into files.
    PlotFiles,
    /// Comma-separated values.
    Csv,
    /// JSON, one object per line.
    Json,
    /// The columns of vmstat(8).
    Vmstat,
    /// One line per value, see `Options::export`.
    Lines,
    /// Processes as a tree.
    Tree,
}

/// A chosen subsystem, with the parts to show.
#[derive(Clone, Copy)]
pub struct Choice {
    /// The subsystem.
    pub subsystem: &'static Subsystem,
    /// Shows its summary: the lower-case letter.
    pub summary: bool,
    /// Shows its instances: the upper-case letter.
    pub detail: bool,
}

/// Form of the times in front of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stamp {
    /// No time; in plot format date and time.
    #[default]
    Default,
    /// The time.
    Time,
    /// Month/day and time.
    MonthDay,
    /// yyyymmdd and time.
    Day,
    /// Seconds since 1970.
    Epoch,
}

/// All options of a view.
pub struct Options {
    /// The chosen subsystems, in the order of `subsystem::ALL`.
    pub choices: Vec<Choice>,
    /// Output format.
    pub format: Format,
    /// Form of times.
    pub stamp: Stamp,
    /// True to show milliseconds.
    pub milliseconds: bool,
    /// True for counts per interval instead of rates.
    pub per_interval: bool,
    /// Decimals of plot values.
    pub decimals: u8,
    /// Separator of plot and CSV columns.
    pub separator: u8,
    /// Lines (in verbose format: intervals) between headers; `None`: one header at the start.
    pub header_every: Option<u64>,
    /// False to omit headers.
    pub header: bool,
    /// Shows only the first processes or slab caches of an order.
    pub top: Option<Top>,
    /// Filter of processes.
    pub filter: Filter,
    /// Columns of processes.
    pub process: processes::Columns,
    /// Time range to show.
    pub span: Span,
    /// Number of intervals to show; `None`: all.
    pub count: Option<u64>,
    /// True on a terminal; `top` then overwrites its last screen.
    pub watched: bool,
    /// Filters of instances.
    pub(crate) filters: Filters,
    /// Terminal rows that replace the subsystems' own.
    pub(crate) layouts: Layouts,
    /// Letters of `--tcpfilt`.
    pub(crate) protocols: Option<String>,
    /// Instances to leave out of details.
    pub(crate) hidden: Hidden,
    /// Limits for disks; only disks that reach them are shown.
    pub(crate) limits: Option<Limits>,
    /// Totals and averages to show.
    pub(crate) totals: Option<TotalLines>,
    /// True to show changes of memory.
    pub(crate) changes: bool,
    /// True to show only intervals with interface errors.
    pub(crate) errors_only: bool,
    /// True if a switch needs the verbose format.
    pub(crate) wants_verbose: bool,
    /// Process states to show.
    pub(crate) states: Option<States>,
    /// Shortening of long numbers.
    pub(crate) numbers: Shortening,
    /// True if the line above several tables names their letters; a single table has the line as well then.
    pub full: bool,
    /// True to move the cursor to the top before each interval.
    pub home: bool,
    /// Settings of `Format::Lines`.
    pub export: Option<Export>,
    /// Settings of `Format::Tree`.
    pub(crate) tree: Option<TreeOptions>,
    /// The command line, quoted in plot files.
    pub command_line: String,
    /// Letters of `-o`.
    pub letters: String,
    /// True to show only the headers, of the first interval.
    pub heads_only: bool,
    /// True to hide command lines, control groups and users of processes from a reader without permission.
    pub hides_private: bool,
    /// True for the running machine. Its lines have times even if several tables are shown.
    pub live: bool,
}

/// The subsystems of `letters`. Fails for unknown letters.
pub fn choices(letters: &str) -> Result<Vec<Choice>, String> {
    for letter in letters.chars() {
        if !subsystem::is_letter(letter) {
            return Err(format!(
                "cannot show -s {}: no such subsystem",
                letter.escape_debug()
            ));
        }
    }
    let choice = |&subsystem: &&'static Subsystem| {
        let asks =
            |wanted: char| letters.contains(wanted) && subsystem.letters().any(|l| l == wanted);
        let summary = asks(subsystem.letter) && subsystem.summary != Summary::None;
        let detail = !subsystem.detail.is_empty() && asks(subsystem.letter.to_ascii_uppercase());
        (summary || detail).then_some(Choice {
            subsystem,
            summary,
            detail,
        })
    };
    Ok(subsystem::ALL.iter().filter_map(choice).collect())
}

impl Options {
    /// Options for the subsystems of `letters`, with defaults for all else.
    pub fn new(letters: &str) -> Result<Options, String> {
        let choices = choices(letters)?;
        Ok(Options {
            format: Format::Brief.fit(&choices),
            choices,
            stamp: Stamp::Default,
            milliseconds: false,
            per_interval: false,
            decimals: 0,
            separator: b' ',
            header_every: None,
            header: true,
            top: None,
            filter: Filter::default(),
            process: processes::Columns::default(),
            span: Span::default(),
            count: None,
            watched: false,
            filters: Filters::default(),
            layouts: Layouts::default(),
            protocols: None,
            hidden: Hidden::default(),
            limits: None,
            totals: None,
            changes: false,
            errors_only: false,
            wants_verbose: false,
            states: None,
            numbers: Shortening::default(),
            full: false,
            home: false,
            export: None,
            tree: None,
            command_line: String::new(),
            letters: String::new(),
            heads_only: false,
            hides_private: false,
            live: false,
        })
    }

    /// Sets the letters of `-o`.
    pub fn set_stamp(&mut self, letters: &str) -> Result<(), String> {
        for letter in letters.chars() {
            match letter {
                'T' => self.stamp = Stamp::Time,
                'd' => self.stamp = Stamp::MonthDay,
                'D' => self.stamp = Stamp::Day,
                'U' => self.stamp = Stamp::Epoch,
                'm' => self.milliseconds = true,
                'n' => self.per_interval = true,
                '1' => self.decimals = 1,
                '2' => self.decimals = 2,
                'g' => self.numbers = Shortening::Fraction,
                'G' => self.numbers = Shortening::Decimal,
                'x' => self.limits = Some(self.limits.unwrap_or_default()),
                // Options of plot files: uncompressed, append, overwrite, unique names, header only. The code that
                // writes the files evaluates them.
                'z' | 'a' | 'c' | 'u' | 'i' => {}
                'X' => {
                    return Err(
                        "cannot use -o X: exceptions have no file of their own; -ox shows them alone"
                            .into(),
                    );
                }
                _ => {
                    return Err(format!(
                        "cannot use -o {}: it takes d D T m U g G n 1 2 a c u x z i",
                        letter.escape_debug()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Sets the limits of `-l`, which `-ox` uses.
    pub fn set_limits(&mut self, text: &str) -> Result<(), String> {
        self.limits = Some(Limits::parse(text)?);
        Ok(())
    }

    /// Sets the words behind `--export proctree`; the caller sets `top` and `process` first.
    pub fn set_tree(&mut self, words: &[&str]) -> Result<(), String> {
        if self.chosen() != "Z" {
            return Err(
                "cannot use --export proctree: it shows processes, and takes no -s but -sZ".into(),
            );
        }
        let mut tree = TreeOptions::parse(words, self.top)?;
        tree.skips |= self.process.nonzero;
        self.tree = Some(tree);
        Ok(())
    }

    /// Sets `--stats` with the letters of `--statopts`.
    pub fn set_totals(&mut self, letters: &str) -> Result<(), String> {
        if self.format != Format::Brief {
            return Err("cannot use --stats: it is for the brief format".into());
        }
        self.totals = Some(TotalLines::parse(letters)?);
        Ok(())
    }

    /// Sets `--procstate`.
    pub fn set_states(&mut self, letters: &str) -> Result<(), String> {
        self.states = Some(States::parse(letters)?);
        Ok(())
    }

    /// `-w`: turns off shortening.
    pub fn set_wide(&mut self) {
        self.numbers = Shortening::Never;
    }

    /// Sets `--sep`: a character, or the code of one.
    pub fn set_separator(&mut self, text: &str) -> Result<(), String> {
        let by_number = || {
            text.parse::<u8>()
                .ok()
                .filter(|&n| text.len() > 1 || n < 10 && n == 9)
        };
        let character = match text.as_bytes() {
            [one] if !one.is_ascii_digit() => Some(*one),
            _ => by_number(),
        };
        let usable = |&c: &u8| {
            c == b'\t'
                || (0x20..0x7f).contains(&c) && c != b'"' && !c.is_ascii_alphanumeric() && c != b'.'
        };
        self.separator = character.filter(usable).ok_or_else(|| {
            format!(
                "cannot use --sep {}: not a separator, nor the number of one",
                text.escape_debug()
            )
        })?;
        Ok(())
    }

    /// Sets the format. A text format that cannot show the chosen subsystems is replaced by one that can.
    pub fn set_format(&mut self, format: Format) -> Result<(), String> {
        let tables = self.choices.iter().filter(|choice| choice.detail).count()
            + usize::from(self.choices.iter().any(|choice| choice.summary));
        let mut choices = self.choices.iter();
        let long = choices.find(|choice| choice.detail && choice.subsystem.plot.shape.is_long());
        if format == Format::Csv && tables > 1 {
            return Err("cannot use --csv: one table at a time, lower-case letters or one upper-case letter".into());
        }
        if let Some(long) = long.filter(|_| format == Format::Plot && tables > 1) {
            let letter = long.subsystem.letter.to_ascii_uppercase();
            return Err(format!(
                "cannot use -P: what -s{letter} shows has lines of its own, use it alone or -f DIR"
            ));
        }
        self.format = match format.fit(&self.choices) {
            Format::Brief if self.wants_verbose => Format::Verbose,
            format => format,
        };
        Ok(())
    }

    /// The letters of the choices.
    pub(crate) fn chosen(&self) -> String {
        let choices = self.choices.iter();
        let letters = choices.flat_map(|choice| {
            let letter = choice.subsystem.letter;
            let detail = choice.detail.then_some(letter.to_ascii_uppercase());
            choice.summary.then_some(letter).into_iter().chain(detail)
        });
        letters.collect()
    }

    /// True if the choice at `at` is memory.
    pub(crate) fn is_memory(&self, at: usize) -> bool {
        self.choices
            .get(at)
            .is_some_and(|choice| choice.subsystem.letter == 'm')
    }

    /// Unit of rates in headers.
    pub fn rate(&self) -> &'static str {
        if self.per_interval { "/int" } else { "/sec" }
    }

    /// Divisor of rates for an interval of `elapsed` seconds.
    pub fn secs(&self, elapsed: f64) -> f64 {
        if self.per_interval { 1.0 } else { elapsed }
    }
}

impl Format {
    /// Replaces the brief format by the verbose one if a choice has no brief columns.
    fn fit(self, choices: &[Choice]) -> Format {
        let brief = choices
            .iter()
            .all(|choice| !choice.detail && !choice.subsystem.text.brief.row.is_empty());
        if self == Format::Brief && !brief {
            Format::Verbose
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_separators_and_stamps() {
        for (letters, names) in [
            ("cdn", "cdn"),
            ("ndc", "cdn"),
            ("CDNZ", "CDNZ"),
            ("cCm", "cCm"),
        ] {
            let shown: String = choices(letters)
                .expect("sound")
                .iter()
                .flat_map(|choice| {
                    let letter = choice.subsystem.letter;
                    [
                        choice.summary.then_some(letter),
                        choice.detail.then_some(letter.to_ascii_uppercase()),
                    ]
                })
                .flatten()
                .collect();
            assert_eq!(shown, names);
        }
        assert!(choices("z").is_err() && choices("l").is_err() && choices("q").is_err());
        let mut options = Options::new("cd").expect("sound");
        for (text, expect) in [
            (",", Some(b',')),
            ("9", Some(b'\t')),
            ("44", Some(b',')),
            ("5", None),
            ("x", None),
            ("200", None),
            ("", None),
            (";;", None),
            ("|", Some(b'|')),
        ] {
            assert_eq!(
                options.set_separator(text).ok().map(|()| options.separator),
                expect,
                "{text}"
            );
        }
        assert!(options.set_stamp("Tm2n").is_ok() && options.set_stamp("q").is_err());
    }
}
