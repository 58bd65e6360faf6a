//! Brief: one line an interval, the columns of all subsystems side by side.

use std::io;

use kymo_base::name::DisplayName;

use crate::feed::Interval;
use crate::format::{Note, Remark, Show, put_epoch};
use crate::options::{Options, Stamp};
use crate::row::{RowText, head};
use crate::sink::{Sink, To};

/// The format's state.
pub(crate) struct Brief {
    rows: Vec<RowText>,
    header: Vec<u8>,
    lines: u64,
    line: Vec<u8>,
    scratch: Vec<u8>,
}

impl Brief {
    /// Lays out the columns of what is chosen.
    pub(crate) fn new(options: &Options) -> Brief {
        let shown = || options.choices.iter().map(|choice| choice.subsystem);
        Brief {
            rows: shown()
                .map(|subsystem| {
                    let row = subsystem.text.brief.row;
                    RowText::new(row, subsystem.columns, subsystem.fields.len())
                })
                .collect(),
            header: Vec::new(),
            lines: 0,
            line: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

fn header(interval: &Interval, options: &Options) -> Vec<u8> {
    let stamp = stamp_head(options);
    let (mut banners, mut names) = (String::new(), String::new());
    for part in interval.parts {
        let lines = &part.choice.subsystem.text.brief;
        let (online, page_size) = (part.online(), interval.context.page_size());
        banners += &head(lines.title, &online, page_size);
        for line in lines.heads {
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

/// What stands over the stamps.
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

/// Appends a stamp as it stands before a terminal line, with a blank behind it.
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

/// Whether a header is due before line number `lines`.
pub(crate) fn header_due(lines: u64, options: &Options) -> bool {
    options.header
        && options
            .header_every
            .map_or(lines == 0, |every| lines.is_multiple_of(every.max(1)))
}

/// Appends a remark as terminal formats show it: a gap is a blank line.
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
        self.line.clear();
        let header = header(interval, options);
        // CPUs that come or go change it.
        let changed = options.header && self.lines > 0 && header != self.header;
        if changed || header_due(self.lines, options) {
            self.line.extend_from_slice(&header);
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
            row.put(&mut self.line, &cells, 0, &mut self.scratch);
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
