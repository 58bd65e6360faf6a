//! `y` and `Y`: the kernel's object caches, from /proc/slabinfo, which only root may read. A read takes the lock for
//! creating and removing caches, so it happens at the interval of process scans, as in collectl.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number,
    place, value,
};
use crate::layout::{Cell, From, Layout, RowLayout};
use crate::source::kind;

const OBJECTS_IN_USE: usize = at(FIELDS, "active_objs");
const OBJECT_SIZE: usize = at(FIELDS, "objsize");
const SLAB_OBJECTS: usize = at(FIELDS, "objperslab");
const OBJECTS: usize = at(FIELDS, "num_objs");
const PAGES_IN_USE: usize = at(FIELDS, "active_pages");
const PAGES: usize = at(FIELDS, "num_pages");
const IN_USE_BYTES: usize = at(FIELDS, "active_obj_bytes");
const OBJECT_BYTES: usize = at(FIELDS, "num_obj_bytes");
const SLABS_IN_USE: usize = at(FIELDS, "active_slabs");
const SLABS: usize = at(FIELDS, "num_slabs");
const CACHES_IN_USE: usize = at(FIELDS, "caches_in_use");
const CACHES: usize = at(FIELDS, "caches");

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

/// Fields by the kernel's names, and values computed for each row, so that they can be summed.
const FIELDS: &[Field] = &[
    gauge("active_objs", Unit::Count, "Objects in use"),
    gauge("num_objs", Unit::Count, "Objects there is room for"),
    gauge("objsize", Unit::Bytes, "Size of an object"),
    gauge("objperslab", Unit::Count, "Objects of a slab"),
    gauge("pagesperslab", Unit::Pages, "Pages of a slab"),
    gauge("active_slabs", Unit::Count, "Slabs with objects in use"),
    gauge("num_slabs", Unit::Count, "Slabs"),
    gauge(
        "active_obj_bytes",
        Unit::Bytes,
        "Objects in use × their size",
    ),
    gauge(
        "num_obj_bytes",
        Unit::Bytes,
        "Objects there is room for × their size",
    ),
    gauge("active_pages", Unit::Pages, "Pages of slabs in use"),
    gauge("num_pages", Unit::Pages, "Pages of all slabs"),
    gauge("caches_in_use", Unit::Count, "1 if the cache has slabs"),
    gauge("caches", Unit::Count, "1 for each cache"),
];

const fn size(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Bytes, help, value)
}

const fn count(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Count, help, value)
}

const IN_USE: [Column; 8] = [
    count("objects_in_use", "Objects in use", |c| {
        c.now[OBJECTS_IN_USE]
    }),
    size("objects_in_use_bytes", "Bytes of objects in use", |c| {
        c.now[IN_USE_BYTES]
    }),
    count("objects", "Objects there is room for", |c| c.now[OBJECTS]),
    size("objects_bytes", "Bytes of these objects", |c| {
        c.now[OBJECT_BYTES]
    }),
    count("slabs_in_use", "Slabs with objects in use", |c| {
        c.now[SLABS_IN_USE]
    }),
    size("slabs_in_use_bytes", "Bytes of slabs in use", |c| {
        c.now[PAGES_IN_USE] * c.context.page_size()
    }),
    count("slabs", "Slabs", |c| c.now[SLABS]),
    size("slabs_bytes", "Bytes of slabs", |c| {
        c.now[PAGES] * c.context.page_size()
    }),
];

const COLUMNS: &[Column] = &{
    let [a, b, c, d, e, f, g, h] = IN_USE;
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        count("caches_in_use", "Caches that have slabs", |c| {
            c.now[CACHES_IN_USE]
        }),
        count("caches", "Caches", |c| c.now[CACHES]),
    ]
};

/// Change of the size in bytes; 0 if the previous size is unknown.
fn change(cells: &Cells) -> f64 {
    let pages = cells.delta[PAGES];
    if pages.is_nan() && !cells.now[PAGES].is_nan() {
        return 0.0;
    }
    pages * cells.context.page_size()
}

fn change_percent(cells: &Cells) -> f64 {
    let (change, now) = (change(cells), cells.now[PAGES] * cells.context.page_size());
    super::ratio(100.0 * change, now - change)
}

const DETAIL: &[Column] = &{
    let [a, b, c, d, e, f, g, h] = IN_USE;
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        size(
            "change_bytes",
            "Change of the bytes of slabs in the interval",
            change,
        ),
        number(
            "change_percent",
            Unit::Percent,
            "The same in percent of what they were before",
            change_percent,
        ),
    ]
};

/// Columns of a cache for `--top`, two of which no other output has.
pub const TOP_COLUMNS: &[Column] = &{
    let [a, b, c, d, e, f, g, h] = IN_USE;
    let [.., change, percent] = DETAIL else {
        unreachable!()
    };
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        *change,
        *percent,
        size("object_size", "Size of an object", |c| c.now[OBJECT_SIZE]),
        count("slab_objects", "Objects of a slab", |c| c.now[SLAB_OBJECTS]),
    ]
};

/// Heads and row of `--top`.
pub const TOP: (&str, &str) = (
    "NumObj  ActObj  ObjSize  NumSlab  Obj/Slab  TotSize  TotChg  TotPct  Name",
    "{objects:7c6} {objects_in_use:7c6}  {object_size:7c6}  {slabs_in_use:7c6}   {slab_objects:7c6}  {slabs_bytes:7u4} {change_bytes:7u4}  {change_percent:6.1}  {name:s}",
);

const fn whole(head: &'static str, column: &'static str) -> PlotColumn {
    place(head, column, Form::Whole)
}

const PLOT: &[PlotColumn] = &[
    whole("ObjInUse", "objects_in_use"),
    whole("ObjInUseB", "objects_in_use_bytes"),
    whole("ObjAll", "objects"),
    whole("ObjAllB", "objects_bytes"),
    whole("InUse", "slabs_in_use"),
    whole("InUseB", "slabs_in_use_bytes"),
    whole("All", "slabs"),
    whole("AllB", "slabs_bytes"),
    whole("CacheInUse", "caches_in_use"),
    whole("CacheTotal", "caches"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    place("SlabName", "name", Form::Text),
    whole("ObjInUse", "objects_in_use"),
    whole("ObjInUseB", "objects_in_use_bytes"),
    whole("ObjAll", "objects"),
    whole("ObjAllB", "objects_bytes"),
    whole("SlabInUse", "slabs_in_use"),
    whole("SlabInUseB", "slabs_in_use_bytes"),
    whole("SlabAll", "slabs"),
    whole("SlabAllB", "slabs_bytes"),
    whole("SlabChg", "change_bytes"),
    whole("SlabPct", "change_percent"),
];

/// Names as in node_exporter's collector `slabinfo`.
const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[exposed::MetricLabel::name("slab")],
    shows: |_| true,
    families: &[
        exposed::gauge("node_slabinfo_active_objects", at(FIELDS, "active_objs")),
        exposed::gauge("node_slabinfo_objects", at(FIELDS, "num_objs")),
        exposed::gauge("node_slabinfo_object_size_bytes", at(FIELDS, "objsize")),
        exposed::gauge("node_slabinfo_objects_per_slab", at(FIELDS, "objperslab")),
        exposed::gauge("node_slabinfo_pages_per_slab", at(FIELDS, "pagesperslab")).raw(),
    ],
}]);

/// The slab caches.
pub static SLAB: Subsystem = Subsystem {
    letter: 'y',
    name: "slab",
    help: "The kernel's object caches; root only",
    sources: &[kind::SLABINFO],
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
    count: None,
    in_service: false,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines::NONE,
        verbose: Lines {
            title: "SLAB SUMMARY",
            heads: &[
                "<------------Objects------------><--------Slab Allocation-------><--Caches--->",
                "  InUse   Bytes    Alloc   Bytes   InUse   Bytes   Total   Bytes  InUse  Total",
            ],
            row: " {objects_in_use:7c} {objects_in_use_bytes:7u}  {objects:7c} {objects_bytes:7u}  {slabs_in_use:6c} {slabs_in_use_bytes:7u}  {slabs:6c} {slabs_bytes:7u} {caches_in_use:6c} {caches:6c}",
        },
        detail: Lines {
            title: "SLAB DETAIL",
            heads: &[
                "                           <-----------Objects----------><---------Slab Allocation------><---Change-->",
                "Name                       InUse   Bytes   Alloc   Bytes   InUse   Bytes   Total   Bytes   Diff    Pct",
            ],
            row: "{name:-25s25} {objects_in_use:7c6} {objects_in_use_bytes:7u}  {objects:6c} {objects_bytes:7u}  {slabs_in_use:6c} {slabs_in_use_bytes:7u}  {slabs:6c} {slabs_bytes:7u} {change_bytes:6u7} {change_percent:6.1}",
        },
    },
    plot: Plot {
        tag: "SLAB",
        order: 10,
        file: "slb",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Long,
    },
    exposed: EXPOSED,
};

fn layout(_: u8, template: &Template, _: &Context) -> Layout {
    Layout {
        rows: template
            .lines()
            .iter()
            .filter_map(|line| row(line))
            .collect(),
        ..Layout::default()
    }
}

/// Parses a line
/// `NAME active_objs num_objs objsize objperslab pagesperslab : tunables ... : slabdata active_slabs num_slabs ...`.
fn row(line: &[Piece]) -> Option<RowLayout> {
    let [Piece::Text(name), objects @ ..] = line else {
        return None;
    };
    let slabs = line
        .iter()
        .position(|piece| matches!(piece, Piece::Text(b"slabdata")))?;
    let objects = slots(objects)?;
    let [active_slabs, num_slabs] = slots(line.get(slabs + 1..)?)?;
    let [active_objs, num_objs, objsize, objperslab, pagesperslab] = objects;
    let from = [
        From::Slot(active_objs),
        From::Slot(num_objs),
        From::Slot(objsize),
        From::Slot(objperslab),
        From::Slot(pagesperslab),
        From::Slot(active_slabs),
        From::Slot(num_slabs),
        From::Product(active_objs, objsize),
        From::Product(num_objs, objsize),
        From::Product(active_slabs, pagesperslab),
        From::Product(num_slabs, pagesperslab),
        From::Any(num_slabs),
        From::Fixed(1),
    ];
    let cells = from.into_iter().enumerate();
    Some(RowLayout {
        name: name.to_vec(),
        counted: true,
        cells: cells.map(|(field, from)| Cell { field, from }).collect(),
        ..RowLayout::default()
    })
}

/// The slots of the first `N` pieces; `None` if one of them is not a number in a slot.
fn slots<const N: usize>(pieces: &[Piece]) -> Option<[usize; N]> {
    let mut slots = [0; N];
    for (slot, piece) in slots.iter_mut().zip(pieces.get(..N)?) {
        let From::Slot(number) = value(piece)? else {
            return None;
        };
        *slot = number;
    }
    Some(slots)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn caches() {
        let text = "slabinfo - version: 2.1\n\
            # name            <active_objs> <num_objs> <objsize> : tunables <limit> : slabdata <active_slabs> <num_slabs>\n\
            ext4_inode  1200   1300   1024   32    8 : tunables    0    0    0 : slabdata     41     42      0\n\
            kmalloc-64     0      0     64   64    1 : tunables    0    0    0 : slabdata      0      0      0\n\
            cut 1 2 3\n";
        let reading = read(&SLAB, &[(kind::SLABINFO, text)], &Context::default());
        let rows: Vec<_> = reading
            .rows
            .iter()
            .map(|row| (&row.name[..], &row.values[..]))
            .collect();
        assert_eq!(
            rows,
            [
                (
                    &b"ext4_inode"[..],
                    &[
                        1200, 1300, 1024, 32, 8, 41, 42, 1_228_800, 1_331_200, 328, 336, 1, 1
                    ][..]
                ),
                (b"kmalloc-64", &[0, 0, 64, 64, 1, 0, 0, 0, 0, 0, 0, 0, 1]),
            ]
        );
    }
}
