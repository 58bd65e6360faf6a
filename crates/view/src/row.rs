//! Rows of the terminal formats: the subsystems' row texts, read once, and then filled in.

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;

use crate::form::{self, Form};

/// A row: literal texts and places.
#[derive(Clone)]
pub(crate) struct RowText {
    parts: Vec<Part>,
}

#[derive(Clone)]
enum Part {
    Literal(Box<str>),
    Place {
        what: What,
        width: i32,
        form: Form,
        limit: usize,
    },
}

/// What stands at a place.
#[derive(Clone, Copy)]
enum What {
    /// The instance's name.
    Name,
    /// The instance's number, from 0.
    Number,
    Column(Value),
}

impl RowText {
    /// Reads `text`; places that name no column are left out (a test of the tables sees them).
    pub(crate) fn new(text: &str, columns: &[Column]) -> RowText {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, tail)) = rest.split_once('{') {
            let (place, tail) = tail.split_once('}').unwrap_or((tail, ""));
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.into()));
            }
            parts.extend(read_place(place, columns));
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.into()));
        }
        RowText { parts }
    }

    /// Appends the row of one instance; `number` is its place among the shown.
    pub(crate) fn put(
        &self,
        out: &mut Vec<u8>,
        cells: &Cells,
        number: usize,
        scratch: &mut Vec<u8>,
    ) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                &Part::Place {
                    what,
                    width,
                    form,
                    limit,
                } => {
                    let start = out.len();
                    match what {
                        What::Name => put_name(out, cells.name, limit),
                        What::Number => form::whole(out, number as f64),
                        What::Column(Value::Number(value)) => {
                            form::put(out, value(cells), form, limit)
                        }
                        What::Column(Value::Text(value)) => {
                            scratch.clear();
                            value(cells, scratch);
                            put_name(out, scratch, limit);
                        }
                    }
                    form::align(out, start, width);
                }
            }
        }
    }
}

/// Appends a text from outside, made safe and cut to `limit` characters (0: whole).
pub(crate) fn put_name(out: &mut Vec<u8>, name: &[u8], limit: usize) {
    let name = DisplayName(name);
    let text = name.text();
    let end = match limit {
        0 => text.len(),
        _ => text
            .char_indices()
            .nth(limit)
            .map_or(text.len(), |(at, _)| at),
    };
    out.extend_from_slice(&text.as_bytes()[..end]);
}

/// `total:3d`, `vsz:5k4`, `name:-11s`, `load1:5.2`.
fn read_place(place: &str, columns: &[Column]) -> Option<Part> {
    let (name, layout) = place.split_once(':').unwrap_or((place, ""));
    let digits = layout
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(layout.len());
    let (width, kind) = layout.split_at(digits);
    let width: i32 = width.parse().unwrap_or(0);
    let mut kind = kind.chars();
    let letter = kind.next().unwrap_or('s');
    let tail: Option<usize> = kind.as_str().parse().ok();
    let form = match letter {
        'd' => Form::Whole,
        '.' => Form::Decimals(tail.unwrap_or(0) as u8),
        'c' => Form::Count,
        'k' => Form::Kilobytes,
        'b' => Form::Bytes,
        'u' => Form::Units,
        't' => Form::Time,
        _ => Form::Text,
    };
    let limit = match form {
        Form::Text => tail.unwrap_or(0),
        _ => tail.unwrap_or(width.unsigned_abs() as usize),
    };
    let what = match name {
        "name" => What::Name,
        "number" => What::Number,
        _ => What::Column(columns.iter().find(|column| column.name == name)?.value),
    };
    Some(Part::Place {
        what,
        width,
        form,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::context::Context;
    use kymo_base::field::Unit;

    const COLUMNS: &[Column] = &[
        Column {
            name: "a",
            unit: Unit::Count,
            help: "",
            value: Value::Number(|c| c.now[0]),
            private: false,
        },
        Column {
            name: "t",
            unit: Unit::None,
            help: "",
            value: Value::Text(|c, out| out.extend_from_slice(&c.labels[0])),
            private: false,
        },
    ];

    #[test]
    fn places() {
        for (row, a, label, expect) in [
            ("{a:3d} {a:4c}|", 12345.6, "x", "12345  12K|"),
            (
                "{a:5d}|{t:-5s}|{t:5s}|{t:3s2}",
                7.9,
                "abc",
                "    7|abc  |  abc| ab",
            ),
            ("{a:5.2}{number:3d}", 1.005, "", " 1.00  4"),
            ("{name:-6s}|{t:s}", 0.0, "\x1b[31m", "n\\x0a |\\x1b[31m"),
            ("{a:4k}", f64::NAN, "", "   -"),
            ("no places", 0.0, "", "no places"),
        ] {
            let (now, labels, context) = ([a], [label.as_bytes().to_vec()], Context::default());
            let cells = Cells {
                now: &now,
                delta: &now,
                secs: 1.0,
                elapsed: 1.0,
                name: b"n\n",
                labels: &labels,
                context: &context,
            };
            let mut out = Vec::new();
            RowText::new(row, COLUMNS).put(&mut out, &cells, 4, &mut Vec::new());
            assert_eq!(String::from_utf8_lossy(&out), expect, "{row}");
        }
    }
}
