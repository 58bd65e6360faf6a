//! The language of Prometheus' `.test` files: series are loaded, expressions evaluated, results compared.

pub(crate) mod expected;
pub(crate) mod notation;

use expected::Expectation;
use notation::{Described, described, milliseconds};

/// A command of a file.
pub(crate) enum Command {
    Clear,
    Load(Vec<LoadedSeries>),
    Eval(Box<Eval>),
}

/// A series that `load` names.
pub(crate) struct LoadedSeries {
    pub described: Described,
    pub step_ms: i64,
    /// Loaded again as a native histogram.
    pub is_native_too: bool,
    /// Has start timestamps.
    pub has_starts: bool,
}

/// An expression that is evaluated.
pub(crate) struct Eval {
    /// Line of the file.
    pub line: usize,
    pub text: String,
    pub when: When,
    pub expectation: Expectation,
}

/// The moments of an evaluation.
#[derive(Clone, Copy)]
pub(crate) enum When {
    At(i64),
    Range {
        from_ms: i64,
        thru_ms: i64,
        step_ms: i64,
    },
}

/// The commands of a file.
pub(crate) fn commands(text: &str) -> Vec<Command> {
    let trimmed = |line: &str| {
        let line = line.trim();
        String::from(if line.starts_with('#') { "" } else { line })
    };
    let lines: Vec<String> = text.lines().map(trimmed).collect();
    let mut commands = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (line, number) = (&lines[at], at + 1);
        at += 1;
        if line.is_empty() {
            continue;
        }
        if line == "clear" {
            commands.push(Command::Clear);
            continue;
        }
        let body: Vec<&str> = lines[at..]
            .iter()
            .map(String::as_str)
            .take_while(|line| !line.is_empty())
            .collect();
        at += body.len();
        commands.push(match line.strip_prefix("load") {
            Some(head) => Command::Load(load(head, &body)),
            None => Command::Eval(Box::new(eval(line, number, &body))),
        });
    }
    commands
}

fn load(head: &str, body: &[&str]) -> Vec<LoadedSeries> {
    let (is_native_too, step) = match head.strip_prefix("_with_nhcb") {
        Some(step) => (true, step),
        None => (false, head),
    };
    let step_ms = milliseconds(step.trim()).unwrap_or_else(|| panic!("no duration: {step}"));
    let mut series = Vec::new();
    let mut has_starts = false;
    for line in body {
        let head = line.split_whitespace().next().unwrap_or_default();
        if head.ends_with("@st") {
            has_starts = true;
            continue;
        }
        series.push(LoadedSeries {
            described: described(line),
            step_ms,
            is_native_too,
            has_starts,
        });
        has_starts = false;
    }
    series
}

fn eval(line: &str, number: usize, body: &[&str]) -> Eval {
    let (word, mut left) = line.split_once(char::is_whitespace).unwrap();
    let mut next = || {
        let text = left.trim_start();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap();
        left = rest;
        word
    };
    let time = |word: &str| milliseconds(word).unwrap_or_else(|| panic!("no time: {line}"));
    let when = match next() {
        "instant" => {
            assert_eq!(next(), "at", "{line}");
            When::At(time(next()))
        }
        "range" => {
            let mut named = |name: &str| {
                assert_eq!(next(), name, "{line}");
                time(next())
            };
            When::Range {
                from_ms: named("from"),
                thru_ms: named("to"),
                step_ms: named("step"),
            }
        }
        other => panic!("{number}: neither instant nor range: {other}"),
    };
    let old = word.strip_prefix("eval").unwrap().trim_start_matches('_');
    Eval {
        line: number,
        text: left.trim().to_string(),
        when,
        expectation: Expectation::read(old, body),
    }
}
