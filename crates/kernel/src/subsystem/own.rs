//! `K`: the cost of kymo itself: the process
//! that samples, by its own /proc/self.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::Template;

use super::exposed::{self, Exposed};
use super::process::{self, PROCESS};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, now, number, plot,
    rate,
};
use crate::layout::{Cell, Layout};
use crate::source::kind;

const UTIME: usize = at(GLOBALS, "utime");
const STIME: usize = at(GLOBALS, "stime");
const RSS: usize = at(GLOBALS, "rss");

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

/// Some fields of a process, under the same names.
const GLOBALS: &[Field] = &[
    counter("utime", Unit::Ticks, "CPU time in user mode"),
    counter("stime", Unit::Ticks, "CPU time in the kernel"),
    counter("minflt", Unit::Count, "Page faults that read nothing"),
    counter("majflt", Unit::Count, "Page faults that read"),
    gauge("num_threads", Unit::Count, "Threads"),
    gauge("vsize", Unit::Bytes, "Address space"),
    gauge("rss", Unit::Pages, "Memory in RAM"),
    counter("rchar", Unit::Bytes, "Read by system calls"),
    counter("wchar", Unit::Bytes, "Written by system calls"),
    counter("syscr", Unit::Count, "System calls that read"),
    counter("syscw", Unit::Count, "System calls that write"),
    counter("read_bytes", Unit::Bytes, "Read from devices"),
    counter("write_bytes", Unit::Bytes, "Written to devices"),
];

/// Clock ticks as a share of the interval.
fn share(cells: &Cells, ticks: f64) -> f64 {
    100.0 * ticks / cells.context.hz() / cells.elapsed
}

const COLUMNS: &[Column] = &[
    number("cpu", Unit::Percent, "CPU time, of one CPU", |c| {
        share(c, c.delta[UTIME] + c.delta[STIME])
    }),
    number("user", Unit::Percent, "In user mode", |c| {
        share(c, c.delta[UTIME])
    }),
    number("system", Unit::Percent, "In the kernel", |c| {
        share(c, c.delta[STIME])
    }),
    number("rss_kb", Unit::Kilobytes, "Memory in RAM", |c| {
        c.now[RSS] * c.context.page_size() / 1024.0
    }),
    number("vsize_kb", Unit::Kilobytes, "Address space", |c| {
        c.now[at(GLOBALS, "vsize")] / 1024.0
    }),
    number(
        "threads",
        Unit::Count,
        "Threads",
        now::<{ at(GLOBALS, "num_threads") }>,
    ),
    number(
        "minor_faults",
        Unit::PerSecond,
        "Page faults that read nothing",
        rate::<{ at(GLOBALS, "minflt") }>,
    ),
    number(
        "major_faults",
        Unit::PerSecond,
        "Page faults that read",
        rate::<{ at(GLOBALS, "majflt") }>,
    ),
    number(
        "reads",
        Unit::PerSecond,
        "System calls that read",
        rate::<{ at(GLOBALS, "syscr") }>,
    ),
    number(
        "writes",
        Unit::PerSecond,
        "System calls that write",
        rate::<{ at(GLOBALS, "syscw") }>,
    ),
    number(
        "read_kb",
        Unit::KilobytesPerSecond,
        "Read by system calls, from /proc above all",
        |c| c.rate(at(GLOBALS, "rchar")) / 1024.0,
    ),
    number(
        "write_kb",
        Unit::KilobytesPerSecond,
        "Written by system calls",
        |c| c.rate(at(GLOBALS, "wchar")) / 1024.0,
    ),
    number(
        "disk_kb",
        Unit::KilobytesPerSecond,
        "Written to devices",
        |c| c.rate(at(GLOBALS, "write_bytes")) / 1024.0,
    ),
];

const PLOT: &[PlotColumn] = &[
    plot("Cpu%", "cpu"),
    plot("RssKB", "rss_kb"),
    plot("Reads", "reads"),
    plot("ReadKB", "read_kb"),
    plot("DiskKB", "disk_kb"),
];

const fn f(name: &str) -> usize {
    at(GLOBALS, name)
}

/// Metrics of the process that samples.
const EXPOSED: Exposed = Exposed::machine(&[
    exposed::counters(
        "kymo_recorder_cpu_seconds_total",
        "CPU time of the recorder",
        UTIME,
        "mode",
        &["user", "system"],
    ),
    exposed::counters(
        "kymo_recorder_page_faults_total",
        "Page faults of the recorder: a major one reads",
        f("minflt"),
        "kind",
        &["minor", "major"],
    ),
    exposed::gauge("kymo_recorder_threads", f("num_threads")),
    exposed::gauge("kymo_recorder_virtual_memory_bytes", f("vsize")),
    exposed::gauge("kymo_recorder_resident_memory_bytes", RSS),
    exposed::counter("kymo_recorder_read_bytes_total", f("rchar")),
    exposed::counter("kymo_recorder_written_bytes_total", f("wchar")),
    exposed::counter("kymo_recorder_read_calls_total", f("syscr")),
    exposed::counter("kymo_recorder_write_calls_total", f("syscw")),
    exposed::counter("kymo_recorder_device_read_bytes_total", f("read_bytes")),
    exposed::counter("kymo_recorder_device_written_bytes_total", f("write_bytes")),
]);

/// kymo itself.
pub static OWN: Subsystem = Subsystem {
    letter: 'K',
    name: "kymo",
    help: "What kymo itself takes: CPU, memory, reads and writes",
    sources: &[kind::SELF_STAT, kind::SELF_IO],
    beside: None,
    spread: false,
    globals: GLOBALS,
    fields: &[],
    labels: &[],
    layout,
    fills: None,
    summary: Summary::Globals,
    sum: None,
    ceiling: None,
    count: None,
    in_service: false,
    columns: COLUMNS,
    detail: &[],
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<----kymo---->",
            heads: &["cpu% RSS Reads "],
            row: "{cpu:4.1} {rss_kb:3k4} {reads:5c} ",
        },
        verbose: Lines {
            title: "KYMO ITSELF ({rate})",
            heads: &[
                "  CPU%  User%   Sys%   RssKB Threads MinFlt MajFlt  Reads ReadKB Writes WriteKB DiskKB",
            ],
            row: "{cpu:6.2} {user:6.2} {system:6.2} {rss_kb:7d} {threads:7d} {minor_faults:6d} {major_faults:6d} {reads:6d} {read_kb:6d} {writes:6d} {write_kb:7d} {disk_kb:6d}",
        },
        detail: Lines::NONE,
    },
    plot: Plot {
        tag: "KYMO",
        order: 15,
        file: "kymo",
        summary: PLOT,
        detail: &[],
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// Interprets the files as those of any process.
fn layout(kind: u8, template: &Template, context: &Context) -> Layout {
    let of_process = match kind {
        kind::SELF_STAT => kind::PID_STAT,
        _ => kind::PID_IO,
    };
    let process = process::layout(of_process, template, context);
    let own = |cell: &Cell| {
        let name = PROCESS.fields.get(cell.field)?.name;
        let field = GLOBALS.iter().position(|field| field.name == name)?;
        Some(Cell {
            field,
            from: cell.from,
        })
    };
    Layout {
        globals: process
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .filter_map(own)
            .collect(),
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn the_fields_of_a_process() {
        let stat = "77 (kymo) R 1 77 1 0 -1 4194304 500 0 3 0 21 22 0 0 20 0 4 0 4321 9000000 300 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n";
        let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        let reading = read(
            &OWN,
            &[(kind::SELF_STAT, stat), (kind::SELF_IO, io)],
            &Context::default(),
        );
        assert_eq!(
            reading.globals,
            [21, 22, 500, 3, 4, 9_000_000, 300, 1, 2, 3, 4, 5, 6]
        );
    }
}
