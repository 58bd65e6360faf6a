//! Brief format: one line per interval, with the columns of all subsystems.

use std::io;

use kymo_base::column::Cells;
use kymo_base::name::DisplayName;

use crate::feed::{Interval, Part};
use crate::format::{Note, Remark, Show, put_epoch};
use crate::layouts::Table;
use crate::options::{Options, Stamp};
use crate::row::{Beside, RowText, head};
use crate::sink::{Sink, To};
use crate::totals::Totals;

/// State of the format.
pub(crate) struct Brief {
    rows: Vec<RowText>,
    header: Vec<u8>,
    lines: u64,
    line: Vec<u8>,
    scratch: Vec<u8>,
    totals: Totals,
}

impl Brief {
    /// Lays out the columns of the chosen subsystems.
    pub(crate) fn new(options: &Options) -> Brief {
        let shown = || options.choices.iter().map(|choice| choice.subsystem);
        Brief {
            rows: shown()
                .map(|subsystem| {
                    let layout = options.layouts.of(subsystem, Table::Brief);
                    let fields = subsystem.fields.len();
                    RowText::new(&layout.row, subsystem.columns, fields, options.numbers)
                })
                .collect(),
            header: Vec::new(),
            lines: 0,
            line: Vec::new(),
            scratch: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Adds an interval to the totals.
    fn add(&mut self, interval: &Interval, options: &Options) {
        let totals = &mut self.totals;
        let elapsed = interval.parts.iter().filter(|part| part.fresh);
        totals.interval(elapsed.map(Part::elapsed).fold(0.0, f64::max));
        for (at, part) in interval.parts.iter().enumerate() {
            let elapsed = if part.fresh { part.elapsed() } else { 0.0 };
            totals.add(at, part.numbers(), elapsed);
        }
        if totals.context.stamp() != interval.context.stamp() {
            totals.context = interval.context.clone();
        }
        totals.stamp.clear();
        put_stamp(&mut totals.stamp, interval, options);
    }

    /// Writes the totals and resets them.
    fn put_totals(&mut self, options: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        let Some(wanted) = options.totals.filter(|_| !self.totals.is_empty()) else {
            return Ok(());
        };
        self.line.clear();
        if header_due(self.lines, options) {
            self.line.extend_from_slice(&self.header);
        }
        self.lines += 1;
        let averages = wanted.averages.then_some((b'A', self.totals.elapsed()));
        for (letter, secs) in averages.into_iter().chain([(b'T', 1.0)]) {
            match wanted.intervals && wanted.averages {
                // As in collectl: the lines above have the times.
                true => self
                    .line
                    .resize(self.line.len() + self.totals.stamp.len(), b' '),
                false => self.line.extend_from_slice(&self.totals.stamp),
            }
            self.line.push(letter);
            for (at, row) in self.rows.iter().enumerate() {
                let numbers = self.totals.of(at);
                let cells = Cells {
                    now: if options.changes && options.is_memory(at) {
                        &numbers.delta
                    } else {
                        &numbers.now
                    },
                    delta: &numbers.delta,
                    secs,
                    elapsed: self.totals.elapsed(),
                    name: &[],
                    labels: &[],
                    context: &self.totals.context,
                };
                row.put(&mut self.line, &cells, Beside::default(), &mut self.scratch);
            }
            self.line.push(b'\n');
        }
        self.totals.clear();
        sink.write(To::Stream, &self.line)
    }
}

fn header(interval: &Interval, options: &Options) -> Vec<u8> {
    let stamp = stamp_head(options);
    let (mut banners, mut names) = (String::new(), String::new());
    for part in interval.parts {
        let layout = options.layouts.of(part.choice.subsystem, Table::Brief);
        let (online, page_size) = (part.online(), interval.context.page_size());
        banners += &head(&layout.title, &online, page_size);
        for line in &layout.heads {
            names += &head(line, &online, page_size);
        }
    }
    format!(
        "#{:width$}{banners}\n#{stamp}{names}\n",
        "",
        width = stamp.len()
    )
    .into_bytes()
}

/// Moves a terminal's cursor to the top.
pub(crate) const HOME: &[u8] = b"\x1b[H";

/// The header over the stamps.
pub(crate) fn stamp_head(options: &Options) -> String {
    let name = match options.stamp {
        Stamp::Default => return String::new(),
        Stamp::Time => "Time     ",
        Stamp::MonthDay => "Date  Time     ",
        Stamp::Day => "Date     Time     ",
        Stamp::Epoch => "UTC        ",
    };
    let milli = if options.milliseconds { "    " } else { "" };
    format!("{name}{milli}")
}

/// Appends a stamp and a blank, for the beginning of a terminal line.
pub(crate) fn put_stamp(out: &mut Vec<u8>, interval: &Interval, options: &Options) {
    let local = &interval.local;
    match options.stamp {
        Stamp::Default => return,
        Stamp::Epoch => {
            put_epoch(out, interval.moment.real_ns, options.milliseconds);
            return out.push(b' ');
        }
        Stamp::Time => {}
        Stamp::MonthDay => {
            local.put_month_day(out);
            out.push(b' ');
        }
        Stamp::Day => {
            local.put_day(out);
            out.push(b' ');
        }
    }
    local.put_time(out);
    if options.milliseconds {
        local.put_milli(out);
    }
    out.push(b' ');
}

/// True if a header is due before line number `lines`.
pub(crate) fn header_due(lines: u64, options: &Options) -> bool {
    options.header
        && options
            .header_every
            .map_or(lines == 0, |every| lines.is_multiple_of(every.max(1)))
}

/// Appends a remark in the form of the terminal formats; a gap is a blank line.
pub(crate) fn put_note(out: &mut Vec<u8>, note: &Note) {
    if let Remark::Event(text) = note.remark {
        out.extend_from_slice(b"# ");
        note.local.put_time(out);
        out.push(b' ');
        out.extend_from_slice(DisplayName(text.as_bytes()).text().as_bytes());
    }
    out.push(b'\n');
}

impl Show for Brief {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        if let Some(wanted) = options.totals {
            self.add(interval, options);
            if self.header.is_empty() {
                self.header = header(interval, options);
            }
            if !wanted.intervals {
                return Ok(());
            }
        }
        self.line.clear();
        let header = header(interval, options);
        // The header changes when CPUs come or go.
        let changed = options.header && self.lines > 0 && header != self.header;
        if changed || header_due(self.lines, options) || options.home {
            if options.home {
                sink.write(To::Stream, HOME)?;
            }
            sink.write(To::Head, &header)?;
        }
        self.header = header;
        self.lines += 1;
        if options.stamp == Stamp::Default {
            self.line.push(b' ');
        } else {
            put_stamp(&mut self.line, interval, options);
            self.line.push(b' ');
        }
        for (part, row) in interval.parts.iter().zip(&self.rows) {
            let cells = part.summary(interval.context, options);
            row.put(&mut self.line, &cells, Beside::default(), &mut self.scratch);
        }
        if options.home {
            self.line.extend_from_slice(b"\x1b[K");
        }
        self.line.push(b'\n');
        sink.write(To::Stream, &self.line)
    }

    fn note(&mut self, note: &Note, options: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        if let Some(wanted) = options.totals {
            if wanted.each_recording && matches!(note.remark, Remark::Gap(_)) {
                self.put_totals(options, sink)?;
            }
            if !wanted.intervals {
                return Ok(());
            }
        }
        self.line.clear();
        put_note(&mut self.line, note);
        sink.write(To::Stream, &self.line)
    }

    fn end(&mut self, options: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        self.put_totals(options, sink)
    }
}
