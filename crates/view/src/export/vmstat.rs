//! `--vmstat`: one line per interval, with the columns of vmstat(8).

use std::io;

use crate::brief::{header_due, put_note, put_stamp, stamp_head};
use crate::feed::Interval;
use crate::format::{Note, Show};
use crate::options::{Options, Stamp};
use crate::row::{Beside, RowText};
use crate::sink::{Sink, To};

/// Letters of the subsystems shown.
pub const LETTERS: &str = "cm";

const TITLE: &str =
    "procs ---------------memory (KB)--------------- --swaps-- -----io---- --system-- ----cpu-----";
const HEAD: &str =
    " r  b   swpd   free   buff  cache  inact active   si   so    bi    bo   in    cs us sy  id wa";
/// Parts of the row, alternately from two subsystems.
const ROWS: &[(char, &str)] = &[
    ('c', " {running:2d} {blocked:2d} "),
    (
        'm',
        "{swap_used:6k} {free:6k} {buffers:6k} {cached:6k} {inactive:6k} {active:6k} {swap_in:4b} {swap_out:4b} {page_in:5d} {page_out:5d} ",
    ),
    (
        'c',
        "{intr:4d} {ctxsw:5d} {user_and_nice:2d} {sys:2d} {idle:3d} {wait:2d}",
    ),
];

/// State of the format.
pub(crate) struct Vmstat {
    rows: Vec<(char, RowText)>,
    lines: u64,
    line: Vec<u8>,
    scratch: Vec<u8>,
}

impl Vmstat {
    /// Lays out the columns.
    pub(crate) fn new(options: &Options) -> Vmstat {
        let rows = ROWS.iter().filter_map(|(letter, row)| {
            let of = options.choices.iter();
            let found = of
                .map(|choice| choice.subsystem)
                .find(|one| one.letter == *letter)?;
            Some((
                *letter,
                RowText::new(row, found.columns, found.fields.len(), options.numbers),
            ))
        });
        Vmstat {
            rows: rows.collect(),
            lines: 0,
            line: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

impl Show for Vmstat {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.line.clear();
        if header_due(self.lines, options) {
            let stamp = stamp_head(options);
            let header = format!("#{:1$}{TITLE}\n#{stamp}{HEAD}\n", "", stamp.len());
            sink.write(To::Head, header.as_bytes())?;
        }
        self.lines += 1;
        if options.stamp != Stamp::Default {
            put_stamp(&mut self.line, interval, options);
        }
        for (letter, row) in &self.rows {
            let parts = interval.parts.iter();
            let part = parts
                .filter(|part| part.choice.subsystem.letter == *letter)
                .find(|part| part.choice.summary);
            if let Some(part) = part {
                let cells = part.summary(interval.context, options);
                row.put(&mut self.line, &cells, Beside::default(), &mut self.scratch);
            }
        }
        self.line.push(b'\n');
        sink.write(To::Stream, &self.line)
    }

    fn note(&mut self, note: &Note, _: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        self.line.clear();
        put_note(&mut self.line, note);
        sink.write(To::Stream, &self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_kernel::subsystem;

    /// `RowText` silently skips a place with an unknown column.
    #[test]
    fn every_place_has_its_column() {
        for (letter, row) in ROWS {
            let of = subsystem::of(*letter).expect("a subsystem");
            for place in row.split('{').skip(1) {
                let name = place.split(':').next().unwrap_or_default();
                assert!(
                    of.columns.iter().any(|c| c.name == name),
                    "{letter}: {name}"
                );
            }
        }
    }
}
