//! Columns: shown values that are computed from fields. Each column is declared once, beside its fields, and every output
//! format is made of the same declarations.

use crate::context::Context;
use crate::field::Unit;

/// The numbers of one row over one interval, as a column sees them.
/// A missing number is NaN and stays NaN through any sum it is part of.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    /// Values at the end of the interval, by field index.
    pub now: &'a [f64],
    /// Differences of the interval, by field index: growth of a counter, change of a gauge; NaN at a baseline.
    pub delta: &'a [f64],
    /// Seconds to divide by: the MONOTONIC length of the interval, or 1 with `-on`.
    pub secs: f64,
    /// Seconds the interval took, whatever `-on` says.
    pub elapsed: f64,
    /// The instance's name.
    pub name: &'a [u8],
    /// The instance's texts.
    pub labels: &'a [Vec<u8>],
    /// Facts of the machine.
    pub context: &'a Context,
}

impl Cells<'_> {
    /// Field `i` per second.
    pub fn rate(&self, i: usize) -> f64 {
        self.delta[i] / self.secs
    }
}

/// How a column gets its value.
#[derive(Clone, Copy)]
pub enum Value {
    /// A number; NaN when missing.
    Number(fn(&Cells) -> f64),
    /// A text, appended as raw bytes (views make it safe).
    Text(fn(&Cells, &mut Vec<u8>)),
}

/// One thing to show.
#[derive(Clone, Copy)]
pub struct Column {
    /// Key in CSV and JSON, without the subsystem's name.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Meaning of the column.
    pub help: &'static str,
    /// How it is computed.
    pub value: Value,
    /// True: the column tells of people: users, command lines, where they are logged in.
    pub private: bool,
}

impl Column {
    /// Shows the column only to people who may see private columns.
    pub const fn private(mut self) -> Column {
        self.private = true;
        self
    }
}
