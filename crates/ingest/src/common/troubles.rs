//! Counts of refused lines and samples by reason, for one line of the log a minute.

use std::fmt::Write as _;

/// Counts by their reasons.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// Counts since the last report.
    counts: Vec<(&'static str, u64)>,
    /// Counts since the start.
    totals: Vec<(&'static str, u64)>,
    example: Option<String>,
}

impl Troubles {
    /// Adds to the count of a reason.
    pub(crate) fn count(&mut self, why: &'static str, more: u64) {
        if more == 0 {
            return;
        }
        add(&mut self.counts, why, more);
        add(&mut self.totals, why, more);
    }

    /// Counts since the start.
    pub(crate) fn totals(&self) -> &[(&'static str, u64)] {
        &self.totals
    }

    /// Counts one, and keeps the first example of a report.
    pub(crate) fn note(&mut self, why: &'static str, example: impl FnOnce() -> String) {
        self.count(why, 1);
        self.example.get_or_insert_with(example);
    }

    /// True if there is nothing to report.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The counts since the last report, in words.
    pub(crate) fn take(&mut self) -> Option<String> {
        let mut line = String::new();
        for (why, count) in self.counts.drain(..) {
            let mark = if line.is_empty() { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(line, "{mark}{count} x {why}");
        }
        if let Some(example) = self.example.take() {
            let _ = write!(line, "; such as: {example}");
        }
        (!line.is_empty()).then_some(line)
    }
}

fn add(counts: &mut Vec<(&'static str, u64)>, why: &'static str, more: u64) {
    match counts.iter_mut().find(|(known, _)| *known == why) {
        Some((_, count)) => *count += more,
        None => counts.push((why, more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_each_reason_and_an_example() {
        let mut troubles = Troubles::default();
        assert_eq!(troubles.take(), None);
        troubles.note("no name", || ":1|c".into());
        troubles.count("dropped", 0);
        troubles.count("dropped", 7);
        troubles.note("no name", || ":2|c".into());
        let expected = "2 x no name; 7 x dropped; such as: :1|c";
        assert_eq!(troubles.take().as_deref(), Some(expected));
        assert!(troubles.is_empty());
        assert_eq!(troubles.totals(), [("no name", 2), ("dropped", 7)]);
    }
}
