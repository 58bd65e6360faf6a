//! An interval's values with their export names: collectl's name if there is one, else
//! `SUBSYSTEM.COLUMN`.

use std::io::Write as _;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::field::Unit;
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::Subsystem;

use crate::export::name_tables::{
    EACH, GANGLIA, GRAPHITE, LEXPR, OF_PROTOCOLS, OWN, PROTOCOLS, STANDARD, SUMS, ValueNames,
};
use crate::feed::{Interval, Part};
use crate::options::Options;
use crate::options::export::{Dialect, GangliaNames};
use crate::selection;

/// A value with its export name.
pub(crate) struct Exported<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: f64,
    pub(crate) decimals: usize,
    pub(crate) units: &'a str,
    pub(crate) group: &'a str,
    /// True if the value is a rate per second, false if it is a state.
    pub(crate) is_rate: bool,
}

/// Calls `each` with every known value of an interval and its name.
pub(crate) fn each(
    dialect: Dialect,
    interval: &Interval,
    options: &Options,
    mut each: impl FnMut(&Exported),
) {
    let by = match dialect {
        Dialect::Lexpr => LEXPR,
        Dialect::Graphite => GRAPHITE,
        Dialect::Gexpr(GangliaNames::None) => GANGLIA | OWN,
        Dialect::Gexpr(GangliaNames::Alone) => STANDARD,
        Dialect::Gexpr(GangliaNames::Too) => GANGLIA | STANDARD,
    };
    // As in collectl, subsystems are ordered by letter; lexpr writes summaries before details.
    let mut parts: Vec<&Part> = interval.parts.iter().filter(|part| part.fresh).collect();
    parts.sort_by_key(|part| part.choice.subsystem.letter);
    let summaries_first = dialect == Dialect::Lexpr;
    for part in &parts {
        of_machine((SUMS, by), part, interval, options, &mut each);
        if !summaries_first {
            of_each((EACH, by), part, interval, options, &mut each);
        }
    }
    if summaries_first {
        let details = parts.iter();
        details.for_each(|part| of_each((EACH, by), part, interval, options, &mut each));
    }
}

fn of_machine(
    names: (&[ValueNames], u8),
    part: &Part,
    interval: &Interval,
    options: &Options,
    each: &mut impl FnMut(&Exported),
) {
    let subsystem = part.choice.subsystem;
    // In collectl's graphite and gexpr, -sX means -sx.
    let is_sum_of_detail = names.1 != LEXPR && subsystem.letter == 'x' && part.choice.detail;
    if part.choice.summary || is_sum_of_detail {
        let cells = part.summary(interval.context, options);
        let protocols_shown = options.protocols.as_deref().unwrap_or(PROTOCOLS);
        let is_left_out = |name: &str| {
            let mut protocols = OF_PROTOCOLS.iter();
            protocols.any(|(letter, of)| *of == name && !protocols_shown.contains(*letter))
        };
        let each = &mut |exported: &Exported| {
            if !is_left_out(exported.name) {
                each(exported);
            }
        };
        values(names, subsystem, subsystem.columns, &cells, each);
    }
}

fn of_each(
    names: (&[ValueNames], u8),
    part: &Part,
    interval: &Interval,
    options: &Options,
    each: &mut impl FnMut(&Exported),
) {
    if !part.choice.detail {
        return;
    }
    let subsystem = part.choice.subsystem;
    let mut chosen = Vec::new();
    selection::select(part, interval.context, options, &mut chosen);
    for at in chosen {
        let row = &part.rows()[at];
        if row.baseline || selection::is_unused(part, row) {
            continue;
        }
        let cells = part.cells(row, interval.context, options);
        values(names, subsystem, subsystem.detail, &cells, each);
    }
}

fn values(
    names: (&[ValueNames], u8),
    subsystem: &Subsystem,
    columns: &[Column],
    cells: &Cells,
    each: &mut impl FnMut(&Exported),
) {
    let value = |column: &Column| match column.value {
        Value::Number(value) => Some(value(cells)).filter(|value| !value.is_nan()),
        Value::Text(_) => None,
    };
    let is_rate =
        |column: &Column| [Unit::PerSecond, Unit::KilobytesPerSecond].contains(&column.unit);
    let instance = safe(cells.name);
    let (names, by) = names;
    let mut is_known = false;
    for known in names.iter().filter(|known| known.name == subsystem.name) {
        is_known = true;
        for named in known.values.iter().filter(|named| named.by & by != 0) {
            let found = columns.iter().find(|each| each.name == named.column);
            let Some((value, column)) = found.and_then(|column| Some((value(column)?, column)))
            else {
                continue;
            };
            let bytes = named.units == "Bytes/sec";
            each(&Exported {
                name: &named.name.replace("{}", &instance),
                value: if bytes { value * 1024.0 } else { value },
                decimals: named.decimals,
                units: named.units,
                group: known.group,
                is_rate: is_rate(column),
            });
        }
    }
    if is_known || by == STANDARD {
        return;
    }
    for column in columns {
        if let Some(value) = value(column) {
            let mut name = format!("{}.{}", subsystem.name, column.name);
            if !instance.is_empty() {
                name = format!("{name}.{instance}");
            }
            each(&Exported {
                name: &name,
                value,
                decimals: 0,
                units: "",
                group: subsystem.name,
                is_rate: is_rate(column),
            });
        }
    }
}

/// A name with separators replaced.
fn safe(name: &[u8]) -> String {
    let text = DisplayName(name);
    let text = text.text();
    text.replace(|c: char| c.is_whitespace() || c == '.' || c == '/', "_")
}

/// Appends a value as collectl does: with decimals, or rounded half up to an integer.
pub(crate) fn put(out: &mut Vec<u8>, value: f64, decimals: usize) {
    let done = match decimals {
        0 => write!(out, "{}", (value + 0.5).floor()),
        _ => write!(out, "{value:.decimals$}"),
    };
    debug_assert!(done.is_ok(), "memory takes all");
}
