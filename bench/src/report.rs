//! The table of results: required and measured figures, met or missed.

use crate::fault::{Cannot, Result};
use crate::machine;
use std::fmt::{self, Display, Write as _};
use std::path::Path;

/// One comparison of a row: smaller is better.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub value: f64,
    pub bar: f64,
    pub aim: f64,
}

/// Results of a row.
#[derive(Default, Debug)]
pub(crate) struct Outcome {
    /// Figures of all sides, and kymo's ratios.
    pub figures: Vec<String>,
    /// Empty if kymo did not run.
    pub checks: Vec<Check>,
}

impl Outcome {
    pub(crate) fn new(figures: Vec<String>) -> Outcome {
        Outcome {
            figures,
            checks: Vec::new(),
        }
    }

    pub(crate) fn figure(&mut self, figure: impl Into<String>) {
        self.figures.push(figure.into());
    }

    /// Adds a comparison if kymo and the other side have figures.
    pub(crate) fn check(&mut self, value: Option<f64>, bar: f64, aim: f64) {
        if let Some(value) = value {
            self.checks.push(Check { value, bar, aim });
        }
    }

    fn verdict(&self) -> Verdict {
        let all = |holds: fn(&Check) -> bool| self.checks.iter().all(holds);
        if self.checks.is_empty() {
            Verdict::NotJudged
        } else if all(|check| check.value <= check.aim) {
            Verdict::AimMet
        } else if all(|check| check.value <= check.bar) {
            Verdict::Met
        } else {
            Verdict::Missed
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Verdict {
    AimMet,
    Met,
    Missed,
    NotJudged,
    Failed,
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::AimMet => "aim met",
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::NotJudged => "n/a",
            Verdict::Failed => "failed",
        })
    }
}

/// One line of the table.
pub(crate) struct Line {
    pub name: &'static str,
    pub work: &'static str,
    pub bar: &'static str,
    pub aim: &'static str,
    pub result: Result<Outcome>,
}

impl Line {
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.result {
            Ok(outcome) => outcome.verdict(),
            Err(_) => Verdict::Failed,
        }
    }

    fn measured(&self) -> String {
        match &self.result {
            Ok(outcome) => outcome.figures.join("; "),
            Err(fault) => fault.to_string(),
        }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured = self.measured().replace('|', "/");
        let (name, work, bar, aim) = (self.name, self.work, self.bar, self.aim);
        let verdict = self.verdict();
        writeln!(
            f,
            "| {name} | {work} | {bar} | {aim} | {measured} | {verdict} |"
        )
    }
}

/// Time, machine and size; then the table's head.
pub(crate) fn head(title: &str) -> Result<String> {
    let (now, machine) = (machine::now()?, machine::describe()?);
    Ok(format!(
        "## {now}, {title}\n\n{machine}\n\n\
         | row | work | bar | aim | measured | verdict |\n|---|---|---|---|---|---|\n"
    ))
}

/// The whole table.
pub(crate) fn table(title: &str, lines: &[Line]) -> Result<String> {
    let mut text = head(title)?;
    for line in lines {
        write!(text, "{line}").cannot("print a row")?;
    }
    Ok(text)
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Keep {
    /// A run of all rows replaces its part of the file.
    Nothing,
    /// A run of some rows is added to it.
    Earlier,
}

/// Writes `table` into the part of the file with this title; other parts stay.
pub(crate) fn write(path: &Path, part: &str, table: &str, keep: Keep) -> Result<()> {
    let name = path.display();
    let before = match std::fs::read_to_string(path) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.cannot(format_args!("read {name}"))?,
    };
    std::fs::write(path, with_part(&before, part, table, keep)).cannot(format_args!("write {name}"))
}

/// The text with the new table. Parts begin with `# TITLE`.
fn with_part(before: &str, part: &str, table: &str, keep: Keep) -> String {
    let head = format!("# {part}\n");
    let mut parts: Vec<String> = Vec::new();
    for line in before.split_inclusive('\n') {
        match parts.last_mut() {
            Some(last) if !line.starts_with("# ") => last.push_str(line),
            _ => parts.push(line.to_string()),
        }
    }
    match parts.iter_mut().find(|known| known.starts_with(&head)) {
        Some(known) if keep == Keep::Earlier => *known = format!("{}\n\n{table}", known.trim_end()),
        Some(known) => *known = format!("{head}\n{table}"),
        None => parts.push(format!("{head}\n{table}")),
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    fn outcome(values: &[f64]) -> Outcome {
        let mut outcome = Outcome::default();
        for value in values {
            outcome.check(Some(*value), 2.0, 1.0);
        }
        outcome
    }

    #[test]
    fn a_verdict_is_the_worst_of_its_checks() {
        for (values, want) in [
            (&[][..], Verdict::NotJudged),
            (&[1.0, 0.5], Verdict::AimMet),
            (&[0.5, 1.5], Verdict::Met),
            (&[0.5, 2.5], Verdict::Missed),
            (&[f64::NAN], Verdict::Missed),
        ] {
            assert_eq!(outcome(values).verdict(), want, "{values:?}");
        }
    }

    #[test]
    fn a_part_leaves_the_others_alone() {
        let both = "# Recording\n\nOne.\n\n# Serving\n\n## 1\n";
        for (before, keep, want) in [
            ("", Keep::Nothing, "# Serving\n\n## 2\n"),
            (
                "# Recording\n\nOne.\n",
                Keep::Earlier,
                "# Recording\n\nOne.\n\n# Serving\n\n## 2\n",
            ),
            (
                both,
                Keep::Nothing,
                "# Recording\n\nOne.\n\n# Serving\n\n## 2\n",
            ),
            (
                both,
                Keep::Earlier,
                "# Recording\n\nOne.\n\n# Serving\n\n## 1\n\n## 2\n",
            ),
        ] {
            assert_eq!(with_part(before, "Serving", "## 2\n", keep), want);
        }
    }

    #[test]
    fn a_failed_row_says_why() {
        let line = Line {
            name: "day",
            work: "w",
            bar: "b",
            aim: "a",
            result: Err(Fault::new("cannot x: y")),
        };
        let want = "| day | w | b | a | cannot x: y | failed |\n";
        assert_eq!(line.to_string(), want);
    }
}
