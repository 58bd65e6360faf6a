//! `i`: directory entries, open files and inodes of the kernel, from /proc/sys/fs, its limits of processes and its
//! entropy, from /proc/sys/kernel, processes by state, how its clock is kept, and the recorder's own process. All are
//! gauges: a number that is read at scans alone repeats its last value between them.

use kymo_base::column::Column;
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::Template;

use super::exposed::{self, Exposed, Family, Parts, Scale};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, bundled, field,
    now, number, numbers, place, plot, ratio, rest,
};
use crate::layout::Layout;
use crate::source::kind;

const DENTRIES: usize = at(GLOBALS, "nr_dentry");
const INODES: usize = at(GLOBALS, "nr_inodes");
const FREE_INODES: usize = at(GLOBALS, "nr_free_inodes");
const FILES: usize = at(GLOBALS, "nr_file");
const FILES_MAX: usize = at(GLOBALS, "file-max");
const TASK_STATES: usize = at(GLOBALS, "tasks_running");

const fn gauge(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Count, help)
}

const fn measure(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

/// The numbers of the three files, in order, then those of bundles and digests by name.
const GLOBALS: &[Field] = &[
    gauge("nr_dentry", "Directory entries cached"),
    gauge("nr_unused", "Of these, not in use"),
    gauge(
        "age_limit",
        "Seconds after which unused entries may be taken back",
    ),
    gauge("want_pages", "Pages the memory manager asked back"),
    gauge(
        "nr_negative",
        "Unused entries of names that are no files (since 5.0)",
    ),
    gauge("nr_inodes", "Inodes allocated"),
    gauge("nr_free_inodes", "Of these, free"),
    gauge("nr_file", "Open files allocated"),
    gauge("nr_free_file", "Free ones; 0 since 2.6"),
    gauge("file-max", "Most open files there may be"),
    gauge("threads-max", "Most threads there may be"),
    gauge(
        "pid_max",
        "Most processes and threads there may be by their numbers",
    ),
    gauge("entropy_avail", "Bits of entropy that the kernel has"),
    gauge("poolsize", "Bits of entropy that it can have"),
    gauge(
        "hung_task_detect_count",
        "Tasks that the kernel found hanging since it booted",
    ),
    gauge("tasks_processes", "Processes there are"),
    gauge("tasks_threads", "Threads of all processes"),
    gauge("tasks_running", "Processes that run or are ready to"),
    gauge("tasks_sleeping", "Processes that sleep"),
    gauge("tasks_disk", "Processes in uninterruptible sleep"),
    gauge("tasks_stopped", "Processes that a signal stopped"),
    gauge("tasks_traced", "Processes that a debugger stopped"),
    gauge(
        "tasks_zombie",
        "Processes that ended and wait for their parent",
    ),
    gauge("tasks_dead", "Processes that are being removed"),
    gauge("tasks_idle", "Threads of the kernel without work"),
    gauge("tasks_parked", "Threads of the kernel that are parked"),
    measure(
        "clock_synchronized",
        Unit::None,
        "1 if a program keeps the clock with a reference",
    ),
    measure(
        "clock_offset",
        Unit::Nanoseconds,
        "Distance of the clock from its reference",
    ),
    measure(
        "clock_frequency",
        Unit::None,
        "Correction of the clock's frequency, in 2^-16 parts a million",
    ),
    measure(
        "clock_error_max",
        Unit::Microseconds,
        "Largest possible error of the clock",
    ),
    measure(
        "clock_error",
        Unit::Microseconds,
        "Estimated error of the clock",
    ),
    measure("clock_status", Unit::None, "Bits of the clock's status"),
    measure(
        "clock_constant",
        Unit::None,
        "Time constant of the loop that follows the reference",
    ),
    measure(
        "clock_tick",
        Unit::Microseconds,
        "Time between two ticks of the clock",
    ),
    measure("clock_tai", Unit::Seconds, "Seconds from UTC to TAI"),
    measure(
        "pps_frequency",
        Unit::None,
        "Frequency of the pulse per second, in 2^-16 parts a million",
    ),
    measure(
        "pps_jitter",
        Unit::Nanoseconds,
        "Jitter of the pulse per second",
    ),
    measure(
        "pps_shift",
        Unit::None,
        "Binary logarithm of the interval of the pulse per second",
    ),
    measure(
        "pps_stability",
        Unit::None,
        "Stability of the pulse per second, in 2^-16 parts a million",
    ),
    gauge("pps_jitters", "Pulses per second with too much jitter"),
    gauge("pps_calibrations", "Calibrations by the pulse per second"),
    gauge("pps_errors", "Calibrations by the pulse that failed"),
    gauge(
        "pps_unstable",
        "Pulses per second with too little stability",
    ),
    measure(
        "recorder_cpu",
        Unit::Microseconds,
        "CPU time of the process that records",
    ),
    measure(
        "recorder_virtual",
        Unit::Pages,
        "Address space of the process that records",
    ),
    measure(
        "recorder_resident",
        Unit::Pages,
        "Memory in RAM of the process that records",
    ),
    measure(
        "recorder_virtual_max",
        Unit::Bytes,
        "Largest address space of the process that records; 2^63 - 1: no limit",
    ),
    gauge("recorder_files", "Open files of the process that records"),
    gauge(
        "recorder_files_max",
        "Most open files of the process that records",
    ),
    measure(
        "recorder_started",
        Unit::Milliseconds,
        "When the process that records started, since 1970",
    ),
];

const fn count(
    name: &'static str,
    help: &'static str,
    value: fn(&kymo_base::column::Cells) -> f64,
) -> Column {
    number(name, Unit::Count, help, value)
}

const COLUMNS: &[Column] = &[
    count("dentries", "Directory entries cached", now::<DENTRIES>),
    count(
        "dentries_unused",
        "Of these, not in use",
        now::<{ at(GLOBALS, "nr_unused") }>,
    ),
    count(
        "dentries_negative",
        "Unused entries of names that are no files",
        now::<{ at(GLOBALS, "nr_negative") }>,
    ),
    count("files", "Open files", now::<FILES>),
    count(
        "files_most",
        "Most open files there may be",
        now::<FILES_MAX>,
    ),
    number("files_percent", Unit::Percent, "files of files_most", |c| {
        ratio(100.0 * c.now[FILES], c.now[FILES_MAX])
    }),
    count("inodes", "Inodes in use", |c| {
        rest(c.now[INODES], c.now[FREE_INODES])
    }),
    count(
        "inodes_free",
        "Inodes allocated and free",
        now::<FREE_INODES>,
    ),
];

const PLOT: &[PlotColumn] = &[
    place("NumDentry", "dentries", Form::Whole),
    place("openFiles", "files", Form::Whole),
    plot("MaxFile%", "files_percent"),
    place("used", "inodes", Form::Whole),
];

const fn f(name: &str) -> usize {
    at(GLOBALS, name)
}

/// Divisor of the kernel's parts a million.
const PARTS: f64 = 65_536.0 * 1_000_000.0;

const fn micros(name: &'static str, field: usize) -> Family {
    exposed::gauge(name, field).scaled(Scale::Over(1_000_000.0))
}

const fn nanos(name: &'static str, field: usize) -> Family {
    exposed::gauge(name, field).scaled(Scale::Over(1_000_000_000.0))
}

/// Values of the label `state`, in the order of the fields.
const STATES: &[&str] = &["R", "S", "D", "T", "t", "Z", "X", "I", "P"];

const EXPOSED: &[Family] = &[
    exposed::gauge("node_filefd_allocated", FILES),
    exposed::gauge("node_filefd_maximum", FILES_MAX),
    exposed::gauge("node_processes_max_threads", f("threads-max")),
    exposed::gauge("node_processes_max_processes", f("pid_max")),
    exposed::gauge("node_entropy_available_bits", f("entropy_avail")),
    exposed::gauge("node_entropy_pool_size_bits", f("poolsize")),
    exposed::gauge("node_kernel_hung_tasks", f("hung_task_detect_count")),
    exposed::gauge("node_processes_pids", f("tasks_processes")),
    exposed::gauge("node_processes_threads", f("tasks_threads")),
    exposed::gauge("node_processes_state", TASK_STATES)
        .meant("Processes by state")
        .of_each(Parts::Named {
            label: "state",
            values: STATES,
        }),
    exposed::gauge("node_timex_sync_status", f("clock_synchronized")),
    nanos("node_timex_offset_seconds", f("clock_offset")),
    exposed::gauge(
        "node_timex_frequency_adjustment_ratio",
        f("clock_frequency"),
    )
    .scaled(Scale::OnePlus(PARTS))
    .meant("Frequency of the clock by its correction, of 1"),
    micros("node_timex_maxerror_seconds", f("clock_error_max")),
    micros("node_timex_estimated_error_seconds", f("clock_error")),
    exposed::gauge("node_timex_status", f("clock_status")),
    exposed::gauge("node_timex_loop_time_constant", f("clock_constant")),
    micros("node_timex_tick_seconds", f("clock_tick")),
    exposed::gauge("node_timex_tai_offset_seconds", f("clock_tai")),
    exposed::gauge("node_timex_pps_frequency_hertz", f("pps_frequency"))
        .scaled(Scale::Over(PARTS))
        .meant("Frequency of the pulse per second"),
    nanos("node_timex_pps_jitter_seconds", f("pps_jitter")),
    exposed::gauge("node_timex_pps_shift_seconds", f("pps_shift")),
    exposed::gauge("node_timex_pps_stability_hertz", f("pps_stability"))
        .scaled(Scale::Over(PARTS))
        .meant("Stability of the pulse per second"),
    exposed::counter("node_timex_pps_jitter_total", f("pps_jitters")),
    exposed::counter("node_timex_pps_calibration_total", f("pps_calibrations")),
    exposed::counter("node_timex_pps_error_total", f("pps_errors")),
    exposed::counter("node_timex_pps_stability_exceeded_total", f("pps_unstable")),
    exposed::counter("process_cpu_seconds_total", f("recorder_cpu")),
    exposed::gauge("process_virtual_memory_bytes", f("recorder_virtual")),
    exposed::gauge("process_resident_memory_bytes", f("recorder_resident")),
    exposed::gauge(
        "process_virtual_memory_max_bytes",
        f("recorder_virtual_max"),
    ),
    exposed::gauge("process_open_fds", f("recorder_files")),
    exposed::gauge("process_max_fds", f("recorder_files_max")),
    exposed::gauge("process_start_time_seconds", f("recorder_started")).scaled(Scale::Over(1000.0)),
];

/// Directory entries, files and inodes.
pub static INODES_AND_FILES: Subsystem = Subsystem {
    letter: 'i',
    name: "inodes",
    help: "Directory entries, open files and inodes; limits, tasks and clock of the kernel",
    sources: &[
        kind::DENTRY_STATE,
        kind::INODE_NR,
        kind::FILE_NR,
        kind::LIMITS,
        kind::TASK_STATES,
        kind::CLOCK,
        kind::RECORDER,
    ],
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
    in_service: true,
    columns: COLUMNS,
    detail: &[],
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<----Files--->",
            heads: &["Handle Inodes "],
            row: "{files:6c} {inodes:6c} ",
        },
        verbose: Lines {
            title: "INODE SUMMARY",
            heads: &[
                "     Dentries       File Handles    Inodes",
                "  Number   Unused   Alloc  MaxPct   Number",
            ],
            row: "  {dentries:7c}  {dentries_unused:7c}  {files:6c}   {files_percent:5.2}   {inodes:6c}",
        },
        detail: Lines::NONE,
    },
    plot: Plot {
        tag: "INODE",
        order: 6,
        file: "inode",
        summary: PLOT,
        detail: &[],
        shape: Shape::Wide,
    },
    exposed: Exposed::machine(EXPOSED),
};

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let (first, count) = match kind {
        kind::DENTRY_STATE => (DENTRIES, 5),
        kind::INODE_NR => (INODES, 2),
        kind::LIMITS | kind::TASK_STATES | kind::CLOCK | kind::RECORDER => {
            return bundled(template, GLOBALS);
        }
        _ => (FILES, 3),
    };
    let lines = template.lines();
    let globals = lines.first().map(|line| numbers(line, first, count));
    Layout {
        globals: globals.unwrap_or_default(),
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use crate::digest::Digest;
    use kymo_base::reading::MISSING;
    use kymo_sys::kernel_file::Root;

    /// Values that node_exporter 1.5 gives for these numbers of the kernel.
    #[test]
    fn the_clock_in_seconds() {
        let text = "clock_offset 18446744073709551493\nclock_frequency 18446744073709486080\nclock_error_max 16000000\n\
            pps_stability 65536\n";
        let reading = read(
            &INODES_AND_FILES,
            &[(kind::CLOCK, text)],
            &Context::default(),
        );
        let value = |name: &str| {
            let family = EXPOSED.iter().find(|family| family.name == name);
            let family = family.expect("a metric");
            let raw = reading.globals[family.field];
            let field = &GLOBALS[family.field];
            family.scale.of(field, raw, &[], &Context::default())
        };
        for (name, expect) in [
            ("node_timex_offset_seconds", -123.0 / 1e9),
            ("node_timex_frequency_adjustment_ratio", 0.999_999),
            ("node_timex_maxerror_seconds", 16.0),
            ("node_timex_pps_stability_hertz", 1e-6),
        ] {
            assert_eq!(value(name), expect, "{name}");
        }
    }

    /// Each number that the digests of this machine have is a field.
    #[test]
    fn digests_have_fields() {
        let root = Root::open(std::path::Path::new("/")).expect("a root");
        for digest in [Digest::Clock, Digest::Recorder] {
            let mut text = Vec::new();
            digest.read(&root, "", &mut text).expect("a digest");
            let text = String::from_utf8(text).expect("a text");
            for line in text.lines() {
                let (name, number) = line.split_once(' ').expect("two words");
                assert!(number.parse::<u64>().is_ok(), "{line}");
                assert!(GLOBALS.iter().any(|field| field.name == name), "{line}");
            }
            assert!(text.lines().count() >= 6, "{text}");
        }
    }

    #[test]
    fn tasks_have_fields() {
        let text = "tasks_processes 9\ntasks_threads 12\ntasks_running 1\ntasks_parked 3\n";
        let texts = [(kind::TASK_STATES, text)];
        let reading = read(&INODES_AND_FILES, &texts, &Context::default());
        const M: u64 = MISSING;
        let first = at(GLOBALS, "tasks_processes");
        let expect = [9, 12, 1, M, M, M, M, M, M, M, 3];
        assert_eq!(reading.globals[first..][..expect.len()], expect);
    }

    #[test]
    fn limits_have_names() {
        let text = "threads-max 63612\npid_max 32768\npoolsize 256\n";
        let limits = [(kind::LIMITS, text)];
        let reading = read(&INODES_AND_FILES, &limits, &Context::default());
        assert_eq!(
            reading.globals[FILES_MAX + 1..][..5],
            [63_612, 32_768, MISSING, 256, MISSING]
        );
    }

    /// A kernel without a limit gives 2^63 - 1.
    #[test]
    fn three_files() {
        let reading = read(
            &INODES_AND_FILES,
            &[
                (kind::DENTRY_STATE, "285601\t283844\t45\t0\t93806\t0\n"),
                (kind::INODE_NR, "189707\t12\n"),
                (kind::FILE_NR, "1329\t0\t9223372036854775807\n"),
            ],
            &Context::default(),
        );
        assert_eq!(
            reading.globals[..14],
            [
                285_601,
                283_844,
                45,
                0,
                93_806,
                189_707,
                12,
                1329,
                0,
                (1 << 63) - 1,
                MISSING,
                MISSING,
                MISSING,
                MISSING,
            ]
        );
        let file = [(kind::FILE_NR, "7 0 100")];
        let reading = read(&INODES_AND_FILES, &file, &Context::default());
        assert_eq!(
            (reading.globals[DENTRIES], reading.globals[FILES]),
            (MISSING, 7)
        );
    }
}
