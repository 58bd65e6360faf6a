//! The rows of a table as the text of a scrape, in Prometheus' text format.

use std::fmt::Write as _;

use regex::Regex;

use super::cell::Cell;
use super::interface_filter::{FoundInterface, InterfaceChoice};
use super::layout::{InterfaceColumns, MetricKind, TableLayout, TableMetric, index_texts};
use super::table_walk::Rows;

/// A row that is kept.
struct KeptRow<'r> {
    /// Labels, as text.
    labels: String,
    cells: &'r [Option<Cell>],
}

/// Appends all metrics of a table. Returns the number of samples.
pub(super) fn put_table(
    out: &mut String,
    layout: &TableLayout,
    rows: &Rows,
    choice: &mut InterfaceChoice,
    found: &mut Vec<FoundInterface>,
) -> usize {
    let mut kept = Vec::new();
    for (index, cells) in rows {
        let Some(texts) = index_texts(&layout.index, index) else {
            continue;
        };
        if let Some(columns) = &layout.interfaces {
            let interface = interface_of(layout, columns, &texts, cells);
            if !choice.takes(&interface) {
                continue;
            }
            found.push(interface);
        }
        let labels = labels_of(layout, &texts, cells);
        kept.push(KeptRow { labels, cells });
    }
    let metrics = layout.metrics.iter();
    metrics
        .map(|metric| put_metric(out, layout, metric, &kept))
        .sum()
}

fn labels_of(layout: &TableLayout, texts: &[String], cells: &[Option<Cell>]) -> String {
    let mut labels = String::new();
    for (part, text) in layout.index.iter().zip(texts) {
        put_label(&mut labels, &part.label, text);
    }
    for (name, column) in &layout.labels {
        if let Some(text) = text_at(cells, *column) {
            put_label(&mut labels, name, &layout.word(name, text));
        }
    }
    labels
}

fn put_metric(
    out: &mut String,
    layout: &TableLayout,
    metric: &TableMetric,
    rows: &[KeptRow<'_>],
) -> usize {
    let name = &metric.name;
    let (suffix, word) = match metric.kind {
        MetricKind::Counter => ("", "counter"),
        MetricKind::Info => ("_info", "gauge"),
        MetricKind::Gauge(_)
        | MetricKind::Text
        | MetricKind::Mac
        | MetricKind::Time
        | MetricKind::Bits
        | MetricKind::States
        | MetricKind::Extract(_)
        | MetricKind::Scaled { .. } => ("", "gauge"),
    };
    let mut samples = 0;
    let mut put = |row: &KeptRow<'_>, value: f64, own: Option<&str>| {
        if samples == 0 {
            // Writing to memory does not fail.
            let _ = writeln!(out, "# TYPE {name}{suffix} {word}");
        }
        samples += 1;
        let _ = write!(out, "{name}{suffix}{{{}", row.labels);
        if let Some(text) = own {
            put_label(out, name, text);
        }
        let _ = writeln!(out, "}} {value}");
    };
    for row in rows {
        match metric.kind {
            MetricKind::Bits | MetricKind::States => {
                for (value, word) in named(layout, metric, row.cells) {
                    put(row, value, Some(&word));
                }
            }
            _ => {
                if let Some((value, own)) = value_of(layout, metric, row.cells) {
                    put(row, value, own.as_deref());
                }
            }
        }
    }
    samples
}

/// Values of all bits or states that have a word, and of a state that has none.
fn named(layout: &TableLayout, metric: &TableMetric, cells: &[Option<Cell>]) -> Vec<(f64, String)> {
    let Some(cell) = cells.get(metric.column).and_then(Option::as_ref) else {
        return Vec::new();
    };
    let words = layout.words.get(&metric.name).into_iter().flatten();
    let mut found = Vec::new();
    match metric.kind {
        MetricKind::Bits => {
            for (number, word) in words {
                let bit = number.parse().ok().and_then(|number| cell.bit(number));
                found.extend(bit.map(|bit| (f64::from(u8::from(bit)), word.clone())));
            }
        }
        _ => {
            let Some(state) = cell.number().map(|state| state.to_string()) else {
                return Vec::new();
            };
            let value = |number: &str| f64::from(u8::from(number == state));
            found.extend(words.map(|(number, word)| (value(number), word.clone())));
            if found.iter().all(|(value, _)| *value == 0.0) {
                found.push((1.0, state));
            }
        }
    }
    found
}

/// The number that the first expression makes of a text.
fn extracted(text: &str, regex: &[(Regex, String)]) -> Option<f64> {
    regex.iter().find_map(|(regex, template)| {
        let mut number = String::new();
        regex.captures(text)?.expand(template, &mut number);
        number.parse().ok()
    })
}

/// The value of a metric, and the text of its own label.
fn value_of(
    layout: &TableLayout,
    metric: &TableMetric,
    cells: &[Option<Cell>],
) -> Option<(f64, Option<String>)> {
    let cell = cells.get(metric.column)?.as_ref()?;
    let has_label = || {
        let is_own = |name: &String| *name == metric.name;
        layout.index.iter().any(|part| is_own(&part.label))
            || layout.labels.iter().any(|(name, _)| is_own(name))
    };
    let labelled = |text: String| Some((1.0, (!has_label()).then_some(text)));
    match &metric.kind {
        MetricKind::Gauge(factor) => Some((cell.gauge()? * factor, None)),
        MetricKind::Counter => Some((cell.number()?, None)),
        MetricKind::Text => labelled(cell.text()?),
        MetricKind::Mac => labelled(cell.mac()?),
        MetricKind::Info => labelled(layout.word(&metric.name, cell.text()?)),
        MetricKind::Time => Some((cell.time()?, None)),
        MetricKind::Extract(regex) => Some((extracted(&cell.text()?, regex)?, None)),
        // Bits and states have several values.
        MetricKind::Bits | MetricKind::States => None,
        &MetricKind::Scaled { scale, precision } => {
            let number = |column: usize| cells.get(column)?.as_ref()?.number();
            let power = 3.0 * (number(scale)? - UNITS) - number(precision)?;
            let power = power.clamp(-40.0, 40.0);
            // A division by a whole power of ten is exact where a product with its inverse is not.
            let value = match power < 0.0 {
                true => cell.number()? / 10f64.powf(-power),
                false => cell.number()? * 10f64.powf(power),
            };
            Some((value, None))
        }
    }
}

/// EntitySensorDataScale of a value that is not scaled; each step is a factor of 1000.
const UNITS: f64 = 9.0;

fn interface_of(
    layout: &TableLayout,
    columns: &InterfaceColumns,
    index: &[String],
    cells: &[Option<Cell>],
) -> FoundInterface {
    let text = |column: usize| text_at(cells, column).unwrap_or_default();
    let number = |column: usize| cells.get(column)?.as_ref()?.number();
    let (name, descr) = (text(columns.name), text(columns.descr));
    let index = index.first().cloned().unwrap_or_default();
    let names = [name, descr.clone(), index.clone()];
    let name = names.into_iter().find(|name| !name.is_empty());
    FoundInterface {
        index,
        name: name.unwrap_or_default(),
        alias: text(columns.alias),
        descr,
        kind: layout.word("ifType", text(columns.kind)),
        admin: number(columns.admin),
        oper: number(columns.oper),
        mbit: mbit(number(columns.high_speed), number(columns.speed)),
    }
}

/// Speed in Mbit/s: ifSpeed, bits a second, where ifHighSpeed is missing or zero.
fn mbit(high: Option<f64>, bits: Option<f64>) -> Option<f64> {
    let high = high.filter(|mbit| *mbit > 0.0);
    high.or_else(|| Some((bits? / 1e6).round()))
}

fn text_at(cells: &[Option<Cell>], column: usize) -> Option<String> {
    cells.get(column)?.as_ref()?.text()
}

/// Appends a label and a comma, which may stand behind the last one.
pub(super) fn put_label(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, "{name}=\"");
    for sign in value.chars() {
        match sign {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            _ => out.push(sign),
        }
    }
    out.push_str("\",");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device without ifXTable had no speeds.
    #[test]
    fn a_speed_is_that_of_either_object() {
        for (high, bits, expected) in [
            (None, Some(1e7), Some(10.0)),
            (Some(0.0), Some(1e8), Some(100.0)),
            (Some(10_000.0), Some(4_294_967_295.0), Some(10_000.0)),
            (Some(1000.0), Some(0.0), Some(1000.0)),
            (Some(1000.0), None, Some(1000.0)),
            (None, Some(1_544_000.0), Some(2.0)),
            (Some(0.0), Some(0.0), Some(0.0)),
            (None, None, None),
        ] {
            assert_eq!(mbit(high, bits), expected, "{high:?} {bits:?}");
        }
    }
}
