//! `i`: directory entries, open files and inodes of the kernel, from /proc/sys/fs, and its limits of processes and its entropy,
//! from /proc/sys/kernel. All are gauges.

use kymo_base::column::Column;
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::Template;

use super::exposed::{self, Exposed};
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

const fn gauge(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Count, help)
}

/// The numbers of the three files, in order, then those of the bundle by name.
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

/// Directory entries, files and inodes.
pub static INODES_AND_FILES: Subsystem = Subsystem {
    letter: 'i',
    name: "inodes",
    help: "Directory entries, open files and inodes",
    sources: &[
        kind::DENTRY_STATE,
        kind::INODE_NR,
        kind::FILE_NR,
        kind::LIMITS,
    ],
    beside: None,
    spread: false,
    globals: GLOBALS,
    fields: &[],
    labels: &[],
    layout,
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
    exposed: Exposed::machine(&[
        exposed::gauge("node_filefd_allocated", FILES),
        exposed::gauge("node_filefd_maximum", FILES_MAX),
        exposed::gauge("node_processes_max_threads", at(GLOBALS, "threads-max")),
        exposed::gauge("node_processes_max_processes", at(GLOBALS, "pid_max")),
        exposed::gauge("node_entropy_available_bits", at(GLOBALS, "entropy_avail")),
        exposed::gauge("node_entropy_pool_size_bits", at(GLOBALS, "poolsize")),
    ]),
};

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let (first, count) = match kind {
        kind::DENTRY_STATE => (DENTRIES, 5),
        kind::INODE_NR => (INODES, 2),
        kind::LIMITS => return bundled(template, GLOBALS),
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
    use kymo_base::reading::MISSING;

    #[test]
    fn limits_have_names() {
        let text = "threads-max 63612\npid_max 32768\npoolsize 256\n";
        let limits = [(kind::LIMITS, text)];
        let reading = read(&INODES_AND_FILES, &limits, &Context::default());
        assert_eq!(
            reading.globals[FILES_MAX + 1..],
            [63_612, 32_768, MISSING, 256]
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
            reading.globals,
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
