//! One process in detail: its command line, its ancestors, its history over the range, and its raw texts.

use kymo_base::context::Context;
use kymo_kernel::subsystem::process::{self, COMM, PROCESS};
use kymo_view::RowText;

use super::{cells, greatest};
use crate::app::App;
use crate::lines::{Identity, text};
use crate::meters::{bytes, percent};
use crate::readings::{Part, Readings};
use crate::window::LIFE;

/// Ancestors that are looked up.
const ANCESTORS_MAX: usize = 32;
/// Numbers, in the grammar of `kymo_kernel::subsystem::Text`.
const NUMBERS: [&str; 4] = [
    "  state {state:1s}  priority {priority:2s}  threads besides the first {threads:1d}  CPU {cpu:1d}  CPU time since birth {accum:1t}",
    "  CPU {pct:1d}%  user {usrt:1.2} s  system {syst:1.2} s  switches/s: gave up {vctx:1d}, lost {nctx:1d}",
    "  memory {rss:1k5}  address space {vsz:1k5}  data {data:1k5}  stack {stack:1k5}  swapped out {swap:1k5}  locked {locked:1k5}",
    "  disk KiB/s: read {rkb:1d}, written {wkb:1d}  by calls: read {rkbc:1d}, written {wkbc:1d}  faults/s: major {majf:1d}, minor {minf:1d}",
];

/// The lines of a process.
pub(super) fn lines(app: &App, readings: &Readings, one: &Identity, width: u16) -> Vec<String> {
    let pid = process::pid_of(&one.name);
    let Some(part) = readings.part(&PROCESS) else {
        return vec!["no processes were recorded here".into()];
    };
    let context = &readings.context;
    let found = (0..part.len()).find(|&at| {
        let row = part.row(at);
        row.name == one.name && row.key == one.key
    });
    let Some(at) = found else {
        return vec![format!("process {pid} was not there at this moment")];
    };
    let cells = part.cells(at, context);
    let column = |name: &str| {
        let column = PROCESS.detail.iter().find(|column| column.name == name);
        column.map_or_else(String::new, |column| text(column.value, &cells))
    };
    let mut lines = vec![
        format!("Process {pid}: {}", column("comm")),
        format!(
            "  user {}  group {}  {}",
            column("user"),
            column("cgroup"),
            column("container")
        ),
        format!("  {}", ancestors(part, context, at)),
        format!("  {}", column("command")),
    ];
    lines.extend(NUMBERS.map(|row| RowText::of(row, &PROCESS).text(&cells)));
    lines = lines.iter().flat_map(|line| wrapped(line, width)).collect();
    lines.push("Over the range".into());
    lines.extend(history(app, width));
    for (path, text) in readings.texts() {
        lines.push(format!("/{path}"));
        lines.extend(text.lines().map(|line| format!("  {line}")));
    }
    lines
}

/// A line as several that fit a width.
fn wrapped(line: &str, width: u16) -> Vec<String> {
    const INDENT: &str = "    ";
    let width = usize::from(width).max(2 * INDENT.len());
    let letters: Vec<char> = line.chars().collect();
    let (first, rest) = letters.split_at(letters.len().min(width));
    let rest = rest
        .chunks(width - INDENT.len())
        .map(|part| INDENT.to_string() + &part.iter().collect::<String>());
    std::iter::once(first.iter().collect())
        .chain(rest)
        .collect()
}

/// The process and its parents up to the first.
fn ancestors(part: &Part, context: &Context, at: usize) -> String {
    let mut names = Vec::new();
    let mut next = Some(at);
    while let Some(at) = next.filter(|_| names.len() < ANCESTORS_MAX) {
        let cells = part.cells(at, context);
        let name = kymo_base::name::DisplayName(&cells.labels[COMM])
            .text()
            .into_owned();
        names.push(format!("{name} {}", process::pid_of(cells.name)));
        let parent = process::parent_of(&cells).map(|parent| format!("{parent:.0}").into_bytes());
        next = parent.and_then(|parent| {
            let mut all = 0..part.len();
            all.find(|&other| other != at && part.row(other).name == parent)
        });
    }
    format!("ancestors: {}", names.join(" < "))
}

/// A line over time for CPU, memory and each way of I/O.
fn history(app: &App, width: u16) -> Vec<String> {
    let Some(window) = app.life() else {
        let why = match app.past() {
            Some(_) => "  being read",
            None => "  no past",
        };
        return vec![why.into()];
    };
    let room = width.saturating_sub(28).min(200);
    let line = |((name, column), points): (&(&str, &str), &Vec<f64>)| {
        let values = cells(points, room);
        let most = greatest(&values);
        let bars = values
            .iter()
            .map(|value| app.palette.bar(value / most.max(f64::MIN_POSITIVE)));
        let bars: String = bars.collect();
        let most = match *column {
            "pct" => percent(most),
            _ => bytes(most),
        };
        format!("  {name:<7} {bars} most {most}")
    };
    LIFE.iter().zip(&window.lines).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_below() {
        for (line, expect) in [
            ("", vec![""]),
            ("12345678", vec!["12345678"]),
            ("1234567890", vec!["12345678", "    90"]),
            ("123456789012345", vec!["12345678", "    9012", "    345"]),
        ] {
            assert_eq!(wrapped(line, 8), expect);
        }
    }
}
