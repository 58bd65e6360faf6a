//! Test of the value of each column of each subsystem, from numbers that differ for each field; `column_values.txt` has the
//! expected values. After an intended change of a formula, the test prints the new lines for the file.

use std::fmt::Write as _;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::context::Context;

use super::{ALL, Subsystem};

/// Number of fields of an instance, including the counters of many CPUs.
const FIELDS: usize = 320;
/// Every third of these is unknown in the second row.
const UNKNOWN: usize = 3;

/// Values of a row and their differences.
struct Row {
    now: Vec<f64>,
    delta: Vec<f64>,
}

impl Row {
    /// All values are known and different.
    fn busy() -> Row {
        let numbers = (0..FIELDS).map(|at| at as f64);
        Row {
            now: numbers
                .clone()
                .map(|at| 100_000.0 + at * (at + 37.0))
                .collect(),
            delta: numbers.map(|at| 1000.0 + at * (at + 11.0)).collect(),
        }
    }

    fn with_unknown() -> Row {
        let mut row = Row::busy();
        let values = row.now.iter_mut().zip(&mut row.delta);
        for (now, delta) in values.skip(1).step_by(UNKNOWN) {
            (*now, *delta) = (f64::NAN, f64::NAN);
        }
        row
    }

    /// The reverse order: each value is below those of the previous fields, as a part is below its whole.
    fn falling() -> Row {
        let mut row = Row::busy();
        row.now.reverse();
        row
    }

    /// All values and differences are 0.
    fn idle() -> Row {
        Row {
            now: vec![0.0; FIELDS],
            delta: vec![0.0; FIELDS],
        }
    }

    fn value(&self, column: &Column) -> String {
        let labels: Vec<Vec<u8>> = (0..32).map(|n| format!("label{n}").into_bytes()).collect();
        let cells = Cells {
            now: &self.now,
            delta: &self.delta,
            secs: 4.0,
            elapsed: 5.0,
            name: b"7",
            labels: &labels,
            context: &Context::default(),
        };
        match column.value {
            Value::Number(value) => format!("{:?}", value(&cells)),
            Value::Text(put) => {
                let mut text = Vec::new();
                put(&cells, &mut text);
                format!("\"{}\"", text.escape_ascii())
            }
        }
    }
}

fn lines_of(subsystem: &Subsystem) -> String {
    let rows = [
        Row::busy(),
        Row::falling(),
        Row::with_unknown(),
        Row::idle(),
    ];
    let mut lines = String::new();
    for (shown, columns) in [("", subsystem.columns), ("detail.", subsystem.detail)] {
        for column in columns {
            let values = rows.each_ref().map(|row| row.value(column)).join(" ");
            let (name, column) = (subsystem.name, column.name);
            writeln!(lines, "{name}.{shown}{column} {values}").expect("a text grows");
        }
    }
    lines
}

#[test]
fn each_column_has_its_value() {
    let lines: String = ALL.iter().map(|subsystem| lines_of(subsystem)).collect();
    let known = include_str!("column_values.txt");
    let differing: Vec<String> = known
        .lines()
        .zip(lines.lines())
        .filter(|(known, found)| known != found)
        .map(|(known, found)| format!("- {known}\n+ {found}\n"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.concat());
    assert_eq!(known.lines().count(), lines.lines().count(), "{lines}");
}
