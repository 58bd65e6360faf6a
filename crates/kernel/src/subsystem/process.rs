//! `Z`: processes and threads, from /proc/PID/{stat,io,status,cmdline,cgroup}; their values are joined into rows by
//! the name of the instance (`PID`, or `PID/task/TID`).

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::{MISSING, Row};
use kymo_base::scan;
use kymo_base::template::{Class, Piece, Template};

use super::exposed::Exposed;
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number,
    place, text, value,
};
use crate::layout::{Cell, From, Label, Layout, RowLayout};
use crate::source::kind;

/// Index of the field with the process id of the parent.
pub const PPID: usize = at(FIELDS, "ppid");
const MINFLT: usize = at(FIELDS, "minflt");
const MAJFLT: usize = at(FIELDS, "majflt");
const UTIME: usize = at(FIELDS, "utime");
const STIME: usize = at(FIELDS, "stime");
const CUTIME: usize = at(FIELDS, "cutime");
const CSTIME: usize = at(FIELDS, "cstime");
const PRIORITY: usize = at(FIELDS, "priority");
const THREADS: usize = at(FIELDS, "num_threads");
/// Index of the field with the start time in clock ticks since boot.
pub const STARTTIME: usize = at(FIELDS, "starttime");
const VSIZE: usize = at(FIELDS, "vsize");
const RSS: usize = at(FIELDS, "rss");
const PROCESSOR: usize = at(FIELDS, "processor");
const RCHAR: usize = at(FIELDS, "rchar");
const WCHAR: usize = at(FIELDS, "wchar");
const SYSCR: usize = at(FIELDS, "syscr");
const SYSCW: usize = at(FIELDS, "syscw");
const READ_BYTES: usize = at(FIELDS, "read_bytes");
const WRITE_BYTES: usize = at(FIELDS, "write_bytes");
const CANCELLED: usize = at(FIELDS, "cancelled_write_bytes");
const TGID: usize = at(FIELDS, "Tgid");
const UID: usize = at(FIELDS, "Uid");
const VM_SIZE: usize = at(FIELDS, "VmSize");
const VM_LCK: usize = at(FIELDS, "VmLck");
const VM_RSS: usize = at(FIELDS, "VmRSS");
const VM_DATA: usize = at(FIELDS, "VmData");
const VM_STK: usize = at(FIELDS, "VmStk");
const VM_EXE: usize = at(FIELDS, "VmExe");
const VM_LIB: usize = at(FIELDS, "VmLib");
const VM_SWAP: usize = at(FIELDS, "VmSwap");
const VOLUNTARY: usize = at(FIELDS, "voluntary_ctxt_switches");
const INVOLUNTARY: usize = at(FIELDS, "nonvoluntary_ctxt_switches");

/// Label: the kernel's name.
pub const COMM: usize = 0;
/// Label: the state's letter.
pub const STATE: usize = 1;
/// Label: the command line, its words ended by NUL.
pub const CMDLINE: usize = 2;
/// Label: the text of /proc/PID/cgroup.
pub const CGROUP: usize = 3;
/// Label: lines `KEY:<tab>VALUE` about the container around the process.
pub const CONTAINER: usize = 4;

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

const FIELDS: &[Field] = &[
    gauge("ppid", Unit::None, "Process id of the parent"),
    counter("minflt", Unit::Count, "Page faults that read nothing"),
    counter("majflt", Unit::Count, "Page faults that read"),
    counter("utime", Unit::Ticks, "CPU time in user mode"),
    counter("stime", Unit::Ticks, "CPU time in the kernel"),
    counter(
        "cutime",
        Unit::Ticks,
        "CPU time in user mode of children that ended",
    ),
    counter(
        "cstime",
        Unit::Ticks,
        "CPU time in the kernel of children that ended",
    ),
    gauge("priority", Unit::None, "Priority; negative: real time"),
    gauge("num_threads", Unit::Count, "Threads"),
    gauge("starttime", Unit::Ticks, "Born, after boot"),
    gauge("vsize", Unit::Bytes, "Address space"),
    gauge("rss", Unit::Pages, "Memory in RAM"),
    gauge("processor", Unit::None, "CPU it ran on last"),
    counter("rchar", Unit::Bytes, "Read by system calls"),
    counter("wchar", Unit::Bytes, "Written by system calls"),
    counter("syscr", Unit::Count, "Read system calls"),
    counter("syscw", Unit::Count, "Write system calls"),
    counter("read_bytes", Unit::Bytes, "Read from disks"),
    counter("write_bytes", Unit::Bytes, "Written to disks"),
    counter(
        "cancelled_write_bytes",
        Unit::Bytes,
        "Written but deleted before it got to a disk",
    ),
    gauge("Tgid", Unit::None, "Process id"),
    gauge("Uid", Unit::None, "User id"),
    gauge("VmSize", Unit::Kilobytes, "Address space"),
    gauge("VmLck", Unit::Kilobytes, "Locked"),
    gauge("VmRSS", Unit::Kilobytes, "Memory in RAM"),
    gauge("VmData", Unit::Kilobytes, "Data"),
    gauge("VmStk", Unit::Kilobytes, "Stack"),
    gauge("VmExe", Unit::Kilobytes, "Program text"),
    gauge("VmLib", Unit::Kilobytes, "Shared libraries"),
    gauge("VmSwap", Unit::Kilobytes, "Swapped out"),
    counter(
        "voluntary_ctxt_switches",
        Unit::Count,
        "Times it gave up the CPU",
    ),
    counter(
        "nonvoluntary_ctxt_switches",
        Unit::Count,
        "Times it lost the CPU",
    ),
];

const LABELS: &[&str] = &["comm", "state", "cmdline", "cgroup", "container"];

/// The process or thread id: the last number in the name.
pub fn id_of(name: &[u8]) -> u64 {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    scan::number(&name[name.len() - digits..]).unwrap_or(0)
}

/// The process id: the first number in the name.
pub fn pid_of(name: &[u8]) -> u64 {
    scan::number(&name[..scan::digit_run(name)]).unwrap_or(0)
}

/// Returns true if the name is that of a thread.
pub fn is_thread(name: &[u8]) -> bool {
    name.contains(&b'/')
}

/// Removes the values of private columns from a row; the kernel's name for the process stays.
pub fn forget_private(row: &mut Row) {
    for label in [CMDLINE, CGROUP, CONTAINER] {
        if let Some(text) = row.labels.get_mut(label) {
            text.clear();
        }
    }
    if let Some(uid) = row.values.get_mut(UID) {
        *uid = MISSING;
    }
}

/// The pid of the parent; for a thread, its process.
fn parent(cells: &Cells) -> f64 {
    if is_thread(cells.name) {
        pid_of(cells.name) as f64
    } else {
        cells.now[PPID]
    }
}

/// The pid of the parent, if it is known.
pub fn parent_of(cells: &Cells) -> Option<f64> {
    Some(parent(cells)).filter(|parent| !parent.is_nan())
}

/// Memory in RAM. `status` is exact but may be older than `stat`, which is approximate since the kernel adds up in
/// batches of 64 pages for each CPU and kind. So `status` is used if `stat` confirms it within that error.
fn rss(cells: &Cells) -> f64 {
    let page_kb = cells.context.page_size() / 1024.0;
    let (exact, rough) = (cells.now[VM_RSS], cells.now[RSS] * page_kb);
    let slack = 3.0 * 64.0 * page_kb * cells.context.cpus() as f64;
    if exact.is_nan() || (rough - exact).abs() > slack {
        rough
    } else {
        exact
    }
}

/// Fields that can be summed over processes: time, faults, I/O, memory.
pub const SUMMED: &[usize] = &[
    MINFLT,
    MAJFLT,
    UTIME,
    STIME,
    CUTIME,
    CSTIME,
    VSIZE,
    RSS,
    RCHAR,
    WCHAR,
    SYSCR,
    SYSCW,
    READ_BYTES,
    WRITE_BYTES,
    CANCELLED,
    VM_SIZE,
    VM_LCK,
    VM_RSS,
    VM_DATA,
    VM_STK,
    VM_EXE,
    VM_LIB,
    VM_SWAP,
    VOLUNTARY,
    INVOLUNTARY,
];

/// Fields of I/O in bytes.
pub const BYTES_OF_IO: [usize; 5] = [RCHAR, WCHAR, READ_BYTES, WRITE_BYTES, CANCELLED];

/// Puts the memory in RAM into a single field of `now`, a copy
/// of the values, so that several processes can be added.
pub fn settle_memory(cells: &Cells, now: &mut [f64]) {
    now[VM_RSS] = rss(cells);
    now[RSS] = f64::NAN;
}

fn ticks(cells: &Cells) -> f64 {
    cells.delta[UTIME] + cells.delta[STIME]
}

/// A size in `status`, which kernel threads lack.
fn vm(cells: &Cells, field: usize) -> f64 {
    cells.now[field]
}

fn priority(cells: &Cells, out: &mut Vec<u8>) {
    let priority = cells.now[PRIORITY];
    if priority.is_nan() {
        return;
    }
    if priority < 0.0 {
        out.extend_from_slice(b"RT");
    } else {
        scan::put_number(out, priority as u64, 0, b' ');
    }
}

fn user(cells: &Cells, out: &mut Vec<u8>) {
    let uid = cells.now[UID];
    if uid.is_nan() {
        return;
    }
    match cells.context.get(&format!("uid.{}", uid as u64)) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => scan::put_number(out, uid as u64, 0, b' '),
    }
}

/// The command line with blanks between its words, or the kernel's name if it is empty.
fn command(cells: &Cells, out: &mut Vec<u8>) {
    let words = cells.labels[CMDLINE].trim_ascii_end();
    let words = &words[..words.len() - words.iter().rev().take_while(|&&b| b == 0).count()];
    match words {
        [] => out.extend_from_slice(&cells.labels[COMM]),
        _ => out.extend(words.iter().map(|&b| if b == 0 { b' ' } else { b })),
    }
}

/// The first word of the command line, or the kernel's name if it is empty.
fn program(cells: &Cells, out: &mut Vec<u8>) {
    let words = &cells.labels[CMDLINE];
    let end = words
        .iter()
        .position(|&b| b == 0 || b == b' ')
        .unwrap_or(words.len());
    match end {
        0 => out.extend_from_slice(&cells.labels[COMM]),
        _ => out.extend_from_slice(&words[..end]),
    }
}

/// The path in lines of `N:controllers:path`: that of the unified hierarchy, else that of systemd's own, else the
/// longest, since controllers that were not set up by hand are at the root.
fn cgroup_path(text: &[u8]) -> &[u8] {
    let lines = || scan::lines(text).filter_map(cgroup_line);
    let of = |wanted: &[u8]| lines().find(|(hierarchy, _)| *hierarchy == wanted);
    let longest = || lines().reduce(|a, b| if b.1.len() > a.1.len() { b } else { a });
    of(b"")
        .or_else(|| of(b"name=systemd"))
        .or_else(longest)
        .map_or(&[], |(_, path)| path)
}

/// A fact of the container around a process.
fn container_fact<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut facts = scan::lines(text).filter_map(|line| line.strip_prefix(key));
    Some(facts.next()?.trim_ascii())
}

/// The values of all facts of the container around a process: its runtime, name, image, pod and namespace.
pub fn container_facts(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let values = scan::lines(text).filter_map(|line| line.splitn(2, |&b| b == b'\t').nth(1));
    values.map(|value| value.trim_ascii())
}

/// Controllers and path of a line; the path may contain colons.
fn cgroup_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = line.splitn(3, |&b| b == b':');
    let _number = parts.next()?;
    Some((parts.next()?, parts.next()?))
}

/// Kilobytes a second of a field in bytes.
fn kb(cells: &Cells, field: usize) -> f64 {
    cells.rate(field) / 1024.0
}

const fn size(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Kilobytes, help, value)
}

const fn traffic(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::KilobytesPerSecond, help, value)
}

const fn rate(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

const DETAIL: &[Column] = &[
    number("pid", Unit::None, "Process id; of a thread its own", |c| {
        id_of(c.name) as f64
    }),
    text("thread", "`+` for a thread", |c, out| {
        out.extend(is_thread(c.name).then_some(b'+'))
    }),
    text("user", "User name where known, else the number", user).private(),
    number("uid", Unit::None, "User id", |c| c.now[UID]).private(),
    text("priority", "Priority, RT for real time", priority),
    number("prio", Unit::None, "Priority; negative: real time", |c| {
        c.now[PRIORITY]
    }),
    number(
        "ppid",
        Unit::None,
        "Process id of the parent; of a thread its process",
        parent,
    ),
    number("threads", Unit::Count, "Threads besides the first", |c| {
        c.now[THREADS] - 1.0
    }),
    text(
        "state",
        "R running, S sleeping, D waiting for a disk, Z ended, T stopped, I idle",
        |c, out| out.extend_from_slice(&c.labels[STATE]),
    ),
    size("vsz", "Address space", |c| {
        if c.now[VSIZE].is_nan() {
            vm(c, VM_SIZE)
        } else {
            (c.now[VSIZE] / 1024.0).floor()
        }
    }),
    size("locked", "Locked", |c| vm(c, VM_LCK)),
    size("rss", "Memory in RAM", rss),
    size("data", "Data", |c| vm(c, VM_DATA)),
    size("stack", "Stack", |c| vm(c, VM_STK)),
    size("text", "Program text", |c| vm(c, VM_EXE)),
    size("lib", "Shared libraries", |c| vm(c, VM_LIB)),
    size("swap", "Swapped out", |c| vm(c, VM_SWAP)),
    number("cpu", Unit::None, "CPU it ran on last", |c| {
        c.now[PROCESSOR]
    }),
    number(
        "syst",
        Unit::Seconds,
        "CPU time in the kernel in the interval",
        |c| c.delta[STIME] / c.context.hz(),
    ),
    number(
        "usrt",
        Unit::Seconds,
        "CPU time in user mode in the interval",
        |c| c.delta[UTIME] / c.context.hz(),
    ),
    number("pct", Unit::Percent, "CPU time, of one CPU", |c| {
        100.0 * ticks(c) / c.context.hz() / c.elapsed
    }),
    number("accum", Unit::Seconds, "CPU time since birth", |c| {
        (c.now[UTIME] + c.now[STIME]) / c.context.hz()
    }),
    number(
        "accum_children",
        Unit::Seconds,
        "The same with that of children that ended",
        |c| (c.now[UTIME] + c.now[STIME] + c.now[CUTIME] + c.now[CSTIME]) / c.context.hz(),
    ),
    traffic("rkb", "Read from disks", |c| kb(c, READ_BYTES)),
    traffic("wkb", "Written to disks", |c| kb(c, WRITE_BYTES)),
    traffic("rkbc", "Read by system calls", |c| kb(c, RCHAR)),
    traffic("wkbc", "Written by system calls", |c| kb(c, WCHAR)),
    rate("rsys", "Read system calls", |c| c.rate(SYSCR)),
    rate("wsys", "Write system calls", |c| c.rate(SYSCW)),
    traffic("cncl", "Written but deleted before it got to a disk", |c| {
        kb(c, CANCELLED)
    }),
    rate("vctx", "Times it gave up the CPU", |c| c.rate(VOLUNTARY)),
    rate("nctx", "Times it lost the CPU", |c| c.rate(INVOLUNTARY)),
    rate("majf", "Page faults that read", |c| c.rate(MAJFLT)),
    rate("minf", "Page faults that read nothing", |c| c.rate(MINFLT)),
    number(
        "majf_total",
        Unit::Count,
        "Page faults that read, since birth",
        |c| c.now[MAJFLT],
    ),
    number(
        "minf_total",
        Unit::Count,
        "Page faults that read nothing, since birth",
        |c| c.now[MINFLT],
    ),
    text("comm", "The kernel's name for it", |c, out| {
        out.extend_from_slice(&c.labels[COMM])
    }),
    text("program", "First word of the command line", program).private(),
    text("command", "Command line", command).private(),
    text("cgroup", "Path of its control group", |c, out| {
        out.extend_from_slice(cgroup_path(&c.labels[CGROUP]))
    })
    .private(),
    text(
        "container",
        "Name of the container around it, or POD/NAME",
        |c, out| {
            let text = &c.labels[CONTAINER];
            let pod = container_fact(text, b"pod:").filter(|pod| !pod.is_empty());
            for part in pod.into_iter().flat_map(|pod| [pod, b"/"]) {
                out.extend_from_slice(part);
            }
            out.extend_from_slice(container_fact(text, b"name:").unwrap_or_default());
        },
    )
    .private(),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    place("PID", "pid", Form::Whole),
    place("User", "user", Form::Text),
    place("PR", "priority", Form::Text),
    place("PPID", "ppid", Form::Whole),
    place("THRD", "threads", Form::Whole),
    place("S", "state", Form::Text),
    place("VmSize", "vsz", Form::Whole),
    place("VmLck", "locked", Form::Whole),
    place("VmRSS", "rss", Form::Whole),
    place("VmData", "data", Form::Whole),
    place("VmStk", "stack", Form::Whole),
    place("VmExe", "text", Form::Whole),
    place("VmLib", "lib", Form::Whole),
    place("CPU", "cpu", Form::Whole),
    place("SysT", "syst", Form::Two),
    place("UsrT", "usrt", Form::Two),
    place("PCT", "pct", Form::Whole),
    place("AccumT", "accum", Form::Clock),
    place("RKB", "rkb", Form::Whole),
    place("WKB", "wkb", Form::Whole),
    place("RKBC", "rkbc", Form::Whole),
    place("WKBC", "wkbc", Form::Whole),
    place("RSYS", "rsys", Form::Whole),
    place("WSYS", "wsys", Form::Whole),
    place("CNCL", "cncl", Form::Whole),
    place("MajF", "majf", Form::Whole),
    place("MinF", "minf", Form::Whole),
    place("Command", "command", Form::Text),
];

/// Heads and row with `--procopts i`.
pub const IO: (&str, &str) = (
    " PID  User      PPID S  SysT  UsrT Pct  AccuTime   RKB   WKB  RKBC  WKBC  RSys  WSys  Cncl Command",
    "{pid:5d}{thread:-1s} {user:-8s8} {ppid:5d} {state:1s} {syst:5.2} {usrt:5.2} {pct:3d} {accum:9t} {rkb:5u} {wkb:5u} {rkbc:5u} {wkbc:5u} {rsys:5u} {wsys:5u} {cncl:5u} {program:s}",
);

/// Heads and row with `--procopts m`.
pub const MEMORY: (&str, &str) = (
    " PID  User     S VmSize  VmLck  VmRSS VmData  VmStk  VmExe  VmLib  VmSwp MajF MinF Command",
    "{pid:5d}{thread:-1s} {user:-8s8} {state:1s} {vsz:6k} {locked:6k} {rss:6k} {data:6k} {stack:6k} {text:6k} {lib:6k} {swap:6k} {majf:4c} {minf:4c} {program:s}",
);

/// Heads and row with `--procopts x`.
pub const SWITCHES: (&str, &str) = (
    " PID  User     PR  PPID THRD S   VSZ   RSS CP  SysT  UsrT Pct  AccuTime  RKB  WKB VCtx NCtx MajF MinF Command",
    "{pid:5d}{thread:-1s} {user:-8s8} {priority:2s} {ppid:5d} {threads:4d} {state:1s} {vsz:5k4} {rss:5k4} {cpu:2d} {syst:5.2} {usrt:5.2} {pct:3d} {accum:9t} {rkb:4u} {wkb:4u} {vctx:4u} {nctx:4u} {majf:4c} {minf:4c} {program:s}",
);

/// The processes.
pub static PROCESS: Subsystem = Subsystem {
    letter: 'z',
    name: "process",
    help: "CPU, memory, I/O and faults of processes and threads",
    sources: &[
        kind::PID_STAT,
        kind::PID_IO,
        kind::PID_STATUS,
        kind::PID_CMDLINE,
        kind::PID_CGROUP,
        kind::PID_CONTAINER,
        kind::TID_STAT,
        kind::TID_IO,
        kind::TID_STATUS,
    ],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: LABELS,
    layout,
    fills: None,
    summary: Summary::None,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
    columns: &[],
    detail: DETAIL,
    born: Some(STARTTIME),
    unused: Unused::Shown,
    text: Text {
        brief: Lines::NONE,
        verbose: Lines::NONE,
        detail: Lines {
            title: "PROCESS SUMMARY (counters are {rate})",
            heads: &[
                " PID  User     PR  PPID THRD S   VSZ   RSS CP  SysT  UsrT Pct  AccuTime  RKB  WKB MajF MinF Command",
            ],
            row: "{pid:5d}{thread:-1s} {user:-8s8} {priority:2s} {ppid:5d} {threads:4d} {state:1s} {vsz:5k4} {rss:5k4} {cpu:2d} {syst:5.2} {usrt:5.2} {pct:3d} {accum:9t} {rkb:4u} {wkb:4u} {majf:4c} {minf:4c} {program:s}",
        },
    },
    plot: Plot {
        tag: "",
        order: 6,
        file: "prc",
        summary: &[],
        detail: PLOT_DETAIL,
        shape: Shape::Long,
    },
    exposed: Exposed::NONE,
};

/// Positions of a process's fields in one of its files.
pub(super) fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let row = match kind {
        kind::PID_STAT | kind::TID_STAT => stat(template),
        kind::PID_IO | kind::TID_IO => io(template),
        kind::PID_STATUS | kind::TID_STATUS => status(template),
        kind::PID_CGROUP => word(template, CGROUP),
        kind::PID_CONTAINER => word(template, CONTAINER),
        _ => word(template, CMDLINE),
    };
    let rows = row
        .into_iter()
        .map(|row| RowLayout {
            counted: true,
            ..row
        })
        .collect();
    Layout {
        rows,
        ..Layout::default()
    }
}

/// Interprets `1234 (comm) S 1 ...`: field n of proc(5) is the (n - 4)th number after the state.
fn stat(template: &Template) -> Option<RowLayout> {
    const NUMBERS: [(usize, usize); 13] = [
        (4, PPID),
        (10, MINFLT),
        (12, MAJFLT),
        (14, UTIME),
        (15, STIME),
        (16, CUTIME),
        (17, CSTIME),
        (18, PRIORITY),
        (20, THREADS),
        (22, STARTTIME),
        (23, VSIZE),
        (24, RSS),
        (39, PROCESSOR),
    ];
    let is_word = |slot: usize| {
        matches!(
            template.slots().get(slot).map(|s| s.class),
            Some(Class::Word(_))
        )
    };
    let comm = (0..template.len()).find(|&slot| is_word(slot))?;
    let state = comm + 1;
    if !is_word(state) {
        return None;
    }
    let line = template.lines().into_iter().next()?;
    let after = line.iter().position(|piece| *piece == Piece::Slot(state))? + 1;
    let cell = |&(n, field): &(usize, usize)| {
        let from = value(line.get(after + n - 4)?)?;
        Some(Cell { field, from })
    };
    let cells: Vec<Cell> = NUMBERS.iter().filter_map(cell).collect();
    let key = cells.iter().filter_map(|cell| match cell {
        Cell {
            field: STARTTIME,
            from: From::Slot(slot),
        } => Some(*slot),
        _ => None,
    });
    Some(RowLayout {
        key: key.collect(),
        labels: vec![Label::of_slot(COMM, comm), Label::of_slot(STATE, state)],
        cells,
        ..RowLayout::default()
    })
}

fn keyed(template: &Template, keys: &[(&str, usize)]) -> Option<RowLayout> {
    let mut cells = Vec::new();
    for line in template.lines() {
        let [Piece::Text(key), number, ..] = &line[..] else {
            continue;
        };
        let key = key.strip_suffix(b":").unwrap_or(key);
        let known = keys.iter().find(|(name, _)| name.as_bytes() == key);
        if let (Some(&(_, field)), Some(from)) = (known, value(number)) {
            cells.push(Cell { field, from });
        }
    }
    Some(RowLayout {
        cells,
        ..RowLayout::default()
    })
}

fn io(template: &Template) -> Option<RowLayout> {
    let keys = FIELDS[RCHAR..=CANCELLED]
        .iter()
        .zip(RCHAR..)
        .map(|(field, n)| (field.name, n));
    keyed(template, &keys.collect::<Vec<_>>())
}

fn status(template: &Template) -> Option<RowLayout> {
    let keys = FIELDS[TGID..]
        .iter()
        .zip(TGID..)
        .map(|(field, n)| (field.name, n));
    keyed(template, &keys.collect::<Vec<_>>())
}

/// A row whose text is one word.
fn word(template: &Template, label: usize) -> Option<RowLayout> {
    (!template.is_empty()).then(|| RowLayout {
        labels: vec![Label::of_slot(label, 0)],
        ..RowLayout::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::Interpreter;
    use crate::source;
    use kymo_base::reading::{MISSING, Reading};
    use kymo_base::track::Tracks;

    fn read(texts: &[(u8, &str, &str)]) -> Reading {
        let mut tracks = Tracks::default();
        for (slot, (kind, name, text)) in texts.iter().enumerate() {
            let grammar = source::of(*kind).expect("a known kind").grammar;
            tracks
                .get_mut(*kind)
                .put_text(slot, name.as_bytes(), text.as_bytes(), grammar);
        }
        let mut reading = Reading::default();
        assert!(Interpreter::new(&PROCESS).read(&tracks, &Context::default(), &mut reading));
        reading
    }

    #[test]
    fn a_row_of_four_files() {
        let reading = read(&[
            (
                kind::PID_STAT,
                "7",
                "7 (a) b) (c) S 1 7 7 0 -1 4194304 11 0 12 0 13 14 0 0 -2 0 3 0 99 4096000 55 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
            ),
            (
                kind::PID_STAT,
                "8",
                "8 (x) R 1 7 7 0 -1 0 1 0 2 0 3 4 0 0 20 0 1 0 99 0 5\n",
            ),
            (
                kind::PID_STATUS,
                "8",
                "Name:\tx\nUmask:\t0022\nTgid:\t8\nUid:\t1000\t1000\t0\t0\nvoluntary_ctxt_switches:\t332\n",
            ),
            (
                kind::PID_IO,
                "8",
                "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n",
            ),
            (kind::PID_CMDLINE, "7", "sleep\x0045\x00"),
            (kind::PID_CMDLINE, "9", "gone"),
            (kind::PID_CGROUP, "7", "0::/a.slice/b:c\n"),
            (kind::PID_CONTAINER, "7", "runtime:\tdocker\nname:\tweb\n"),
            (
                kind::TID_STAT,
                "7/task/77",
                "77 (t) S 1 7 7 0 -1 0 1 0 2 0 3 4 0 0 20 0 1 0 99 0 5\n",
            ),
        ]);
        let names: Vec<_> = reading.rows.iter().map(|row| &row.name[..]).collect();
        assert_eq!(names, [&b"7"[..], b"8", b"7/task/77"]);
        let [a, b, _] = &reading.rows[..] else {
            panic!("three rows")
        };
        assert_eq!(
            a.labels,
            [
                &b"a) b) (c"[..],
                b"S",
                b"sleep\x0045\x00",
                b"0::/a.slice/b:c\n",
                b"runtime:\tdocker\nname:\tweb\n"
            ]
        );
        assert_eq!(
            (
                a.key,
                a.values[PRIORITY] as i64,
                a.values[PROCESSOR],
                a.values[RCHAR]
            ),
            (99, -2, 1, MISSING)
        );
        assert_eq!(
            (
                a.values[MINFLT],
                a.values[MAJFLT],
                a.values[UTIME],
                a.values[STIME]
            ),
            (11, 12, 13, 14)
        );
        assert_eq!(
            (
                b.values[UID],
                b.values[VOLUNTARY],
                b.values[CANCELLED],
                b.values[RSS]
            ),
            (1000, 332, 7, 5)
        );
    }

    #[test]
    fn one_path_of_many_hierarchies() {
        for (text, path) in [
            ("0::/user.slice/a:b\n", "/user.slice/a:b"),
            (
                "4:memory:/longer/than/others\n1:name=systemd:/init.scope\n0::/\n",
                "/",
            ),
            (
                "4:memory:/longer/than/others\n1:name=systemd:/init.scope\n",
                "/init.scope",
            ),
            ("4:memory:/a\n3:cpu,cpuacct:/b/c\n2:pids:/d/e\n", "/b/c"),
            ("4:memory:/a", "/a"),
            ("4:memory\n:\n\nx", ""),
            ("", ""),
        ] {
            assert_eq!(cgroup_path(text.as_bytes()), path.as_bytes(), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_stat() {
        for text in ["", "7", "7 (a", "7 (a)", "7 (a) ", ") (", "()", "7 (a) S"] {
            let reading = read(&[(kind::PID_STAT, "7", text)]);
            assert!(
                reading.rows.iter().all(|row| row.values[UTIME] == MISSING),
                "{text}"
            );
        }
    }
}
