//! `g` and `G`: control groups, version 2, version 1 or both: CPU, memory, I/O, pressure and processes of each group as a
//! tree. A group's numbers include all groups below. Numbers that a controller lacks are missing, not 0.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Sum, Summary, Text, Unused, at, field, number,
    place, plot, rate, text,
};
use crate::layout::{Cell, From, Label, Layout, RowLayout};
use crate::source::kind;

// Labels of a row.
const RUNTIME: usize = 0;
const NAME: usize = 1;
const IMAGE: usize = 2;
const POD: usize = 3;
const NAMESPACE: usize = 4;
const LABELS: &[&str] = &["runtime", "name", "image", "pod", "namespace"];

const GROUPS: usize = at(FIELDS, "groups");
const USAGE: usize = at(FIELDS, "usage_usec");
const USER: usize = at(FIELDS, "user_usec");
const SYSTEM: usize = at(FIELDS, "system_usec");
const PERIODS: usize = at(FIELDS, "nr_periods");
const THROTTLED_PERIODS: usize = at(FIELDS, "nr_throttled");
const THROTTLED: usize = at(FIELDS, "throttled_usec");
const MEMORY: usize = at(FIELDS, "memory");
const MEMORY_MAX: usize = at(FIELDS, "memory_max");
const SWAP: usize = at(FIELDS, "swap");
const ANON: usize = at(FIELDS, "anon");
const FILE: usize = at(FIELDS, "file");
const KERNEL: usize = at(FIELDS, "kernel");
const SHMEM: usize = at(FIELDS, "shmem");
const DIRTY: usize = at(FIELDS, "file_dirty");
const FAULTS: usize = at(FIELDS, "pgfault");
const MAJOR_FAULTS: usize = at(FIELDS, "pgmajfault");
const LOW: usize = at(FIELDS, "low");
const HIGH: usize = at(FIELDS, "high");
const MAX: usize = at(FIELDS, "max");
const OOM: usize = at(FIELDS, "oom");
const OOM_KILL: usize = at(FIELDS, "oom_kill");
const READ_BYTES: usize = at(FIELDS, "rbytes");
const WRITE_BYTES: usize = at(FIELDS, "wbytes");
const READS: usize = at(FIELDS, "rios");
const WRITES: usize = at(FIELDS, "wios");
const CPU_SOME: usize = at(FIELDS, "cpu_some");
const CPU_FULL: usize = at(FIELDS, "cpu_full");
const MEMORY_SOME: usize = at(FIELDS, "memory_some");
const MEMORY_FULL: usize = at(FIELDS, "memory_full");
const IO_SOME: usize = at(FIELDS, "io_some");
const IO_FULL: usize = at(FIELDS, "io_full");
const PIDS: usize = at(FIELDS, "pids");
const PIDS_MAX: usize = at(FIELDS, "pids_max");

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

const fn time(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Microseconds, help)
}

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

/// A counter summed over devices; it decreases when a device is removed.
const fn summed(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::CounterMayStepBack, unit, help)
}

/// Fields by their names in version 2; version 1 has most of them under other names and in other units.
const FIELDS: &[Field] = &[
    gauge("groups", Unit::Count, "The group and all below it"),
    time("usage_usec", "CPU time"),
    time("user_usec", "CPU time in user mode"),
    time("system_usec", "CPU time in the kernel"),
    counter(
        "nr_periods",
        Unit::Count,
        "Periods in which its CPU time was limited",
    ),
    counter(
        "nr_throttled",
        Unit::Count,
        "Periods in which it used up its CPU time",
    ),
    time("throttled_usec", "Time it was kept from running"),
    gauge("memory", Unit::Bytes, "Memory, with that of files"),
    gauge("memory_max", Unit::Bytes, "Memory it may have"),
    gauge("swap", Unit::Bytes, "Swapped out"),
    gauge("anon", Unit::Bytes, "Memory of no file"),
    gauge("file", Unit::Bytes, "Memory of files"),
    gauge("kernel", Unit::Bytes, "Memory of the kernel"),
    gauge("shmem", Unit::Bytes, "Shared memory and tmpfs"),
    gauge("file_dirty", Unit::Bytes, "Memory of files to be written"),
    counter("pgfault", Unit::Count, "Page faults"),
    counter("pgmajfault", Unit::Count, "Page faults that read"),
    counter(
        "low",
        Unit::Count,
        "Times memory was taken from it below its low mark",
    ),
    counter("high", Unit::Count, "Times it was over its high mark"),
    counter("max", Unit::Count, "Times it was at its limit of memory"),
    counter("oom", Unit::Count, "Times it had no memory left"),
    counter("oom_kill", Unit::Count, "Processes killed for memory"),
    summed("rbytes", Unit::Bytes, "Read from disks"),
    summed("wbytes", Unit::Bytes, "Written to disks"),
    summed("rios", Unit::Count, "Reads from disks"),
    summed("wios", Unit::Count, "Writes to disks"),
    time("cpu_some", "Some task waited for a CPU"),
    time("cpu_full", "All tasks waited for a CPU"),
    time("memory_some", "Some task waited for memory"),
    time("memory_full", "All tasks waited for memory"),
    time("io_some", "Some task waited for I/O"),
    time("io_full", "All tasks waited for I/O"),
    gauge("pids", Unit::Count, "Processes and threads"),
    gauge("pids_max", Unit::Count, "Processes and threads it may have"),
];

/// A value in a text: its file, its key, the field, and the unit of the value.
type Known = (&'static str, &'static str, usize, Given);

/// Unit of a value.
#[derive(Clone, Copy)]
enum Given {
    /// The unit of the field.
    Same,
    /// Nanoseconds, for a field in microseconds.
    Nanoseconds,
    /// Clock ticks, for a field in microseconds.
    Ticks,
}

/// The values of a text and their fields. If both versions have a
/// value, the first in the text counts, which is that of version 2.
const KNOWN: &[Known] = &[
    ("cpu.stat", "usage_usec", USAGE, Given::Same),
    ("cpu.stat", "user_usec", USER, Given::Same),
    ("cpu.stat", "system_usec", SYSTEM, Given::Same),
    ("cpu.stat", "nr_periods", PERIODS, Given::Same),
    ("cpu.stat", "nr_throttled", THROTTLED_PERIODS, Given::Same),
    ("cpu.stat", "throttled_usec", THROTTLED, Given::Same),
    ("cpu.stat", "throttled_time", THROTTLED, Given::Nanoseconds),
    ("cpuacct.usage", "", USAGE, Given::Nanoseconds),
    ("cpuacct.stat", "user", USER, Given::Ticks),
    ("cpuacct.stat", "system", SYSTEM, Given::Ticks),
    ("memory.current", "", MEMORY, Given::Same),
    ("memory.usage_in_bytes", "", MEMORY, Given::Same),
    ("memory.max", "", MEMORY_MAX, Given::Same),
    ("memory.limit_in_bytes", "", MEMORY_MAX, Given::Same),
    ("memory.swap.current", "", SWAP, Given::Same),
    ("memory.failcnt", "", MAX, Given::Same),
    ("memory.oom_control", "oom_kill", OOM_KILL, Given::Same),
    ("memory.stat", "anon", ANON, Given::Same),
    ("memory.stat", "file", FILE, Given::Same),
    ("memory.stat", "kernel", KERNEL, Given::Same),
    ("memory.stat", "shmem", SHMEM, Given::Same),
    ("memory.stat", "file_dirty", DIRTY, Given::Same),
    ("memory.stat", "pgfault", FAULTS, Given::Same),
    ("memory.stat", "pgmajfault", MAJOR_FAULTS, Given::Same),
    ("memory.stat", "total_rss", ANON, Given::Same),
    ("memory.stat", "total_cache", FILE, Given::Same),
    ("memory.stat", "total_shmem", SHMEM, Given::Same),
    ("memory.stat", "total_dirty", DIRTY, Given::Same),
    ("memory.stat", "total_swap", SWAP, Given::Same),
    ("memory.stat", "total_pgfault", FAULTS, Given::Same),
    ("memory.stat", "total_pgmajfault", MAJOR_FAULTS, Given::Same),
    ("memory.events", "low", LOW, Given::Same),
    ("memory.events", "high", HIGH, Given::Same),
    ("memory.events", "max", MAX, Given::Same),
    ("memory.events", "oom", OOM, Given::Same),
    ("memory.events", "oom_kill", OOM_KILL, Given::Same),
    ("io.stat", "rbytes", READ_BYTES, Given::Same),
    ("io.stat", "wbytes", WRITE_BYTES, Given::Same),
    ("io.stat", "rios", READS, Given::Same),
    ("io.stat", "wios", WRITES, Given::Same),
    (
        "blkio.throttle.io_service_bytes",
        "Read",
        READ_BYTES,
        Given::Same,
    ),
    (
        "blkio.throttle.io_service_bytes",
        "Write",
        WRITE_BYTES,
        Given::Same,
    ),
    ("blkio.throttle.io_serviced", "Read", READS, Given::Same),
    ("blkio.throttle.io_serviced", "Write", WRITES, Given::Same),
    ("cpu.pressure", "some", CPU_SOME, Given::Same),
    ("cpu.pressure", "full", CPU_FULL, Given::Same),
    ("memory.pressure", "some", MEMORY_SOME, Given::Same),
    ("memory.pressure", "full", MEMORY_FULL, Given::Same),
    ("io.pressure", "some", IO_SOME, Given::Same),
    ("io.pressure", "full", IO_FULL, Given::Same),
    ("pids.current", "", PIDS, Given::Same),
    ("pids.max", "", PIDS_MAX, Given::Same),
];

/// Microseconds as a share of the interval.
fn share<const N: usize>(cells: &Cells) -> f64 {
    cells.delta[N] / cells.elapsed / 10_000.0
}

fn kb<const N: usize>(cells: &Cells) -> f64 {
    cells.now[N] / 1024.0
}

fn kb_rate<const N: usize>(cells: &Cells) -> f64 {
    cells.rate(N) / 1024.0
}

/// The largest known share of time in which some task waited.
fn pressed(cells: &Cells) -> f64 {
    [CPU_SOME, MEMORY_SOME, IO_SOME]
        .map(|field| cells.delta[field] / cells.elapsed / 10_000.0)
        .into_iter()
        .fold(f64::NAN, f64::max)
}

const fn percent(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Percent, help, value)
}

const fn size(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Kilobytes, help, value)
}

const fn traffic(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::KilobytesPerSecond, help, value)
}

const fn events(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

/// Columns that a group and the sum have in common.
const SAID: [Column; 30] = [
    number(
        "groups",
        Unit::Count,
        "Groups, with those below",
        super::now::<GROUPS>,
    ),
    percent("cpu", "CPU time, of one CPU", share::<USAGE>),
    percent(
        "cpu_user",
        "CPU time in user mode, of one CPU",
        share::<USER>,
    ),
    percent(
        "cpu_system",
        "CPU time in the kernel, of one CPU",
        share::<SYSTEM>,
    ),
    percent(
        "throttled",
        "Time it was kept from running, of one CPU",
        share::<THROTTLED>,
    ),
    events(
        "throttled_periods",
        "Periods in which it used up its CPU time",
        rate::<THROTTLED_PERIODS>,
    ),
    size("memory_kb", "Memory, with that of files", kb::<MEMORY>),
    size("anon_kb", "Memory of no file", kb::<ANON>),
    size("file_kb", "Memory of files", kb::<FILE>),
    size("kernel_kb", "Memory of the kernel", kb::<KERNEL>),
    size("shmem_kb", "Shared memory and tmpfs", kb::<SHMEM>),
    size("dirty_kb", "Memory of files to be written", kb::<DIRTY>),
    size("swap_kb", "Swapped out", kb::<SWAP>),
    events("faults", "Page faults", rate::<FAULTS>),
    events(
        "major_faults",
        "Page faults that read",
        rate::<MAJOR_FAULTS>,
    ),
    events(
        "low",
        "Times memory was taken from it below its low mark",
        rate::<LOW>,
    ),
    events("high", "Times it was over its high mark", rate::<HIGH>),
    events("max", "Times it was at its limit of memory", rate::<MAX>),
    events("oom", "Times it had no memory left", rate::<OOM>),
    events("oom_kills", "Processes killed for memory", rate::<OOM_KILL>),
    traffic("read_kb", "Read from disks", kb_rate::<READ_BYTES>),
    traffic("write_kb", "Written to disks", kb_rate::<WRITE_BYTES>),
    events("reads", "Reads from disks", rate::<READS>),
    events("writes", "Writes to disks", rate::<WRITES>),
    percent(
        "cpu_some",
        "Time some task waited for a CPU",
        share::<CPU_SOME>,
    ),
    percent(
        "memory_some",
        "Time some task waited for memory",
        share::<MEMORY_SOME>,
    ),
    percent(
        "memory_full",
        "Time all tasks waited for memory",
        share::<MEMORY_FULL>,
    ),
    percent("io_some", "Time some task waited for I/O", share::<IO_SOME>),
    percent("io_full", "Time all tasks waited for I/O", share::<IO_FULL>),
    number(
        "pids",
        Unit::Count,
        "Processes and threads",
        super::now::<PIDS>,
    ),
];

/// Columns of the sum: in addition, the largest pressure of the groups that have none below, and the name of that group.
const COLUMNS: &[Column] = &{
    let mut columns = [SAID[0]; SAID.len() + 2];
    let mut at = 0;
    while at < SAID.len() {
        columns[at] = SAID[at];
        at += 1;
    }
    columns[at] = percent(
        "pressed",
        "Greatest time that some task of a group waited for a CPU, memory or I/O",
        pressed,
    );
    columns[at + 1] = text("most_pressed", "The group that it was", |c, out| {
        out.extend_from_slice(c.name)
    })
    .private();
    columns
};

/// Texts that the runtime of a group keeps.
const NAMES: [Column; 6] = [
    text(
        "runtime",
        "Runtime that made the group: docker, podman, containerd, cri-o, systemd ...",
        label::<RUNTIME>,
    ),
    text(
        "name",
        "Name of the container, or unit of systemd",
        label::<NAME>,
    ),
    text("image", "Image of the container", label::<IMAGE>),
    text("pod", "Pod around the container", label::<POD>),
    text("namespace", "Namespace of the pod", label::<NAMESPACE>),
    text(
        "container",
        "Name of the container, or POD/NAME; empty for other groups",
        container,
    ),
];

fn label<const N: usize>(cells: &Cells, out: &mut Vec<u8>) {
    out.extend_from_slice(cells.labels.get(N).map_or(&[][..], |text| text));
}

/// Appends `NAME` of a container, `POD/NAME` if it is in a pod, or `POD/` for the pod itself.
fn container(cells: &Cells, out: &mut Vec<u8>) {
    let text_of = |label: usize| cells.labels.get(label).map_or(&[][..], |text| text);
    if text_of(RUNTIME).is_empty() || text_of(RUNTIME) == b"systemd" {
        return;
    }
    out.extend_from_slice(text_of(POD));
    if !text_of(POD).is_empty() {
        out.push(b'/');
    }
    out.extend_from_slice(text_of(NAME));
}

const DETAIL: &[Column] = &{
    let mut columns = [SAID[0]; SAID.len() + 11];
    columns[0] = text(
        "group",
        "Path of the group from where its hierarchy is mounted",
        |c, out| out.extend_from_slice(c.name),
    );
    let mut at = 0;
    while at < SAID.len() {
        columns[at + 1] = SAID[at];
        at += 1;
    }
    columns[at + 1] = percent(
        "cpu_full",
        "Time all tasks waited for a CPU",
        share::<CPU_FULL>,
    );
    columns[at + 2] = size("memory_max_kb", "Memory it may have", kb::<MEMORY_MAX>);
    columns[at + 3] = percent("memory_percent", "Memory, of what it may have", |c| {
        100.0 * c.now[MEMORY] / c.now[MEMORY_MAX]
    });
    columns[at + 4] = number(
        "pids_max",
        Unit::Count,
        "Processes and threads it may have",
        super::now::<PIDS_MAX>,
    );
    let mut label = 0;
    while label < NAMES.len() {
        columns[at + 5 + label] = NAMES[label];
        label += 1;
    }
    // Path and name of a group show users and their programs.
    let mut at = 0;
    while at < columns.len() {
        columns[at] = columns[at].private();
        at += 1;
    }
    columns
};

const PLOT: &[PlotColumn] = &[
    plot("Groups", "groups"),
    plot("Cpu%", "cpu"),
    plot("MemKB", "memory_kb"),
    plot("ReadKB", "read_kb"),
    plot("WriteKB", "write_kb"),
    plot("Pids", "pids"),
    plot("Psi%", "pressed"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    place("Group", "group", Form::Text),
    plot("Cpu%", "cpu"),
    plot("User%", "cpu_user"),
    plot("Sys%", "cpu_system"),
    plot("Thrtl%", "throttled"),
    plot("MemKB", "memory_kb"),
    plot("AnonKB", "anon_kb"),
    plot("FileKB", "file_kb"),
    plot("SwapKB", "swap_kb"),
    plot("ReadKB", "read_kb"),
    plot("WriteKB", "write_kb"),
    plot("Reads", "reads"),
    plot("Writes", "writes"),
    plot("CpuSome%", "cpu_some"),
    plot("MemSome%", "memory_some"),
    plot("MemFull%", "memory_full"),
    plot("IoSome%", "io_some"),
    plot("IoFull%", "io_full"),
    plot("Pids", "pids"),
];

/// cAdvisor's names, and its labels with the group's path, container and pod.
const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[
        exposed::MetricLabel::name("id"),
        exposed::MetricLabel::text::<NAME>("name").if_known(),
        exposed::MetricLabel::text::<IMAGE>("image").if_known(),
        exposed::MetricLabel::text::<POD>("pod").if_known(),
        exposed::MetricLabel::text::<NAMESPACE>("namespace").if_known(),
    ],
    shows: |_| true,
    families: &[
        exposed::counter("container_cpu_usage_seconds_total", USAGE),
        exposed::counter("container_cpu_user_seconds_total", USER),
        exposed::counter("container_cpu_system_seconds_total", SYSTEM),
        exposed::counter("container_cpu_cfs_periods_total", PERIODS),
        exposed::counter(
            "container_cpu_cfs_throttled_periods_total",
            THROTTLED_PERIODS,
        ),
        exposed::counter("container_cpu_cfs_throttled_seconds_total", THROTTLED),
        exposed::gauge("container_memory_usage_bytes", MEMORY),
        exposed::gauge("container_spec_memory_limit_bytes", MEMORY_MAX),
        exposed::gauge("container_memory_swap", SWAP),
        exposed::gauge("container_memory_rss", ANON),
        exposed::gauge("container_memory_cache", FILE),
        exposed::gauge("container_memory_kernel_usage", KERNEL),
        exposed::counter("container_oom_events_total", OOM_KILL),
        exposed::counter("container_fs_reads_bytes_total", READ_BYTES),
        exposed::counter("container_fs_writes_bytes_total", WRITE_BYTES),
        exposed::counter("container_fs_reads_total", READS),
        exposed::counter("container_fs_writes_total", WRITES),
        exposed::counter("container_pressure_cpu_waiting_seconds_total", CPU_SOME),
        exposed::counter("container_pressure_cpu_stalled_seconds_total", CPU_FULL),
        exposed::counter(
            "container_pressure_memory_waiting_seconds_total",
            MEMORY_SOME,
        ),
        exposed::counter(
            "container_pressure_memory_stalled_seconds_total",
            MEMORY_FULL,
        ),
        exposed::counter("container_pressure_io_waiting_seconds_total", IO_SOME),
        exposed::counter("container_pressure_io_stalled_seconds_total", IO_FULL),
        exposed::gauge("container_threads", PIDS),
        exposed::gauge("container_threads_max", PIDS_MAX),
    ],
}]);

/// Control groups.
pub static CGROUPS: Subsystem = Subsystem {
    letter: 'g',
    name: "cgroups",
    help: "CPU, memory, I/O, pressure and processes of control groups",
    sources: &[kind::CGROUP, kind::CGROUP_NAME],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: LABELS,
    layout,
    fills: None,
    summary: Summary::Rows,
    sum: Some(Sum {
        peaks: &[
            CPU_SOME,
            CPU_FULL,
            MEMORY_SOME,
            MEMORY_FULL,
            IO_SOME,
            IO_FULL,
        ],
        // If tasks of a group wait, its parents wait too, so only groups without any below count.
        among: |now| now[GROUPS] == 1.0,
        otherwise: b"/",
    }),
    ceiling: None,
    count: None,
    in_service: true,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<------------cgroups------------>",
            heads: &["Grps  Cpu%   Mem KBRd KBWr Psi% "],
            row: "{groups:4c} {cpu:5d} {memory_kb:5k4} {read_kb:4u} {write_kb:4u} {pressed:4d} ",
        },
        verbose: Lines {
            title: "CGROUP SUMMARY ({rate})",
            heads: &[
                "                                                                                            <----time waited---->",
                "Groups   Cpu%  User%   Sys% Thrtl%    Mem   Anon   File   Swap   KBRead  KBWrit  Pids Kills  Cpu%  Mem%   IO% Most pressed",
            ],
            row: "{groups:6d} {cpu:6.1} {cpu_user:6.1} {cpu_system:6.1} {throttled:6.1} {memory_kb:6k5} {anon_kb:6k5} {file_kb:6k5} {swap_kb:6k5} {read_kb:8d} {write_kb:7d} {pids:5c} {oom_kills:5d} {cpu_some:5.1} {memory_some:5.1} {io_some:5.1} {most_pressed:s}",
        },
        detail: Lines {
            title: "CGROUP STATISTICS ({rate})",
            heads: &[
                "                                                                            <----time waited---->",
                "  Cpu%  User%   Sys% Thrtl%    Mem   Anon   File    Max   KBRead  KBWrit  Pids  Cpu%  Mem%   IO% Group",
            ],
            row: "{cpu:6.1} {cpu_user:6.1} {cpu_system:6.1} {throttled:6.1} {memory_kb:6k5} {anon_kb:6k5} {file_kb:6k5} {memory_max_kb:6k5} {read_kb:8d} {write_kb:7d} {pids:5c} {cpu_some:5.1} {memory_some:5.1} {io_some:5.1} {branch:s}",
        },
    },
    plot: Plot {
        tag: "CG",
        order: 17,
        file: "cg",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Long,
    },
    exposed: EXPOSED,
};

/// Interprets a text: `group top 3 1234`, with the position in the tree, the number of groups it includes and the inode
/// number; then a line for each file, such as `memory.stat anon 1 file 2` or `memory.current 3`.
fn layout(source: u8, template: &Template, context: &Context) -> Layout {
    if source == kind::CGROUP_NAME {
        return names(template);
    }
    let mut row = RowLayout::default();
    for line in template.lines() {
        match &line[..] {
            [
                Piece::Text(b"group"),
                Piece::Text(level),
                Piece::Slot(groups),
                inode,
                ..,
            ] => {
                row.counted = matches!(*level, b"top" | b"alone");
                row.cells.push(Cell {
                    field: GROUPS,
                    from: From::Slot(*groups),
                });
                if let Piece::Slot(inode) = inode {
                    row.key.push(*inode);
                }
            }
            [Piece::Text(file), Piece::Slot(slot)] => put(&mut row, file, b"", *slot, context),
            [Piece::Text(file), pairs @ ..] => {
                for pair in pairs.chunks_exact(2) {
                    if let [Piece::Text(key), Piece::Slot(slot)] = pair {
                        put(&mut row, file, key, *slot, context);
                    }
                }
            }
            _ => {}
        }
    }
    Layout {
        rows: vec![row],
        ..Layout::default()
    }
}

/// Interprets the text of a group's names: lines such as `name:<tab>web`.
fn names(template: &Template) -> Layout {
    let mut row = RowLayout::default();
    for line in template.lines() {
        if let [Piece::Text(key), Piece::Slot(slot)] = line[..] {
            let key = key.strip_suffix(b":").unwrap_or(key);
            let label = LABELS.iter().position(|label| label.as_bytes() == key);
            row.labels
                .extend(label.map(|label| Label::of_slot(label, slot)));
        }
    }
    Layout {
        rows: vec![row],
        ..Layout::default()
    }
}

/// Adds the position of a field, unless it already has one.
fn put(row: &mut RowLayout, file: &[u8], key: &[u8], slot: usize, context: &Context) {
    let known = KNOWN
        .iter()
        .find(|known| known.0.as_bytes() == file && known.1.as_bytes() == key);
    let Some(&(_, _, field, scale)) = known else {
        return;
    };
    if row.cells.iter().any(|cell| cell.field == field) {
        return;
    }
    let from = match scale {
        Given::Same => From::Slot(slot),
        Given::Nanoseconds => From::Scaled(slot, 1, 1000),
        Given::Ticks => From::Scaled(slot, 1_000_000, context.ticks_a_second()),
    };
    row.cells.push(Cell { field, from });
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    fn values(text: &str) -> Vec<(&'static str, u64)> {
        let reading = read(&CGROUPS, &[(kind::CGROUP, text)], &Context::default());
        let values = reading.rows[0].values.iter().zip(FIELDS);
        let known = values.filter(|(value, _)| **value != MISSING);
        known.map(|(&value, field)| (field.name, value)).collect()
    }

    #[test]
    fn both_versions_in_the_same_words_and_what_is_not_said_is_missing() {
        for (text, expect) in [
            ("group top 2 77\n", &[("groups", 2)][..]),
            (
                "group top 2 77\ncpu.stat usage_usec 5 user_usec 3 system_usec 2 nr_throttled 1 throttled_usec 9\nmemory.current 4096\nmemory.stat anon 100 file 200 pgfault 7\nmemory.events low 1 high 2 max 3 oom 4 oom_kill 5\nio.stat rbytes 6 wbytes 7 rios 8 wios 9\ncpu.pressure some 11 full 12\npids.current 3\n",
                &[
                    ("groups", 2),
                    ("usage_usec", 5),
                    ("user_usec", 3),
                    ("system_usec", 2),
                    ("nr_throttled", 1),
                    ("throttled_usec", 9),
                    ("memory", 4096),
                    ("anon", 100),
                    ("file", 200),
                    ("pgfault", 7),
                    ("low", 1),
                    ("high", 2),
                    ("max", 3),
                    ("oom", 4),
                    ("oom_kill", 5),
                    ("rbytes", 6),
                    ("wbytes", 7),
                    ("rios", 8),
                    ("wios", 9),
                    ("cpu_some", 11),
                    ("cpu_full", 12),
                    ("pids", 3),
                ],
            ),
            (
                "group below 1 77\ncpu.stat nr_periods 1 nr_throttled 2 throttled_time 3000\ncpuacct.usage 5999\ncpuacct.stat user 7 system 8\nmemory.usage_in_bytes 10\nmemory.limit_in_bytes 20\nmemory.failcnt 2\nmemory.stat total_cache 1 total_rss 2 total_swap 3\nmemory.oom_control oom_kill 1\nblkio.throttle.io_service_bytes Read 4 Write 5\nblkio.throttle.io_serviced Read 6 Write 7\n",
                &[
                    ("groups", 1),
                    ("usage_usec", 5),
                    ("user_usec", 70_000),
                    ("system_usec", 80_000),
                    ("nr_periods", 1),
                    ("nr_throttled", 2),
                    ("throttled_usec", 3),
                    ("memory", 10),
                    ("memory_max", 20),
                    ("swap", 3),
                    ("anon", 2),
                    ("file", 1),
                    ("max", 2),
                    ("oom_kill", 1),
                    ("rbytes", 4),
                    ("wbytes", 5),
                    ("rios", 6),
                    ("wios", 7),
                ],
            ),
            // If both versions are mounted, version 2 counts.
            (
                "group top 1 7\ncpu.stat usage_usec 5\ncpuacct.usage 9000\n",
                &[("groups", 1), ("usage_usec", 5)],
            ),
        ] {
            assert_eq!(values(text), expect, "{text}");
        }
    }

    #[test]
    fn a_group_has_the_names_that_its_runtime_keeps() {
        let group = "group top 1 77\nmemory.current 4096\n";
        for (text, labels, container) in [
            ("", ["", "", "", "", ""], ""),
            (
                "runtime:\tdocker\nname:\tweb\nimage:\tnginx:1.25\n",
                ["docker", "web", "nginx:1.25", "", ""],
                "web",
            ),
            (
                "runtime:\tcontainerd\nname:\t7\nimage:\t1 2\npod:\tp-1\nnamespace:\t007\n",
                ["containerd", "7", "1 2", "p-1", "007"],
                "p-1/7",
            ),
            (
                "runtime:\tsystemd\nname:\ta.service\nodd:\tx\n",
                ["systemd", "a.service", "", "", ""],
                "",
            ),
        ] {
            let texts = [(kind::CGROUP, group), (kind::CGROUP_NAME, text)];
            let reading = read(&CGROUPS, &texts, &Context::default());
            let row = &reading.rows[0];
            let texts: Vec<_> = row
                .labels
                .iter()
                .map(|label| String::from_utf8_lossy(label))
                .collect();
            assert_eq!(texts, labels, "{text}");
            assert_eq!(row.values[MEMORY], 4096);
            let mut shown = Vec::new();
            let values = vec![f64::NAN; FIELDS.len()];
            let cells = Cells {
                now: &values,
                delta: &values,
                secs: 1.0,
                elapsed: 1.0,
                name: b"/docker/a",
                labels: &row.labels,
                context: &Context::default(),
            };
            super::container(&cells, &mut shown);
            assert_eq!(String::from_utf8_lossy(&shown), container, "{text}");
        }
    }

    #[test]
    fn what_is_right_below_the_root_counts_and_another_inode_is_another_group() {
        for (level, counts) in [
            ("root", false),
            ("alone", true),
            ("top", true),
            ("below", false),
        ] {
            let text = format!("group {level} 1 77\n");
            let reading = read(&CGROUPS, &[(kind::CGROUP, &text)], &Context::default());
            assert_eq!(
                (reading.rows[0].counted, reading.rows[0].key),
                (counts, 77),
                "{level}"
            );
        }
    }
}
