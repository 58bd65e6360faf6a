//! `s` and `S`: number of sockets, of IPv4 and IPv6, from /proc/net/sockstat and sockstat6, and of connections that
//! netfilter tracks; TCP sockets by state and what waits in the queues of UDP where there are few sockets. All are
//! gauges.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Parts};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, bundled, field,
    named_rows, now, number, place, text, value,
};
use crate::layout::{Cell, Layout, RowLayout};
use crate::source::kind;

const INUSE: usize = at(FIELDS, "inuse");
const ORPHAN: usize = at(FIELDS, "orphan");
const TW: usize = at(FIELDS, "tw");
const ALLOC: usize = at(FIELDS, "alloc");
const MEM: usize = at(FIELDS, "mem");
const MEMORY: usize = at(FIELDS, "memory");
const TO_SEND: usize = at(FIELDS, "tx_queued_bytes");

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

const fn sockets(name: &'static str, help: &'static str) -> Field {
    gauge(name, Unit::Count, help)
}

/// Fields named LINE_WORD: `TCP_tw` is the number after the word `tw` in the line `TCP:`.
const GLOBALS: &[Field] = &[
    gauge(
        "sockets_used",
        Unit::Count,
        "Sockets of all families that programs hold",
    ),
    gauge("TCP_inuse", Unit::Count, "TCP sockets over IPv4"),
    gauge("TCP_orphan", Unit::Count, "TCP sockets no program holds"),
    gauge("TCP_tw", Unit::Count, "TCP sockets in TIME-WAIT"),
    gauge(
        "TCP_alloc",
        Unit::Count,
        "TCP sockets allocated, in any state",
    ),
    gauge("TCP_mem", Unit::Pages, "Memory of TCP buffers"),
    gauge("UDP_inuse", Unit::Count, "UDP sockets over IPv4"),
    gauge("UDP_mem", Unit::Pages, "Memory of UDP buffers"),
    gauge("UDPLITE_inuse", Unit::Count, "UDP-Lite sockets over IPv4"),
    gauge("RAW_inuse", Unit::Count, "Raw sockets over IPv4"),
    gauge(
        "FRAG_inuse",
        Unit::Count,
        "IPv4 packets being put together of fragments",
    ),
    gauge("FRAG_memory", Unit::Bytes, "Memory of IPv4 fragments"),
    gauge("TCP6_inuse", Unit::Count, "TCP sockets over IPv6"),
    gauge("UDP6_inuse", Unit::Count, "UDP sockets over IPv6"),
    gauge("UDPLITE6_inuse", Unit::Count, "UDP-Lite sockets over IPv6"),
    gauge("RAW6_inuse", Unit::Count, "Raw sockets over IPv6"),
    gauge(
        "FRAG6_inuse",
        Unit::Count,
        "IPv6 packets being put together of fragments",
    ),
    gauge("FRAG6_memory", Unit::Bytes, "Memory of IPv6 fragments"),
    gauge(
        "nf_conntrack_count",
        Unit::Count,
        "Connections that netfilter tracks",
    ),
    gauge(
        "nf_conntrack_max",
        Unit::Count,
        "Most connections that it tracks",
    ),
    sockets("tcp_established", "TCP sockets in ESTABLISHED"),
    sockets("tcp_syn_sent", "TCP sockets in SYN-SENT"),
    sockets("tcp_syn_recv", "TCP sockets in SYN-RECEIVED"),
    sockets("tcp_fin_wait1", "TCP sockets in FIN-WAIT-1"),
    sockets("tcp_fin_wait2", "TCP sockets in FIN-WAIT-2"),
    sockets(
        "tcp_time_wait",
        "TCP sockets in TIME-WAIT, of IPv4 and IPv6",
    ),
    sockets("tcp_close", "TCP sockets in CLOSED"),
    sockets("tcp_close_wait", "TCP sockets in CLOSE-WAIT"),
    sockets("tcp_last_ack", "TCP sockets in LAST-ACK"),
    sockets("tcp_listen", "TCP sockets in LISTEN"),
    sockets("tcp_closing", "TCP sockets in CLOSING"),
    gauge(
        "tcp_rx_queued_bytes",
        Unit::Bytes,
        "Bytes that wait to be read from TCP sockets",
    ),
    gauge(
        "tcp_tx_queued_bytes",
        Unit::Bytes,
        "Bytes of TCP sockets that wait to be sent",
    ),
];

/// Values of the label `state`, in the order of the fields.
const STATES: &[&str] = &[
    "established",
    "syn_sent",
    "syn_recv",
    "fin_wait1",
    "fin_wait2",
    "time_wait",
    "close",
    "close_wait",
    "last_ack",
    "listen",
    "closing",
    "rx_queued_bytes",
    "tx_queued_bytes",
];

/// Fields of each line.
const FIELDS: &[Field] = &[
    gauge("inuse", Unit::Count, "Sockets in use"),
    gauge("orphan", Unit::Count, "Sockets no program holds"),
    gauge("tw", Unit::Count, "Sockets in TIME-WAIT"),
    gauge("alloc", Unit::Count, "Sockets allocated"),
    gauge("mem", Unit::Pages, "Memory of buffers"),
    gauge("memory", Unit::Bytes, "Memory of fragments"),
    gauge(
        "tx_queued_bytes",
        Unit::Bytes,
        "Bytes of UDP sockets that wait to be sent",
    ),
    gauge(
        "rx_queued_bytes",
        Unit::Bytes,
        "Bytes that wait to be read from UDP sockets",
    ),
];

const fn count(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Count, help, value)
}

const COLUMNS: &[Column] = &[
    count(
        "used",
        "Sockets of all families that programs hold",
        now::<{ at(GLOBALS, "sockets_used") }>,
    ),
    count(
        "tcp",
        "TCP sockets over IPv4",
        now::<{ at(GLOBALS, "TCP_inuse") }>,
    ),
    count(
        "orphans",
        "TCP sockets no program holds",
        now::<{ at(GLOBALS, "TCP_orphan") }>,
    ),
    count(
        "time_wait",
        "TCP sockets in TIME-WAIT",
        now::<{ at(GLOBALS, "TCP_tw") }>,
    ),
    count(
        "tcp_allocated",
        "TCP sockets allocated, in any state",
        now::<{ at(GLOBALS, "TCP_alloc") }>,
    ),
    number(
        "tcp_memory",
        Unit::Pages,
        "Memory of TCP buffers",
        now::<{ at(GLOBALS, "TCP_mem") }>,
    ),
    count(
        "udp",
        "UDP sockets over IPv4",
        now::<{ at(GLOBALS, "UDP_inuse") }>,
    ),
    number(
        "udp_memory",
        Unit::Pages,
        "Memory of UDP buffers",
        now::<{ at(GLOBALS, "UDP_mem") }>,
    ),
    count(
        "udplite",
        "UDP-Lite sockets over IPv4",
        now::<{ at(GLOBALS, "UDPLITE_inuse") }>,
    ),
    count(
        "raw",
        "Raw sockets over IPv4",
        now::<{ at(GLOBALS, "RAW_inuse") }>,
    ),
    count(
        "fragmented",
        "IPv4 packets being put together of fragments",
        now::<{ at(GLOBALS, "FRAG_inuse") }>,
    ),
    number(
        "fragment_memory",
        Unit::Bytes,
        "Memory of IPv4 fragments",
        now::<{ at(GLOBALS, "FRAG_memory") }>,
    ),
    count(
        "tcp6",
        "TCP sockets over IPv6",
        now::<{ at(GLOBALS, "TCP6_inuse") }>,
    ),
    count(
        "udp6",
        "UDP sockets over IPv6",
        now::<{ at(GLOBALS, "UDP6_inuse") }>,
    ),
    count(
        "udplite6",
        "UDP-Lite sockets over IPv6",
        now::<{ at(GLOBALS, "UDPLITE6_inuse") }>,
    ),
    count(
        "raw6",
        "Raw sockets over IPv6",
        now::<{ at(GLOBALS, "RAW6_inuse") }>,
    ),
    count(
        "fragmented6",
        "IPv6 packets being put together of fragments",
        now::<{ at(GLOBALS, "FRAG6_inuse") }>,
    ),
    number(
        "fragment_memory6",
        Unit::Bytes,
        "Memory of IPv6 fragments",
        now::<{ at(GLOBALS, "FRAG6_memory") }>,
    ),
];

/// Memory in kilobytes; the kernel gives pages for TCP and UDP, bytes for fragments.
fn memory_kb(cells: &Cells) -> f64 {
    let bytes = match cells.now[MEM].is_nan() {
        true => cells.now[MEMORY],
        false => cells.now[MEM] * cells.context.page_size(),
    };
    bytes / 1024.0
}

const DETAIL: &[Column] = &[
    text(
        "protocol",
        "TCP, UDP, UDPLITE, RAW or FRAG, with a 6 those of IPv6",
        |c, out| out.extend_from_slice(c.name),
    ),
    count("in_use", "Sockets in use", now::<INUSE>),
    count("orphans", "Sockets no program holds", now::<ORPHAN>),
    count("time_wait", "Sockets in TIME-WAIT", now::<TW>),
    count("allocated", "Sockets allocated", now::<ALLOC>),
    number(
        "memory_kb",
        Unit::Kilobytes,
        "Memory of buffers and fragments",
        memory_kb,
    ),
];

const fn whole(head: &'static str, column: &'static str) -> PlotColumn {
    place(head, column, Form::Whole)
}

const PLOT: &[PlotColumn] = &[
    whole("Used", "used"),
    whole("Tcp", "tcp"),
    whole("Orph", "orphans"),
    whole("Tw", "time_wait"),
    whole("Alloc", "tcp_allocated"),
    whole("Mem", "tcp_memory"),
    whole("Udp", "udp"),
    whole("Raw", "raw"),
    whole("Frag", "fragmented"),
    whole("FragMem", "fragment_memory"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    whole("Inuse", "in_use"),
    whole("Orphan", "orphans"),
    whole("Tw", "time_wait"),
    whole("Alloc", "allocated"),
    whole("MemKB", "memory_kb"),
];

/// As in node_exporter, memory in pages is also given in bytes.
const EXPOSED: Exposed = Exposed {
    machine: &[
        exposed::gauge("node_sockstat_sockets_used", at(GLOBALS, "sockets_used")),
        exposed::gauge("node_sockstat_TCP_inuse", at(GLOBALS, "TCP_inuse")),
        exposed::gauge("node_sockstat_TCP_orphan", at(GLOBALS, "TCP_orphan")),
        exposed::gauge("node_sockstat_TCP_tw", at(GLOBALS, "TCP_tw")),
        exposed::gauge("node_sockstat_TCP_alloc", at(GLOBALS, "TCP_alloc")),
        exposed::gauge("node_sockstat_TCP_mem", at(GLOBALS, "TCP_mem")).raw(),
        exposed::gauge("node_sockstat_TCP_mem_bytes", at(GLOBALS, "TCP_mem")),
        exposed::gauge("node_sockstat_UDP_inuse", at(GLOBALS, "UDP_inuse")),
        exposed::gauge("node_sockstat_UDP_mem", at(GLOBALS, "UDP_mem")).raw(),
        exposed::gauge("node_sockstat_UDP_mem_bytes", at(GLOBALS, "UDP_mem")),
        exposed::gauge("node_sockstat_UDPLITE_inuse", at(GLOBALS, "UDPLITE_inuse")),
        exposed::gauge("node_sockstat_RAW_inuse", at(GLOBALS, "RAW_inuse")),
        exposed::gauge("node_sockstat_FRAG_inuse", at(GLOBALS, "FRAG_inuse")),
        exposed::gauge("node_sockstat_FRAG_memory", at(GLOBALS, "FRAG_memory")),
        exposed::gauge("node_sockstat_TCP6_inuse", at(GLOBALS, "TCP6_inuse")),
        exposed::gauge("node_sockstat_UDP6_inuse", at(GLOBALS, "UDP6_inuse")),
        exposed::gauge(
            "node_sockstat_UDPLITE6_inuse",
            at(GLOBALS, "UDPLITE6_inuse"),
        ),
        exposed::gauge("node_sockstat_RAW6_inuse", at(GLOBALS, "RAW6_inuse")),
        exposed::gauge("node_sockstat_FRAG6_inuse", at(GLOBALS, "FRAG6_inuse")),
        exposed::gauge("node_sockstat_FRAG6_memory", at(GLOBALS, "FRAG6_memory")),
        exposed::gauge(
            "node_nf_conntrack_entries",
            at(GLOBALS, "nf_conntrack_count"),
        ),
        exposed::gauge(
            "node_nf_conntrack_entries_limit",
            at(GLOBALS, "nf_conntrack_max"),
        ),
        exposed::gauge("node_tcp_connection_states", at(GLOBALS, "tcp_established"))
            .meant("TCP sockets of IPv4 and IPv6 by state, and bytes in their queues")
            .raw()
            .of_each(Parts::Named {
                label: "state",
                values: STATES,
            }),
    ],
    each: &[Each {
        labels: &[exposed::MetricLabel {
            name: "ip",
            put: |row, out| {
                out.extend_from_slice(match row.name.ends_with(b"6") {
                    true => b"v6",
                    false => b"v4",
                })
            },
            may_lack: false,
        }],
        shows: |row| row.name == b"UDP" || row.name == b"UDP6",
        families: &[exposed::gauge("node_udp_queues", TO_SEND)
            .meant("Bytes in the queues of UDP sockets, to be sent and to be read")
            .of_each(Parts::Named {
                label: "queue",
                values: &["tx", "rx"],
            })],
    }],
};

/// Sockets.
pub static SOCKETS: Subsystem = Subsystem {
    letter: 's',
    name: "sockets",
    help: "Sockets there are, of IPv4 and IPv6",
    sources: &[
        kind::SOCKSTAT,
        kind::SOCKSTAT6,
        kind::CONNTRACK,
        kind::TCP_STATES,
        kind::UDP_QUEUES,
    ],
    beside: None,
    spread: false,
    globals: GLOBALS,
    fields: FIELDS,
    labels: &[],
    layout,
    fills: None,
    summary: Summary::Globals,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<------Sockets----->",
            heads: &[" Tcp  Udp  Raw Frag "],
            row: "{tcp:4c} {udp:4c} {raw:4c} {fragmented:4c} ",
        },
        verbose: Lines {
            title: "SOCKET STATISTICS",
            heads: &[
                "      <-------------Tcp------------->   Udp   Raw   <---Frag-->",
                "Used  Inuse Orphan    Tw  Alloc   Mem  Inuse Inuse  Inuse   Mem",
            ],
            row: "{used:5d}  {tcp:5d}  {orphans:5d} {time_wait:5d}  {tcp_allocated:5d} {tcp_memory:5d}  {udp:5d} {raw:5d}  {fragmented:5d} {fragment_memory:5d}",
        },
        detail: Lines {
            title: "SOCKETS BY PROTOCOL",
            heads: &["Protocol   Inuse Orphan     Tw  Alloc  MemKB"],
            row: "{name:-9s} {in_use:6d} {orphans:6d} {time_wait:6d} {allocated:6d} {memory_kb:6d}",
        },
    },
    plot: Plot {
        tag: "SOCK",
        order: 3,
        file: "sock",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    match kind {
        kind::CONNTRACK | kind::TCP_STATES => return bundled(template, GLOBALS),
        kind::UDP_QUEUES => return named_rows(template, TO_SEND, 2),
        _ => {}
    }
    let mut layout = Layout::default();
    for line in template.lines() {
        if let [Piece::Text(name), rest @ ..] = &line[..]
            && let Some(name) = name.strip_suffix(b":")
        {
            read_line(name, rest, &mut layout);
        }
    }
    layout
}

/// Interprets a line such as `TCP: inuse 5 orphan 0 tw 0 alloc 7 mem 1`, without its name.
fn read_line(name: &[u8], rest: &[Piece], layout: &mut Layout) {
    let mut cells = Vec::new();
    for pair in rest.chunks_exact(2) {
        let (Piece::Text(word), Some(from)) = (&pair[0], value(&pair[1])) else {
            continue;
        };
        let of_line = |field: &Field| {
            let (line, rest) = field.name.split_once('_').unwrap_or_default();
            (line.as_bytes(), rest.as_bytes()) == (name, word)
        };
        if let Some(field) = GLOBALS.iter().position(of_line) {
            layout.globals.push(Cell { field, from });
        }
        let named = |field: &Field| field.name.as_bytes() == *word;
        if let Some(field) = FIELDS.iter().position(named) {
            cells.push(Cell { field, from });
        }
    }
    if !cells.is_empty() {
        layout.rows.push(RowLayout {
            name: name.to_vec(),
            cells,
            ..RowLayout::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn states_have_fields() {
        let names = crate::digest::TCP_STATES;
        assert_eq!(names, STATES[..names.len()]);
        let lines = STATES.iter().zip(1..);
        let lines = lines.map(|(state, number)| format!("tcp_{state} {number}\n"));
        let texts = [(kind::TCP_STATES, &*lines.collect::<String>())];
        let reading = read(&SOCKETS, &texts, &Context::default());
        let first = at(GLOBALS, "tcp_established");
        assert_eq!(reading.globals[first..], (1..=13).collect::<Vec<u64>>());
    }

    #[test]
    fn queues_belong_to_the_lines_of_sockstat() {
        let texts = [
            (kind::SOCKSTAT, "TCP: inuse 5\nUDP: inuse 4 mem 6\n"),
            (kind::SOCKSTAT6, "UDP6: inuse 12\n"),
            (kind::UDP_QUEUES, "UDP 17 3\nUDP6 0 1\n"),
        ];
        let reading = read(&SOCKETS, &texts, &Context::default());
        let rows = reading.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (&row.name[..], &row.values[TO_SEND..]))
            .collect();
        const M: u64 = MISSING;
        let expect = [
            (&b"TCP"[..], &[M, M][..]),
            (b"UDP", &[17, 3]),
            (b"UDP6", &[0, 1]),
        ];
        assert_eq!(rows, expect);
    }

    #[test]
    fn tracked_connections() {
        let text = "nf_conntrack_count 5\nnf_conntrack_max 262144\n";
        let reading = read(&SOCKETS, &[(kind::CONNTRACK, text)], &Context::default());
        let first = at(GLOBALS, "nf_conntrack_count");
        assert_eq!(reading.globals[first..first + 2], [5, 262_144]);
        assert_eq!(reading.rows, []);
    }

    #[test]
    fn lines_and_words_are_found_by_name() {
        let old = "sockets: used 290\nTCP: inuse 5 orphan 1 tw 2 alloc 7 mem 3\nUDP: inuse 4 mem 6\nRAW: inuse 8\nFRAG: inuse 9 memory 1024\n";
        let six =
            "TCP6: inuse 11\nUDP6: inuse 12\nDCCP6: inuse 3\nFRAG6: inuse 13 memory 14 dead 5\n";
        let reading = read(
            &SOCKETS,
            &[(kind::SOCKSTAT, old), (kind::SOCKSTAT6, six)],
            &Context::default(),
        );
        for (field, expect) in [
            ("sockets_used", 290),
            ("TCP_tw", 2),
            ("TCP_mem", 3),
            ("UDP_inuse", 4),
            ("UDP_mem", 6),
            ("UDPLITE_inuse", MISSING),
            ("RAW_inuse", 8),
            ("FRAG_inuse", 9),
            ("FRAG_memory", 1024),
            ("TCP6_inuse", 11),
            ("UDP6_inuse", 12),
            ("RAW6_inuse", MISSING),
            ("FRAG6_memory", 14),
        ] {
            assert_eq!(reading.globals[at(GLOBALS, field)], expect, "{field}");
        }
        let rows: Vec<_> = reading
            .rows
            .iter()
            .map(|row| (&row.name[..], row.values[INUSE]))
            .collect();
        assert_eq!(
            rows,
            [
                (&b"TCP"[..], 5),
                (b"UDP", 4),
                (b"RAW", 8),
                (b"FRAG", 9),
                (b"TCP6", 11),
                (b"UDP6", 12),
                (b"DCCP6", 3),
                (b"FRAG6", 13)
            ]
        );
    }
}
