//! `d` and `D`: block devices, from /proc/diskstats, discards and flushes included.
//!
//! The sum counts only whole disks at the bottom, by their relations, or by names if these
//! are unknown. Partitions, md, dm, loop devices and hidden nvme paths repeat the same
//! bytes. If the head of nvme paths counts nothing, as before kernel 6.5, its paths count.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::{MISSING, Row};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Parts};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, named_rows,
    number, numbers, plot, ratio, text,
};
use crate::layout::{Layout, RowLayout};
use crate::source::kind;

const READS: usize = at(FIELDS, "reads");
const READ_MERGES: usize = at(FIELDS, "read_merges");
const READ_SECTORS: usize = at(FIELDS, "read_sectors");
const READ_MS: usize = at(FIELDS, "read_ms");
const WRITES: usize = at(FIELDS, "writes");
const WRITE_MERGES: usize = at(FIELDS, "write_merges");
const WRITE_SECTORS: usize = at(FIELDS, "write_sectors");
const WRITE_MS: usize = at(FIELDS, "write_ms");
const IN_FLIGHT: usize = at(FIELDS, "in_flight");
const IO_MS: usize = at(FIELDS, "io_ms");
const WEIGHTED_MS: usize = at(FIELDS, "weighted_ms");
const DISCARDS: usize = at(FIELDS, "discards");
const DISCARD_SECTORS: usize = at(FIELDS, "discard_sectors");
const DISCARD_MERGES: usize = at(FIELDS, "discard_merges");
const DISCARD_MS: usize = at(FIELDS, "discard_ms");
const FLUSHES: usize = at(FIELDS, "flushes");
const FLUSH_MS: usize = at(FIELDS, "flush_ms");
/// Number of the counters of /proc/diskstats, which are the first fields.
const COUNTERS: usize = FLUSH_MS + 1;
const ARRAY_NEEDED: usize = at(FIELDS, "array_needed");
const ARRAY_DISKS: usize = at(FIELDS, "array_active");
const ARRAY_FIELDS: usize = 5;

const fn counter(name: &'static str, rule: Rule, unit: Unit, help: &'static str) -> Field {
    field(name, rule, unit, help)
}

const fn array(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Count, help)
}

/// Fields in the order of Documentation/admin-guide/iostats.rst. Milliseconds are 32 bits wide in the kernel.
const FIELDS: &[Field] = &[
    counter("reads", Rule::Counter64, Unit::Count, "Reads completed"),
    counter(
        "read_merges",
        Rule::Counter64,
        Unit::Count,
        "Reads merged into queued ones",
    ),
    counter("read_sectors", Rule::Counter64, Unit::Sectors, "Read"),
    counter(
        "read_ms",
        Rule::Counter32,
        Unit::Milliseconds,
        "Sum of the times reads took",
    ),
    counter("writes", Rule::Counter64, Unit::Count, "Writes completed"),
    counter(
        "write_merges",
        Rule::Counter64,
        Unit::Count,
        "Writes merged into queued ones",
    ),
    counter("write_sectors", Rule::Counter64, Unit::Sectors, "Written"),
    counter(
        "write_ms",
        Rule::Counter32,
        Unit::Milliseconds,
        "Sum of the times writes took",
    ),
    counter("in_flight", Rule::Gauge, Unit::Count, "Requests under way"),
    counter(
        "io_ms",
        Rule::Counter32,
        Unit::Milliseconds,
        "Time with requests under way",
    ),
    counter(
        "weighted_ms",
        Rule::CounterMayStepBack,
        Unit::Milliseconds,
        "Requests under way times their time",
    ),
    counter(
        "discards",
        Rule::Counter64,
        Unit::Count,
        "Discards completed",
    ),
    counter(
        "discard_merges",
        Rule::Counter64,
        Unit::Count,
        "Discards merged into queued ones",
    ),
    counter(
        "discard_sectors",
        Rule::Counter64,
        Unit::Sectors,
        "Discarded",
    ),
    counter(
        "discard_ms",
        Rule::Counter32,
        Unit::Milliseconds,
        "Sum of the times discards took",
    ),
    counter("flushes", Rule::Counter64, Unit::Count, "Flushes completed"),
    counter(
        "flush_ms",
        Rule::Counter32,
        Unit::Milliseconds,
        "Sum of the times flushes took",
    ),
    array("array_needed", "Disks that a RAID array needs"),
    array("array_active", "Disks of a RAID array at work"),
    array("array_failed", "Disks of a RAID array that failed"),
    array("array_spare", "Spare disks of a RAID array"),
    array("array_missing", "Disks that a RAID array lacks"),
];

fn kilobytes(cells: &Cells, sectors: usize) -> f64 {
    cells.rate(sectors) / 2.0
}

/// Average milliseconds of a request of `count`; 0 if there was none.
fn wait(cells: &Cells, ms: usize, count: usize) -> f64 {
    ratio(cells.delta[ms], cells.delta[count])
}

/// Average kilobytes of a request of `count`; 0 if there was none.
fn size(cells: &Cells, sectors: usize, count: usize) -> f64 {
    ratio(cells.delta[sectors] / 2.0, cells.delta[count])
}

fn requests(cells: &Cells) -> f64 {
    cells.delta[READS] + cells.delta[WRITES]
}

const TRAFFIC: [Column; 16] = [
    number("reads", Unit::PerSecond, "Reads completed", |c| {
        c.rate(READS)
    }),
    number("read_merges", Unit::PerSecond, "Reads merged", |c| {
        c.rate(READ_MERGES)
    }),
    number("read_kb", Unit::KilobytesPerSecond, "Read", |c| {
        kilobytes(c, READ_SECTORS)
    }),
    number("read_size", Unit::Kilobytes, "Mean read", |c| {
        size(c, READ_SECTORS, READS)
    }),
    number(
        "read_wait",
        Unit::Milliseconds,
        "Mean time of a read",
        |c| wait(c, READ_MS, READS),
    ),
    number("writes", Unit::PerSecond, "Writes completed", |c| {
        c.rate(WRITES)
    }),
    number("write_merges", Unit::PerSecond, "Writes merged", |c| {
        c.rate(WRITE_MERGES)
    }),
    number("write_kb", Unit::KilobytesPerSecond, "Written", |c| {
        kilobytes(c, WRITE_SECTORS)
    }),
    number("write_size", Unit::Kilobytes, "Mean write", |c| {
        size(c, WRITE_SECTORS, WRITES)
    }),
    number(
        "write_wait",
        Unit::Milliseconds,
        "Mean time of a write",
        |c| wait(c, WRITE_MS, WRITES),
    ),
    number("discards", Unit::PerSecond, "Discards completed", |c| {
        c.rate(DISCARDS)
    }),
    number("discard_kb", Unit::KilobytesPerSecond, "Discarded", |c| {
        kilobytes(c, DISCARD_SECTORS)
    }),
    number(
        "discard_wait",
        Unit::Milliseconds,
        "Mean time of a discard",
        |c| wait(c, DISCARD_MS, DISCARDS),
    ),
    number("flushes", Unit::PerSecond, "Flushes completed", |c| {
        c.rate(FLUSHES)
    }),
    number(
        "flush_wait",
        Unit::Milliseconds,
        "Mean time of a flush",
        |c| wait(c, FLUSH_MS, FLUSHES),
    ),
    number("in_flight", Unit::Count, "Requests under way", |c| {
        c.now[IN_FLIGHT]
    }),
];

const COLUMNS: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = TRAFFIC;
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m,
        n,
        o,
        p,
        number("discard_merges", Unit::PerSecond, "Discards merged", |c| {
            c.rate(DISCARD_MERGES)
        }),
        number("ops", Unit::PerSecond, "Reads and writes", |c| {
            requests(c) / c.secs
        }),
        number("kb", Unit::KilobytesPerSecond, "Read and written", |c| {
            kilobytes(c, READ_SECTORS) + kilobytes(c, WRITE_SECTORS)
        }),
        number("merges", Unit::PerSecond, "Reads and writes merged", |c| {
            c.rate(READ_MERGES) + c.rate(WRITE_MERGES)
        }),
    ]
};

const DETAIL: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = TRAFFIC;
    [
        text("disk", "Name of the device", |c, out| {
            out.extend_from_slice(c.name)
        }),
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m,
        n,
        o,
        p,
        number("discard_merges", Unit::PerSecond, "Discards merged", |c| {
            c.rate(DISCARD_MERGES)
        }),
        number("size", Unit::Kilobytes, "Mean request", |c| {
            ratio(
                (c.delta[READ_SECTORS] + c.delta[WRITE_SECTORS]) / 2.0,
                requests(c),
            )
        }),
        number(
            "queue",
            Unit::Count,
            "Mean requests under way while there were any",
            |c| ratio(c.delta[WEIGHTED_MS], c.delta[IO_MS]),
        ),
        number("wait", Unit::Milliseconds, "Mean time of a request", |c| {
            ratio(c.delta[READ_MS] + c.delta[WRITE_MS], requests(c))
        }),
        number("service", Unit::Milliseconds, "Busy time a request", |c| {
            ratio(c.delta[IO_MS], requests(c))
        }),
        number("util", Unit::Percent, "Time with requests under way", |c| {
            c.delta[IO_MS] / (10.0 * c.elapsed)
        }),
    ]
};

const PLOT: &[PlotColumn] = &[
    plot("ReadTot", "reads"),
    plot("WriteTot", "writes"),
    plot("OpsTot", "ops"),
    plot("ReadKBTot", "read_kb"),
    plot("WriteKBTot", "write_kb"),
    plot("KbTot", "kb"),
    plot("ReadMrgTot", "read_merges"),
    plot("WriteMrgTot", "write_merges"),
    plot("MrgTot", "merges"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("Name", "name"),
    plot("Reads", "reads"),
    plot("RMerge", "read_merges"),
    plot("RKBytes", "read_kb"),
    plot("WaitR", "read_wait"),
    plot("Writes", "writes"),
    plot("WMerge", "write_merges"),
    plot("WKBytes", "write_kb"),
    plot("WaitW", "write_wait"),
    plot("Request", "size"),
    plot("QueLen", "queue"),
    plot("Wait", "wait"),
    plot("SvcTim", "service"),
    plot("Util", "util"),
];

const EXPOSED: Exposed = Exposed {
    machine: &[],
    each: &[Each {
        labels: &[exposed::MetricLabel::name("device")],
        shows: |row| is_exposed(&row.name),
        families: &[
            exposed::counter("node_disk_reads_completed_total", READS),
            exposed::counter("node_disk_reads_merged_total", READ_MERGES),
            exposed::counter("node_disk_read_bytes_total", READ_SECTORS),
            exposed::counter("node_disk_read_time_seconds_total", READ_MS),
            exposed::counter("node_disk_writes_completed_total", WRITES),
            exposed::counter("node_disk_writes_merged_total", WRITE_MERGES),
            exposed::counter("node_disk_written_bytes_total", WRITE_SECTORS),
            exposed::counter("node_disk_write_time_seconds_total", WRITE_MS),
            exposed::gauge("node_disk_io_now", IN_FLIGHT),
            exposed::counter("node_disk_io_time_seconds_total", IO_MS),
            exposed::counter("node_disk_io_time_weighted_seconds_total", WEIGHTED_MS),
            exposed::counter("node_disk_discards_completed_total", DISCARDS),
            exposed::counter("node_disk_discards_merged_total", DISCARD_MERGES),
            exposed::counter("node_disk_discarded_sectors_total", DISCARD_SECTORS).raw(),
            exposed::counter("node_disk_discard_time_seconds_total", DISCARD_MS),
            exposed::counter("node_disk_flush_requests_total", FLUSHES),
            exposed::counter("node_disk_flush_requests_time_seconds_total", FLUSH_MS),
            exposed::gauge("node_md_disks_required", ARRAY_NEEDED),
            exposed::gauge("node_md_disks", ARRAY_DISKS)
                .meant("Disks of a RAID array by their state")
                .of_each(Parts::Named {
                    label: "state",
                    values: &["active", "failed", "spare", "down"],
                }),
        ],
    }],
};

/// node_exporter's rule, which goes by names: it excludes `ram0`, `loop0`, `fd0`, and partitions such as those of `sda` and
/// `nvme0n1`, and includes others (`mmcblk0p1`, `dm-0`, `md0`, `sdaa1`).
fn is_exposed(name: &[u8]) -> bool {
    let stem = without_digits(name);
    if stem.len() == name.len() {
        return true;
    }
    let is_partitioned = match stem {
        [b'h' | b's' | b'v', b'd', letter] | [b'x', b'v', b'd', letter] => {
            letter.is_ascii_lowercase()
        }
        _ => {
            let disk = stem.strip_suffix(b"p").unwrap_or_default();
            disk.last().is_some_and(u8::is_ascii_digit) && is_nvme(without_digits(disk))
        }
    };
    !is_partitioned && ![&b"ram"[..], b"loop", b"fd"].contains(&stem)
}

/// The disks.
pub static DISK: Subsystem = Subsystem {
    letter: 'd',
    name: "disk",
    help: "Reads, writes, discards and flushes of disks",
    sources: &[kind::DISKSTATS, kind::ARRAYS],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &[],
    layout,
    fills: None,
    summary: Summary::Rows,
    sum: None,
    ceiling: None,
    count: Some(count_paths),
    in_service: true,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::Hidden,
    text: Text {
        brief: Lines {
            title: "<----------Disks----------->",
            heads: &["KBRead  Reads KBWrit Writes "],
            row: "{read_kb:6u} {reads:6c} {write_kb:6u} {writes:6c} ",
        },
        verbose: Lines {
            title: "DISK SUMMARY ({rate})",
            heads: &["KBRead RMerged  Reads SizeKB  KBWrite WMerged Writes SizeKB"],
            row: " {read_kb:6d}  {read_merges:6d} {reads:6d} {read_size:6d}   {write_kb:6d}  {write_merges:6d} {writes:6d} {write_size:6d}",
        },
        detail: Lines {
            title: "DISK STATISTICS ({rate})",
            heads: &[
                "          <---------reads---------------><---------writes--------------><--------averages--------> Pct",
                "Name       KBytes Merged  IOs Size  Wait  KBytes Merged  IOs Size  Wait  RWSize  QLen  Wait SvcTim Util",
            ],
            row: "{name:-11s} {read_kb:6d} {read_merges:6d} {reads:4c} {read_size:4u} {read_wait:5d}  {write_kb:6d} {write_merges:6d} {writes:4c} {write_size:4u} {write_wait:5d}   {size:5d} {queue:5d}  {wait:4d}   {service:4d}  {util:3d}",
        },
    },
    plot: Plot {
        tag: "DSK",
        order: 5,
        file: "dsk",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

fn layout(kind: u8, template: &Template, context: &Context) -> Layout {
    if kind == kind::ARRAYS {
        return named_rows(template, ARRAY_NEEDED, ARRAY_FIELDS);
    }
    let lines = template.lines();
    let rows = lines.iter().filter_map(|line| row(line, context));
    let mut rows: Vec<RowLayout> = rows.collect();
    if !rows.iter().any(|row| row.counted) {
        count_outermost(&mut rows, context);
    }
    Layout {
        rows,
        ..Layout::default()
    }
}

/// Parses a line such as `254 0 vda 85649 23616 ...`; it has 11 numbers before 4.18, then 15, since 5.5 17.
fn row(line: &[Piece], context: &Context) -> Option<RowLayout> {
    let [
        Piece::Slot(major),
        Piece::Slot(minor),
        Piece::Text(name),
        rest @ ..,
    ] = line
    else {
        return None;
    };
    let cells = match rest.len() {
        // Partitions of 2.6.24 and before: reads, sectors read, writes, sectors written.
        4 => [READS, READ_SECTORS, WRITES, WRITE_SECTORS]
            .iter()
            .zip(rest)
            .flat_map(|(&field, piece)| numbers(std::slice::from_ref(piece), field, 1))
            .collect(),
        _ => numbers(rest, READS, COUNTERS),
    };
    Some(RowLayout {
        name: name.to_vec(),
        key: vec![*major, *minor],
        counted: counts(name, context),
        cells,
        ..RowLayout::default()
    })
}

/// Returns true if a device counts in the sum, by its relation, or by its name if that is unknown.
fn counts(name: &[u8], context: &Context) -> bool {
    match relation(name, context) {
        Some(relation) => relation == "whole",
        None => counts_by_name(name),
    }
}

/// Name prefixes of devices in memory, on files or on other devices, and of drives for removable media.
const NO_DISKS: [&[u8]; 11] = [
    b"dm-", b"md", b"loop", b"ram", b"zram", b"bcache", b"drbd", b"zd", b"psv", b"sr", b"fd",
];

/// Counts devices that are no partitions, such as `mmcblk0`, `nbd0`, or `xvda1` without `xvda`: for recordings without relations
/// in which collectl's rule counts no device.
fn count_outermost(rows: &mut [RowLayout], context: &Context) {
    let names: Vec<Vec<u8>> = rows.iter().map(|row| row.name.clone()).collect();
    for row in rows {
        let name = &row.name;
        row.counted = relation(name, context).is_none()
            && !NO_DISKS.iter().any(|no_disk| name.starts_with(no_disk))
            && !names.iter().any(|disk| is_part_of(name, disk));
    }
}

/// The relation of a device, as in `base::context`.
fn relation<'a>(name: &[u8], context: &'a Context) -> Option<&'a str> {
    let name = std::str::from_utf8(name).ok()?;
    // Older recordings spell names as sysfs does.
    let as_in_sysfs = || context.get(&format!("disk.{}", name.replace('/', "!")));
    context.get(&format!("disk.{name}")).or_else(as_in_sysfs)
}

/// Counts the rows that a user has named, except those that repeat the bytes of another named row.
pub fn count_named(rows: &mut [Row], context: &Context) {
    let names: Vec<Vec<u8>> = rows.iter().map(|row| row.name.clone()).collect();
    let any_counts = rows.iter().any(|row| row.counted);
    for row in rows.iter_mut().filter(|row| !row.counted) {
        row.counted = match relation(&row.name, context) {
            Some(_) => !lies_on(&row.name, &names, context, RELATIONS_DEEP),
            None if row.name.starts_with(b"dm-") || row.name.starts_with(b"md") => !any_counts,
            None => !names.iter().any(|disk| is_part_of(&row.name, disk)),
        };
    }
}

/// Limit of the depth of relations (a guess): sysfs has no cycles, but a recording may.
const RELATIONS_DEEP: usize = 8;

/// Returns true if a device lies on one of `names`, directly or through others.
fn lies_on(name: &[u8], names: &[Vec<u8>], context: &Context, deep: usize) -> bool {
    let Some((_, below)) = relation(name, context).and_then(|known| known.split_once(':')) else {
        return false;
    };
    let mut below = below.split(',').map(str::as_bytes);
    below.any(|disk| {
        names.iter().any(|name| name == disk) || deep > 0 && lies_on(disk, names, context, deep - 1)
    })
}

/// Returns true if `name` is a partition of `disk`: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_part_of(name: &[u8], disk: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(disk) else {
        return false;
    };
    let is_numbered = disk.last().is_some_and(u8::is_ascii_digit);
    let number = match is_numbered {
        true => rest.strip_prefix(b"p").unwrap_or_default(),
        false => rest,
    };
    !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

/// Counts a path of an nvme if its head is missing or has counted nothing.
fn count_paths(rows: &mut [Row]) {
    for at in 0..rows.len() {
        let Some(head) = head_of_path(&rows[at].name) else {
            continue;
        };
        let is_used = |row: &Row| {
            let counters = row.values.iter().enumerate();
            let mut counters = counters.filter(|(field, _)| *field != IN_FLIGHT);
            counters.any(|(_, &value)| value != 0 && value != MISSING)
        };
        let counts = rows.iter().any(|row| row.name == head && is_used(row));
        rows[at].counted = !counts;
    }
}

/// The head of an nvme path: `nvme3n1` for `nvme3c33n1`.
fn head_of_path(name: &[u8]) -> Option<Vec<u8>> {
    let rest = name.strip_prefix(b"nvme")?;
    let path = rest.iter().position(|&b| b == b'c')?;
    let space = path + 1 + rest[path + 1..].iter().position(|&b| b == b'n')?;
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let parts = [&rest[..path], &rest[path + 1..space], &rest[space + 1..]];
    let is_path = parts.into_iter().all(is_number);
    is_path.then(|| [b"nvme", &rest[..path], &rest[space..]].concat())
}

/// collectl's rule: neither dm- nor psv, and no digit at the end except of a whole nvme or of a disk in a folder.
fn counts_by_name(name: &[u8]) -> bool {
    if name.starts_with(b"dm-") || name.starts_with(b"psv") {
        return false;
    }
    let stem = without_digits(name);
    // Disks such as `cciss/c0d0` and `etherd/e0.0`; their partitions have a p.
    let is_in_folder = name.contains(&b'/') && matches!(stem.last(), Some(b'd' | b'.'));
    stem.len() == name.len() || is_nvme(stem) || is_in_folder
}

/// Returns true for the stem of a whole nvme: `nvme0n` of `nvme0n1`.
fn is_nvme(stem: &[u8]) -> bool {
    let number = stem
        .strip_prefix(b"nvme")
        .and_then(|rest| rest.strip_suffix(b"n"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

fn without_digits(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    &name[..name.len() - digits]
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    /// The digest adds to the rows of /proc/diskstats and makes none.
    #[test]
    fn disks_of_an_array() {
        let stats = "   9       0 md0 1 2 3 4 5 6 7 8 9 10 11\n";
        let digest = "md0 2 1 1 3 1\nmd1 2 2 0 0 0\n";
        let texts = [(kind::DISKSTATS, stats), (kind::ARRAYS, digest)];
        let reading = read(&DISK, &texts, &Context::default());
        assert_eq!(reading.rows.len(), 1);
        let values = &reading.rows[0].values[ARRAY_NEEDED..];
        assert_eq!(values, [2, 1, 1, 3, 1]);
    }

    #[test]
    fn kernels_old_and_new() {
        for (text, columns) in [
            ("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n", 11),
            ("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n", 15),
            (
                "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
                17,
            ),
            (
                "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n",
                17,
            ),
            ("   8       0 sda\n", 0),
        ] {
            let reading = read(&DISK, &[(kind::DISKSTATS, text)], &Context::default());
            let expect: Vec<u64> = (1..=17)
                .map(|n| if n <= columns { n } else { MISSING })
                .collect();
            assert_eq!(reading.rows[0].values[..COUNTERS], expect, "{text}");
            assert_eq!(
                (&reading.rows[0].name[..], reading.rows[0].key),
                (&b"sda"[..], 8 << 32)
            );
        }
        let reading = read(
            &DISK,
            &[(kind::DISKSTATS, "   8       1 sda1 10 20 30 40\n")],
            &Context::default(),
        );
        assert_eq!(
            reading.rows[0].values[..8],
            [10, MISSING, 20, MISSING, 30, MISSING, 40, MISSING]
        );
    }

    #[test]
    fn nothing_counts_twice() {
        let mut context = Context::default();
        for (name, relation) in [
            ("sda", "whole"),
            ("sda1", "part:sda"),
            ("md0", "on:sda,sdb"),
            ("dm-0", "on:sda1"),
            ("loop0", "loop"),
            ("nvme0n1", "on:nvme0c0n1"),
            ("nvme0c0n1", "hidden"),
            ("mmcblk0", "whole"),
            ("cciss/c0d0", "whole"),
            ("cciss!c1d0", "whole"),
            ("cciss/c0d0p1", "part:cciss/c0d0"),
        ] {
            context.set(&format!("disk.{name}"), relation);
        }
        let none = Context::default();
        for (name, related, by_name) in [
            ("sda", true, true),
            ("sda1", false, false),
            ("md0", false, false),
            ("dm-0", false, false),
            ("loop0", false, false),
            ("nvme0n1", false, true),
            ("nvme0c0n1", false, false),
            ("mmcblk0", true, false),
            ("nvme9n1p2", false, false),
            ("nvme12n1", true, true),
            ("sdb", true, true),
            ("cciss/c0d0", true, true),
            ("cciss/c1d0", true, true),
            ("cciss/c0d0p1", false, false),
            ("etherd/e0.0", true, true),
            ("etherd/e0.0p1", false, false),
        ] {
            assert_eq!(counts(name.as_bytes(), &context), related, "{name}");
            assert_eq!(counts(name.as_bytes(), &none), by_name, "{name}");
        }
    }

    /// Disks by name and number of reads, and those of them that count.
    #[test]
    fn paths_count_where_their_head_does_not() {
        for (disks, expect) in [
            (
                &[("nvme3n1", 0), ("nvme3c33n1", 5)][..],
                &["nvme3n1", "nvme3c33n1"][..],
            ),
            (&[("nvme3n1", 5), ("nvme3c33n1", 5)], &["nvme3n1"]),
            (
                &[("nvme3n2", 5), ("nvme3c33n1", 5)],
                &["nvme3n2", "nvme3c33n1"],
            ),
            (&[("nvme3c33n1", 5), ("nvme3c33n1p1", 5)], &["nvme3c33n1"]),
        ] {
            let line = |&(name, reads): &(&str, u64)| {
                format!("259 0 {name} {reads} 0 {reads} 0 0 0 0 0 0 0 0\n")
            };
            let text: String = disks.iter().map(line).collect();
            let reading = read(&DISK, &[(kind::DISKSTATS, &text)], &Context::default());
            let counted = reading.rows.iter().filter(|row| row.counted);
            let counted: Vec<_> = counted
                .map(|row| String::from_utf8_lossy(&row.name))
                .collect();
            assert_eq!(counted, expect, "{disks:?}");
        }
    }

    /// Disks of a played file without relations, and those of them that count.
    #[test]
    fn the_outermost_count_where_collectl_knows_no_name() {
        for (disks, expect) in [
            (
                &["mmcblk0", "mmcblk0p1", "mmcblk0boot0"][..],
                &["mmcblk0", "mmcblk0boot0"][..],
            ),
            (&["xvda1", "xvda2"], &["xvda1", "xvda2"]),
            (&["nbd0", "nbd0p1", "loop0", "dm-0", "md0"], &["nbd0"]),
            (&["rbd0", "rbd1", "rbd1p1", "sr0"], &["rbd0", "rbd1"]),
            (&["pmem0", "sda"], &["sda"]),
            (&["dm-0", "loop0", "zram0"], &[]),
        ] {
            let line = |name: &&str| format!("8 0 {name} 1 0 1 0 0 0 0 0 0 0 0\n");
            let text: String = disks.iter().map(line).collect();
            let reading = read(&DISK, &[(kind::DISKSTATS, &text)], &Context::default());
            let counted = reading.rows.iter().filter(|row| row.counted);
            let counted: Vec<_> = counted
                .map(|row| String::from_utf8_lossy(&row.name))
                .collect();
            assert_eq!(counted, expect, "{disks:?}");
        }
    }

    /// Each named disk counts, but no bytes twice, with and without relations.
    #[test]
    fn who_is_named_counts() {
        let mut related = Context::default();
        for (name, relation) in [
            ("sda", "whole"),
            ("sda1", "part:sda"),
            ("dm-0", "on:sda1"),
            ("dm-1", "on:dm-0"),
            ("loop0", "loop"),
        ] {
            related.set(&format!("disk.{name}"), relation);
        }
        for (names, expect) in [
            (&["dm-0"][..], &["dm-0"][..]),
            (&["sda", "sda1"], &["sda"]),
            (&["sda1", "dm-0"], &["sda1"]),
            (&["sda", "dm-1"], &["sda"]),
            (&["loop0"], &["loop0"]),
        ] {
            for context in [&related, &Context::default()] {
                let text: String = names
                    .iter()
                    .map(|name| format!("8 0 {name} 1 0 1 0 0 0 0 0 0 0 0\n"))
                    .collect();
                let mut reading = read(&DISK, &[(kind::DISKSTATS, &text)], context);
                count_named(&mut reading.rows, context);
                let counted = reading.rows.iter().filter(|row| row.counted);
                let counted: Vec<_> = counted
                    .map(|row| String::from_utf8_lossy(&row.name))
                    .collect();
                if context == &related || !names.contains(&"sda1") || names.contains(&"sda") {
                    assert_eq!(counted, expect, "{names:?}");
                }
            }
        }
    }

    /// Names that match `^(ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$` are not exposed.
    #[test]
    fn what_is_exposed() {
        for name in [
            "sda",
            "sdz",
            "sdaa1",
            "vda",
            "xvda",
            "hdc",
            "nvme0n1",
            "nvme0c0n1",
            "nvme",
            "mmcblk0",
            "mmcblk0p1",
            "dm-0",
            "md0",
            "zram0",
            "sr0",
            "nbd0",
            "sd1",
            "sdA1",
            "nvme0n1p",
            "nvme0np1",
            "nvmen1p1",
            "p1",
            "1",
            "",
            "ram",
            "loop",
            "loop0p1",
            "xvd1",
            "axvda1",
        ] {
            assert!(is_exposed(name.as_bytes()), "{name}");
        }
        for name in [
            "sda1",
            "sdz15",
            "vda1",
            "xvda2",
            "hdc3",
            "nvme0n1p1",
            "nvme12n10p128",
            "ram0",
            "loop7",
            "fd0",
        ] {
            assert!(!is_exposed(name.as_bytes()), "{name}");
        }
    }
}
