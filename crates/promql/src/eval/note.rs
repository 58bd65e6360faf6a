//! Notes beside an answer: doubts about the question, and gaps in the answer.

use crate::ast::Span;
use crate::eval::calendar::rfc3339;
use crate::eval::number::{message_text, short_text};
use crate::eval::quantile::Repair;

/// Notes of one question at most; such as a warning for each of many series.
const NOTES_MAX: usize = 1000;

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// The answer may be wrong or is not whole.
    Warning,
    /// The question may have another meaning than it seems to.
    Info,
}

/// A note, and the part of the expression that it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// How much it matters.
    pub kind: NoteKind,
    message: String,
    span: Option<Span>,
    repairs: Option<Repairs>,
}

/// Repairs of histograms that one note sums up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Repairs {
    all: Repair,
    count: u64,
    from_ms: i64,
    thru_ms: i64,
}

impl Note {
    /// For people, as Prometheus says it. `text` is the expression as it was parsed.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::from(match self.kind {
            NoteKind::Warning => "PromQL warning: ",
            NoteKind::Info => "PromQL info: ",
        });
        out.push_str(&self.message);
        if let Some(repairs) = &self.repairs {
            out.push_str(&repairs.text());
        }
        if let Some(span) = self.span {
            let (line, column) = place(text, span.start);
            out.push_str(&format!(" ({line}:{column})"));
        }
        out
    }
}

impl Repairs {
    fn text(&self) -> String {
        let (lowest, highest) = (
            message_text(self.all.lowest),
            message_text(self.all.highest),
        );
        let (most, count) = (short_text(self.all.most), self.count);
        let (from, thru) = (self.from_ms.div_euclid(1000), self.thru_ms.div_euclid(1000));
        let (from, thru) = (rfc3339(from), rfc3339(thru));
        format!(
            ", from buckets {lowest} to {highest}, with a max diff of {most}, over {count} samples \
             from {from} to {thru}"
        )
    }
}

/// Line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let line_start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    (line, before.len() - line_start + 1)
}

/// The notes of a question. One that comes again is kept once, with its last place.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    all: Vec<Note>,
}

impl Notes {
    /// Adds one about a part of the expression.
    pub(crate) fn add(&mut self, kind: NoteKind, message: &str, span: Span) {
        self.put(Note {
            kind,
            message: message.into(),
            span: Some(span),
            repairs: None,
        });
    }

    /// Adds a warning about a source.
    pub(crate) fn miss(&mut self, what: String) {
        self.put(Note {
            kind: NoteKind::Warning,
            message: what,
            span: None,
            repairs: None,
        });
    }

    /// Adds that buckets of a histogram had to be repaired.
    pub(crate) fn repaired(&mut self, repair: Repair, t_ms: i64, span: Span) {
        self.put(Note {
            kind: NoteKind::Info,
            message: REPAIRED.into(),
            span: Some(span),
            repairs: Some(Repairs {
                all: repair,
                count: 1,
                from_ms: t_ms,
                thru_ms: t_ms,
            }),
        });
    }

    /// All of them.
    pub(crate) fn take(self) -> Vec<Note> {
        self.all
    }

    fn put(&mut self, note: Note) {
        let is_full = self.all.len() >= NOTES_MAX;
        let known = self.all.iter_mut().find(|old| old.message == note.message);
        match known {
            Some(old) => old.join(note),
            None if is_full => {}
            None => self.all.push(note),
        }
    }
}

impl Note {
    fn join(&mut self, other: Note) {
        let (Some(old), Some(new)) = (&mut self.repairs, other.repairs) else {
            self.span = other.span;
            return;
        };
        old.all.lowest = old.all.lowest.min(new.all.lowest);
        old.all.highest = old.all.highest.max(new.all.highest);
        old.all.most = old.all.most.max(new.all.most);
        old.count += new.count;
        old.from_ms = old.from_ms.min(new.from_ms);
        old.thru_ms = old.thru_ms.max(new.thru_ms);
    }
}

const REPAIRED: &str = "input to histogram_quantile needed to be fixed for monotonicity \
(see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_where() {
        let mut notes = Notes::default();
        let span = Span { start: 6, end: 7 };
        notes.add(NoteKind::Info, "one", Span::default());
        notes.add(NoteKind::Info, "one", span);
        notes.miss("a store does not answer".into());
        let repair = |most| Repair {
            lowest: 0.1,
            highest: 2.0,
            most,
        };
        notes.repaired(repair(1.0), 60_000, span);
        notes.repaired(repair(5.25), 0, span);
        let texts: Vec<String> = notes
            .take()
            .iter()
            .map(|note| note.text("sum(\nx)"))
            .collect();
        assert_eq!(texts[0], "PromQL info: one (2:2)");
        assert_eq!(texts[1], "PromQL warning: a store does not answer");
        assert!(
            texts[2].ends_with(
                ", from buckets 0.1 to 2, with a max diff of 5.2, over 2 samples \
                 from 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z (2:2)"
            ),
            "{}",
            texts[2]
        );
        assert_eq!(texts.len(), 3);
    }
}
