//! Rows of the terminal formats: parsed once from the subsystems' row texts, then filled in.

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::Subsystem;

use crate::form::{self, Form, Shortening};

/// A row: literal texts, and places for values.
#[derive(Clone)]
pub struct RowText {
    parts: Vec<Part>,
    shortening: Shortening,
}

#[derive(Clone)]
enum Part {
    Literal(Box<str>),
    Filled {
        what: Content,
        width: i32,
        form: Form,
        limit: usize,
    },
}

/// Content of a place.
#[derive(Clone, Copy)]
enum Content {
    /// The instance's name.
    Name,
    /// The last component of the instance's name, a path, indented by two blanks per component before it; or the text of
    /// this column, if there is one.
    Branch(Option<fn(&Cells, &mut Vec<u8>)>),
    /// The instance's number, from 0.
    Number,
    /// Counters of each CPU from this field on; `true`: a blank follows each.
    Spread(usize, bool),
    /// A text from the caller, by its index in [`Beside::own`].
    Own(usize),
    Column(Value),
}

impl RowText {
    /// Parses `text`. Places with unknown columns are skipped; a test of the tables finds them. `fields` is the
    /// number of fields before the counters of each CPU.
    pub(crate) fn new(
        text: &str,
        columns: &[Column],
        fields: usize,
        shortening: Shortening,
    ) -> RowText {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, tail)) = rest.split_once('{') {
            let (place, tail) = tail.split_once('}').unwrap_or((tail, ""));
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.into()));
            }
            parts.extend(read_place(place, columns, fields));
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.into()));
        }
        RowText { parts, shortening }
    }

    /// Parses `text`, a row in the grammar of `kymo_kernel::subsystem::Text`, for the instances of a subsystem.
    pub fn of(text: &str, subsystem: &Subsystem) -> RowText {
        let fields = subsystem.fields.len();
        RowText::new(text, subsystem.detail, fields, Shortening::Cut)
    }

    /// The row of one instance as a text that is safe to show.
    pub fn text(&self, cells: &Cells) -> String {
        let mut out = Vec::new();
        self.put(&mut out, cells, Beside::default(), &mut Vec::new());
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Appends the row of one instance.
    pub(crate) fn put(
        &self,
        out: &mut Vec<u8>,
        cells: &Cells,
        shown: Beside,
        scratch: &mut Vec<u8>,
    ) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                &Part::Filled {
                    what,
                    width,
                    form,
                    limit,
                } => {
                    let start = out.len();
                    if let Content::Spread(first, parted) = what {
                        put_spread(out, cells, first, |out, rate| {
                            let start = out.len();
                            form::put(out, rate, form, limit, self.shortening);
                            form::align(out, start, width);
                            out.resize(out.len() + usize::from(parted), b' ');
                        });
                        continue;
                    }
                    match what {
                        Content::Spread(..) => {}
                        Content::Name => put_name(out, cells.name, limit),
                        Content::Branch(called) => {
                            scratch.clear();
                            if let Some(called) = called {
                                called(cells, scratch);
                            }
                            put_branch(out, cells.name, scratch, limit);
                        }
                        Content::Number => form::whole(out, shown.number as f64),
                        Content::Own(at) => {
                            put_name(out, shown.own.get(at).map_or(&[], Vec::as_slice), limit);
                        }
                        Content::Column(Value::Number(value)) => {
                            form::put(out, value(cells), form, limit, self.shortening)
                        }
                        Content::Column(Value::Text(value)) => {
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

/// Appends a path as an entry of a tree: `/` is the root, and each level is indented by two blanks. A container has the
/// name that its runtime calls it by.
fn put_branch(out: &mut Vec<u8>, path: &[u8], called: &[u8], limit: usize) {
    let own = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let name = if called.is_empty() { own } else { called };
    let depth = path.iter().filter(|&&b| b == b'/').count();
    match name {
        b"" => put_name(out, path, limit),
        name => {
            out.resize(out.len() + 2 * depth.min(DEPTH_SHOWN_MAX), b' ');
            put_name(out, name, limit);
        }
    }
}

/// Deepest level that is indented further.
const DEPTH_SHOWN_MAX: usize = 32;

/// Appends the counter of each CPU, per second.
fn put_spread(out: &mut Vec<u8>, cells: &Cells, first: usize, put: impl Fn(&mut Vec<u8>, f64)) {
    for field in first..cells.delta.len() {
        put(out, cells.rate(field));
    }
}

/// Fills in the names of the CPUs and the page size in a head. `online` tells which CPUs are there.
pub(crate) fn head(text: &str, online: &[bool], page_size: f64) -> String {
    if !text.contains('{') {
        return text.to_string();
    }
    let mut wide = String::new();
    let mut brief = String::new();
    for (cpu, there) in online.iter().enumerate() {
        let name = if *there { cpu.to_string() } else { "X".into() };
        wide += &format!("{:>7}", format!("Cpu{name}"));
        // Each CPU takes five characters, whatever its number.
        let word = &"Cpu"[..3usize.saturating_sub(name.len().saturating_sub(1))];
        brief += &format!("{word}{name} ");
    }
    let dashes = "-".repeat((online.len().max(1) - 1) * 5 / 2);
    text.replace("{cpus:7}", &wide)
        .replace("{cpus:brief}", &brief)
        .replace("{cpus:-}", &dashes)
        .replace("{page}", &(page_size / 1024.0).to_string())
}

/// Values of a row besides the instance's numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    /// Index among the instances shown.
    pub(crate) number: usize,
    /// Texts computed by the caller: start time, command.
    pub(crate) own: &'a [Vec<u8>],
}

/// Names in a row text for the texts of [`Beside::own`].
const OWN: &[&str] = &["@start", "@command"];

/// Appends an untrusted text, made safe and cut to `limit` characters (0: whole).
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

/// Parses a place such as `total:3d`, `vsz:5k4`, `name:-11s`, `load1:5.2`.
fn read_place(place: &str, columns: &[Column], fields: usize) -> Option<Part> {
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
        "name" => Content::Name,
        "branch" => {
            let called = columns.iter().find(|column| column.name == "container");
            Content::Branch(called.and_then(|column| match column.value {
                Value::Text(value) => Some(value),
                Value::Number(_) => None,
            }))
        }
        "number" => Content::Number,
        "spread" => Content::Spread(fields, layout.ends_with('_')),
        _ if name.starts_with('@') => Content::Own(OWN.iter().position(|own| *own == name)?),
        _ => Content::Column(columns.iter().find(|column| column.name == name)?.value),
    };
    Some(Part::Filled {
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

    /// collectl's heads for two, a hundred and a thousand CPUs.
    #[test]
    fn heads_of_cpus() {
        let two = [true, false];
        assert_eq!(head("<{cpus:-}Int{cpus:-}->", &two, 4096.0), "<--Int--->");
        assert_eq!(head("{cpus:brief}", &two, 4096.0), "Cpu0 CpuX ");
        assert_eq!(head("Int {cpus:7}|", &two, 4096.0), "Int    Cpu0   CpuX|");
        let many = head("{cpus:brief}", &[true; 1001], 4096.0);
        assert!(
            many.ends_with("C999 1000 ")
                && many.contains("Cpu9 Cp10 ")
                && many.contains("Cp99 C100 ")
        );
        assert_eq!(head("({page}K pages)", &[], 65536.0), "(64K pages)");
    }

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
            (
                "{a:2d}{spread:3d}|{spread:4c_}|",
                12345.0,
                "",
                "12345  5  7|   5    7 |",
            ),
        ] {
            // One field, then the counters of two CPUs.
            let now = [a, 5.0, 7.0];
            let (labels, context) = ([label.as_bytes().to_vec()], Context::default());
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
            let place = Beside {
                number: 4,
                own: &[],
            };
            let row_text = RowText::new(row, COLUMNS, 1, Shortening::Cut);
            row_text.put(&mut out, &cells, place, &mut Vec::new());
            assert_eq!(String::from_utf8_lossy(&out), expect, "{row}");
        }
    }
}
