//! Results as a file expects them.

use kymo_promql::{LabelSet, NoteKind};
use regex_lite::Regex;

use super::notation::{described, milliseconds, number};

/// Everything that a file says of an evaluation.
#[derive(Default)]
pub(crate) struct Expectation {
    pub fails: Option<Text>,
    pub is_ordered: bool,
    /// Notes that there are, each matched by one here.
    pub notes: Vec<(NoteKind, Text)>,
    /// Kinds of which there are none.
    pub silent: Vec<NoteKind>,
    pub string: Option<String>,
    /// First moment, last moment and step of an expected range vector.
    pub range: Option<(i64, i64, i64)>,
    pub scalar: Option<f64>,
    /// Series and their values, in order.
    pub series: Vec<(LabelSet, Vec<Option<f64>>)>,
    pub has_histograms: bool,
}

/// A text, exactly or as an expression.
pub(crate) enum Text {
    Any,
    Exactly(String),
    Like(Regex),
}

impl Text {
    pub(crate) fn fits(&self, text: &str) -> bool {
        match self {
            Text::Any => true,
            Text::Exactly(expected) => expected == text,
            Text::Like(regex) => regex.is_match(text),
        }
    }
}

impl Expectation {
    /// Reads the lines below an `eval`, whose suffix is of the older form.
    pub(crate) fn read(old: &str, body: &[&str]) -> Expectation {
        let mut all = Expectation::default();
        match old {
            "fail" => all.fails = Some(Text::Any),
            "ordered" => all.is_ordered = true,
            "warn" => all.notes.push((NoteKind::Warning, Text::Any)),
            "info" => all.notes.push((NoteKind::Info, Text::Any)),
            "" => {}
            other => panic!("eval_{other}"),
        }
        for line in body {
            all.line(line);
        }
        all
    }

    fn line(&mut self, line: &str) {
        if let Some(message) = line.strip_prefix("expected_fail_message") {
            self.fails = Some(Text::Exactly(message.trim().into()));
        } else if let Some(pattern) = line.strip_prefix("expected_fail_regexp") {
            self.fails = Some(Text::Like(Regex::new(pattern.trim()).unwrap()));
        } else if let Some(range) = line.strip_prefix("expect range vector") {
            let words: Vec<&str> = range.split_whitespace().collect();
            let time = |at: usize| milliseconds(words[at]).unwrap();
            self.range = Some((time(1), time(3), time(5)));
        } else if let Some(quoted) = line.strip_prefix("expect string ") {
            let quoted = quoted.trim();
            self.string = Some(quoted[1..quoted.len() - 1].to_string());
        } else if let Some(rest) = line.strip_prefix("expect ") {
            self.expect(rest.trim());
        } else if line.parse::<f64>().is_ok() {
            self.scalar = Some(number(line));
        } else {
            let described = described(line);
            self.has_histograms |= described.has_histograms;
            self.series.push((described.labels, described.values));
        }
    }

    fn expect(&mut self, text: &str) {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let text = if let Some(message) = rest.strip_prefix("msg:") {
            Text::Exactly(message.trim().into())
        } else if let Some(pattern) = rest.strip_prefix("regex:") {
            Text::Like(Regex::new(pattern.trim()).unwrap())
        } else {
            Text::Any
        };
        match word {
            "fail" => self.fails = Some(text),
            "ordered" => self.is_ordered = true,
            "warn" => self.notes.push((NoteKind::Warning, text)),
            "info" => self.notes.push((NoteKind::Info, text)),
            "no_warn" => self.silent.push(NoteKind::Warning),
            "no_info" => self.silent.push(NoteKind::Info),
            other => panic!("expect {other}"),
        }
    }
}
