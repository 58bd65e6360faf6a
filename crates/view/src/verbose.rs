//! Verbose and detail: for each subsystem its own names and lines. One subsystem alone is a
//! table with a stamp on each line; several stand under a `### RECORD` line each interval.
//! `--top` is the detail of processes, ranked and cut.

use std::io;

use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::{Lines, Subsystem};

use crate::brief::{header_due, put_note, put_stamp, stamp_head};
use crate::feed::{Interval, Part};
use crate::format::{Note, Show, put_epoch};
use crate::options::{Options, Stamp};
use crate::row::RowText;
use crate::selection;
use crate::sink::{Sink, To};

/// The format's state.
pub(crate) struct Verbose {
    sections: Vec<Section>,
    /// One section of the same columns each time: stamps, and few headers.
    table: bool,
    intervals: u64,
    out: Vec<u8>,
    scratch: Vec<u8>,
    chosen: Vec<usize>,
}

/// Whether the instances of another subsystem, shown too, have the summary's numbers (interrupts of each CPU).
fn is_shown_beside(subsystem: &Subsystem, options: &Options) -> bool {
    options.choices.iter().any(|choice| {
        let beside = choice.subsystem.beside.as_ref();
        choice.detail && beside.is_some_and(|beside| beside.letter == subsystem.letter)
    })
}

/// A summary or the instances of one subsystem.
struct Section {
    /// Index among the choices.
    part: usize,
    kind: Kind,
    title: String,
    heads: Vec<String>,
    row: RowText,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Summary,
    Detail,
    Processes,
}

impl Verbose {
    /// Lays out the sections of what is chosen.
    pub(crate) fn new(options: &Options) -> Verbose {
        let mut sections = Vec::new();
        for (part, choice) in options.choices.iter().enumerate() {
            let subsystem = choice.subsystem;
            if choice.summary && !is_shown_beside(subsystem, options) {
                sections.push(Section::new(
                    part,
                    Kind::Summary,
                    subsystem,
                    &subsystem.text.verbose,
                    options,
                ));
            }
            if choice.detail && subsystem.is_of_processes() {
                sections.push(Section::processes(part, subsystem, options));
            } else if choice.detail {
                sections.push(Section::new(
                    part,
                    Kind::Detail,
                    subsystem,
                    &subsystem.text.detail,
                    options,
                ));
            }
        }
        let processes = sections
            .iter()
            .any(|section| section.kind == Kind::Processes);
        Verbose {
            table: sections.len() == 1 && !processes,
            sections,
            intervals: 0,
            out: Vec::new(),
            scratch: Vec::new(),
            chosen: Vec::new(),
        }
    }

    fn record_line(&mut self, interval: &Interval) {
        let host = interval.context.get("host").unwrap_or_default();
        let number = format!(
            "\n### RECORD {:>4} >>> {} <<< (",
            self.intervals,
            DisplayName(host.as_bytes())
        );
        self.out.extend_from_slice(number.as_bytes());
        put_epoch(&mut self.out, interval.moment.real_ns, true);
        self.out.extend_from_slice(b") (");
        interval.local.put_long(&mut self.out);
        self.out.extend_from_slice(b") ###\n");
    }
}

impl Section {
    fn new(
        part: usize,
        kind: Kind,
        subsystem: &'static Subsystem,
        lines: &Lines,
        options: &Options,
    ) -> Section {
        let columns = if kind == Kind::Summary {
            subsystem.columns
        } else {
            subsystem.detail
        };
        let mut heads: Vec<String> = lines.heads.iter().map(|head| head.to_string()).collect();
        let mut row = lines.row.to_string();
        let beside = subsystem.beside.as_ref().filter(|_| kind == Kind::Detail);
        let asked = |letter: char| {
            options
                .choices
                .iter()
                .any(|choice| choice.subsystem.letter == letter)
        };
        if let Some(beside) = beside.filter(|beside| asked(beside.letter)) {
            row += beside.row;
            heads
                .last_mut()
                .into_iter()
                .for_each(|head| *head += beside.head);
        }
        Section {
            part,
            kind,
            title: lines.title.replace("{rate}", options.rate()),
            heads,
            row: RowText::new(&row, columns, subsystem.fields.len()),
        }
    }

    fn processes(part: usize, subsystem: &'static Subsystem, options: &Options) -> Section {
        let (head, row) = options.process.lines();
        let title = match options.top {
            Some(top) => format!(
                "TOP PROCESSES sorted by {} (counters are {})",
                top.name(),
                options.rate()
            ),
            None => subsystem
                .text
                .detail
                .title
                .replace("{rate}", options.rate()),
        };
        Section {
            part,
            kind: Kind::Processes,
            title,
            heads: vec![head.to_string()],
            row: RowText::new(&row, subsystem.detail, subsystem.fields.len()),
        }
    }

    fn put_header(&self, out: &mut Vec<u8>, stamp: &str, interval: &Interval, options: &Options) {
        let (online, page_size) = (
            interval.parts[self.part].online(),
            interval.context.page_size(),
        );
        let filled = |text: &str| crate::row::head(text, &online, page_size);
        out.extend_from_slice(b"\n# ");
        out.extend_from_slice(filled(&self.title).as_bytes());
        if self.kind == Kind::Processes && options.top.is_some() {
            out.push(b' ');
            interval.local.put_time(out);
        }
        out.push(b'\n');
        for (n, head) in self.heads.iter().enumerate() {
            out.push(b'#');
            match n + 1 == self.heads.len() {
                true => out.extend_from_slice(stamp.as_bytes()),
                false => out.resize(out.len() + stamp.len(), b' '),
            }
            out.extend_from_slice(filled(head).as_bytes());
            out.push(b'\n');
        }
    }
}

impl Show for Verbose {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.out.clear();
        let header = header_due(self.intervals, options) || (!self.table && options.header);
        self.intervals += 1;
        let stays = options.watched && options.top.is_some();
        if stays {
            self.out.extend_from_slice(b"\x1b[H");
        }
        if !self.table && !stays {
            self.record_line(interval);
        }
        // As collectl: played back, the line above several tables has the time.
        let lines_have_it = (self.sections.len() == 1 || options.live) && options.top.is_none();
        let stamped = lines_have_it && options.stamp != Stamp::Default;
        let stamp = if stamped {
            stamp_head(options)
        } else {
            String::new()
        };
        for section in &self.sections {
            let part = &interval.parts[section.part];
            if !part.fresh {
                continue;
            }
            if header {
                section.put_header(&mut self.out, &stamp, interval, options);
            }
            let mut line = Line {
                out: &mut self.out,
                scratch: &mut self.scratch,
                stamped,
                interval,
                options,
            };
            line.section(section, part, &mut self.chosen);
        }
        if stays {
            over_the_last_screen(&mut self.out, &mut self.scratch);
        }
        sink.write(To::Stream, &self.out)
    }

    fn note(&mut self, note: &Note, _: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        self.out.clear();
        put_note(&mut self.out, note);
        sink.write(To::Stream, &self.out)
    }
}

/// Clears what the last screen had behind each line and below; clearing all of it first would flicker.
fn over_the_last_screen(out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    scratch.clear();
    for &byte in out.iter() {
        if byte == b'\n' {
            scratch.extend_from_slice(b"\x1b[K");
        }
        scratch.push(byte);
    }
    scratch.extend_from_slice(b"\x1b[J");
    std::mem::swap(out, scratch);
}

/// Writes lines of one interval.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    scratch: &'a mut Vec<u8>,
    stamped: bool,
    interval: &'a Interval<'a>,
    options: &'a Options,
}

impl Line<'_> {
    fn section(&mut self, section: &Section, part: &Part, chosen: &mut Vec<usize>) {
        let (context, options) = (self.interval.context, self.options);
        if section.kind == Kind::Summary {
            let cells = part.summary(context, options);
            return self.put(&section.row, &cells, 0);
        }
        selection::select(part, context, options, chosen);
        if let (Kind::Processes, Some(top)) = (section.kind, options.top) {
            selection::rank(part, context, options, top, chosen);
        }
        for (number, &at) in chosen.iter().enumerate() {
            let row = &part.rows()[at];
            // What has no past has no rates; a newborn process has.
            // As collectl: an interrupt that did not come is not shown.
            let is_idle =
                part.choice.subsystem.spread && !row.numbers.delta.iter().any(|&count| count > 0.0);
            if !row.baseline && !is_idle && !selection::is_unused(part, row) {
                self.put(&section.row, &part.cells(row, context, options), number);
            }
        }
    }

    fn put(&mut self, row: &RowText, cells: &kymo_base::column::Cells, number: usize) {
        if self.stamped {
            put_stamp(self.out, self.interval, self.options);
        }
        row.put(self.out, cells, number, self.scratch);
        self.out.push(b'\n');
    }
}
