//! collectl's plot format, with its names, its order and its files. An interval is one line with instances side
//! by side; processes have a line each. A missing number is 0. A new header follows when instances come or go.

use std::io;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::{self, Form, PlotColumn, Shape, Unused};
use kymo_query::delta::RateRow;

use crate::feed::{Interval, Part};
use crate::form;
use crate::format::{Note, Remark, Show, put_epoch};
use crate::options::{Options, Stamp};
use crate::plot_header;
use crate::row::put_name;
use crate::selection;
use crate::sink::{Sink, To};

/// Destination of plot lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// The stream; each interval is one line.
    Line,
    /// Files: one for all summaries, and one per subsystem for its details.
    Files,
}

/// State of the format.
pub(crate) struct Plot {
    target: Target,
    groups: Vec<Group>,
    stamp: Vec<u8>,
    line: Vec<u8>,
    header: Vec<u8>,
    scratch: Vec<u8>,
    chosen: Vec<usize>,
    lines: u64,
    /// The header last written to the terminal.
    shown_header: Vec<u8>,
}

/// Blocks that share a file.
struct Group {
    suffix: &'static str,
    blocks: Vec<Block>,
    shape: Shape,
    header: Vec<u8>,
    day: u32,
    /// Second of the day in the file's name, with `-ou`.
    second: Option<u32>,
}

/// Columns of a summary, or of the instances of one subsystem.
struct Block {
    part: usize,
    detail: bool,
    tag: &'static str,
    shape: Shape,
    places: Vec<(PlotColumn, Option<Value>)>,
    /// Names of the instances in the last interval with numbers.
    names: Vec<Vec<u8>>,
}

impl Plot {
    /// Lays out the groups of the chosen subsystems.
    pub(crate) fn new(options: &Options, target: Target) -> Plot {
        let mut groups = vec![Group::new("tab", Shape::Wide)];
        for (part, choice) in options.choices.iter().enumerate() {
            let plot = &choice.subsystem.plot;
            if choice.summary && !plot.summary.is_empty() {
                let block = Block::new(part, plot, plot.summary, choice.subsystem.columns);
                groups[0].blocks.push(block);
            }
            if choice.detail {
                let mut group = Group::new(plot.file, plot.shape);
                let block = Block::new(part, plot, plot.detail, choice.subsystem.detail);
                group.blocks.push(Block {
                    detail: true,
                    ..block
                });
                groups.push(group);
            }
        }
        groups[0]
            .blocks
            .sort_by_key(|block| options.choices[block.part].subsystem.plot.order);
        groups.retain(|group| !group.blocks.is_empty());
        Plot {
            target,
            groups,
            stamp: Vec::new(),
            line: Vec::new(),
            header: Vec::new(),
            scratch: Vec::new(),
            chosen: Vec::new(),
            lines: 0,
            shown_header: Vec::new(),
        }
    }

    fn one_line(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.line.clear();
        if self.groups.iter().any(|group| group.shape.is_long()) {
            return self.long_lines(interval, options, sink);
        }
        if self.lines == 0 && options.letters.contains('i') {
            let about = plot_header::text(interval, options);
            sink.write(To::Stream, about.as_bytes())?;
        }
        put_stamp_head(&mut self.header, options);
        self.line.extend_from_slice(&self.stamp);
        for group in &mut self.groups {
            for block in &mut group.blocks {
                block.refresh(&interval.parts[block.part]);
                block.put_header(&mut self.header, options);
                block.put(
                    &mut self.line,
                    &interval.parts[block.part],
                    interval,
                    options,
                    &mut self.scratch,
                );
            }
        }
        self.header.push(b'\n');
        self.line.push(b'\n');
        self.show_header(options, sink)?;
        sink.write(To::Stream, &self.line)
    }

    /// Writes the header to the stream if it is due or has changed.
    fn show_header(&mut self, options: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        let due = options
            .header_every
            .is_some_and(|every| self.lines.is_multiple_of(every.max(1)));
        self.lines += 1;
        if options.header && (due || self.header != self.shown_header) {
            self.shown_header.clone_from(&self.header);
            sink.write(To::Head, &self.header)?;
        }
        Ok(())
    }

    fn long_lines(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        put_stamp_head(&mut self.header, options);
        for group in &self.groups {
            let block = &group.blocks[0];
            block.put_names(&mut self.header, None, options);
            let part = &interval.parts[block.part];
            block.put_lines(
                &mut self.line,
                &self.stamp,
                part,
                interval,
                options,
                (&mut self.chosen, &mut self.scratch),
            );
        }
        self.header.push(b'\n');
        self.show_header(options, sink)?;
        sink.write(To::Stream, &self.line)
    }

    fn files(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let host = interval.context.get("host").unwrap_or("unknown");
        let day = interval.local.day;
        for group in &mut self.groups {
            if !group
                .blocks
                .iter()
                .any(|block| interval.parts[block.part].fresh)
            {
                continue;
            }
            put_stamp_head(&mut self.header, options);
            self.line.clear();
            match group.shape {
                Shape::Wide | Shape::Own(_) => {
                    self.line.extend_from_slice(&self.stamp);
                    for block in &mut group.blocks {
                        let part = &interval.parts[block.part];
                        block.refresh(part);
                        block.put_header(&mut self.header, options);
                        block.put(&mut self.line, part, interval, options, &mut self.scratch);
                    }
                    self.line.push(b'\n');
                }
                Shape::Long => {
                    let block = &group.blocks[0];
                    block.put_names(&mut self.header, None, options);
                    let part = &interval.parts[block.part];
                    block.put_lines(
                        &mut self.line,
                        &self.stamp,
                        part,
                        interval,
                        options,
                        (&mut self.chosen, &mut self.scratch),
                    );
                }
            }
            self.header.push(b'\n');
            if group.day != day {
                group.second = unique(interval, options);
            }
            let to = To::File {
                host,
                day,
                second: group.second,
                suffix: group.suffix,
            };
            if group.day != day {
                sink.write(to, plot_header::text(interval, options).as_bytes())?;
            }
            if group.day != day || group.header != self.header {
                group.header.clone_from(&self.header);
                group.day = day;
                sink.write(to, &self.header)?;
            }
            sink.write(to, &self.line)?;
        }
        Ok(())
    }
}

impl Show for Plot {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        put_stamp(&mut self.stamp, interval, options);
        match self.target {
            Target::Line => self.one_line(interval, options, sink),
            Target::Files => self.files(interval, options, sink),
        }
    }

    fn note(&mut self, note: &Note, _: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        let text = match note.remark {
            Remark::Missed(ticks) => format!("# gap {ticks} ticks\n"),
            Remark::Gap(why) => {
                format!("# gap: {}\n", DisplayName(why.as_bytes()))
            }
            Remark::Event(text) => format!("# event: {}\n", DisplayName(text.as_bytes())),
        };
        if self.target == Target::Line {
            return sink.write(To::Stream, text.as_bytes());
        }
        for group in self.groups.iter().filter(|group| group.day != 0) {
            sink.write(
                To::File {
                    host: note.host,
                    day: group.day,
                    second: group.second,
                    suffix: group.suffix,
                },
                text.as_bytes(),
            )?;
        }
        Ok(())
    }
}

impl Group {
    fn new(suffix: &'static str, shape: Shape) -> Group {
        Group {
            suffix,
            blocks: Vec::new(),
            shape,
            header: Vec::new(),
            day: 0,
            second: None,
        }
    }
}

impl Block {
    fn new(
        part: usize,
        plot: &subsystem::Plot,
        places: &[PlotColumn],
        columns: &[Column],
    ) -> Block {
        let value = |place: &PlotColumn| {
            columns
                .iter()
                .find(|column| column.name == place.column)
                .map(|column| column.value)
        };
        Block {
            part,
            detail: false,
            tag: plot.tag,
            shape: plot.shape,
            places: places.iter().map(|place| (*place, value(place))).collect(),
            names: Vec::new(),
        }
    }

    /// Stores the names of this interval's instances. Without numbers, the previous names stay.
    fn refresh(&mut self, part: &Part) {
        if !self.detail || !part.fresh {
            return;
        }
        let same = used(part)
            .iter()
            .map(|row| part.name(row))
            .eq(self.names.iter().map(Vec::as_slice));
        if !same {
            self.names = used(part)
                .iter()
                .map(|row| part.name(row).to_vec())
                .collect();
        }
    }

    fn put_header(&self, out: &mut Vec<u8>, options: &Options) {
        match self.detail {
            false => self.put_names(out, Some(b""), options),
            true => self
                .names
                .iter()
                .for_each(|name| self.put_names(out, Some(name), options)),
        }
    }

    /// The columns of an instance.
    fn places_of(&self, name: &[u8]) -> impl Iterator<Item = &(PlotColumn, Option<Value>)> {
        let places = self.places.iter();
        places.filter(move |(place, _)| match self.shape {
            Shape::Own(has) if self.detail => has(name, place),
            _ => true,
        })
    }

    /// Appends the names of all columns: `[CPU]User%`, for an instance `[CPU:0]User%`, or without a tag.
    fn put_names(&self, out: &mut Vec<u8>, instance: Option<&[u8]>, options: &Options) {
        for (place, _) in self.places_of(instance.unwrap_or_default()) {
            out.push(options.separator);
            if let (Some((tag, _)), Some(name)) = (place.head.split_once("{name}"), instance) {
                let group = name.iter().position(|&b| b == b'_').map_or(0, |at| at + 1);
                out.extend_from_slice(tag.as_bytes());
                put_text(out, &name[group..], options.separator);
                continue;
            }
            if let Some(instance) = instance {
                out.push(b'[');
                out.extend_from_slice(self.tag.as_bytes());
                if !instance.is_empty() {
                    out.push(b':');
                    put_text(out, instance, options.separator);
                }
                out.push(b']');
            }
            match place.head.split_once("{rate}") {
                Some((head, _)) => {
                    out.extend_from_slice(head.as_bytes());
                    out.extend_from_slice(options.rate().as_bytes());
                }
                None => out.extend_from_slice(place.head.as_bytes()),
            }
        }
    }

    fn put(
        &self,
        out: &mut Vec<u8>,
        part: &Part,
        interval: &Interval,
        options: &Options,
        scratch: &mut Vec<u8>,
    ) {
        let context = interval.context;
        if !self.detail {
            return self.put_cells(out, &part.summary(context, options), options, scratch);
        }
        if part.fresh {
            for row in used(part) {
                self.put_cells(out, &part.cells(row, context, options), options, scratch);
            }
        } else {
            for name in &self.names {
                self.put_cells(out, &part.missing(name, context), options, scratch);
            }
        }
    }

    /// Appends one line per instance.
    fn put_lines(
        &self,
        out: &mut Vec<u8>,
        stamp: &[u8],
        part: &Part,
        interval: &Interval,
        options: &Options,
        (chosen, scratch): (&mut Vec<usize>, &mut Vec<u8>),
    ) {
        selection::select(part, interval.context, options, chosen);
        if let Some(top) = options.top {
            selection::rank(part, interval.context, options, top, chosen);
        }
        for row in chosen
            .iter()
            .map(|&at| &part.rows()[at])
            .filter(|row| !row.baseline)
        {
            out.extend_from_slice(stamp);
            self.put_cells(
                out,
                &part.cells(row, interval.context, options),
                options,
                scratch,
            );
            out.push(b'\n');
        }
    }

    fn put_cells(
        &self,
        out: &mut Vec<u8>,
        cells: &Cells,
        options: &Options,
        scratch: &mut Vec<u8>,
    ) {
        let last = self.places.len() - 1;
        for (n, (place, value)) in self.places_of(cells.name).enumerate() {
            out.push(options.separator);
            match value {
                None if place.column == "name" => put_text(out, cells.name, options.separator),
                None => put_number(out, 0.0, place.form, options),
                Some(Value::Number(value)) => put_number(out, value(cells), place.form, options),
                Some(Value::Text(value)) => {
                    scratch.clear();
                    value(cells, scratch);
                    // Blanks are kept only in the last column, where they cannot be taken for separators.
                    let separator = if n == last && options.separator == b' ' {
                        0
                    } else {
                        options.separator
                    };
                    put_text(out, scratch, separator);
                }
            }
        }
    }
}

/// With `-ou`: the second of the day for a file's name. On the first day this is the start of the recording.
fn unique(interval: &Interval, options: &Options) -> Option<u32> {
    let has_unique = options.letters.contains('u');
    let began = interval.context.get("started").and_then(|started| {
        let (day, time) = started.split_once('-')?;
        let (day, time): (u32, u32) = (day.parse().ok()?, time.parse().ok()?);
        let second = time / 10_000 * 3600 + time / 100 % 100 * 60 + time % 100;
        (day == interval.local.day).then_some(second)
    });
    has_unique.then(|| began.unwrap_or(interval.local.second))
}

/// The instances with columns. As in collectl, unused loop devices have none.
fn used(part: &Part) -> Vec<&RateRow> {
    let hides = part.choice.subsystem.unused == Unused::Hidden;
    let rows = part.rows().iter();
    let mut rows: Vec<_> = rows
        .filter(|row| !hides || !selection::is_unused(part, row))
        .collect();
    if let Shape::Own(_) = part.choice.subsystem.plot.shape {
        rows.sort_by_key(|row| part.name(row));
    }
    rows
}

fn put_number(out: &mut Vec<u8>, value: f64, form: Form, options: &Options) {
    let value = if value.is_nan() { 0.0 } else { value };
    match form {
        Form::ChosenDecimals => form::fixed(out, value, options.decimals),
        Form::Two => form::fixed(out, value, 2),
        Form::Whole | Form::Text => form::whole(out, value),
        Form::Clock => form::clock(out, value),
    }
}

/// Appends an untrusted text, made safe and without separators; `-` if it is empty.
fn put_text(out: &mut Vec<u8>, text: &[u8], separator: u8) {
    let start = out.len();
    put_name(out, text, 0);
    if out.len() == start {
        return out.push(b'-');
    }
    if out[start..].contains(&separator) {
        let escaped = format!("\\x{separator:02x}").into_bytes();
        let safe: Vec<u8> = out[start..]
            .iter()
            .flat_map(|b| {
                if *b == separator {
                    escaped.clone()
                } else {
                    vec![*b]
                }
            })
            .collect();
        out.truncate(start);
        out.extend(safe);
    }
}

fn put_stamp_head(out: &mut Vec<u8>, options: &Options) {
    out.clear();
    match options.stamp {
        Stamp::Epoch => out.extend_from_slice(b"#UTC"),
        _ => {
            out.extend_from_slice(b"#Date");
            out.push(options.separator);
            out.extend_from_slice(b"Time");
        }
    }
}

fn put_stamp(out: &mut Vec<u8>, interval: &Interval, options: &Options) {
    out.clear();
    match options.stamp {
        Stamp::Epoch => return put_epoch(out, interval.moment.real_ns, options.milliseconds),
        Stamp::MonthDay => interval.local.put_month_day(out),
        _ => interval.local.put_day(out),
    }
    out.push(options.separator);
    interval.local.put_time(out);
    if options.milliseconds {
        interval.local.put_milli(out);
    }
}
