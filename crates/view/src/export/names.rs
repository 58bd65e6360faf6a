//! collectl's names of values in its exports, and the columns they are. Subsystems that are not among them go under their own
//! names, `SUBSYSTEM.COLUMN`.

use std::io::Write as _;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::Subsystem;

use crate::export::asked::Dialect;
use crate::feed::{Interval, Part};
use crate::options::Options;
use crate::selection;

/// A subsystem's letter, and its values: name, column, decimals.
type Names = (char, &'static [(&'static str, &'static str, usize)]);

const LEXPR: &[Names] = &[
    (
        'c',
        &[
            ("cputotals.num", "cpus", 0),
            ("cputotals.user", "user", 0),
            ("cputotals.nice", "nice", 0),
            ("cputotals.sys", "sys", 0),
            ("cputotals.wait", "wait", 0),
            ("cputotals.irq", "irq", 0),
            ("cputotals.soft", "soft", 0),
            ("cputotals.steal", "steal", 0),
            ("cputotals.idle", "idle", 0),
            ("cputotals.systot", "kernel", 0),
            ("cputotals.usertot", "user_and_nice", 0),
            ("cputotals.total", "total", 0),
            ("ctxint.ctx", "ctxsw", 0),
            ("ctxint.int", "intr", 0),
            ("proc.creates", "forks", 0),
            ("proc.runq", "tasks", 0),
            ("proc.run", "runnable", 0),
            ("cpuload.avg1", "load1", 2),
            ("cpuload.avg5", "load5", 2),
            ("cpuload.avg15", "load15", 2),
        ],
    ),
    ('d', DISKS),
    (
        'm',
        &[
            ("meminfo.tot", "total", 0),
            ("meminfo.used", "used", 0),
            ("meminfo.free", "free", 0),
            ("meminfo.shared", "shared", 0),
            ("meminfo.buf", "buffers", 0),
            ("meminfo.cached", "cached", 0),
            ("meminfo.slab", "slab", 0),
            ("meminfo.map", "mapped", 0),
            ("meminfo.anon", "anon", 0),
            ("meminfo.anonH", "anon_huge", 0),
            ("meminfo.dirty", "dirty", 0),
            ("meminfo.locked", "locked", 0),
            ("meminfo.inactive", "inactive", 0),
            ("meminfo.hugetot", "huge_total", 0),
            ("meminfo.hugefree", "huge_free", 0),
            ("meminfo.hugersvd", "huge_reserved", 0),
            ("meminfo.sunreclaim", "unreclaimable", 0),
            ("swapinfo.total", "swap_total", 0),
            ("swapinfo.free", "swap_free", 0),
            ("swapinfo.used", "swap_used", 0),
            ("swapinfo.in", "swap_in", 0),
            ("swapinfo.out", "swap_out", 0),
            ("pageinfo.fault", "faults", 0),
            ("pageinfo.majfault", "major_faults", 0),
            ("pageinfo.in", "page_in", 0),
            ("pageinfo.out", "page_out", 0),
        ],
    ),
    ('n', NETS),
];

const LEXPR_EACH: &[Names] = &[
    (
        'c',
        &[
            ("cpuinfo.user.cpu{}", "user", 0),
            ("cpuinfo.nice.cpu{}", "nice", 0),
            ("cpuinfo.sys.cpu{}", "sys", 0),
            ("cpuinfo.wait.cpu{}", "wait", 0),
            ("cpuinfo.irq.cpu{}", "irq", 0),
            ("cpuinfo.soft.cpu{}", "soft", 0),
            ("cpuinfo.steal.cpu{}", "steal", 0),
            ("cpuinfo.idle.cpu{}", "idle", 0),
            ("cputotals.systot.cpu{}", "kernel", 0),
        ],
    ),
    (
        'd',
        &[
            ("diskinfo.reads.{}", "reads", 0),
            ("diskinfo.readkbs.{}", "read_kb", 0),
            ("diskinfo.readw.{}", "read_wait", 0),
            ("diskinfo.writes.{}", "writes", 0),
            ("diskinfo.writekbs.{}", "write_kb", 0),
            ("diskinfo.writew.{}", "write_wait", 0),
            ("diskinfo.quelen.{}", "queue", 0),
            ("diskinfo.wait.{}", "wait", 0),
            ("diskinfo.svctime.{}", "service", 0),
            ("diskinfo.util.{}", "util", 0),
        ],
    ),
    (
        'n',
        &[
            ("netinfo.kbin.{}", "rx_kb", 0),
            ("netinfo.pktin.{}", "rx_packets", 0),
            ("netinfo.kbout.{}", "tx_kb", 0),
            ("netinfo.pktout.{}", "tx_packets", 0),
        ],
    ),
];

const DISKS: &[(&str, &str, usize)] = &[
    ("disktotals.reads", "reads", 0),
    ("disktotals.readkbs", "read_kb", 0),
    ("disktotals.writes", "writes", 0),
    ("disktotals.writekbs", "write_kb", 0),
];
const NETS: &[(&str, &str, usize)] = &[
    ("nettotals.kbin", "rx_kb", 0),
    ("nettotals.pktin", "rx_packets", 0),
    ("nettotals.kbout", "tx_kb", 0),
    ("nettotals.pktout", "tx_packets", 0),
];

const GRAPHITE: &[Names] = &[
    (
        'c',
        &[
            ("cputotals.user", "user", 0),
            ("cputotals.nice", "nice", 0),
            ("cputotals.sys", "sys", 0),
            ("cputotals.wait", "wait", 0),
            ("cputotals.idle", "idle", 0),
            ("cputotals.irq", "irq", 0),
            ("cputotals.soft", "soft", 0),
            ("cputotals.steal", "steal", 0),
            ("ctxint.ctx", "ctxsw", 0),
            ("ctxint.int", "intr", 0),
            ("ctxint.proc", "forks", 0),
            ("ctxint.runq", "tasks", 0),
            ("cpuload.avg1", "load1", 2),
            ("cpuload.avg5", "load5", 2),
            ("cpuload.avg15", "load15", 2),
        ],
    ),
    ('d', DISKS),
    (
        'm',
        &[
            ("meminfo.tot", "total", 0),
            ("meminfo.free", "free", 0),
            ("meminfo.shared", "shared", 0),
            ("meminfo.buf", "buffers", 0),
            ("meminfo.cached", "cached", 0),
            ("meminfo.used", "used", 0),
            ("meminfo.slab", "slab", 0),
            ("meminfo.map", "mapped", 0),
            ("meminfo.hugetot", "huge_total", 0),
            ("meminfo.hugefree", "huge_free", 0),
            ("meminfo.hugersvd", "huge_reserved", 0),
            ("swapinfo.total", "swap_total", 0),
            ("swapinfo.free", "swap_free", 0),
            ("swapinfo.used", "swap_used", 0),
            ("swapinfo.in", "swap_in", 0),
            ("swapinfo.out", "swap_out", 0),
            ("pageinfo.fault", "faults", 0),
            ("pageinfo.majfault", "major_faults", 0),
            ("pageinfo.in", "page_in", 0),
            ("pageinfo.out", "page_out", 0),
        ],
    ),
    ('n', NETS),
];

const GRAPHITE_EACH: &[Names] = &[
    (
        'c',
        &[
            ("cpuinfo.user.cpu{}", "user", 0),
            ("cpuinfo.nice.cpu{}", "nice", 0),
            ("cpuinfo.sys.cpu{}", "sys", 0),
            ("cpuinfo.wait.cpu{}", "wait", 0),
            ("cpuinfo.irq.cpu{}", "irq", 0),
            ("cpuinfo.soft.cpu{}", "soft", 0),
            ("cpuinfo.steal.cpu{}", "steal", 0),
            ("cpuinfo.idle.cpu{}", "idle", 0),
        ],
    ),
    (
        'd',
        &[
            ("diskinfo.reads.{}", "reads", 0),
            ("diskinfo.readkbs.{}", "read_kb", 0),
            ("diskinfo.writes.{}", "writes", 0),
            ("diskinfo.writekbs.{}", "write_kb", 0),
            ("diskinfo.rqst.{}", "size", 0),
            ("diskinfo.qlen.{}", "queue", 0),
            ("diskinfo.wait.{}", "wait", 0),
            ("diskinfo.time.{}", "service", 0),
            ("diskinfo.util.{}", "util", 0),
        ],
    ),
    (
        'n',
        &[
            ("nettotals.kbin.{}", "rx_kb", 0),
            ("nettotals.pktin.{}", "rx_packets", 0),
            ("nettotals.kbout.{}", "tx_kb", 0),
            ("nettotals.pktout.{}", "tx_packets", 0),
        ],
    ),
];

/// Calls `each` with every name and its value, of an interval. What is not known is left out.
pub(crate) fn each(
    dialect: Dialect,
    interval: &Interval,
    options: &Options,
    mut each: impl FnMut(&str, f64, usize),
) {
    let (sums, details) = match dialect {
        Dialect::Lexpr => (LEXPR, LEXPR_EACH),
        Dialect::Graphite => (GRAPHITE, GRAPHITE_EACH),
    };
    let mut chosen = Vec::new();
    // As collectl: by letter.
    let mut parts: Vec<&Part> = interval.parts.iter().filter(|part| part.fresh).collect();
    parts.sort_by_key(|part| part.choice.subsystem.letter);
    for part in parts {
        let subsystem = part.choice.subsystem;
        if part.choice.summary {
            let cells = part.summary(interval.context, options);
            values(sums, subsystem, subsystem.columns, &cells, &mut each);
        }
        if part.choice.detail {
            selection::select(part, interval.context, options, &mut chosen);
            of_each(details, part, &chosen, interval, options, &mut each);
        }
    }
}

fn of_each(
    names: &[Names],
    part: &Part,
    chosen: &[usize],
    interval: &Interval,
    options: &Options,
    each: &mut impl FnMut(&str, f64, usize),
) {
    let subsystem = part.choice.subsystem;
    for &at in chosen {
        let row = &part.rows()[at];
        if row.baseline || selection::is_unused(part, row) {
            continue;
        }
        let cells = part.cells(row, interval.context, options);
        values(names, subsystem, subsystem.detail, &cells, each);
    }
}

fn values(
    names: &[Names],
    subsystem: &Subsystem,
    columns: &[Column],
    cells: &Cells,
    each: &mut impl FnMut(&str, f64, usize),
) {
    let value = |column: &Column| match column.value {
        Value::Number(value) => Some(value(cells)).filter(|value| !value.is_nan()),
        Value::Text(_) => None,
    };
    let instance = safe(cells.name);
    let known = names.iter().find(|(letter, _)| *letter == subsystem.letter);
    if let Some((_, known)) = known {
        for (name, column, decimals) in known.iter() {
            let found = columns.iter().find(|each| each.name == *column);
            if let Some(value) = found.and_then(value) {
                each(&name.replace("{}", &instance), value, *decimals);
            }
        }
        return;
    }
    for column in columns {
        if let Some(value) = value(column) {
            let mut name = format!("{}.{}", subsystem.name, column.name);
            if !instance.is_empty() {
                name = format!("{name}.{instance}");
            }
            each(&name, value, 0);
        }
    }
}

/// A name without what separates names.
fn safe(name: &[u8]) -> String {
    let text = DisplayName(name);
    let text = text.text();
    text.replace(|c: char| c.is_whitespace() || c == '.' || c == '/', "_")
}

/// Appends a value as collectl does: rounded half up to a whole number, or with decimals.
pub(crate) fn put(out: &mut Vec<u8>, value: f64, decimals: usize) {
    let done = match decimals {
        0 => write!(out, "{}", (value + 0.5).floor()),
        _ => write!(out, "{value:.decimals$}"),
    };
    debug_assert!(done.is_ok(), "memory takes all");
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_kernel::subsystem;

    #[test]
    fn every_name_has_its_column() {
        for (names, detail) in [
            (LEXPR, false),
            (LEXPR_EACH, true),
            (GRAPHITE, false),
            (GRAPHITE_EACH, true),
        ] {
            for (letter, names) in names {
                let of = subsystem::of(*letter).expect("a subsystem");
                let columns = if detail { of.detail } else { of.columns };
                for (name, column, _) in names.iter() {
                    assert!(
                        columns.iter().any(|c| c.name == *column),
                        "{name}: {column}"
                    );
                    assert_eq!(name.contains("{}"), detail, "{name}");
                }
            }
        }
    }
}
