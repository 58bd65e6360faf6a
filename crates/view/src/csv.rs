//! CSV: one table with a header line. It has every column of every chosen subsystem, under the names
//! of docs/metrics.md. A missing number is an empty field.

use std::io;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;

use crate::feed::Interval;
use crate::form;
use crate::format::{Note, Show, put_epoch};
use crate::options::{Options, Stamp};
use crate::selection;
use crate::sink::{Sink, To};

/// State of the format.
pub(crate) struct Csv {
    separator: u8,
    line: Vec<u8>,
    scratch: Vec<u8>,
    chosen: Vec<usize>,
    lines: u64,
}

impl Csv {
    /// A table of the chosen subsystems.
    pub(crate) fn new(options: &Options) -> Csv {
        let separator = if options.separator == b' ' {
            b','
        } else {
            options.separator
        };
        Csv {
            separator,
            line: Vec::new(),
            scratch: Vec::new(),
            chosen: Vec::new(),
            lines: 0,
        }
    }

    fn put_header(&mut self, options: &Options) {
        self.line.extend_from_slice(b"time");
        for choice in &options.choices {
            let columns = if choice.detail {
                choice.subsystem.detail
            } else {
                choice.subsystem.columns
            };
            for column in columns {
                self.line.push(self.separator);
                self.line
                    .extend_from_slice(choice.subsystem.name.as_bytes());
                self.line.push(b'.');
                self.line.extend_from_slice(column.name.as_bytes());
            }
        }
        self.line.push(b'\n');
    }

    fn put_cells(&mut self, columns: &[Column], cells: &Cells) {
        for column in columns {
            self.line.push(self.separator);
            match column.value {
                Value::Number(value) => {
                    let value = value(cells);
                    if !value.is_nan() {
                        form::plain(&mut self.line, value);
                    }
                }
                Value::Text(value) => {
                    self.scratch.clear();
                    value(cells, &mut self.scratch);
                    put_field(&mut self.line, &self.scratch, self.separator);
                }
            }
        }
    }
}

/// Appends a text, made safe for terminals, and quoted where RFC 4180 requires it.
fn put_field(out: &mut Vec<u8>, text: &[u8], separator: u8) {
    let name = DisplayName(text);
    let text = name.text();
    let bytes = text.as_bytes();
    if !bytes.iter().any(|b| *b == separator || *b == b'"') {
        return out.extend_from_slice(bytes);
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

fn put_time(out: &mut Vec<u8>, interval: &Interval, options: &Options) {
    let local = &interval.local;
    match options.stamp {
        Stamp::Default | Stamp::Epoch => {
            let milli = options.milliseconds || options.stamp == Stamp::Default;
            return put_epoch(out, interval.moment.real_ns, milli);
        }
        Stamp::Time => {}
        Stamp::MonthDay => local.put_month_day(out),
        Stamp::Day => local.put_day(out),
    }
    if options.stamp != Stamp::Time {
        out.push(b' ');
    }
    local.put_time(out);
    if options.milliseconds {
        local.put_milli(out);
    }
}

impl Show for Csv {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.line.clear();
        if self.lines == 0 && options.header {
            self.put_header(options);
            sink.write(To::Head, &self.line)?;
            self.line.clear();
        }
        self.lines += 1;
        let detail = interval.parts.iter().find(|part| part.choice.detail);
        let Some(part) = detail else {
            put_time(&mut self.line, interval, options);
            for part in interval.parts {
                self.put_cells(
                    part.choice.subsystem.columns,
                    &part.summary(interval.context, options),
                );
            }
            self.line.push(b'\n');
            return sink.write(To::Stream, &self.line);
        };
        let mut chosen = std::mem::take(&mut self.chosen);
        selection::select(part, interval.context, options, &mut chosen);
        for row in chosen
            .iter()
            .map(|&at| &part.rows()[at])
            .filter(|row| !row.baseline)
        {
            put_time(&mut self.line, interval, options);
            self.put_cells(
                part.choice.subsystem.detail,
                &part.cells(row, interval.context, options),
            );
            self.line.push(b'\n');
        }
        self.chosen = chosen;
        sink.write(To::Stream, &self.line)
    }

    fn note(&mut self, _: &Note, _: &Options, _: &mut dyn Sink) -> io::Result<()> {
        // CSV has no place for remarks; gaps show in the times.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        for (text, expect) in [
            (&b"plain text"[..], "plain text"),
            (b"a,b", "\"a,b\""),
            (b"say \"x\"", "\"say \"\"x\"\"\""),
            (b"\x1b[31m\n", "\\x1b[31m\\x0a"),
            (b"=1+1", "=1+1"),
            (b"", ""),
        ] {
            let mut out = Vec::new();
            put_field(&mut out, text, b',');
            assert_eq!(String::from_utf8_lossy(&out), expect);
        }
    }
}
