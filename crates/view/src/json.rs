//! JSON: one object per line. Keys are `time` (seconds since 1970) and SUBSYSTEM.COLUMN as in
//! docs/metrics.md. An interval's summaries share one object, each instance has its own. A missing
//! number is left out. Gaps and events are objects with `event`.

use std::io;

use kymo_base::column::{Cells, Column, Value};
use kymo_kernel::subsystem::Subsystem;

use crate::feed::Interval;
use crate::form;
use crate::format::{Note, Remark, Show, put_epoch};
use crate::options::Options;
use crate::selection;
use crate::sink::{Sink, To};

/// State of the format.
pub(crate) struct Json {
    /// Encoded keys of the columns of each choice: those of its summary, and those of its instances.
    keys: Vec<[Vec<Vec<u8>>; 2]>,
    out: Vec<u8>,
    scratch: Vec<u8>,
    chosen: Vec<usize>,
}

impl Json {
    /// Objects for the chosen subsystems.
    pub(crate) fn new(options: &Options) -> Json {
        let keys = |name: &str, columns: &[Column]| {
            columns
                .iter()
                .map(|column| format!(",\"{name}.{}\":", column.name).into_bytes())
                .collect()
        };
        let both = options.choices.iter().map(|choice| {
            let subsystem = choice.subsystem;
            [
                keys(subsystem.name, subsystem.columns),
                keys(subsystem.name, subsystem.detail),
            ]
        });
        Json {
            keys: both.collect(),
            out: Vec::new(),
            scratch: Vec::new(),
            chosen: Vec::new(),
        }
    }
}

fn put_time(out: &mut Vec<u8>, real_ns: i64) {
    out.extend_from_slice(b"{\"time\":");
    put_epoch(out, real_ns, true);
}

fn put_cells(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    keys: &[Vec<u8>],
    columns: &[Column],
    cells: &Cells,
) {
    for (key, column) in keys.iter().zip(columns) {
        match column.value {
            Value::Number(value) => {
                let value = value(cells);
                if value.is_finite() {
                    out.extend_from_slice(key);
                    form::plain(out, value);
                }
            }
            Value::Text(value) => {
                scratch.clear();
                value(cells, scratch);
                if !scratch.is_empty() {
                    out.extend_from_slice(key);
                    put_string(out, scratch);
                }
            }
        }
    }
}

/// Appends the counters of each CPU, per second.
fn put_spread(out: &mut Vec<u8>, subsystem: &Subsystem, cells: &Cells) {
    let fields = subsystem.fields.len()..cells.delta.len();
    for (cpu, field) in fields.enumerate().filter(|_| subsystem.spread) {
        let rate = cells.rate(field);
        if rate.is_finite() {
            out.extend_from_slice(format!(",\"{}.cpu{cpu}\":", subsystem.name).as_bytes());
            form::plain(out, rate);
        }
    }
}

/// Appends a JSON string. Invalid UTF-8 becomes U+FFFD. Characters that do not print are escaped, so
/// that the line is safe to show on a terminal.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if c.is_control() || ('\u{200b}'..='\u{206f}').contains(&c) || c == '\u{feff}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

impl Show for Json {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let (context, real_ns) = (interval.context, interval.moment.real_ns);
        let Json {
            keys,
            out,
            scratch,
            chosen,
        } = self;
        out.clear();
        if interval
            .parts
            .iter()
            .any(|part| part.choice.summary && part.fresh)
        {
            put_time(out, real_ns);
            for (part, [keys, _]) in interval
                .parts
                .iter()
                .zip(keys.iter())
                .filter(|(part, _)| part.choice.summary)
            {
                let cells = part.summary(context, options);
                put_cells(out, scratch, keys, part.choice.subsystem.columns, &cells);
                put_spread(out, part.choice.subsystem, &cells);
            }
            out.extend_from_slice(b"}\n");
        }
        for (part, [_, keys]) in interval
            .parts
            .iter()
            .zip(keys.iter())
            .filter(|(part, _)| part.choice.detail)
        {
            selection::select(part, context, options, chosen);
            if let Some(top) = options.top
                && part.choice.subsystem.is_of_processes()
            {
                selection::rank(part, context, options, top, chosen);
            }
            for &at in chosen.iter() {
                put_time(out, real_ns);
                let cells = part.cells(&part.rows()[at], context, options);
                put_cells(out, scratch, keys, part.choice.subsystem.detail, &cells);
                put_spread(out, part.choice.subsystem, &cells);
                out.extend_from_slice(b"}\n");
            }
        }
        sink.write(To::Stream, out)
    }

    fn note(&mut self, note: &Note, _: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        let out = &mut self.out;
        out.clear();
        put_time(out, note.moment.real_ns);
        match note.remark {
            Remark::Missed(ticks) => {
                out.extend_from_slice(format!(",\"event\":\"gap\",\"ticks\":{ticks}").as_bytes())
            }
            Remark::Gap(why) => {
                out.extend_from_slice(b",\"event\":\"gap\",\"why\":");
                put_string(out, why.as_bytes());
            }
            Remark::Event(text) => {
                out.extend_from_slice(b",\"event\":");
                put_string(out, text.as_bytes());
            }
        }
        out.extend_from_slice(b"}\n");
        sink.write(To::Stream, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        for (text, expect) in [
            (&b"sh"[..], r#""sh""#),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\x1b[31m\n\x7f", r#""\u001b[31m\n\u007f""#),
            (b"\xff", "\"\u{fffd}\""),
            ("\u{202e}\u{9b}".as_bytes(), r#""\u202e\u009b""#),
        ] {
            let mut out = Vec::new();
            put_string(&mut out, text);
            assert_eq!(String::from_utf8_lossy(&out), expect);
        }
    }
}
