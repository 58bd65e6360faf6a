//! `M`: memory of each NUMA node, from the node's meminfo and numastat in /sys.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, now, number,
    place, rate, text, value,
};
use crate::layout::{Cell, Layout, RowLayout};
use crate::source::kind;

const HIT: usize = at(FIELDS, "numa_hit");
const MISS: usize = at(FIELDS, "numa_miss");
const FOREIGN: usize = at(FIELDS, "numa_foreign");

const fn kb(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Kilobytes, help)
}

const fn pages(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Pages, help)
}

/// Fields by the kernel's names.
const FIELDS: &[Field] = &[
    kb("MemTotal", "Memory of the node"),
    kb("MemUsed", "Of it, used"),
    kb("MemFree", "Of it, not used at all"),
    kb("Slab", "Kernel objects"),
    kb("Mapped", "Files mapped"),
    kb("AnonPages", "Anonymous memory mapped"),
    kb("AnonHugePages", "Anonymous memory in huge pages"),
    kb("Mlocked", "Memory locked by programs"),
    kb("Inactive", "Memory not used recently"),
    kb("Active", "Memory used recently"),
    kb("FilePages", "Page cache"),
    kb("Shmem", "Shared memory and tmpfs"),
    kb("Dirty", "Waiting to be written"),
    kb("Writeback", "Being written"),
    kb("KernelStack", "Kernel stacks"),
    kb("PageTables", "Page tables"),
    pages("numa_hit", "Pages taken here, as was meant"),
    pages(
        "numa_miss",
        "Pages taken here, though another node was meant",
    ),
    pages(
        "numa_foreign",
        "Pages taken elsewhere, though this node was meant",
    ),
    pages(
        "interleave_hit",
        "Interleaved pages taken here, as was meant",
    ),
    pages("local_node", "Pages taken here by a program that ran here"),
    pages(
        "other_node",
        "Pages taken here by a program that ran elsewhere",
    ),
];

const fn size(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Kilobytes, help, value)
}

const fn taken(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

const fn f(name: &str) -> usize {
    at(FIELDS, name)
}

/// Share of pages taken on the intended node; 100 % if there were none.
fn hit_percent(cells: &Cells) -> f64 {
    let all = cells.delta[HIT] + cells.delta[MISS] + cells.delta[FOREIGN];
    match all == 0.0 {
        true => 100.0,
        false => 100.0 * cells.delta[HIT] / all,
    }
}

const DETAIL: &[Column] = &[
    text("node", "Number of the node", |c, out| {
        out.extend_from_slice(c.name)
    }),
    size("total", "Memory of the node: used + free", |c| {
        c.now[f("MemUsed")] + c.now[f("MemFree")]
    }),
    size("used", "Of it, used", now::<{ f("MemUsed") }>),
    size("free", "Of it, not used at all", now::<{ f("MemFree") }>),
    size("slab", "Kernel objects", now::<{ f("Slab") }>),
    size("mapped", "Files mapped", now::<{ f("Mapped") }>),
    size("anon", "Anonymous memory mapped", now::<{ f("AnonPages") }>),
    size(
        "anon_huge",
        "Anonymous memory in huge pages",
        now::<{ f("AnonHugePages") }>,
    ),
    size(
        "locked",
        "Memory locked by programs",
        now::<{ f("Mlocked") }>,
    ),
    size(
        "inactive",
        "Memory not used recently",
        now::<{ f("Inactive") }>,
    ),
    size("active", "Memory used recently", now::<{ f("Active") }>),
    size("cached", "Page cache", now::<{ f("FilePages") }>),
    size("shared", "Shared memory and tmpfs", now::<{ f("Shmem") }>),
    size("dirty", "Waiting to be written", now::<{ f("Dirty") }>),
    size("writeback", "Being written", now::<{ f("Writeback") }>),
    size("stacks", "Kernel stacks", now::<{ f("KernelStack") }>),
    size("page_tables", "Page tables", now::<{ f("PageTables") }>),
    taken("hits", "Pages taken here, as was meant", rate::<HIT>),
    taken(
        "misses",
        "Pages taken here, though another node was meant",
        rate::<MISS>,
    ),
    taken(
        "foreign",
        "Pages taken elsewhere, though this node was meant",
        rate::<FOREIGN>,
    ),
    taken(
        "local",
        "Pages taken here by a program that ran here",
        rate::<{ f("local_node") }>,
    ),
    taken(
        "other",
        "Pages taken here by a program that ran elsewhere",
        rate::<{ f("other_node") }>,
    ),
    number(
        "hit_percent",
        Unit::Percent,
        "hits of hits + misses + foreign; 100 where no page was taken",
        hit_percent,
    ),
];

const fn whole(head: &'static str, column: &'static str) -> PlotColumn {
    place(head, column, Form::Whole)
}

const PLOT_DETAIL: &[PlotColumn] = &[
    whole("Used", "used"),
    whole("Free", "free"),
    whole("Slab", "slab"),
    whole("Mapped", "mapped"),
    whole("Anon", "anon"),
    whole("AnonH", "anon_huge"),
    whole("Inactive", "inactive"),
    place("Hits", "hit_percent", Form::Two),
];

/// Metrics of node_exporter's collector `meminfo_numa`: bytes and pages.
const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[exposed::MetricLabel::name("node")],
    shows: |_| true,
    families: &[
        exposed::gauge("node_memory_numa_MemTotal", f("MemTotal")),
        exposed::gauge("node_memory_numa_MemUsed", f("MemUsed")),
        exposed::gauge("node_memory_numa_MemFree", f("MemFree")),
        exposed::gauge("node_memory_numa_Slab", f("Slab")),
        exposed::gauge("node_memory_numa_Mapped", f("Mapped")),
        exposed::gauge("node_memory_numa_AnonPages", f("AnonPages")),
        exposed::gauge("node_memory_numa_AnonHugePages", f("AnonHugePages")),
        exposed::gauge("node_memory_numa_Mlocked", f("Mlocked")),
        exposed::gauge("node_memory_numa_Inactive", f("Inactive")),
        exposed::gauge("node_memory_numa_Active", f("Active")),
        exposed::gauge("node_memory_numa_FilePages", f("FilePages")),
        exposed::gauge("node_memory_numa_Shmem", f("Shmem")),
        exposed::gauge("node_memory_numa_Dirty", f("Dirty")),
        exposed::gauge("node_memory_numa_Writeback", f("Writeback")),
        exposed::gauge("node_memory_numa_KernelStack", f("KernelStack")),
        exposed::gauge("node_memory_numa_PageTables", f("PageTables")),
        exposed::counter("node_memory_numa_numa_hit_total", f("numa_hit")).raw(),
        exposed::counter("node_memory_numa_numa_miss_total", f("numa_miss")).raw(),
        exposed::counter("node_memory_numa_numa_foreign_total", f("numa_foreign")).raw(),
        exposed::counter("node_memory_numa_interleave_hit_total", f("interleave_hit")).raw(),
        exposed::counter("node_memory_numa_local_node_total", f("local_node")).raw(),
        exposed::counter("node_memory_numa_other_node_total", f("other_node")).raw(),
    ],
}]);

/// The NUMA nodes.
pub static NUMA: Subsystem = Subsystem {
    letter: 'm',
    name: "numa",
    help: "Memory of each NUMA node, and where pages were taken",
    sources: &[kind::NODE_MEMINFO, kind::NODE_NUMASTAT],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &[],
    layout,
    fills: None,
    summary: Summary::None,
    sum: None,
    ceiling: None,
    count: None,
    in_service: false,
    columns: &[],
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines::NONE,
        verbose: Lines::NONE,
        detail: Lines {
            title: "MEMORY STATISTICS ",
            heads: &[
                " Node    Total     Used     Free     Slab   Mapped     Anon    AnonH   Locked    Inact HitPct",
            ],
            row: "  {name:4s} {total:8k7} {used:8k7} {free:8k7} {slab:8k7} {mapped:8k7} {anon:8k7} {anon_huge:8k7} {locked:8k7} {inactive:8k7} {hit_percent:6.2}",
        },
    },
    plot: Plot {
        tag: "NUMA",
        order: 2,
        file: "numa",
        summary: &[],
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// Interprets a text of lines such as `Node 0 MemTotal:    24684096 kB` and
/// `numa_hit 621703700`.
fn layout(_: u8, template: &Template, _: &Context) -> Layout {
    let mut cells = Vec::new();
    for line in template.lines() {
        let (name, number) = match &line[..] {
            [Piece::Text(b"Node"), _, Piece::Text(name), number, ..] => (name, number),
            [Piece::Text(name), number, ..] => (name, number),
            _ => continue,
        };
        let name = name.strip_suffix(b":").unwrap_or(name);
        let known = FIELDS.iter().position(|f| f.name.as_bytes() == name);
        if let (Some(field), Some(from)) = (known, value(number)) {
            cells.push(Cell { field, from });
        }
    }
    Layout {
        rows: vec![RowLayout {
            counted: true,
            cells,
            ..RowLayout::default()
        }],
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn words_are_whole_words() {
        let meminfo = "Node 1 MemTotal:       24684096 kB\nNode 1 MemFree:        17450848 kB\nNode 1 Inactive:       5 kB\nNode 1 Inactive(anon):       6 kB\nNode 1 Mlocked:              7 kB\n";
        let numastat = "numa_hit 621703700\nnuma_miss 1\nnuma_foreign 2\ninterleave_hit 1122\nlocal_node 3\nother_node 4\n";
        let texts = [
            (kind::NODE_MEMINFO, meminfo),
            (kind::NODE_NUMASTAT, numastat),
        ];
        let reading = read(&NUMA, &texts, &Context::default());
        let values = &reading.rows[0].values;
        for (field, expect) in [
            ("MemTotal", 24_684_096),
            ("MemFree", 17_450_848),
            ("Inactive", 5),
            ("Mlocked", 7),
            ("Active", MISSING),
        ] {
            assert_eq!(values[f(field)], expect, "{field}");
        }
        assert_eq!(
            reading.rows[0].values[HIT..],
            [621_703_700, 1, 2, 1122, 3, 4]
        );
    }
}
