//! `W`: used space of the mounted file systems, in bytes and
//! files. One that hangs is "not read", and delays no other.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Family, Scale};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number, numbers,
    plot, ratio, rest, text,
};
use crate::layout::{Label, Layout, RowLayout, Word};
use crate::mounts;
use crate::source::kind;

const UNIT: usize = at(FIELDS, "frsize");
const BLOCKS: usize = at(FIELDS, "blocks");
const FREE: usize = at(FIELDS, "bfree");
const AVAILABLE: usize = at(FIELDS, "bavail");
const FILES: usize = at(FIELDS, "files");
const FREE_FILES: usize = at(FIELDS, "ffree");
const READ_ONLY: usize = at(FIELDS, "read_only");
// Labels of a row.
const TYPE: usize = 0;
const SOURCE: usize = 1;

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

/// Fields by the names in statvfs(3).
const FIELDS: &[Field] = &[
    gauge("frsize", Unit::Bytes, "Bytes of a block"),
    gauge("blocks", Unit::Count, "Blocks there are"),
    gauge("bfree", Unit::Count, "Blocks that are free"),
    gauge(
        "bavail",
        Unit::Count,
        "Blocks that are free for all, not for root alone",
    ),
    gauge(
        "files",
        Unit::Count,
        "Files there may be; 0: as many as there is room for",
    ),
    gauge("ffree", Unit::Count, "Of these, free"),
    gauge("read_only", Unit::None, "1 if nothing can be written"),
];

fn kb(cells: &Cells, blocks: f64) -> f64 {
    blocks * cells.now[UNIT] / 1024.0
}

/// Used space as a share of the used space and the space that all users may have, as in df.
fn used_percent(cells: &Cells) -> f64 {
    let used = rest(cells.now[BLOCKS], cells.now[FREE]);
    ratio(100.0 * used, used + cells.now[AVAILABLE])
}

const DETAIL: &[Column] = &[
    text(
        "mount",
        "Where it is mounted, a blank as `\\040`",
        |c, out| out.extend_from_slice(c.name),
    ),
    text("type", "Kind of file system", |c, out| {
        out.extend_from_slice(&c.labels[TYPE])
    }),
    text("source", "Device or server it is on", |c, out| {
        out.extend_from_slice(&c.labels[SOURCE])
    }),
    number("size_kb", Unit::Kilobytes, "Size", |c| kb(c, c.now[BLOCKS])),
    number("used_kb", Unit::Kilobytes, "Used", |c| {
        kb(c, rest(c.now[BLOCKS], c.now[FREE]))
    }),
    number(
        "free_kb",
        Unit::Kilobytes,
        "Free, with what only root may use",
        |c| kb(c, c.now[FREE]),
    ),
    number("available_kb", Unit::Kilobytes, "Free for all", |c| {
        kb(c, c.now[AVAILABLE])
    }),
    number(
        "used_percent",
        Unit::Percent,
        "Used of what is used and what all may use",
        used_percent,
    ),
    number("files", Unit::Count, "Files there may be", |c| c.now[FILES]),
    number("files_used", Unit::Count, "Files there are", |c| {
        rest(c.now[FILES], c.now[FREE_FILES])
    }),
    number(
        "files_percent",
        Unit::Percent,
        "Files there are of those there may be",
        |c| ratio(100.0 * rest(c.now[FILES], c.now[FREE_FILES]), c.now[FILES]),
    ),
    number(
        "grows_kb",
        Unit::KilobytesPerSecond,
        "By how much what is used grows",
        |c| -c.rate(FREE) * c.now[UNIT] / 1024.0,
    ),
    number(
        "read_only",
        Unit::None,
        "1 if nothing can be written",
        |c| c.now[READ_ONLY],
    ),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("SizeKB", "size_kb"),
    plot("UsedKB", "used_kb"),
    plot("AvailKB", "available_kb"),
    plot("Used%", "used_percent"),
    plot("Files%", "files_percent"),
];

const fn bytes(name: &'static str, help: &'static str, blocks: usize) -> Family {
    exposed::gauge(name, blocks)
        .scaled(Scale::TimesField(UNIT))
        .meant(help)
}

/// Metrics of every recorded file system; node_exporter leaves out more, by its switches.
const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[
        exposed::MetricLabel::text::<SOURCE>("device"),
        exposed::MetricLabel::text::<TYPE>("fstype"),
        exposed::MetricLabel {
            name: "mountpoint",
            may_lack: false,
            put: |row, out| out.extend(mounts::unescaped(&row.name)),
        },
    ],
    shows: |_| true,
    families: &[
        bytes("node_filesystem_size_bytes", "Size", BLOCKS),
        bytes(
            "node_filesystem_free_bytes",
            "Free, with what only root may use",
            FREE,
        ),
        bytes("node_filesystem_avail_bytes", "Free for all", AVAILABLE),
        exposed::gauge("node_filesystem_files", FILES),
        exposed::gauge("node_filesystem_files_free", FREE_FILES),
        exposed::gauge("node_filesystem_readonly", READ_ONLY),
    ],
}]);

/// Mounted file systems.
pub static FILESYSTEMS: Subsystem = Subsystem {
    letter: 'w',
    name: "filesystems",
    help: "How full the mounted file systems are",
    sources: &[kind::FILESYSTEM],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &["type", "source"],
    layout,
    fills: None,
    summary: Summary::None,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
    columns: &[],
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines::NONE,
        verbose: Lines::NONE,
        detail: Lines {
            title: "FILE SYSTEMS",
            heads: &[
                "Mounted on               Type        Size   Used  Avail Use%  Files IUse% Source",
            ],
            row: "{mount:-24s24} {type:-9s9} {size_kb:6k5} {used_kb:6k5} {available_kb:6k5} {used_percent:4d} {files_used:6c}  {files_percent:4d} {source:s}",
        },
    },
    plot: Plot {
        tag: "FS",
        order: 16,
        file: "fs",
        summary: &[],
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// Interprets a text such as `space 4096 100 50 40 10 5 0` and `type ext4 /dev/vda1`.
fn layout(_: u8, template: &Template, _: &Context) -> Layout {
    let mut row = RowLayout {
        counted: true,
        ..RowLayout::default()
    };
    for line in template.lines() {
        match &line[..] {
            [Piece::Text(b"space"), pieces @ ..] => row.cells = numbers(pieces, UNIT, FIELDS.len()),
            [Piece::Text(b"type"), Piece::Text(kind), source @ ..] => {
                let words = source.iter().filter_map(|piece| match piece {
                    Piece::Text(text) => Some(*text),
                    Piece::Slot(_) => None,
                });
                let source = words.collect::<Vec<_>>().join(&b' ');
                let fixed = |label, text: Vec<u8>| Label {
                    label,
                    word: Word::Fixed(text),
                };
                row.labels = vec![fixed(TYPE, kind.to_vec()), fixed(SOURCE, source)];
            }
            _ => {}
        }
    }
    Layout {
        rows: vec![row],
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn room_and_what_it_is() {
        let text = "space 4096 100 50 40 10 5 1\ntype nfs4 10.0.0.1:/export\n";
        let reading = read(
            &FILESYSTEMS,
            &[(kind::FILESYSTEM, text)],
            &Context::default(),
        );
        let row = &reading.rows[0];
        assert_eq!(row.values, [4096, 100, 50, 40, 10, 5, 1]);
        assert_eq!(row.labels, [b"nfs4".to_vec(), b"10.0.0.1:/export".to_vec()]);
    }
}
