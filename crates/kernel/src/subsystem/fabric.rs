//! `x` and `X`: ports of InfiniBand, RoCE and Omni-Path devices of any
//! name, from the counters in /sys, which are read but never reset.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::Row;
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Scale};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, known_rates,
    number, plot, rate, ratio, text, value,
};
use crate::layout::{Cell, Label, Layout, RowLayout, Word};
use crate::source::kind;

const RX_DATA: usize = at(FIELDS, "port_rcv_data");
const TX_DATA: usize = at(FIELDS, "port_xmit_data");
const RX_PACKETS: usize = at(FIELDS, "port_rcv_packets");
const TX_PACKETS: usize = at(FIELDS, "port_xmit_packets");
const ERRORS: [usize; 10] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13];

const fn counter(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Count, help)
}

/// Fields by the kernel's names.
const FIELDS: &[Field] = &[
    counter("port_rcv_data", "Words of 4 bytes received"),
    counter("port_xmit_data", "Words of 4 bytes sent"),
    counter("port_rcv_packets", "Packets received"),
    counter("port_xmit_packets", "Packets sent"),
    counter("symbol_error", "Symbols received wrong"),
    counter(
        "link_error_recovery",
        "Times the link recovered from errors",
    ),
    counter("link_downed", "Times the link went down"),
    counter("port_rcv_errors", "Packets received with errors"),
    counter(
        "port_rcv_remote_physical_errors",
        "Packets received that were bad where they came from",
    ),
    counter(
        "port_rcv_switch_relay_errors",
        "Packets received that could not be passed on",
    ),
    counter("port_xmit_discards", "Packets to be sent that were dropped"),
    counter(
        "local_link_integrity_errors",
        "Times the link had too many errors",
    ),
    counter(
        "excessive_buffer_overrun_errors",
        "Times buffers overran again and again",
    ),
    counter(
        "VL15_dropped",
        "Management packets dropped for want of buffers",
    ),
    counter(
        "port_xmit_constraint_errors",
        "Packets not sent, as the partition forbade it",
    ),
    counter(
        "port_rcv_constraint_errors",
        "Packets not taken, as the partition forbade it",
    ),
    counter(
        "port_xmit_wait",
        "Ticks in which there was data to send and no credit",
    ),
    field(
        "state",
        Rule::Gauge,
        Unit::None,
        "State of the port: 4 is active",
    ),
];

const fn events(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

const TRAFFIC: [Column; 11] = [
    number("rx_kb", Unit::KilobytesPerSecond, "Received", |c| {
        c.rate(RX_DATA) / 256.0
    }),
    events("rx_packets", "Packets received", rate::<RX_PACKETS>),
    number("rx_size", Unit::Bytes, "Mean packet received", |c| {
        ratio(4.0 * c.delta[RX_DATA], c.delta[RX_PACKETS])
    }),
    number("tx_kb", Unit::KilobytesPerSecond, "Sent", |c| {
        c.rate(TX_DATA) / 256.0
    }),
    events("tx_packets", "Packets sent", rate::<TX_PACKETS>),
    number("tx_size", Unit::Bytes, "Mean packet sent", |c| {
        ratio(4.0 * c.delta[TX_DATA], c.delta[TX_PACKETS])
    }),
    events(
        "errors",
        "Errors and drops of all kinds, what partitions forbid aside",
        |c| known_rates(c, &ERRORS),
    ),
    events(
        "rx_errors",
        "Packets received with errors",
        rate::<{ at(FIELDS, "port_rcv_errors") }>,
    ),
    events(
        "tx_discards",
        "Packets to be sent that were dropped",
        rate::<{ at(FIELDS, "port_xmit_discards") }>,
    ),
    events(
        "link_downed",
        "Times the link went down",
        rate::<{ at(FIELDS, "link_downed") }>,
    ),
    events(
        "tx_waits",
        "Ticks in which there was data to send and no credit",
        rate::<{ at(FIELDS, "port_xmit_wait") }>,
    ),
];

/// Appends `mlx5_0` for `mlx5_0/ports/1`, and the port too if it is not the first.
fn put_port(cells: &Cells, out: &mut Vec<u8>) {
    let name = String::from_utf8_lossy(cells.name);
    match name.split_once("/ports/") {
        Some((device, "1")) => out.extend_from_slice(device.as_bytes()),
        Some((device, port)) => out.extend_from_slice(format!("{device}:{port}").as_bytes()),
        None => out.extend_from_slice(cells.name),
    }
}

const DETAIL: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k] = TRAFFIC;
    [
        text(
            "port",
            "Device, and the number of the port behind a colon where it is not 1",
            put_port,
        ),
        text("link_layer", "InfiniBand or Ethernet", |c, out| {
            out.extend_from_slice(&c.labels[0])
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
        number("state", Unit::None, "State of the port: 4 is active", |c| {
            c.now[at(FIELDS, "state")]
        }),
    ]
};

const PLOT: &[PlotColumn] = &[
    plot("InPkt", "rx_packets"),
    plot("OutPkt", "tx_packets"),
    plot("InKB", "rx_kb"),
    plot("OutKB", "tx_kb"),
    plot("Err", "errors"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    super::place("HCA", "port", super::Form::Text),
    plot("InPkt", "rx_packets"),
    plot("OutPkt", "tx_packets"),
    plot("InKB", "rx_kb"),
    plot("OutKB", "tx_kb"),
    plot("Err", "errors"),
];

const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[
        exposed::MetricLabel {
            name: "device",
            may_lack: false,
            put: |row, out| out.extend_from_slice(device_and_port(row).0),
        },
        exposed::MetricLabel {
            name: "port",
            may_lack: false,
            put: |row, out| out.extend_from_slice(device_and_port(row).1),
        },
    ],
    shows: |_| true,
    families: &[
        exposed::counter(
            "node_infiniband_port_data_received_bytes_total",
            at(FIELDS, "port_rcv_data"),
        )
        .scaled(Scale::Times(4.0))
        .meant("Bytes received"),
        exposed::counter(
            "node_infiniband_port_data_transmitted_bytes_total",
            at(FIELDS, "port_xmit_data"),
        )
        .scaled(Scale::Times(4.0))
        .meant("Bytes sent"),
        exposed::counter(
            "node_infiniband_port_packets_received_total",
            at(FIELDS, "port_rcv_packets"),
        ),
        exposed::counter(
            "node_infiniband_port_packets_transmitted_total",
            at(FIELDS, "port_xmit_packets"),
        ),
        exposed::counter(
            "node_infiniband_symbol_error_total",
            at(FIELDS, "symbol_error"),
        ),
        exposed::counter(
            "node_infiniband_link_error_recovery_total",
            at(FIELDS, "link_error_recovery"),
        ),
        exposed::counter(
            "node_infiniband_link_downed_total",
            at(FIELDS, "link_downed"),
        ),
        exposed::counter(
            "node_infiniband_port_errors_received_total",
            at(FIELDS, "port_rcv_errors"),
        ),
        exposed::counter(
            "node_infiniband_port_receive_remote_physical_errors_total",
            at(FIELDS, "port_rcv_remote_physical_errors"),
        ),
        exposed::counter(
            "node_infiniband_port_receive_switch_relay_errors_total",
            at(FIELDS, "port_rcv_switch_relay_errors"),
        ),
        exposed::counter(
            "node_infiniband_port_discards_transmitted_total",
            at(FIELDS, "port_xmit_discards"),
        ),
        exposed::counter(
            "node_infiniband_local_link_integrity_errors_total",
            at(FIELDS, "local_link_integrity_errors"),
        ),
        exposed::counter(
            "node_infiniband_excessive_buffer_overrun_errors_total",
            at(FIELDS, "excessive_buffer_overrun_errors"),
        ),
        exposed::counter(
            "node_infiniband_vl15_dropped_total",
            at(FIELDS, "VL15_dropped"),
        ),
        exposed::counter(
            "node_infiniband_port_constraint_errors_transmitted_total",
            at(FIELDS, "port_xmit_constraint_errors"),
        ),
        exposed::counter(
            "node_infiniband_port_constraint_errors_received_total",
            at(FIELDS, "port_rcv_constraint_errors"),
        ),
        exposed::counter(
            "node_infiniband_port_transmit_wait_total",
            at(FIELDS, "port_xmit_wait"),
        ),
        exposed::gauge("node_infiniband_state_id", at(FIELDS, "state")),
    ],
}]);

/// Device and port of a row: `mlx5_0` and `1` for `mlx5_0/ports/1`.
fn device_and_port(row: &Row) -> (&[u8], &[u8]) {
    const BETWEEN: &[u8] = b"/ports/";
    let name = &row.name[..];
    let at = name.windows(BETWEEN.len()).position(|part| part == BETWEEN);
    match at {
        Some(at) => (&name[..at], &name[at + BETWEEN.len()..]),
        None => (name, b""),
    }
}

/// InfiniBand and its like.
pub static FABRIC: Subsystem = Subsystem {
    letter: 'x',
    name: "infiniband",
    help: "Traffic and errors of InfiniBand, RoCE and Omni-Path ports",
    sources: &[kind::INFINIBAND],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &["link_layer"],
    layout,
    fills: None,
    summary: Summary::Rows,
    sum: None,
    ceiling: None,
    count: None,
    in_service: false,
    columns: &TRAFFIC,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<-----------InfiniBand----------->",
            heads: &["   KBIn  PktIn   KBOut PktOut Errs "],
            row: "{rx_kb:7u} {rx_packets:6c} {tx_kb:7u} {tx_packets:6c} {errors:4c} ",
        },
        verbose: Lines {
            title: "INFINIBAND SUMMARY ({rate})",
            heads: &["  KBIn   PktIn  SizeIn   KBOut  PktOut SizeOut  Errors"],
            row: "{rx_kb:7d} {rx_packets:7d} {rx_size:7u} {tx_kb:7d} {tx_packets:7d} {tx_size:7u} {errors:7d}",
        },
        detail: Lines {
            title: "INFINIBAND STATISTICS ({rate})",
            heads: &["HCA       KBIn   PktIn  SizeIn   KBOut  PktOut SizeOut  Errors"],
            row: " {port:-6s} {rx_kb:7u} {rx_packets:7c6} {rx_size:7u4} {tx_kb:7u} {tx_packets:7c6} {tx_size:7u4} {errors:7c4}",
        },
    },
    plot: Plot {
        tag: "IB",
        order: 8,
        file: "ib",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// Interprets a text with lines such as `port_rcv_data 123`, one for each file.
fn layout(_: u8, template: &Template, _: &Context) -> Layout {
    let mut row = RowLayout {
        counted: true,
        ..RowLayout::default()
    };
    for line in template.lines() {
        let [Piece::Text(name), piece, ..] = &line[..] else {
            continue;
        };
        if let (b"link_layer", Piece::Text(text)) = (*name, piece) {
            row.labels.push(Label {
                label: 0,
                word: Word::Fixed(text.to_vec()),
            });
        }
        let known = FIELDS.iter().position(|f| f.name.as_bytes() == *name);
        if let (Some(field), Some(from)) = (known, value(piece)) {
            row.cells.push(Cell { field, from });
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
    use kymo_base::reading::MISSING;

    #[test]
    fn a_port() {
        let text = "link_layer InfiniBand\nstate 4: ACTIVE\nport_rcv_data 5000000000\nport_xmit_packets 7\nsymbol_error 1\nnew_counter 9\n";
        let reading = read(&FABRIC, &[(kind::INFINIBAND, text)], &Context::default());
        let row = &reading.rows[0];
        for (field, expect) in [
            ("port_rcv_data", 5_000_000_000),
            ("port_xmit_packets", 7),
            ("symbol_error", 1),
            ("state", 4),
            ("port_xmit_data", MISSING),
        ] {
            assert_eq!(row.values[at(FIELDS, field)], expect, "{field}");
        }
        assert_eq!(row.labels, [b"InfiniBand".to_vec()]);
        let errors: Vec<&str> = ERRORS.iter().map(|&field| FIELDS[field].name).collect();
        assert_eq!((errors[0], errors[9]), ("symbol_error", "VL15_dropped"));
    }
}
