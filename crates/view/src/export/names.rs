//! collectl's names of values in its exports, and the columns they are. Subsystems that are not among them go under their own
//! names, `SUBSYSTEM.COLUMN`.

use std::io::Write as _;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::field::Unit;
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::Subsystem;

use crate::export::asked::{Dialect, GangliaNames};
use crate::feed::{Interval, Part};
use crate::options::Options;
use crate::selection;

/// The names of a subsystem's values.
struct ValueNames {
    letter: char,
    /// What Ganglia groups them under.
    group: &'static str,
    values: &'static [Named],
}

/// A value: its name, the column it is, its decimals, whose name it is, and its unit in Ganglia.
struct Named {
    name: &'static str,
    column: &'static str,
    decimals: usize,
    by: u8,
    units: &'static str,
}

/// Whose names: lexpr's; graphite's; gexpr's but with `g`; gexpr's but with `g` or `G`; with either of them, those of Ganglia itself.
const LEXPR: u8 = 1;
const GRAPHITE: u8 = 2;
const GANGLIA: u8 = 4;
const OWN: u8 = 8;
const STANDARD: u8 = 16;

const fn named(
    name: &'static str,
    column: &'static str,
    decimals: usize,
    by: u8,
    units: &'static str,
) -> Named {
    Named {
        name,
        column,
        decimals,
        by,
        units,
    }
}

/// Of the machine.
const SUMS: &[ValueNames] = &[
    ValueNames {
        letter: 'c',
        group: "cpu",
        values: &[
            named("cputotals.num", "cpus", 0, LEXPR, "percent"),
            named(
                "cputotals.user",
                "user",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named(
                "cputotals.nice",
                "nice",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named("cputotals.sys", "sys", 0, LEXPR | GRAPHITE | OWN, "percent"),
            named(
                "cputotals.wait",
                "wait",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named(
                "cputotals.irq",
                "irq",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cputotals.soft",
                "soft",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cputotals.steal",
                "steal",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cputotals.idle",
                "idle",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named("cputotals.systot", "kernel", 0, LEXPR, "percent"),
            named("cputotals.usertot", "user_and_nice", 0, LEXPR, "percent"),
            named("cputotals.total", "total", 0, LEXPR, "percent"),
            named(
                "ctxint.ctx",
                "ctxsw",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "switches/sec",
            ),
            named(
                "ctxint.int",
                "intr",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "intrpts/sec",
            ),
            named("proc.creates", "forks", 0, LEXPR, ""),
            named("proc.runq", "tasks", 0, LEXPR, ""),
            named("proc.run", "runnable", 0, LEXPR, ""),
            named(
                "cpuload.avg1",
                "load1",
                2,
                LEXPR | GRAPHITE | OWN,
                "loadAvg1",
            ),
            named(
                "cpuload.avg5",
                "load5",
                2,
                LEXPR | GRAPHITE | OWN,
                "loadAvg5",
            ),
            named(
                "cpuload.avg15",
                "load15",
                2,
                LEXPR | GRAPHITE | OWN,
                "loadAvg15",
            ),
            named(
                "ctxint.proc",
                "forks",
                0,
                GRAPHITE | GANGLIA,
                "pcreates/sec",
            ),
            named("ctxint.runq", "tasks", 0, GRAPHITE | GANGLIA, "runqSize"),
            named("cpu_user", "user", 0, STANDARD, "percent"),
            named("cpu_nice", "nice", 0, STANDARD, "percent"),
            named("cpu_system", "sys", 0, STANDARD, "percent"),
            named("cpu_wio", "wait", 0, STANDARD, "percent"),
            named("cpu_idle", "idle", 0, STANDARD, "percent"),
            named("cpu_num", "cpus", 0, STANDARD, "CPUs"),
            named("proc_total", "tasks", 0, STANDARD, "Load/Procs"),
            named("proc_run", "runnable", 0, STANDARD, "Load/Procs"),
            named("load_one", "load1", 0, STANDARD, "Load/Procs"),
            named("load_five", "load5", 0, STANDARD, "Load/Procs"),
            named("load_fifteen", "load15", 0, STANDARD, "Load/Procs"),
        ],
    },
    ValueNames {
        letter: 'd',
        group: "disk",
        values: &[
            named(
                "disktotals.reads",
                "reads",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "reads/sec",
            ),
            named(
                "disktotals.readkbs",
                "read_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "readkbs/sec",
            ),
            named(
                "disktotals.writes",
                "writes",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writes/sec",
            ),
            named(
                "disktotals.writekbs",
                "write_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writekbs/sec",
            ),
        ],
    },
    ValueNames {
        letter: 'm',
        group: "memory",
        values: &[
            named("meminfo.tot", "total", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.used", "used", 0, LEXPR | GRAPHITE | GANGLIA, "kb"),
            named("meminfo.free", "free", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.shared", "shared", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.buf", "buffers", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.cached", "cached", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.slab", "slab", 0, LEXPR | GRAPHITE | GANGLIA, "kb"),
            named("meminfo.map", "mapped", 0, LEXPR | GRAPHITE | GANGLIA, "kb"),
            named("meminfo.anon", "anon", 0, LEXPR, "kb"),
            named("meminfo.anonH", "anon_huge", 0, LEXPR, "kb"),
            named("meminfo.dirty", "dirty", 0, LEXPR, "kb"),
            named("meminfo.locked", "locked", 0, LEXPR, "kb"),
            named("meminfo.inactive", "inactive", 0, LEXPR, "kb"),
            named(
                "meminfo.hugetot",
                "huge_total",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named(
                "meminfo.hugefree",
                "huge_free",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named(
                "meminfo.hugersvd",
                "huge_reserved",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named("meminfo.sunreclaim", "unreclaimable", 0, LEXPR, "kb"),
            named(
                "swapinfo.total",
                "swap_total",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb",
            ),
            named(
                "swapinfo.free",
                "swap_free",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb",
            ),
            named(
                "swapinfo.used",
                "swap_used",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named(
                "swapinfo.in",
                "swap_in",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "swaps/sec",
            ),
            named(
                "swapinfo.out",
                "swap_out",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "swaps/sec",
            ),
            named(
                "pageinfo.fault",
                "faults",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "faults/sec",
            ),
            named(
                "pageinfo.majfault",
                "major_faults",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "majflt/sec",
            ),
            named(
                "pageinfo.in",
                "page_in",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "pages/sec",
            ),
            named(
                "pageinfo.out",
                "page_out",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "pages/sec",
            ),
            named("mem_total", "total", 0, STANDARD, "Bytes"),
            named("mem_free", "free", 0, STANDARD, "Bytes"),
            named("mem_shared", "shared", 0, STANDARD, "Bytes"),
            named("mem_buffers", "buffers", 0, STANDARD, "Bytes"),
            named("mem_cached", "cached", 0, STANDARD, "Bytes"),
            named("swap_total", "swap_total", 0, STANDARD, "Bytes"),
            named("swap_free", "swap_free", 0, STANDARD, "Bytes"),
        ],
    },
    ValueNames {
        letter: 'n',
        group: "network",
        values: &[
            named(
                "nettotals.kbin",
                "rx_kb",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb/sec",
            ),
            named(
                "nettotals.pktin",
                "rx_packets",
                0,
                LEXPR | GRAPHITE | OWN,
                "pkts/sec",
            ),
            named(
                "nettotals.kbout",
                "tx_kb",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb/sec",
            ),
            named(
                "nettotals.pktout",
                "tx_packets",
                0,
                LEXPR | GRAPHITE | OWN,
                "pkts/sec",
            ),
            named("bytes_in", "rx_kb", 0, STANDARD, "Bytes/sec"),
            named("bytes_out", "tx_kb", 0, STANDARD, "Bytes/sec"),
            named("pkts_in", "rx_packets", 0, STANDARD, "pkts/sec"),
            named("pkts_out", "tx_packets", 0, STANDARD, "pkts/sec"),
        ],
    },
];

/// Of each CPU, disk and interface.
const EACH: &[ValueNames] = &[
    ValueNames {
        letter: 'c',
        group: "cpu",
        values: &[
            named(
                "cpuinfo.user.cpu{}",
                "user",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.nice.cpu{}",
                "nice",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.sys.cpu{}",
                "sys",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.wait.cpu{}",
                "wait",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.irq.cpu{}",
                "irq",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.soft.cpu{}",
                "soft",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.steal.cpu{}",
                "steal",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.idle.cpu{}",
                "idle",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named("cputotals.systot.cpu{}", "kernel", 0, LEXPR, "percent"),
        ],
    },
    ValueNames {
        letter: 'd',
        group: "disk",
        values: &[
            named(
                "diskinfo.reads.{}",
                "reads",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "reads/sec",
            ),
            named(
                "diskinfo.readkbs.{}",
                "read_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "readkbs/sec",
            ),
            named("diskinfo.readw.{}", "read_wait", 0, LEXPR, ""),
            named(
                "diskinfo.writes.{}",
                "writes",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writes/sec",
            ),
            named(
                "diskinfo.writekbs.{}",
                "write_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writekbs/sec",
            ),
            named("diskinfo.writew.{}", "write_wait", 0, LEXPR, ""),
            named("diskinfo.quelen.{}", "queue", 0, LEXPR, ""),
            named("diskinfo.wait.{}", "wait", 0, LEXPR | GRAPHITE, ""),
            named("diskinfo.svctime.{}", "service", 0, LEXPR, ""),
            named("diskinfo.util.{}", "util", 0, LEXPR | GRAPHITE, ""),
            named("diskinfo.rqst.{}", "size", 0, GRAPHITE, ""),
            named("diskinfo.qlen.{}", "queue", 0, GRAPHITE, ""),
            named("diskinfo.time.{}", "service", 0, GRAPHITE, ""),
        ],
    },
    ValueNames {
        letter: 'n',
        group: "network",
        values: &[
            named("netinfo.kbin.{}", "rx_kb", 0, LEXPR, "kb/sec"),
            named("netinfo.pktin.{}", "rx_packets", 0, LEXPR, "pkts/sec"),
            named("netinfo.kbout.{}", "tx_kb", 0, LEXPR, "kb/sec"),
            named("netinfo.pktout.{}", "tx_packets", 0, LEXPR, "pkts/sec"),
            named(
                "nettotals.kbin.{}",
                "rx_kb",
                0,
                GRAPHITE | GANGLIA,
                "kb/sec",
            ),
            named(
                "nettotals.pktin.{}",
                "rx_packets",
                0,
                GRAPHITE | GANGLIA,
                "pkts/sec",
            ),
            named(
                "nettotals.kbout.{}",
                "tx_kb",
                0,
                GRAPHITE | GANGLIA,
                "kb/sec",
            ),
            named(
                "nettotals.pktout.{}",
                "tx_packets",
                0,
                GRAPHITE | GANGLIA,
                "pkts/sec",
            ),
        ],
    },
];

/// A value as it is exported.
pub(crate) struct Exported<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: f64,
    pub(crate) decimals: usize,
    pub(crate) units: &'a str,
    pub(crate) group: &'a str,
    /// Whether it is of a second, not a state.
    pub(crate) is_rate: bool,
}

/// Calls `each` with every name and its value, of an interval. What is not known is left out.
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
    let mut chosen = Vec::new();
    // As collectl: by letter.
    let mut parts: Vec<&Part> = interval.parts.iter().filter(|part| part.fresh).collect();
    parts.sort_by_key(|part| part.choice.subsystem.letter);
    for part in parts {
        let subsystem = part.choice.subsystem;
        if part.choice.summary {
            let cells = part.summary(interval.context, options);
            values((SUMS, by), subsystem, subsystem.columns, &cells, &mut each);
        }
        if part.choice.detail {
            selection::select(part, interval.context, options, &mut chosen);
            of_each((EACH, by), part, &chosen, interval, options, &mut each);
        }
    }
}

fn of_each(
    names: (&[ValueNames], u8),
    part: &Part,
    chosen: &[usize],
    interval: &Interval,
    options: &Options,
    each: &mut impl FnMut(&Exported),
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
    let known = names.iter().find(|names| names.letter == subsystem.letter);
    if let Some(known) = known {
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
        return;
    }
    if by == STANDARD {
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
        for (names, detail) in [(SUMS, false), (EACH, true)] {
            for names in names {
                let of = subsystem::of(names.letter).expect("a subsystem");
                let columns = if detail { of.detail } else { of.columns };
                for named in names.values {
                    assert!(
                        columns.iter().any(|c| c.name == named.column),
                        "{}: {}",
                        named.name,
                        named.column
                    );
                    assert_eq!(named.name.contains("{}"), detail, "{}", named.name);
                    assert!(named.by & (GANGLIA | OWN | STANDARD) == 0 || !named.units.is_empty());
                }
            }
        }
    }
}
