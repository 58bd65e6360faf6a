//! Hosts as rows of a table: numbers and state of each, sorted by any column, as text. The terminal is not its business.

use std::cmp::Ordering;
use std::fmt::Write as _;

use kymo_base::name::DisplayName;
use kymo_query::feed::ClockOffset;

/// The fields that a row is made of, in the order of [`Values`].
pub(super) const FIELDS: [&str; 11] = [
    "cpu.total",
    "cpu.load1",
    "pressure.cpu_some",
    "pressure.memory_some",
    "pressure.io_some",
    "memory.total",
    "memory.available",
    "memory.swap_used",
    "disk.kb",
    "net.rx_kb",
    "net.tx_kb",
];

/// Characters of a fault that are shown.
const WHY_MAX: usize = 100;

/// The last value of each field; NaN: unknown.
pub(super) type Values = [f64; FIELDS.len()];

/// Numbers and state of a host.
#[derive(Clone, Debug)]
pub(super) struct HostRow {
    /// As the command line has it.
    pub(super) name: String,
    pub(super) state: LinkState,
    pub(super) values: Values,
    /// Time of the last sample on the host's clock, nanoseconds since 1970; 0: there is none.
    pub(super) sample_ns: i64,
    pub(super) offset: Option<ClockOffset>,
}

/// State of the way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Connecting,
    Up,
    /// There is no way, for this reason; the host's words may be in it.
    Down(String),
}

impl HostRow {
    pub(super) fn new(name: &str) -> HostRow {
        HostRow {
            name: name.into(),
            state: LinkState::Connecting,
            values: [f64::NAN; FIELDS.len()],
            sample_ns: 0,
            offset: None,
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostColumn {
    Host,
    Cpu,
    Load,
    /// The greatest of CPU, memory and I/O.
    Pressure,
    Memory,
    Swap,
    Disk,
    Net,
    Clock,
    Age,
}

/// All, in their order: the word of `--sort`, the head, and the width.
pub(super) const COLUMNS: [(HostColumn, &str, &str, usize); 10] = [
    (HostColumn::Host, "host", "HOST", 0),
    (HostColumn::Cpu, "cpu", "CPU %", 7),
    (HostColumn::Load, "load", "LOAD", 7),
    (HostColumn::Pressure, "pressure", "WAIT %", 7),
    (HostColumn::Memory, "memory", "MEM %", 7),
    (HostColumn::Swap, "swap", "SWAP MB", 9),
    (HostColumn::Disk, "disk", "DISK kB/s", 11),
    (HostColumn::Net, "net", "NET kB/s", 11),
    (HostColumn::Clock, "clock", "CLOCK s", 11),
    (HostColumn::Age, "age", "AGE s", 8),
];

impl HostColumn {
    /// The column of a word.
    pub(super) fn of(word: &str) -> Option<HostColumn> {
        let mut all = COLUMNS.iter();
        all.find(|(_, known, ..)| *known == word)
            .map(|(column, ..)| *column)
    }

    /// The number of a row; NaN: it has none.
    fn number(self, row: &HostRow, now_ns: i64) -> f64 {
        let [
            cpu,
            load,
            on_cpu,
            on_memory,
            on_io,
            total,
            available,
            swap,
            disk,
            rx,
            tx,
        ] = row.values;
        let seconds = |ns: i64| ns as f64 / 1e9;
        match self {
            HostColumn::Host => f64::NAN,
            HostColumn::Cpu => cpu,
            HostColumn::Load => load,
            HostColumn::Pressure => on_cpu.max(on_memory).max(on_io),
            HostColumn::Memory => (total - available) / total * 100.0,
            HostColumn::Swap => swap / 1024.0,
            HostColumn::Disk => disk,
            HostColumn::Net => rx + tx,
            HostColumn::Clock => row
                .offset
                .map_or(f64::NAN, |offset| seconds(offset.ahead_ns)),
            HostColumn::Age if row.sample_ns == 0 => f64::NAN,
            HostColumn::Age => {
                let ahead_ns = row.offset.map_or(0, |offset| offset.ahead_ns);
                let there_ns = now_ns.saturating_add(ahead_ns);
                seconds(there_ns.saturating_sub(row.sample_ns))
            }
        }
    }

    fn text(self, row: &HostRow, now_ns: i64) -> String {
        let number = self.number(row, now_ns);
        match self {
            _ if number.is_nan() => "-".into(),
            HostColumn::Clock => {
                let doubt = row.offset.map_or(0, |offset| offset.doubt_ns);
                let is_within = number.abs() * 1e9 <= doubt as f64;
                if is_within {
                    "0".into()
                } else {
                    format!("{number:+.3}")
                }
            }
            HostColumn::Age => format!("{:.0}", number.max(0.0)),
            HostColumn::Disk | HostColumn::Net | HostColumn::Swap => format!("{number:.0}"),
            _ => format!("{number:.1}"),
        }
    }
}

/// Sorts rows: numbers from the greatest on, names from the least; rows without a number come last.
pub(super) fn sort(rows: &mut [HostRow], by: HostColumn, now_ns: i64) {
    rows.sort_by(|a, b| {
        let [first, second] = [a, b].map(|row| by.number(row, now_ns));
        let order = match (first.is_nan(), second.is_nan()) {
            (false, false) => second.total_cmp(&first),
            (nan, other) => nan.cmp(&other),
        };
        match order {
            Ordering::Equal => a.name.cmp(&b.name),
            order => order,
        }
    });
}

/// The table: a head, and a line for each row.
pub(super) fn text(rows: &[HostRow], now_ns: i64) -> String {
    let names = rows.iter().map(|row| shown(&row.name).chars().count());
    let first = names.max().unwrap_or(0).max(4);
    let mut out = format!("{:<first$}", "HOST");
    for (_, _, head, width) in &COLUMNS[1..] {
        // Writing to a String cannot fail.
        let _ = write!(out, "{head:>width$}");
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{:<first$}", shown(&row.name));
        match &row.state {
            LinkState::Connecting => out.push_str("  connecting"),
            LinkState::Down(why) => {
                let why: String = shown(why).chars().take(WHY_MAX).collect();
                let _ = write!(out, "  {why}");
            }
            LinkState::Up => {
                for (column, _, _, width) in &COLUMNS[1..] {
                    let _ = write!(out, "{:>width$}", column.text(row, now_ns));
                }
            }
        }
        out.push('\n');
    }
    out
}

fn shown(text: &str) -> String {
    DisplayName(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cpu: f64) -> HostRow {
        let mut row = HostRow::new(name);
        row.values[0] = cpu;
        row
    }

    fn order(rows: &mut [HostRow], by: HostColumn) -> String {
        sort(rows, by, 0);
        rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn rows_are_sorted_by_any_column() {
        let mut rows = [
            row("b", 1.0),
            row("c", f64::NAN),
            row("a", 1.0),
            row("d", 99.0),
        ];
        assert_eq!(order(&mut rows, HostColumn::Cpu), "dabc");
        assert_eq!(order(&mut rows, HostColumn::Host), "abcd");
        for (column, word, ..) in COLUMNS {
            assert_eq!(HostColumn::of(word), Some(column));
            assert_eq!(order(&mut rows, column).len(), 4);
        }
        assert_eq!(HostColumn::of("none"), None);
    }

    /// A clock that goes wrong does not make samples old, and words of a host are no commands of the terminal.
    #[test]
    fn a_row_is_a_line() {
        let mut up = row("web1", 12.34);
        (up.state, up.sample_ns) = (LinkState::Up, 95_000_000_000);
        (up.values[5], up.values[6]) = (200.0, 50.0);
        up.offset = Some(ClockOffset {
            ahead_ns: -5_000_000_000,
            doubt_ns: 1_000_000,
        });
        let mut down = row("\u{1b}[2J", f64::NAN);
        down.state = LinkState::Down("no\nway\u{7}".into());
        let text = text(&[up, down], 102_000_000_000);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(
            words,
            [
                "web1", "12.3", "-", "-", "75.0", "-", "-", "-", "-5.000", "2"
            ]
        );
    }
}
