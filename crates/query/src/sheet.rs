//! A sheet: chosen columns of a source, sample after sample, each a line with an id of its own.
//!
//! A field's id is `SUBSYSTEM.COLUMN` for the whole machine, `SUBSYSTEM.COLUMN:INSTANCE` for one
//! instance and `SUBSYSTEM.COLUMN:*` for all there are.

use std::collections::HashMap;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::field::Unit;
use kymo_base::name::DisplayName;
use kymo_base::reading::{Reading, Row};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::{self, Subsystem, Summary};
use kymo_recording::reader::Kinds;

use crate::delta::{Delta, Rates};
use crate::source::{Moment, Source};

/// A field that was asked for.
#[derive(Clone)]
pub struct Pick {
    /// Subsystem.
    pub subsystem: &'static Subsystem,
    /// Which.
    pub column: &'static Column,
    /// Scope of the field.
    pub of: Of,
}

/// Scope of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Of {
    /// The whole machine.
    Machine,
    /// The instance of this name, as it is displayed.
    One(String),
    /// Every instance.
    Each,
}

impl Pick {
    /// Reads a field's id.
    pub fn parse(id: &str) -> Result<Pick, String> {
        let unknown = || format!("cannot find field {id:?}: no such column");
        let (field, of) = match id.split_once(':') {
            None => (id, Of::Machine),
            Some((field, "*")) => (field, Of::Each),
            Some((field, instance)) => (field, Of::One(instance.into())),
        };
        let (name, column) = field.split_once('.').ok_or_else(unknown)?;
        let subsystem = subsystem::ALL
            .iter()
            .find(|subsystem| subsystem.name == name)
            .ok_or_else(unknown)?;
        let columns = match of {
            Of::Machine => subsystem.columns,
            _ => subsystem.detail,
        };
        let column = columns
            .iter()
            .find(|known| known.name == column)
            .ok_or_else(unknown)?;
        match column.value {
            Value::Number(_) => Ok(Pick {
                subsystem,
                column,
                of,
            }),
            Value::Text(_) => Err(format!("cannot draw field {id:?}: it is a text")),
        }
    }

    /// All numbers of the machine and its devices; processes are not among them.
    pub fn all() -> Vec<Pick> {
        let mut picks = Vec::new();
        for &subsystem in subsystem::ALL {
            if subsystem.is_of_processes() {
                continue;
            }
            for (columns, of) in [
                (subsystem.columns, Of::Machine),
                (subsystem.detail, Of::Each),
            ] {
                let numbers = columns
                    .iter()
                    .filter(|column| matches!(column.value, Value::Number(_)));
                picks.extend(numbers.map(|column| Pick {
                    subsystem,
                    column,
                    of: of.clone(),
                }));
            }
        }
        picks
    }

    /// True: the pick is one of [`Pick::all`], of which roll-ups are made.
    pub fn is_rolled_up(&self) -> bool {
        !self.subsystem.is_of_processes()
    }

    /// Kinds of source it is made of.
    pub fn kinds(picks: &[Pick]) -> Kinds {
        picks
            .iter()
            .flat_map(|pick| pick.subsystem.understood())
            .collect()
    }
}

/// One field of the machine or of one instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Id of the line.
    pub id: String,
    /// Unit of the line.
    pub unit: Unit,
    /// Meaning of the line.
    pub help: &'static str,
    /// Which of the picks it belongs to.
    pub pick: usize,
}

/// A line's value in the present sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Index of the line.
    pub line: usize,
    /// Seconds that the value is of.
    pub elapsed: f64,
    /// The value; NaN: not known.
    pub value: f64,
}

/// Columns of a source, sample after sample.
pub struct Sheet {
    parts: Vec<Part>,
    lines: Lines,
}

/// The lines there are so far. Instances add theirs when they are first seen, as long as there is room.
struct Lines {
    lines: Vec<Line>,
    known: HashMap<(usize, String), usize>,
    most: usize,
    refused: bool,
}

/// Picks of one subsystem.
struct Part {
    subsystem: &'static Subsystem,
    interpreter: Interpreter,
    delta: Delta,
    reading: Reading,
    machine: Vec<NumberSource>,
    instances: Vec<(usize, Pick)>,
    /// Picks for each row of the last reading, in its order.
    rows: Vec<RowLines>,
}

type Number = fn(&Cells) -> f64;

#[derive(Clone, Copy)]
struct NumberSource {
    line: usize,
    number: Number,
}

#[derive(Default)]
struct RowLines {
    name: Vec<u8>,
    wanted: Vec<NumberSource>,
}

impl Sheet {
    /// A sheet of `picks`, of at most `lines_max` lines.
    pub fn new(picks: &[Pick], lines_max: usize) -> Sheet {
        let mut sheet = Sheet {
            parts: Vec::new(),
            lines: Lines {
                lines: Vec::new(),
                known: HashMap::new(),
                most: lines_max,
                refused: false,
            },
        };
        for (n, pick) in picks.iter().enumerate() {
            let part = sheet.part(pick.subsystem);
            if pick.of != Of::Machine {
                sheet.parts[part].instances.push((n, pick.clone()));
            } else if let Some(wanted) = sheet.lines.add(n, pick, None) {
                sheet.parts[part].machine.push(wanted);
            }
            // One that is named is there, though it may have no values.
            if let Of::One(name) = &pick.of {
                sheet.lines.add(n, pick, Some(name));
            }
        }
        sheet
    }

    fn part(&mut self, subsystem: &'static Subsystem) -> usize {
        let known = self
            .parts
            .iter()
            .position(|part| part.subsystem.name == subsystem.name);
        known.unwrap_or_else(|| {
            self.parts.push(Part {
                subsystem,
                interpreter: Interpreter::new(subsystem),
                delta: Delta::new(subsystem),
                reading: Reading::default(),
                machine: Vec::new(),
                instances: Vec::new(),
                rows: Vec::new(),
            });
            self.parts.len() - 1
        })
    }

    /// The lines there are; more may come with more samples.
    pub fn lines(&self) -> &[Line] {
        &self.lines.lines
    }

    /// True: there were more lines than the sheet may have.
    pub fn is_full(&self) -> bool {
        self.lines.refused
    }

    /// The last readings: raw numbers by subsystem.
    pub fn readings(&self) -> impl Iterator<Item = (&'static Subsystem, &Reading)> {
        self.parts
            .iter()
            .map(|part| (part.subsystem, &part.reading))
    }

    /// Takes in the present sample, and calls `each` with the values that are new in it. A baseline gives
    /// no values: rates need a past.
    pub fn advance(&mut self, source: &dyn Source, moment: &Moment, each: &mut dyn FnMut(Cell)) {
        for part in &mut self.parts {
            let (tracks, context) = (source.tracks(), source.context());
            if !part.interpreter.read(tracks, context, &mut part.reading) {
                continue;
            }
            let rates = part.delta.advance(&part.reading, moment, context);
            if rates.baseline {
                continue;
            }
            let elapsed = rates.elapsed;
            let mut give = |wanted: &[NumberSource], cells: &Cells| {
                for &NumberSource { line, number } in wanted {
                    let value = number(cells);
                    each(Cell {
                        line,
                        elapsed,
                        value,
                    });
                }
            };
            let whole = match part.subsystem.summary {
                Summary::Globals => &rates.globals,
                Summary::Rows | Summary::None => &rates.sum,
            };
            if !part.machine.is_empty() {
                give(&part.machine, &rates.cells(whole, None, context, elapsed));
            }
            if part.instances.is_empty() {
                continue;
            }
            arrange(
                &mut part.rows,
                &part.instances,
                &part.reading.rows,
                rates,
                &mut self.lines,
            );
            for (out, lines) in rates.rows().iter().zip(&part.rows) {
                if !lines.wanted.is_empty() && !out.baseline {
                    let row = &part.reading.rows[out.row];
                    let cells = rates.cells(&out.numbers, Some(row), context, elapsed);
                    give(&lines.wanted, &cells);
                }
            }
        }
    }

    /// After a gap: the next sample is a baseline.
    pub fn restart(&mut self) {
        self.parts.iter_mut().for_each(|part| part.delta.restart());
    }
}

/// Brings the picks into the order of the rows.
fn arrange(
    known: &mut Vec<RowLines>,
    picks: &[(usize, Pick)],
    rows: &[Row],
    rates: &Rates,
    lines: &mut Lines,
) {
    let names = || rates.rows().iter().map(|out| &rows[out.row].name);
    if known.len() == rates.rows().len() && names().eq(known.iter().map(|row| &row.name)) {
        return;
    }
    let mut old: HashMap<Vec<u8>, RowLines> = std::mem::take(known)
        .into_iter()
        .map(|row| (row.name.clone(), row))
        .collect();
    for name in names() {
        let row = old.remove(name).unwrap_or_else(|| {
            let shown = DisplayName(name);
            let shown = shown.text();
            let wanted = picks.iter().filter_map(|(n, pick)| match &pick.of {
                Of::One(wanted) if *wanted != shown => None,
                _ => lines.add(*n, pick, Some(&shown)),
            });
            RowLines {
                wanted: wanted.collect(),
                name: name.clone(),
            }
        });
        known.push(row);
    }
}

impl Lines {
    /// The line of a pick and an instance, made when it is not there yet.
    fn add(&mut self, n: usize, pick: &Pick, instance: Option<&str>) -> Option<NumberSource> {
        let Value::Number(number) = pick.column.value else {
            return None;
        };
        let id = id(pick.subsystem, pick.column, instance);
        let line = match self.known.get(&(n, id.clone())) {
            Some(&line) => line,
            None if self.lines.len() >= self.most => {
                self.refused = true;
                return None;
            }
            None => {
                self.known.insert((n, id.clone()), self.lines.len());
                self.lines.push(Line {
                    id,
                    unit: pick.column.unit,
                    help: pick.column.help,
                    pick: n,
                });
                self.lines.len() - 1
            }
        };
        Some(NumberSource { line, number })
    }
}

/// The id of a field.
pub fn id(subsystem: &Subsystem, column: &Column, instance: Option<&str>) -> String {
    let (subsystem, column) = (subsystem.name, column.name);
    match instance {
        None => format!("{subsystem}.{column}"),
        Some(instance) => format!("{subsystem}.{column}:{instance}"),
    }
}
