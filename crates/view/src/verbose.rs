//! Verbose and detail: separate names and lines for each subsystem. A single subsystem is a table with a time on
//! each line; several ones follow a `### RECORD` line in each interval. `--top` orders and cuts the processes.

use std::io;

use kymo_base::column::Cells;
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::process::STARTTIME;
use kymo_kernel::subsystem::{Subsystem, slab};

use crate::brief::{HOME, header_due, put_note, put_stamp, stamp_head};
use crate::feed::{Interval, Part};
use crate::format::{Note, Show, put_epoch};
use crate::layouts::{Layout, Table};
use crate::options::{Options, Stamp};
use crate::processes::Top;
use crate::procopts::Start;
use crate::row::{Beside, RowText};
use crate::selection;
use crate::sink::{Sink, To};
use crate::time::PlayedZone;

/// State of the format.
pub(crate) struct Verbose {
    sections: Vec<Section>,
    /// True for a single section with constant columns: lines have times, headers are rare.
    table: bool,
    intervals: u64,
    out: Vec<u8>,
    scratch: Vec<u8>,
    chosen: Vec<usize>,
    own: [Vec<u8>; 2],
    zone: PlayedZone,
}

/// Order of the tables, unlike that of brief. Those that collectl lacks, slabs and processes come last.
const ORDER: &str = "cjdfimbnstEx";

fn place(subsystem: &Subsystem) -> usize {
    ORDER.find(subsystem.letter).unwrap_or(ORDER.len())
}

/// True if a `### RECORD` line precedes the section even if it is the only one. As in collectl, this holds for
/// slabs and processes, unless a switch selects some of them.
fn is_under_a_line(section: &Section, options: &Options) -> bool {
    match (section.kind, options.choices[section.part].subsystem.letter) {
        (Kind::Processes, _) => options.top.is_some() || options.filter.tests.is_empty(),
        (Kind::Slabs, _) => true,
        (Kind::Detail, 'y') => !options.hidden.still_slabs && !options.filters.is_for('y'),
        _ => false,
    }
}

/// True if another shown subsystem has the summary's numbers in its rows, such as interrupts per CPU.
fn is_shown_beside(subsystem: &Subsystem, options: &Options) -> bool {
    options.choices.iter().any(|choice| {
        let beside = choice.subsystem.beside.as_ref();
        choice.detail && beside.is_some_and(|beside| beside.letter == subsystem.letter)
    })
}

/// A summary, or the instances of one subsystem.
struct Section {
    /// Index of the choice.
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
    /// The first slab caches by `--top`.
    Slabs,
}

impl Verbose {
    /// Lays out the sections of the chosen subsystems.
    pub(crate) fn new(options: &Options) -> Verbose {
        let mut sections = Vec::new();
        let mut choices: Vec<_> = options.choices.iter().enumerate().collect();
        choices.sort_by_key(|(_, choice)| place(choice.subsystem));
        for (part, choice) in choices {
            let subsystem = choice.subsystem;
            if choice.summary && !is_shown_beside(subsystem, options) {
                sections.push(Section::new(
                    part,
                    Kind::Summary,
                    subsystem,
                    options.layouts.of(subsystem, Table::Verbose),
                    options,
                ));
            }
            if choice.detail && subsystem.is_of_processes() {
                sections.push(Section::processes(part, subsystem, options));
            } else if choice.detail
                && options.top.is_some_and(|top| top.letter() == 'y')
                && subsystem.letter == 'y'
            {
                sections.push(Section::slabs(part, subsystem, options));
            } else if choice.detail {
                sections.push(Section::new(
                    part,
                    Kind::Detail,
                    subsystem,
                    options.layouts.of(subsystem, Table::Detail),
                    options,
                ));
            }
        }
        Verbose {
            table: sections.len() == 1 && !is_under_a_line(&sections[0], options) && !options.full,
            sections,
            intervals: 0,
            out: Vec::new(),
            scratch: Vec::new(),
            chosen: Vec::new(),
            own: Default::default(),
            zone: PlayedZone::default(),
        }
    }

    fn record_line(&mut self, interval: &Interval, options: &Options) {
        let host = interval.context.get("host").unwrap_or_default();
        let number = format!(
            "\n### RECORD {:>4} >>> {} <<< (",
            self.intervals,
            DisplayName(host.as_bytes())
        );
        self.out.extend_from_slice(number.as_bytes());
        put_epoch(&mut self.out, interval.moment.real_ns, true);
        if options.full {
            self.out.push(b':');
            let letters = options.chosen();
            self.out.extend_from_slice(letters.as_bytes());
        }
        self.out.extend_from_slice(b") (");
        interval.local.put_long(&mut self.out, options.milliseconds);
        self.out.extend_from_slice(b") ###\n");
    }
}

impl Section {
    fn new(
        part: usize,
        kind: Kind,
        subsystem: &'static Subsystem,
        lines: Layout,
        options: &Options,
    ) -> Section {
        let columns = if kind == Kind::Summary {
            subsystem.columns
        } else {
            subsystem.detail
        };
        let mut heads = lines.heads;
        let mut row = lines.row;
        let beside = subsystem.beside.as_ref().filter(|_| kind == Kind::Detail);
        let is_chosen = |letter: char| {
            options
                .choices
                .iter()
                .any(|choice| choice.subsystem.letter == letter)
        };
        if let Some(beside) = beside.filter(|beside| is_chosen(beside.letter)) {
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
            row: RowText::new(&row, columns, subsystem.fields.len(), options.numbers),
        }
    }

    fn processes(part: usize, subsystem: &'static Subsystem, options: &Options) -> Section {
        let (head, row) = options.process.lines();
        let title = match options.top.filter(|top| top.letter() == subsystem.letter) {
            Some(top) => format!(
                "TOP PROCESSES sorted by {} (counters are {})",
                top.name(),
                options.rate()
            ),
            None => {
                let counters = match options.process.cumulative {
                    true => "cumulative",
                    false => options.rate(),
                };
                subsystem.text.detail.title.replace("{rate}", counters)
            }
        };
        Section {
            part,
            kind: Kind::Processes,
            title,
            heads: vec![head],
            row: RowText::new(
                &row,
                subsystem.detail,
                subsystem.fields.len(),
                options.numbers,
            ),
        }
    }

    fn slabs(part: usize, subsystem: &'static Subsystem, options: &Options) -> Section {
        let (head, row) = slab::TOP;
        let fields = subsystem.fields.len();
        Section {
            part,
            kind: Kind::Slabs,
            title: "TOP SLABS".into(),
            heads: vec![head.into()],
            row: RowText::new(row, slab::TOP_COLUMNS, fields, options.numbers),
        }
    }

    /// The order and limit of its instances, if `--top` applies to them.
    fn ranked(&self, options: &Options) -> Option<Top> {
        let letter = match self.kind {
            Kind::Processes => 'z',
            Kind::Slabs => 'y',
            Kind::Summary | Kind::Detail => return None,
        };
        options.top.filter(|top| top.letter() == letter)
    }

    fn put_header(&self, out: &mut Vec<u8>, stamp: &str, interval: &Interval, options: &Options) {
        let (online, page_size) = (
            interval.parts[self.part].online(),
            interval.context.page_size(),
        );
        let filled = |text: &str| crate::row::head(text, &online, page_size);
        out.extend_from_slice(b"\n# ");
        out.extend_from_slice(filled(&self.title).as_bytes());
        if self.ranked(options).is_some() {
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
        let header = header_due(self.intervals, options)
            || (!self.table && options.header && (!options.full || self.sections.len() > 1))
            || options.home;
        self.intervals += 1;
        let stays = options.home || options.watched && options.top.is_some();
        if stays {
            self.out.extend_from_slice(HOME);
        }
        if !self.table && !stays {
            self.record_line(interval, options);
        }
        // As in collectl, when several tables are played back, only the line above them has the time.
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
            if header && (self.table && !stays || options.heads_only) {
                sink.write(To::Head, &self.out)?;
                self.out.clear();
            }
            if options.heads_only {
                continue;
            }
            let mut line = Line {
                out: &mut self.out,
                scratch: &mut self.scratch,
                stamped,
                interval,
                options,
                own: &mut self.own,
                zone: &mut self.zone,
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

/// Clears the rest of each line and the screen below. Clearing the whole screen first would flicker.
pub(crate) fn over_the_last_screen(out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
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

/// Writes the lines of one interval.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    scratch: &'a mut Vec<u8>,
    stamped: bool,
    interval: &'a Interval<'a>,
    options: &'a Options,
    own: &'a mut [Vec<u8>; 2],
    zone: &'a mut PlayedZone,
}

impl Line<'_> {
    fn section(&mut self, section: &Section, part: &Part, chosen: &mut Vec<usize>) {
        let (context, options) = (self.interval.context, self.options);
        if section.kind == Kind::Summary {
            let cells = part.summary(context, options);
            return self.put(&section.row, &cells, Beside::default());
        }
        selection::select(part, context, options, chosen);
        if let Some(top) = section.ranked(options) {
            selection::rank(part, context, options, top, chosen);
        }
        if section.kind == Kind::Detail && part.choice.subsystem.letter == 'y' {
            chosen.sort_by_key(|&at| part.name(&part.rows()[at]));
        }
        for (number, &at) in chosen.iter().enumerate() {
            let row = &part.rows()[at];
            // Instances without a past have no rates, except newly started processes. As in collectl, interrupts
            // that did not occur are left out.
            let is_idle =
                part.choice.subsystem.spread && !row.numbers.delta.iter().any(|&count| count > 0.0);
            if !row.baseline && !is_idle && !selection::is_unused(part, row) {
                let cells = part.cells(row, context, options);
                let mut own = std::mem::take(self.own);
                if section.kind == Kind::Processes {
                    self.put_own(&cells, &mut own);
                }
                self.put(&section.row, &cells, Beside { number, own: &own });
                *self.own = own;
            }
        }
    }

    /// Fills in texts that no column has: start time by the wall clock, and command in the configured form.
    fn put_own(&mut self, cells: &Cells, [start, command]: &mut [Vec<u8>; 2]) {
        start.clear();
        command.clear();
        let process = self.options.process;
        if process.makes_command() {
            process.put_command(cells, command);
        }
        let since_boot = cells.now[STARTTIME] / cells.context.hz();
        if let Some(form) = process.start.filter(|_| !since_boot.is_nan()) {
            let up_ns = i64::try_from(self.interval.moment.boot_ns).unwrap_or(0);
            let booted_ns = self.interval.moment.real_ns - up_ns;
            let zone = self.zone.of(self.interval.context);
            let local = zone.local(booted_ns.saturating_add((since_boot * 1e9) as i64));
            match form {
                Start::Time => local.put_time(start),
                Start::Day => local.put_month_and_time(start),
            }
        }
    }

    fn put(&mut self, row: &RowText, cells: &Cells, shown: Beside) {
        if self.stamped {
            put_stamp(self.out, self.interval, self.options);
        }
        row.put(self.out, cells, shown, self.scratch);
        self.out.push(b'\n');
    }
}
