//! Several machines as rows: the last numbers of each, the state of the way to it, and its meters over ranges of time. How they come
//! here is not its business.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use kymo_base::name::DisplayName;
use kymo_query::feed::ClockOffset;

use crate::meters::bytes;
use crate::window::{Range, Window};

/// The fields that a row is made of, in the order of [`Values`].
pub const FIELDS: [&str; 11] = [
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
pub type Values = [f64; FIELDS.len()];
/// The number of each column.
pub type Numbers = [f64; COLUMNS.len()];

/// Numbers and state of a host. Times are of this machine's clock, but for that of the sample.
#[derive(Clone, Debug)]
pub struct HostRow {
    /// As the command line has it.
    pub name: String,
    /// State of the way.
    pub state: LinkState,
    /// Last values.
    pub values: Values,
    /// Time of their sample on the host's clock, nanoseconds since 1970; 0: there is none.
    pub sample_ns: i64,
    /// The host's clock.
    pub offset: Option<ClockOffset>,
    /// The moment that the values are of; `None`: now.
    pub at_ns: Option<i64>,
    /// Time of the host's first sample; 0: not known.
    pub first_ns: i64,
    /// A meter over the day, and one around the moment.
    pub strips: [Option<Arc<Strip>>; 2],
}

/// State of the way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// No answer yet.
    Connecting,
    /// The host answers.
    Up,
    /// The host answers, and has no sample of the moment.
    Unrecorded,
    /// There are no numbers for this reason; the host's words may be in it.
    Down(String),
}

/// A meter of a host over a range.
#[derive(Clone, Debug)]
pub struct Strip {
    /// Range and meter.
    pub what: StripRange,
    /// One line, on this machine's clock.
    pub window: Window,
}

/// A meter and its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripRange {
    /// The range.
    pub range: Range,
    /// The meter.
    pub meter: usize,
    /// A number that changes when it is to be read again, since the range is not over.
    pub turn: i64,
}

/// The numbers that the screen wants of each host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The moment; `None`: now, again and again.
    pub at_ns: Option<i64>,
    /// The day, and the range around the moment.
    pub strips: [Option<StripRange>; 2],
}

impl HostRow {
    /// A host that has not answered yet.
    pub fn new(name: &str) -> HostRow {
        HostRow {
            name: name.into(),
            state: LinkState::Connecting,
            values: [f64::NAN; FIELDS.len()],
            sample_ns: 0,
            offset: None,
            at_ns: None,
            first_ns: 0,
            strips: [None, None],
        }
    }

    /// Nanoseconds by which the host's clock is ahead.
    pub fn ahead_ns(&self) -> i64 {
        self.offset.map_or(0, |offset| offset.ahead_ns)
    }

    /// The number of each column.
    pub fn numbers(&self, now_ns: i64) -> Numbers {
        COLUMNS.map(|(column, ..)| column.number(self, now_ns))
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostColumn {
    /// Name.
    Host,
    /// Time that the CPUs were busy.
    Cpu,
    /// Load of the last minute.
    Load,
    /// The greatest of CPU, memory and I/O.
    Pressure,
    /// Memory that is not available.
    Memory,
    /// Swap that is used.
    Swap,
    /// Reads and writes of all disks.
    Disk,
    /// In and out of all interfaces.
    Net,
    /// The host's clock.
    Clock,
    /// Age of the last sample.
    Age,
}

/// All, in their order: the word of `--sort`, the head, and the width.
pub const COLUMNS: [(HostColumn, &str, &str, usize); 10] = [
    (HostColumn::Host, "host", "HOST", 0),
    (HostColumn::Cpu, "cpu", "CPU%", 6),
    (HostColumn::Load, "load", "LOAD", 7),
    (HostColumn::Pressure, "pressure", "WAIT%", 7),
    (HostColumn::Memory, "memory", "MEM%", 6),
    (HostColumn::Swap, "swap", "SWAP", 7),
    (HostColumn::Disk, "disk", "DISK/s", 7),
    (HostColumn::Net, "net", "NET/s", 7),
    (HostColumn::Clock, "clock", "CLOCK", 9),
    (HostColumn::Age, "age", "AGE", 6),
];

impl HostColumn {
    /// The column of a word.
    pub fn of(word: &str) -> Option<HostColumn> {
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
            HostColumn::Swap => swap,
            HostColumn::Disk => disk,
            HostColumn::Net => rx + tx,
            HostColumn::Clock => row
                .offset
                .map_or(f64::NAN, |offset| seconds(offset.ahead_ns)),
            HostColumn::Age if row.sample_ns == 0 => f64::NAN,
            HostColumn::Age => {
                let there_ns = now_ns.saturating_add(row.ahead_ns());
                seconds(there_ns.saturating_sub(row.sample_ns)).max(0.0)
            }
        }
    }

    /// The number as text; `then`: the number that it is compared with.
    fn text(self, row: &HostRow, now_ns: i64, then: Option<f64>) -> String {
        let number = self.number(row, now_ns) - then.unwrap_or(0.0);
        let sign = if then.is_some() && number > 0.0 {
            "+"
        } else {
            ""
        };
        match self {
            _ if number.is_nan() => "-".into(),
            HostColumn::Clock => {
                let doubt = row.offset.map_or(0, |offset| offset.doubt_ns);
                let is_within = number.abs() * 1e9 <= doubt as f64;
                match number.abs() {
                    _ if is_within => "0".into(),
                    10_000.0.. => format!("{number:+.0}"),
                    _ => format!("{number:+.3}"),
                }
            }
            HostColumn::Age => format!("{sign}{number:.0}"),
            HostColumn::Disk | HostColumn::Net | HostColumn::Swap => {
                format!("{sign}{}", bytes(number))
            }
            _ => format!("{sign}{number:.1}"),
        }
    }
}

/// Orders two rows: numbers from the greatest on, names from the least; rows without a number come last.
pub fn order(a: (&HostRow, f64), b: (&HostRow, f64)) -> Ordering {
    let order = match (a.1.is_nan(), b.1.is_nan()) {
        (false, false) => b.1.total_cmp(&a.1),
        (nan, other) => nan.cmp(&other),
    };
    order.then_with(|| a.0.name.cmp(&b.0.name))
}

/// Sorts rows by a column.
pub fn sort(rows: &mut [HostRow], by: HostColumn, now_ns: i64) {
    rows.sort_by(|a, b| order((a, by.number(a, now_ns)), (b, by.number(b, now_ns))));
}

/// The table: a head, and a line for each row.
pub fn text(rows: &[HostRow], now_ns: i64) -> String {
    let width = name_width(rows.iter());
    let mut out = head(width);
    for row in rows {
        out.push('\n');
        out += &line(row, width, now_ns, None);
    }
    out + "\n"
}

/// Width of the longest name.
pub(crate) fn name_width<'a>(rows: impl Iterator<Item = &'a HostRow>) -> usize {
    let names = rows.map(|row| shown(&row.name).chars().count());
    names.max().unwrap_or(0).max(4)
}

/// Names of the columns.
pub(crate) fn head(name_width: usize) -> String {
    let mut out = format!("{:<name_width$}", "HOST");
    for (_, _, head, width) in &COLUMNS[1..] {
        // Writing to a String cannot fail.
        let _ = write!(out, "{head:>width$}");
    }
    out
}

/// A row; `then`: the numbers that it is compared with.
pub(crate) fn line(
    row: &HostRow,
    name_width: usize,
    now_ns: i64,
    then: Option<&Numbers>,
) -> String {
    let name: String = shown(&row.name).chars().take(name_width).collect();
    let mut out = format!("{name:<name_width$}");
    match &row.state {
        LinkState::Connecting => out.push_str("  connecting"),
        LinkState::Unrecorded => out.push_str("  nothing was recorded then"),
        LinkState::Down(why) => {
            let why: String = shown(why).chars().take(WHY_MAX).collect();
            let _ = write!(out, "  {why}");
        }
        LinkState::Up => {
            for (at, (column, _, _, width)) in COLUMNS.iter().enumerate().skip(1) {
                let text = column.text(row, now_ns, then.map(|then| then[at]));
                let _ = write!(out, "{text:>width$}");
            }
        }
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
        (up.values[5], up.values[6], up.values[8]) = (200.0, 50.0, 2048.0);
        up.offset = Some(ClockOffset {
            ahead_ns: -5_000_000_000,
            doubt_ns: 1_000_000,
        });
        let mut down = row("\u{1b}[2J", f64::NAN);
        down.state = LinkState::Down("no\nway\u{7}".into());
        let now_ns = 102_000_000_000;
        let text = text(&[up.clone(), down], now_ns);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(String::from).collect() };
        assert_eq!(
            words(lines[1]),
            [
                "web1", "12.3", "-", "-", "75.0", "-", "2.0M", "-", "-5.000", "2"
            ]
        );
        let mut then = up.numbers(now_ns);
        then[1] = 2.34;
        let compared = line(&up, 4, now_ns, Some(&then));
        assert_eq!(words(&compared)[..2], ["web1", "+10.0"], "{compared}");
    }
}
