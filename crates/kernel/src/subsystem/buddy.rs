//! `b` and `B`: free memory by the size of its pieces, from /proc/buddyinfo, which shows if large pieces are left.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Parts};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, field, now, number,
    numbers, place, text,
};
use crate::layout::{Label, Layout, RowLayout, Word};
use crate::source::kind;

/// Number of sizes: 11 in kernels with pages of 4 KiB, up to 14 with pages of 64 KiB.
const ORDERS: usize = 14;
/// Labels of a row.
const NODE: usize = 0;
const ZONE: usize = 1;

/// Fields and columns of each size: 2^n pages.
macro_rules! orders {
    ($($order:literal $name:literal $pages:literal;)*) => {
        const FIELDS: &[Field] = &[$(field($name, Rule::Gauge, Unit::Count, concat!("Free pieces of ", $pages, " pages"))),*];
        const SIZES: [Column; ORDERS] = [$(number($name, Unit::Count, concat!("Free pieces of ", $pages, " pages"), now::<$order>)),*];
    };
}

orders! {
    0 "pages1" "1"; 1 "pages2" "2"; 2 "pages4" "4"; 3 "pages8" "8"; 4 "pages16" "16"; 5 "pages32" "32";
    6 "pages64" "64"; 7 "pages128" "128"; 8 "pages256" "256"; 9 "pages512" "512"; 10 "pages1024" "1024";
    11 "pages2048" "2048"; 12 "pages4096" "4096"; 13 "pages8192" "8192";
}

/// collectl's digits of a number: itself, from `a` on tens, from
/// `j` on hundreds, from `s` on thousands, ten thousands ...
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The lowest number of the digit at this place.
fn least(place: i32) -> f64 {
    match place {
        0..10 => f64::from(place),
        10..19 => f64::from(place - 9) * 10.0,
        19..28 => f64::from(place - 18) * 100.0,
        _ => 10f64.powi(place - 25),
    }
}

fn digit(count: f64) -> u8 {
    let places = DIGITS.iter().zip(0..);
    let reached = places.filter(|&(_, place)| count >= least(place));
    reached.last().map_or(b'0', |(&digit, _)| digit)
}

fn fragments(cells: &Cells, out: &mut Vec<u8>) {
    let known = cells.now.iter().filter(|count| !count.is_nan());
    out.extend(known.map(|&count| digit(count)));
}

fn free_kb(cells: &Cells) -> f64 {
    let pieces = cells
        .now
        .iter()
        .zip(0..)
        .filter(|(count, _)| !count.is_nan());
    let pages = pieces
        .map(|(count, order)| count * 2f64.powi(order))
        .reduce(|sum, pages| sum + pages);
    pages.unwrap_or(f64::NAN) * cells.context.page_size() / 1024.0
}

const FRAGMENTS: Column = text(
    "fragments",
    "Free pieces of 1, 2, 4, ... pages, a character each: 0-9, a-i tens, j-r hundreds, s thousands, t ten thousands, ...",
    fragments,
);
const FREE: Column = number(
    "free_kb",
    Unit::Kilobytes,
    "Free memory in pieces of all sizes",
    free_kb,
);

const COLUMNS: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = SIZES;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, FRAGMENTS, FREE]
};

const DETAIL: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = SIZES;
    [
        text("zone", "ZONE-NODE", |c, out| out.extend_from_slice(c.name)),
        text("node_number", "Number of the NUMA node", |c, out| {
            out.extend_from_slice(&c.labels[NODE])
        }),
        text("zone_name", "Name of the zone", |c, out| {
            out.extend_from_slice(&c.labels[ZONE])
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
        FRAGMENTS,
        FREE,
    ]
};

const fn whole(head: &'static str, column: &'static str) -> PlotColumn {
    place(head, column, Form::Whole)
}

const PLOT_SIZES: [PlotColumn; 11] = [
    whole("1Page", "pages1"),
    whole("2Pages", "pages2"),
    whole("4Pages", "pages4"),
    whole("8Pages", "pages8"),
    whole("16Pages", "pages16"),
    whole("32Pages", "pages32"),
    whole("64Pages", "pages64"),
    whole("128Pages", "pages128"),
    whole("256Pages", "pages256"),
    whole("512Pages", "pages512"),
    whole("1024Pages", "pages1024"),
];

const PLOT_DETAIL: &[PlotColumn] = &{
    let [a, b, c, d, e, f, g, h, i, j, k] = PLOT_SIZES;
    [
        place("Node", "node_number", Form::Text),
        place("Zone", "zone_name", Form::Text),
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
    ]
};

/// Names as in node_exporter's collector `buddyinfo`; a size is the exponent of a power of two.
const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[
        exposed::MetricLabel::text::<NODE>("node"),
        exposed::MetricLabel::text::<ZONE>("zone"),
    ],
    shows: |_| true,
    families: &[exposed::gauge("node_buddyinfo_blocks", 0)
        .meant("Free pieces of memory of 2^size pages")
        .of_each(Parts::Named {
            label: "size",
            values: &[
                "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13",
            ],
        })],
}]);

/// Free memory by size.
pub static BUDDY: Subsystem = Subsystem {
    letter: 'b',
    name: "buddy",
    help: "Free memory by the size of its pieces",
    sources: &[kind::BUDDYINFO],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &["node", "zone"],
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
        brief: Lines {
            title: "<--Memory-->",
            heads: &["  Fragments "],
            row: "{fragments:11s} ",
        },
        verbose: Lines {
            title: "MEMORY FRAGMENTATION SUMMARY ({page}K pages)",
            heads: &[
                "     1Pg    2Pgs    4Pgs    8Pgs   16Pgs   32Pgs   64Pgs  128Pgs  256Pgs  512Pgs 1024Pgs",
            ],
            row: " {pages1:8d}{pages2:8d}{pages4:8d}{pages8:8d}{pages16:8d}{pages32:8d}{pages64:8d}{pages128:8d}{pages256:8d}{pages512:8d}{pages1024:8d}",
        },
        detail: Lines {
            title: "MEMORY FRAGMENTATION ({page}K pages)",
            heads: &[
                "Node    Zone      1Pg    2Pgs    4Pgs    8Pgs   16Pgs   32Pgs   64Pgs  128Pgs  256Pgs  512Pgs 1024Pgs",
            ],
            row: " {node_number:4s}  {zone_name:6s} {pages1:8d}{pages2:8d}{pages4:8d}{pages8:8d}{pages16:8d}{pages32:8d}{pages64:8d}{pages128:8d}{pages256:8d}{pages512:8d}{pages1024:8d}",
        },
    },
    plot: Plot {
        tag: "BUD",
        order: 11,
        file: "bud",
        summary: &PLOT_SIZES,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
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

/// Parses a line such as `Node 0, zone   DMA   0   1 ...`.
fn row(line: &[Piece]) -> Option<RowLayout> {
    let [
        Piece::Text(b"Node"),
        Piece::Text(node),
        Piece::Text(b"zone"),
        Piece::Text(zone),
        rest @ ..,
    ] = line
    else {
        return None;
    };
    let node = node.strip_suffix(b",").unwrap_or(node);
    let fixed = |label, text: &[u8]| Label {
        label,
        word: Word::Fixed(text.to_vec()),
    };
    Some(RowLayout {
        name: [zone, &b"-"[..], node].concat(),
        counted: true,
        cells: numbers(rest, 0, ORDERS),
        labels: vec![fixed(NODE, node), fixed(ZONE, zone)],
        ..RowLayout::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn zones_of_two_nodes() {
        let text = "Node 0, zone      DMA      0      1      2      3      4      5      6      7      8      9     10 \nNode 1, zone   Normal     11     12\nnothing\n";
        let reading = read(&BUDDY, &[(kind::BUDDYINFO, text)], &Context::default());
        let [first, second] = &reading.rows[..] else {
            panic!("{reading:?}");
        };
        assert_eq!(
            (&first.name[..], &second.name[..]),
            (&b"DMA-0"[..], &b"Normal-1"[..])
        );
        assert_eq!(first.labels, [b"0".to_vec(), b"DMA".to_vec()]);
        assert_eq!(first.values[..11], (0..11).collect::<Vec<u64>>());
        assert_eq!(first.values[11..], [MISSING; 3]);
        assert_eq!(second.values[..3], [11, 12, MISSING]);
    }

    #[test]
    fn counts_as_characters() {
        for (count, expect) in [
            (0.0, b'0'),
            (9.0, b'9'),
            (10.0, b'a'),
            (99.0, b'i'),
            (100.0, b'j'),
            (999.0, b'r'),
            (1000.0, b's'),
            (10_000.0, b't'),
            (9_999_999.0, b'v'),
            (1e15, b'z'),
        ] {
            assert_eq!(char::from(digit(count)), char::from(expect), "{count}");
        }
    }
}
