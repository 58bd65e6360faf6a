//! `j` and `J`: interrupts and softirqs by CPU, from /proc/interrupts and /proc/softirqs. A row is an interrupt; its
//! counts, one for each CPU, follow the fields (`Subsystem::spread`).

use std::borrow::Cow;

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Unit};
use kymo_base::reading::Row;
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Parts, text_of};
use super::{
    Lines, Plot, PlotColumn, SPREAD_MAX, Shape, Subsystem, Summary, Text, Unused, number, place,
    spread_rates, text, value,
};
use crate::layout::{Cell, Label, Layout, RowLayout, Word};
use crate::source::kind;

/// Labels of a row.
const KIND: usize = 0;
const DEVICES: usize = 1;
const REST: usize = 2;

/// No fields, since all numbers are counters of each CPU.
const FIELDS: &[Field] = &[];

const TOTAL: Column = number(
    "total",
    Unit::PerSecond,
    "On all CPUs; in JSON also of each: cpu0, cpu1, ...",
    |c| spread_rates(c, FIELDS.len()),
);

const COLUMNS: &[Column] = &[TOTAL];

/// Numbers with three digits, so that they sort.
fn irq(cells: &Cells, out: &mut Vec<u8>) {
    if cells.name.iter().all(u8::is_ascii_digit) {
        out.resize(out.len() + 3usize.saturating_sub(cells.name.len()), b'0');
    }
    out.extend_from_slice(cells.name);
}

/// collectl's description of an interrupt: `IO-APIC   5-edgeACPI:Ged`, `Localtimer`.
fn what(cells: &Cells, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&cells.labels[KIND]);
    if cells.name.iter().all(u8::is_ascii_digit) {
        out.resize(out.len().max(start + 15), b' ');
        out.push(b' ');
    }
    out.extend_from_slice(&cells.labels[DEVICES]);
    if !cells.name.iter().all(u8::is_ascii_digit) && out.ends_with(b"interrupts") {
        out.truncate(out.len() - b"interrupts".len());
    }
}

const DETAIL: &[Column] = &[
    text("irq", "Number or short name of the interrupt", irq),
    text(
        "kind",
        "Interrupt controller; softirq; first word of the description",
        |c, out| out.extend_from_slice(&c.labels[KIND]),
    ),
    text(
        "devices",
        "The rest of the description, without blanks",
        |c, out| out.extend_from_slice(&c.labels[DEVICES]),
    ),
    text("what", "kind and devices, as collectl writes them", what),
    TOTAL,
];

const PLOT_DETAIL: &[PlotColumn] = &[place("Intrpt{rate}", "total", super::Form::ChosenDecimals)];

const BY_CPU: Parts = Parts::Cpus { label: "cpu" };

/// Names as in node_exporter's collectors `interrupts` and `softirqs` (the latter since 1.6).
const EXPOSED: Exposed = Exposed::each(&[
    Each {
        labels: &[
            exposed::MetricLabel {
                name: "devices",
                may_lack: false,
                put: |row, out| out.extend_from_slice(info_and_devices(row).1),
            },
            exposed::MetricLabel {
                name: "info",
                may_lack: false,
                put: |row, out| out.extend_from_slice(&info_and_devices(row).0),
            },
            exposed::MetricLabel::name("type"),
        ],
        shows: |row| row.counted,
        families: &[exposed::counter("node_interrupts_total", 0)
            .meant("Interrupts of each CPU")
            .of_each(BY_CPU)],
    },
    Each {
        labels: &[exposed::MetricLabel::name("type")],
        shows: |row| !row.counted,
        families: &[exposed::counter("node_softirqs_functions_total", 0)
            .meant("Softirqs of each CPU")
            .of_each(BY_CPU)],
    },
]);

/// Controller and devices of an interrupt with a number; for others, the whole description and no devices.
fn info_and_devices(row: &Row) -> (Cow<'_, [u8]>, &[u8]) {
    let text = |label: usize| text_of(row, label);
    match (row.name.iter().all(u8::is_ascii_digit), text(REST)) {
        (true, rest) => (text(KIND).into(), rest),
        (false, b"") => (text(KIND).into(), b""),
        (false, rest) => ([text(KIND), rest].join(&b' ').into(), b""),
    }
}

/// Interrupts.
pub static INTERRUPTS: Subsystem = Subsystem {
    letter: 'j',
    name: "interrupts",
    help: "Interrupts and softirqs of each CPU",
    sources: &[kind::INTERRUPTS, kind::SOFTIRQS],
    beside: None,
    spread: true,
    globals: &[],
    fields: FIELDS,
    labels: &["kind", "devices", "rest"],
    layout: |kind, template, _: &Context| layout(kind, template),
    fills: None,
    summary: Summary::Rows,
    sum: None,
    ceiling: None,
    count: None,
    in_service: false,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::NotOnTerminals,
    text: Text {
        brief: Lines {
            title: "<{cpus:-}Int{cpus:-}->",
            heads: &["{cpus:brief}"],
            row: "{spread:4c_}",
        },
        verbose: Lines {
            title: "INTERRUPT SUMMARY",
            heads: &[" {cpus:7}"],
            row: "  {spread:7d}",
        },
        detail: Lines {
            title: "INTERRUPT DETAILS",
            heads: &[" Int {cpus:7}   Type            Device(s)"],
            row: "  {irq:s} {spread:7d}   {what:s}",
        },
    },
    plot: Plot {
        tag: "INT",
        order: 13,
        file: "int",
        summary: &[],
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// The numbers of the CPUs of the columns; `None` for a text without header (collectl's), whose CPUs count from 0.
fn cpus(lines: &[Vec<Piece>]) -> Option<Vec<usize>> {
    let number = |piece: &Piece| match *piece {
        Piece::Text(text) => std::str::from_utf8(text.strip_prefix(b"CPU")?)
            .ok()?
            .parse()
            .ok(),
        Piece::Slot(_) => None,
    };
    let cpus: Option<Vec<usize>> = lines.first()?.iter().map(number).collect();
    cpus.filter(|cpus| cpus.iter().all(|&cpu| cpu < SPREAD_MAX))
}

/// Interprets one of the two texts.
pub(super) fn layout(kind: u8, template: &Template) -> Layout {
    let lines = template.lines();
    let cpus = cpus(&lines);
    let mut rows: Vec<RowLayout> = lines
        .iter()
        .filter_map(|line| row(kind, line, cpus.as_deref()))
        .collect();
    rows.sort_by(|a, b| sort_key(&a.name).cmp(&sort_key(&b.name)));
    Layout {
        rows,
        ..Layout::default()
    }
}

/// Sort key: numbers first, by their value.
fn sort_key(name: &[u8]) -> (bool, usize, &[u8]) {
    match name.iter().all(u8::is_ascii_digit) {
        true => (false, name.len(), name),
        false => (true, 0, name),
    }
}

/// Parses a line such as `24:   1   0  IO-APIC   5-edge   ACPI:Ged`,
/// `LOC: 69117 68365   Local timer interrupts` or `NET_RX:  5  6`.
fn row(kind: u8, line: &[Piece], cpus: Option<&[usize]>) -> Option<RowLayout> {
    let [Piece::Text(name), rest @ ..] = line else {
        return None;
    };
    let name = name.strip_suffix(b":")?;
    // These two are counts of the whole machine.
    if matches!(name, b"ERR" | b"MIS") {
        return None;
    }
    let counts = rest.iter().map_while(|piece| value(piece));
    let counts: Vec<_> = counts
        .take(cpus.map_or(SPREAD_MAX, <[usize]>::len))
        .collect();
    let described = rest.get(counts.len()..).unwrap_or_default();
    let cells = counts.iter().enumerate().map(|(at, &from)| Cell {
        field: cpus.map_or(at, |cpus| cpus[at]),
        from,
    });
    Some(RowLayout {
        name: name.to_vec(),
        counted: kind == kind::INTERRUPTS,
        cells: cells.collect(),
        labels: labels(kind, described),
        ..RowLayout::default()
    })
}

/// Labels: the first word, and the other words joined without and with blanks.
fn labels(kind: u8, described: &[Piece]) -> Vec<Label> {
    let fixed = |label, text: Vec<u8>| Label {
        label,
        word: Word::Fixed(text),
    };
    if kind == kind::SOFTIRQS {
        return vec![fixed(KIND, b"softirq".to_vec()), fixed(DEVICES, Vec::new())];
    }
    let mut words = described.iter().map(|piece| match piece {
        Piece::Text(text) => *text,
        Piece::Slot(_) => &b""[..],
    });
    let first = words.next().unwrap_or_default().to_vec();
    let rest: Vec<_> = words.collect();
    vec![
        fixed(KIND, first),
        fixed(DEVICES, rest.concat()),
        fixed(REST, rest.join(&b' ')),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn a_count_belongs_to_the_cpu_above_it() {
        let text = "           CPU0       CPU2       \n  9:       5   6   IO-APIC   9-fasteoi   acpi\n100:   7   8  PCI-MSIX-0000:00:01.0   0-edge      virtio0-config, eth0\nLOC:    69117    68365   Local timer interrupts\nERR:          0\nMIS:          3\n";
        let soft = "                    CPU0       CPU2       \n          HI:          1          2\n      NET_RX:         12         13\n";
        let texts = [(kind::INTERRUPTS, text), (kind::SOFTIRQS, soft)];
        let reading = read(&INTERRUPTS, &texts, &Context::default());
        let rows: Vec<_> = reading
            .rows
            .iter()
            .map(|row| {
                let label = |at: usize| String::from_utf8_lossy(&row.labels[at]).into_owned();
                (
                    &row.name[..],
                    row.values.clone(),
                    row.counted,
                    label(KIND),
                    label(DEVICES),
                )
            })
            .collect();
        const M: u64 = MISSING;
        let expect = |name: &'static str, a, b, counted, kind: &str, devices: &str| {
            (
                name.as_bytes(),
                vec![a, M, b],
                counted,
                kind.to_string(),
                devices.to_string(),
            )
        };
        assert_eq!(
            rows,
            [
                expect("9", 5, 6, true, "IO-APIC", "9-fasteoiacpi"),
                expect(
                    "100",
                    7,
                    8,
                    true,
                    "PCI-MSIX-0000:00:01.0",
                    "0-edgevirtio0-config,eth0"
                ),
                expect("LOC", 69117, 68365, true, "Local", "timerinterrupts"),
                expect("HI", 1, 2, false, "softirq", ""),
                expect("NET_RX", 12, 13, false, "softirq", ""),
            ]
        );
        // collectl leaves out the header.
        let bare = "24:   1   0  IO-APIC   5-edge   ACPI:Ged\n";
        let reading = read(
            &INTERRUPTS,
            &[(kind::INTERRUPTS, bare)],
            &Context::default(),
        );
        assert_eq!(reading.rows[0].values, [1, 0]);
    }
}
