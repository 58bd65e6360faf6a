//! `p` and `P`: pressure stall information, from /proc/pressure: the share of time in
//! which some, or all, tasks waited for a resource.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Exposed};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot, text,
};
use crate::layout::{Cell, From, Layout, RowLayout};
use crate::source::kind;

const RESOURCES: [&str; 4] = ["cpu", "memory", "io", "irq"];

// Fields of a row; a resource's totals are globals 2n and 2n + 1.
const SOME_TOTAL: usize = at(FIELDS, "some_total");
const FULL_TOTAL: usize = at(FIELDS, "full_total");
const SOME_AVG: usize = at(FIELDS, "some_avg10");
const FULL_AVG: usize = at(FIELDS, "full_avg10");

const fn stall(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Microseconds, help)
}

const fn average(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Hundredths, help)
}

const GLOBALS: &[Field] = &[
    stall("cpu_some", "Some task waited for a CPU"),
    stall("cpu_full", "All tasks waited for a CPU"),
    stall("memory_some", "Some task waited for memory"),
    stall("memory_full", "All tasks waited for memory"),
    stall("io_some", "Some task waited for I/O"),
    stall("io_full", "All tasks waited for I/O"),
    stall("irq_some", "Some task waited for interrupts"),
    stall("irq_full", "All tasks waited for interrupts"),
];

const FIELDS: &[Field] = &[
    stall("some_total", "Some task waited"),
    stall("full_total", "All tasks waited"),
    average("some_avg10", "Some task waited, over 10 s"),
    average("some_avg60", "Some task waited, over 60 s"),
    average("some_avg300", "Some task waited, over 300 s"),
    average("full_avg10", "All tasks waited, over 10 s"),
    average("full_avg60", "All tasks waited, over 60 s"),
    average("full_avg300", "All tasks waited, over 300 s"),
];

/// Microseconds of waiting as a share of the interval.
fn share(cells: &Cells, total: usize) -> f64 {
    cells.delta[total] / cells.elapsed / 10_000.0
}

const fn percent(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Percent, help, value)
}

const COLUMNS: &[Column] = &[
    percent("cpu_some", "Time some task waited for a CPU", |c| {
        share(c, 0)
    }),
    percent(
        "cpu_full",
        "Time all tasks waited for a CPU (cgroups only)",
        |c| share(c, 1),
    ),
    percent("memory_some", "Time some task waited for memory", |c| {
        share(c, 2)
    }),
    percent("memory_full", "Time all tasks waited for memory", |c| {
        share(c, 3)
    }),
    percent("io_some", "Time some task waited for I/O", |c| share(c, 4)),
    percent("io_full", "Time all tasks waited for I/O", |c| share(c, 5)),
    percent("irq_full", "Time interrupts took from all tasks", |c| {
        share(c, 7)
    }),
];

const DETAIL: &[Column] = &[
    text("resource", "cpu, memory, io or irq", |c, out| {
        out.extend_from_slice(c.name)
    }),
    percent("some", "Time some task waited", |c| share(c, SOME_TOTAL)),
    percent("some_avg10", "The kernel's mean over 10 s", |c| {
        c.now[SOME_AVG] / 100.0
    }),
    percent("some_avg60", "The kernel's mean over 60 s", |c| {
        c.now[SOME_AVG + 1] / 100.0
    }),
    percent("some_avg300", "The kernel's mean over 300 s", |c| {
        c.now[SOME_AVG + 2] / 100.0
    }),
    percent("full", "Time all tasks waited", |c| share(c, FULL_TOTAL)),
    percent("full_avg10", "The kernel's mean over 10 s", |c| {
        c.now[FULL_AVG] / 100.0
    }),
    percent("full_avg60", "The kernel's mean over 60 s", |c| {
        c.now[FULL_AVG + 1] / 100.0
    }),
    percent("full_avg300", "The kernel's mean over 300 s", |c| {
        c.now[FULL_AVG + 2] / 100.0
    }),
];

const PLOT: &[PlotColumn] = &[
    plot("CpuSome%", "cpu_some"),
    plot("MemSome%", "memory_some"),
    plot("MemFull%", "memory_full"),
    plot("IoSome%", "io_some"),
    plot("IoFull%", "io_full"),
    plot("IrqFull%", "irq_full"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("Some%", "some"),
    plot("Some10%", "some_avg10"),
    plot("Some60%", "some_avg60"),
    plot("Some300%", "some_avg300"),
    plot("Full%", "full"),
    plot("Full10%", "full_avg10"),
    plot("Full60%", "full_avg60"),
    plot("Full300%", "full_avg300"),
];

/// "Waiting" is some, "stalled" is full; node_exporter has interrupts since 1.9.
const EXPOSED: Exposed = Exposed::machine(&[
    exposed::counter("node_pressure_cpu_waiting_seconds_total", 0),
    exposed::counter("node_pressure_memory_waiting_seconds_total", 2),
    exposed::counter("node_pressure_memory_stalled_seconds_total", 3),
    exposed::counter("node_pressure_io_waiting_seconds_total", 4),
    exposed::counter("node_pressure_io_stalled_seconds_total", 5),
    exposed::counter("node_pressure_irq_stalled_seconds_total", 7),
]);

/// Pressure.
pub static PRESSURE: Subsystem = Subsystem {
    letter: 'p',
    name: "pressure",
    help: "Time lost waiting for CPU, memory, I/O, interrupts (PSI)",
    sources: &[
        kind::PRESSURE_CPU,
        kind::PRESSURE_MEMORY,
        kind::PRESSURE_IO,
        kind::PRESSURE_IRQ,
    ],
    beside: None,
    spread: false,
    globals: GLOBALS,
    fields: FIELDS,
    labels: &[],
    layout,
    fills: None,
    summary: Summary::Globals,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<--Pressure%-->",
            heads: &["Cpu Mem  IO Irq "],
            row: "{cpu_some:3d} {memory_some:3d} {io_some:3d} {irq_full:3d} ",
        },
        verbose: Lines {
            title: "PRESSURE SUMMARY (% OF TIME)",
            heads: &["  CpuSome MemSome MemFull  IoSome  IoFull IrqFull"],
            row: "  {cpu_some:7.2} {memory_some:7.2} {memory_full:7.2} {io_some:7.2} {io_full:7.2} {irq_full:7.2}",
        },
        detail: Lines {
            title: "PRESSURE STATISTICS (% OF TIME)",
            heads: &[
                "          <------------some------------><------------full------------>",
                "Resource     Now   10s    60s   300s     Now    10s    60s   300s",
            ],
            row: "{name:-8s} {some:6.2} {some_avg10:6.2} {some_avg60:6.2} {some_avg300:6.2}  {full:6.2} {full_avg10:6.2} {full_avg60:6.2} {full_avg300:6.2}",
        },
    },
    plot: Plot {
        tag: "PSI",
        order: 12,
        file: "psi",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let n = usize::from(kind.saturating_sub(kind::PRESSURE_CPU)).min(RESOURCES.len() - 1);
    let mut layout = Layout::default();
    let mut row = RowLayout {
        name: RESOURCES[n].as_bytes().to_vec(),
        counted: true,
        ..RowLayout::default()
    };
    for line in template.lines() {
        let (total, averages) = match line.first() {
            Some(Piece::Text(b"some")) => (SOME_TOTAL, SOME_AVG),
            Some(Piece::Text(b"full")) => (FULL_TOTAL, FULL_AVG),
            _ => continue,
        };
        for pair in line.windows(2) {
            let [Piece::Text(key), Piece::Slot(slot)] = pair else {
                continue;
            };
            let (field, from) = match *key {
                b"avg10=" => (averages, From::Hundredths(*slot)),
                b"avg60=" => (averages + 1, From::Hundredths(*slot)),
                b"avg300=" => (averages + 2, From::Hundredths(*slot)),
                b"total=" => (total, From::Slot(*slot)),
                _ => continue,
            };
            row.cells.push(Cell { field, from });
            if field == total {
                layout.globals.push(Cell {
                    field: 2 * n + total,
                    from,
                });
            }
        }
    }
    layout.rows.push(row);
    layout
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn some_and_full() {
        let cpu = "some avg10=1.05 avg60=0.50 avg300=12.30 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        let irq = "full avg10=0.00 avg60=0.00 avg300=0.01 total=7\n";
        let reading = read(
            &PRESSURE,
            &[(kind::PRESSURE_CPU, cpu), (kind::PRESSURE_IRQ, irq)],
            &Context::default(),
        );
        const M: u64 = MISSING;
        assert_eq!(reading.globals, [1234, 5, M, M, M, M, M, 7]);
        assert_eq!(reading.rows[0].values, [1234, 5, 105, 50, 1230, 0, 0, 0]);
        assert_eq!(reading.rows[1].name, b"irq");
        assert_eq!(reading.rows[1].values, [M, 7, M, M, M, 0, 0, 1]);
    }
}
