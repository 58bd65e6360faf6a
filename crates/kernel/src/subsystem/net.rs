//! `n` and `N`: network interfaces, from /proc/net/dev. The sum counts the hardware interfaces, since the traffic of bridges,
//! bonds and tunnels passes through these. If no interface is hardware, as in a container, the outermost ones count. What an
//! interface is (carrier, MTU, up) comes from /sys/class/net, its speed from the facts.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::name::DisplayName;
use kymo_base::reading::MISSING;
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Scale};
use super::{
    Ceiling, Lines, Most, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field,
    named_rows, number, numbers, plot, ratio, text,
};
use crate::layout::{Cell, From, Layout, RowLayout};
use crate::source::kind;

const RX_BYTES: usize = at(FIELDS, "rx_bytes");
const RX_PACKETS: usize = at(FIELDS, "rx_packets");
const RX_ERRS: usize = at(FIELDS, "rx_errs");
const RX_DROP: usize = at(FIELDS, "rx_drop");
const RX_FIFO: usize = at(FIELDS, "rx_fifo");
const RX_FRAME: usize = at(FIELDS, "rx_frame");
const RX_COMPRESSED: usize = at(FIELDS, "rx_compressed");
const RX_MULTICAST: usize = at(FIELDS, "rx_multicast");
const TX_BYTES: usize = at(FIELDS, "tx_bytes");
const TX_PACKETS: usize = at(FIELDS, "tx_packets");
const TX_ERRS: usize = at(FIELDS, "tx_errs");
const TX_DROP: usize = at(FIELDS, "tx_drop");
const TX_FIFO: usize = at(FIELDS, "tx_fifo");
const TX_COLLS: usize = at(FIELDS, "tx_colls");
const TX_CARRIER: usize = at(FIELDS, "tx_carrier");
const TX_COMPRESSED: usize = at(FIELDS, "tx_compressed");
/// Number of the counters, which are the first fields.
const COUNTERS: usize = TX_COMPRESSED + 1;
const CARRIER: usize = at(FIELDS, "carrier");
const MTU: usize = at(FIELDS, "mtu");
const UP: usize = at(FIELDS, "up");
const UNHANDLED: usize = at(FIELDS, "rx_nohandler");
const BOND_SLAVES: usize = at(FIELDS, "bond_slaves");
const BOND_ACTIVE: usize = at(FIELDS, "bond_active");
const SPEED: usize = at(FIELDS, "speed");
const NEIGHBOURS: usize = at(FIELDS, "neighbours");

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Gauge, unit, help)
}

const FIELDS: &[Field] = &[
    counter("rx_bytes", Unit::Bytes, "Received"),
    counter("rx_packets", Unit::Count, "Packets received"),
    counter("rx_errs", Unit::Count, "Packets received with errors"),
    counter("rx_drop", Unit::Count, "Received packets dropped"),
    counter("rx_fifo", Unit::Count, "Receive overruns"),
    counter("rx_frame", Unit::Count, "Framing errors"),
    counter("rx_compressed", Unit::Count, "Compressed packets received"),
    counter("rx_multicast", Unit::Count, "Multicast packets received"),
    counter("tx_bytes", Unit::Bytes, "Sent"),
    counter("tx_packets", Unit::Count, "Packets sent"),
    counter("tx_errs", Unit::Count, "Packets not sent for errors"),
    counter("tx_drop", Unit::Count, "Packets to send dropped"),
    counter("tx_fifo", Unit::Count, "Send overruns"),
    counter("tx_colls", Unit::Count, "Collisions"),
    counter("tx_carrier", Unit::Count, "Carrier losses"),
    counter("tx_compressed", Unit::Count, "Compressed packets sent"),
    gauge("carrier", Unit::None, "1 with a link, 0 without one"),
    gauge("mtu", Unit::Bytes, "Largest packet"),
    gauge(
        "up",
        Unit::None,
        "1 if the interface is up, 0 if it is in another state",
    ),
    // A gauge, so that samples between two reads repeat the count.
    gauge(
        "rx_nohandler",
        Unit::Count,
        "Packets received that nothing took",
    ),
    gauge("bond_slaves", Unit::Count, "Interfaces of a bond"),
    gauge(
        "bond_active",
        Unit::Count,
        "Interfaces of a bond whose link is up",
    ),
    gauge(
        "speed",
        Unit::MegabitsPerSecond,
        "Speed of the link where it is known",
    ),
    gauge(
        "neighbours",
        Unit::Count,
        "Addresses of IPv4 in the table of neighbours",
    ),
];

fn rate_of(cells: &Cells, fields: &[usize]) -> f64 {
    fields.iter().map(|&field| cells.rate(field)).sum()
}

const TRAFFIC: [Column; 21] = [
    number("rx_packets", Unit::PerSecond, "Packets received", |c| {
        c.rate(RX_PACKETS)
    }),
    number("tx_packets", Unit::PerSecond, "Packets sent", |c| {
        c.rate(TX_PACKETS)
    }),
    number("rx_kb", Unit::KilobytesPerSecond, "Received", |c| {
        c.rate(RX_BYTES) / 1024.0
    }),
    number("tx_kb", Unit::KilobytesPerSecond, "Sent", |c| {
        c.rate(TX_BYTES) / 1024.0
    }),
    number("rx_size", Unit::Bytes, "Mean packet received", |c| {
        ratio(c.delta[RX_BYTES], c.delta[RX_PACKETS])
    }),
    number("tx_size", Unit::Bytes, "Mean packet sent", |c| {
        ratio(c.delta[TX_BYTES], c.delta[TX_PACKETS])
    }),
    number(
        "rx_errs",
        Unit::PerSecond,
        "Packets received with errors",
        |c| c.rate(RX_ERRS),
    ),
    number(
        "rx_drop",
        Unit::PerSecond,
        "Received packets dropped",
        |c| c.rate(RX_DROP),
    ),
    number("rx_fifo", Unit::PerSecond, "Receive overruns", |c| {
        c.rate(RX_FIFO)
    }),
    number("rx_frame", Unit::PerSecond, "Framing errors", |c| {
        c.rate(RX_FRAME)
    }),
    number(
        "rx_compressed",
        Unit::PerSecond,
        "Compressed packets received",
        |c| c.rate(RX_COMPRESSED),
    ),
    number(
        "rx_multicast",
        Unit::PerSecond,
        "Multicast packets received",
        |c| c.rate(RX_MULTICAST),
    ),
    number(
        "tx_errs",
        Unit::PerSecond,
        "Packets not sent for errors",
        |c| c.rate(TX_ERRS),
    ),
    number("tx_drop", Unit::PerSecond, "Packets to send dropped", |c| {
        c.rate(TX_DROP)
    }),
    number("tx_fifo", Unit::PerSecond, "Send overruns", |c| {
        c.rate(TX_FIFO)
    }),
    number("tx_colls", Unit::PerSecond, "Collisions", |c| {
        c.rate(TX_COLLS)
    }),
    number("tx_carrier", Unit::PerSecond, "Carrier losses", |c| {
        c.rate(TX_CARRIER)
    }),
    number(
        "tx_compressed",
        Unit::PerSecond,
        "Compressed packets sent",
        |c| c.rate(TX_COMPRESSED),
    ),
    number(
        "rx_trouble",
        Unit::PerSecond,
        "rx_errs + rx_drop + rx_fifo + rx_frame",
        |c| rate_of(c, &[RX_ERRS, RX_DROP, RX_FIFO, RX_FRAME]),
    ),
    number(
        "tx_trouble",
        Unit::PerSecond,
        "tx_errs + tx_drop + tx_fifo + tx_colls + tx_carrier",
        |c| rate_of(c, &[TX_ERRS, TX_DROP, TX_FIFO, TX_COLLS, TX_CARRIER]),
    ),
    number("trouble", Unit::PerSecond, "rx_trouble + tx_trouble", |c| {
        rate_of(c, &[RX_ERRS, RX_DROP, RX_FIFO, RX_FRAME])
            + rate_of(c, &[TX_ERRS, TX_DROP, TX_FIFO, TX_COLLS, TX_CARRIER])
    }),
];

const DETAIL: &[Column] = &{
    let [
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
        o,
        p,
        q,
        r,
        s,
        t,
        u,
    ] = TRAFFIC;
    [
        text("interface", "Name of the interface", |c, out| {
            out.extend_from_slice(c.name)
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
        o,
        p,
        q,
        r,
        s,
        t,
        u,
        number(
            "speed",
            Unit::MegabitsPerSecond,
            "Speed of the link where it is known",
            speed,
        ),
    ]
};

fn speed(cells: &Cells) -> f64 {
    stated_speed(cells.name, cells.context).unwrap_or(f64::NAN)
}

const PLOT: &[PlotColumn] = &[
    plot("RxPktTot", "rx_packets"),
    plot("TxPktTot", "tx_packets"),
    plot("RxKBTot", "rx_kb"),
    plot("TxKBTot", "tx_kb"),
    plot("RxCmpTot", "rx_compressed"),
    plot("RxMltTot", "rx_multicast"),
    plot("TxCmpTot", "tx_compressed"),
    plot("RxErrsTot", "rx_trouble"),
    plot("TxErrsTot", "tx_trouble"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("Name", "name"),
    plot("RxPkt", "rx_packets"),
    plot("TxPkt", "tx_packets"),
    plot("RxKB", "rx_kb"),
    plot("TxKB", "tx_kb"),
    plot("RxErr", "rx_errs"),
    plot("RxDrp", "rx_drop"),
    plot("RxFifo", "rx_fifo"),
    plot("RxFra", "rx_frame"),
    plot("RxCmp", "rx_compressed"),
    plot("RxMlt", "rx_multicast"),
    plot("TxErr", "tx_errs"),
    plot("TxDrp", "tx_drop"),
    plot("TxFifo", "tx_fifo"),
    plot("TxColl", "tx_colls"),
    plot("TxCar", "tx_carrier"),
    plot("TxCmp", "tx_compressed"),
    plot("RxErrs", "rx_trouble"),
    plot("TxErrs", "tx_trouble"),
];

/// Metrics of every interface, including `lo`, which node_exporter shows and Debian's build leaves out by default.
const EXPOSED: Exposed = Exposed {
    machine: &[],
    each: &[
        Each {
            labels: &[exposed::MetricLabel::name("device")],
            shows: |_| true,
            families: &[
                exposed::counter("node_network_receive_bytes_total", RX_BYTES),
                exposed::counter("node_network_receive_packets_total", RX_PACKETS),
                exposed::counter("node_network_receive_errs_total", RX_ERRS),
                exposed::counter("node_network_receive_drop_total", RX_DROP),
                exposed::counter("node_network_receive_fifo_total", RX_FIFO),
                exposed::counter("node_network_receive_frame_total", RX_FRAME),
                exposed::counter("node_network_receive_compressed_total", RX_COMPRESSED),
                exposed::counter("node_network_receive_multicast_total", RX_MULTICAST),
                exposed::counter("node_network_transmit_bytes_total", TX_BYTES),
                exposed::counter("node_network_transmit_packets_total", TX_PACKETS),
                exposed::counter("node_network_transmit_errs_total", TX_ERRS),
                exposed::counter("node_network_transmit_drop_total", TX_DROP),
                exposed::counter("node_network_transmit_fifo_total", TX_FIFO),
                exposed::counter("node_network_transmit_colls_total", TX_COLLS),
                exposed::counter("node_network_transmit_carrier_total", TX_CARRIER),
                exposed::counter("node_network_transmit_compressed_total", TX_COMPRESSED),
                exposed::gauge("node_network_carrier", CARRIER),
                exposed::gauge("node_network_mtu_bytes", MTU),
                exposed::gauge("node_network_up", UP),
                exposed::gauge("node_network_speed_bytes", SPEED).scaled(Scale::Times(MEGABIT)),
                exposed::counter("node_network_receive_nohandler_total", UNHANDLED),
                exposed::gauge("node_arp_entries", NEIGHBOURS),
            ],
        },
        Each {
            labels: &[exposed::MetricLabel::name("master")],
            shows: |row| {
                row.values
                    .get(BOND_SLAVES)
                    .is_some_and(|slaves| *slaves != MISSING)
            },
            families: &[
                exposed::gauge("node_bonding_slaves", BOND_SLAVES),
                exposed::gauge("node_bonding_active", BOND_ACTIVE),
            ],
        },
    ],
};

/// Bytes a second in a megabit a second.
const MEGABIT: f64 = 125_000.0;
/// Key of the context with the assumed speed of links of unknown speed, in megabits a second: collectl's DefNetSpeed. With 0,
/// any rate of such links is accepted.
pub const USUAL_SPEED_FACT: &str = "def_net_speed";
/// Assumed speed without that key.
const USUAL_SPEED: f64 = 10_000.0;
/// Assumed speed of interfaces without a link, in megabits a second: that of memory (a guess).
const NO_LINK_SPEED: f64 = 1_000_000.0;

/// collectl's rule: a rate above twice the link's speed is invalid.
const CEILING: Ceiling = Ceiling {
    fields: &[RX_BYTES, TX_BYTES],
    // The slowest links have 10 Mbit/s.
    least: 2.0 * 10.0 * MEGABIT,
    most: |name, context| match (stated_speed(name, context), is_link(name, context)) {
        (Some(speed), true) if speed > 0.0 => Most::Known(2.0 * speed * MEGABIT),
        (_, true) => Most::Guessed(2.0 * usual_speed(context) * MEGABIT),
        // Tunnels and bridges state wrong speeds.
        (_, false) => Most::Guessed(2.0 * NO_LINK_SPEED * MEGABIT),
    },
    remark: |name, rate, context| {
        let link = match stated_speed(name, context) {
            Some(speed) => format!("a link of {speed} Mbit/s"),
            None => "a link of unknown speed".to_string(),
        };
        let name = DisplayName(name);
        let kb = rate / 1024.0;
        format!(
            "cannot believe {kb:.0} KB/s of {name}: it is {link}; such intervals are shown as unknown"
        )
    },
};

/// Assumed speed, in megabits a second.
fn usual_speed(context: &Context) -> f64 {
    match context.number(USUAL_SPEED_FACT) {
        Some(0) => f64::INFINITY,
        Some(speed) => speed as f64,
        None => USUAL_SPEED,
    }
}

/// Speed that an interface states, in megabits a second.
fn stated_speed(name: &[u8], context: &Context) -> Option<f64> {
    let name = std::str::from_utf8(name).ok()?;
    let speed = context.number(&format!("speed.{name}"))?;
    Some(speed as f64)
}

/// Returns true if an interface has a link with a speed.
fn is_link(name: &[u8], context: &Context) -> bool {
    match fact(name, context) {
        Some(fact) => fact == "physical",
        None => counts_by_name(name),
    }
}

/// The network interfaces.
pub static NET: Subsystem = Subsystem {
    letter: 'n',
    name: "net",
    help: "Traffic and errors of network interfaces",
    sources: &[kind::NET_DEV, kind::INTERFACES, kind::NEIGHBOURS],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &[],
    layout,
    fills: None,
    summary: Summary::Rows,
    sum: None,
    ceiling: Some(CEILING),
    count: None,
    in_service: true,
    columns: &TRAFFIC,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<----------Network---------->",
            heads: &["  KBIn  PktIn  KBOut  PktOut "],
            row: "{rx_kb:6u} {rx_packets:6c} {tx_kb:6u}  {tx_packets:6c} ",
        },
        verbose: Lines {
            title: "NETWORK SUMMARY ({rate})",
            heads: &[" KBIn  PktIn SizeIn  MultI   CmpI  ErrsI  KBOut PktOut  SizeO   CmpO  ErrsO"],
            row: "{rx_kb:6d} {rx_packets:6d} {rx_size:6d} {rx_multicast:6d} {rx_compressed:6d} {rx_trouble:6d} {tx_kb:6d} {tx_packets:6d} {tx_size:6d} {tx_compressed:6d} {tx_trouble:6d}",
        },
        detail: Lines {
            title: "NETWORK STATISTICS ({rate})",
            heads: &[
                "Num    Name   KBIn  PktIn SizeIn  MultI   CmpI  ErrsI  KBOut PktOut  SizeO   CmpO  ErrsO",
            ],
            row: " {number:3d}  {name:6s} {rx_kb:6d} {rx_packets:6d} {rx_size:6d} {rx_multicast:6d} {rx_compressed:6d} {rx_trouble:6d} {tx_kb:6d} {tx_packets:6d} {tx_size:6d} {tx_compressed:6d} {tx_trouble:6d}",
        },
    },
    plot: Plot {
        tag: "NET",
        order: 4,
        file: "net",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

fn layout(kind: u8, template: &Template, context: &Context) -> Layout {
    match kind {
        kind::INTERFACES => interfaces(template, context),
        kind::NEIGHBOURS => named_rows(template, NEIGHBOURS, 1),
        _ => traffic(template, context),
    }
}

/// Lines of the digest: `eth0 1 1500 1 0 - -`.
fn interfaces(template: &Template, context: &Context) -> Layout {
    let row = |line: &Vec<Piece>| {
        let (Piece::Text(name), rest) = line.split_first()? else {
            return None;
        };
        let mut cells = numbers(rest, CARRIER, SPEED - CARRIER);
        let speed = context.number(&format!("speed.{}", std::str::from_utf8(name).ok()?));
        cells.extend(speed.map(|speed| Cell {
            field: SPEED,
            from: From::Fixed(speed),
        }));
        Some(RowLayout {
            name: name.to_vec(),
            cells,
            ..RowLayout::default()
        })
    };
    Layout {
        rows: template.lines().iter().filter_map(row).collect(),
        ..Layout::default()
    }
}

fn traffic(template: &Template, context: &Context) -> Layout {
    let mut facts = context.with_prefix("net.");
    let by = match facts.any(|(_, fact)| COUNTED.contains(&fact)) {
        true => By::Fact,
        false => By::Name,
    };
    let lines = template.lines();
    let rows = lines.iter().filter_map(|line| row(line, by, context));
    let mut rows: Vec<RowLayout> = rows.collect();
    if !rows.iter().any(|row| row.counted) {
        count_only_one(&mut rows, context);
    }
    Layout {
        rows,
        ..Layout::default()
    }
}

/// Parses a line such as `eth0: 112163438 7585 ...`, in which a blank may be missing after the colon.
fn row(line: &[Piece], by: By, context: &Context) -> Option<RowLayout> {
    let [Piece::Text(name), rest @ ..] = line else {
        return None;
    };
    let name = name.strip_suffix(b":")?;
    let cells = numbers(rest, RX_BYTES, COUNTERS);
    (!cells.is_empty()).then(|| RowLayout {
        name: name.to_vec(),
        counted: counts(name, by, context),
        cells,
        ..RowLayout::default()
    })
}

fn fact<'a>(name: &[u8], context: &'a Context) -> Option<&'a str> {
    let name = std::str::from_utf8(name).ok()?;
    context.get(&format!("net.{name}"))
}

/// Facts of interfaces that count in the sum.
const COUNTED: [&str; 2] = ["physical", "outer"];

/// Rule by which an interface counts in the sum.
#[derive(Clone, Copy)]
enum By {
    Fact,
    /// The name, since no fact marks an interface that counts.
    Name,
}

fn counts(name: &[u8], by: By, context: &Context) -> bool {
    match (by, fact(name, context)) {
        (By::Fact, Some(fact)) => COUNTED.contains(&fact),
        _ => counts_by_name(name),
    }
}

/// collectl's rule: a name of hardware, and neither an alias nor a VLAN.
pub(crate) fn counts_by_name(name: &[u8]) -> bool {
    let starts = [&b"eth"[..], b"hed", b"ib", b"em", b"en", b"wl"];
    let slot = matches!(name, [b'p', n, b'p', ..] if n.is_ascii_digit());
    !name.contains(&b'.') && (slot || starts.iter().any(|start| name.starts_with(start)))
}

/// Names of interfaces without traffic of their own: `lo`, those that the kernel creates with a module, and dummies.
const IDLE: [&[u8]; 9] = [
    b"lo", b"sit", b"tunl", b"gre", b"erspan", b"ip6", b"ip_vti", b"dummy", b"ifb",
];

/// Counts the only interface of a machine, whatever its name (`venet0`, `wwan0`): for recordings without facts in which
/// collectl's rule counts no interface.
fn count_only_one(rows: &mut [RowLayout], context: &Context) {
    let is_own = |row: &RowLayout| {
        let is_idle = IDLE.iter().any(|idle| row.name.starts_with(idle));
        // The bytes of a VLAN are also those of its interface.
        let is_vlan = row.name.contains(&b'.');
        fact(&row.name, context).is_none() && !is_idle && !is_vlan
    };
    let mut own = rows.iter_mut().filter(|row| is_own(row));
    if let (Some(only), None) = (own.next(), own.next()) {
        only.counted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    /// Interfaces of a played file without facts, and those of them that count.
    #[test]
    fn the_only_interface_counts_whatever_its_name_is() {
        for (names, expect) in [
            (&["lo", "venet0", "venet0.5"][..], &["venet0"][..]),
            (&["lo", "wwan0", "sit0", "dummy0"], &["wwan0"]),
            (&["lo", "eth0", "usb0"], &["eth0"]),
            (&["lo", "veth1", "docker0"], &[]),
            (&["lo"], &[]),
        ] {
            let line = |name: &&str| format!("{name}: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
            let text: String = names.iter().map(line).collect();
            let reading = read(&NET, &[(kind::NET_DEV, &text)], &Context::default());
            let counted = reading.rows.iter().filter(|row| row.counted);
            let counted: Vec<_> = counted
                .map(|row| String::from_utf8_lossy(&row.name))
                .collect();
            assert_eq!(counted, expect, "{names:?}");
        }
    }

    #[test]
    fn headers_and_names() {
        let text = "Inter-|   Receive    |  Transmit\n face |bytes    packets|bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:17 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n    12: 18 2\n";
        let mut context = Context::default();
        context.set("net.12", "physical");
        let reading = read(&NET, &[(kind::NET_DEV, text)], &context);
        let rows: Vec<_> = reading
            .rows
            .iter()
            .map(|row| (&row.name[..], row.values[0], row.counted))
            .collect();
        assert_eq!(
            rows,
            [
                (&b"lo"[..], 1, false),
                (b"eth0", 17, true),
                (b"12", 18, true)
            ]
        );
        assert_eq!(
            reading.rows[0].values[..COUNTERS],
            (1..=16).collect::<Vec<u64>>()
        );
    }

    /// The digest adds to the rows of /proc/net/dev and makes none.
    #[test]
    fn what_interfaces_are() {
        const M: u64 = MISSING;
        let traffic = "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n1: 7\n";
        let digest = "1 - 65536 0\neth0 1 1500 1 7 2 1\ngone 1 9000 1 0 - -\n";
        let mut context = Context::default();
        context.set("speed.eth0", "10000");
        let texts = [
            (kind::NET_DEV, traffic),
            (kind::INTERFACES, digest),
            (kind::NEIGHBOURS, "eth0 3\ngone 1\n"),
        ];
        let reading = read(&NET, &texts, &context);
        let rows = reading.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (&row.name[..], row.values[RX_BYTES], &row.values[CARRIER..]))
            .collect();
        assert_eq!(
            rows,
            [
                (&b"eth0"[..], 1, &[1, 1500, 1, 7, 2, 1, 10_000, 3][..]),
                (b"1", 7, &[M, 65_536, 0, M, M, M, M, M])
            ]
        );
        assert_eq!(read(&NET, &texts[1..], &context).rows, []);
    }

    #[test]
    fn what_counts_where_nothing_is_known() {
        for (name, expect) in [
            ("lo", false),
            ("eth0", true),
            ("eth0.5", false),
            ("enp3s0", true),
            ("wlan0", true),
            ("p4p1", true),
            ("docker0", false),
            ("veth1", false),
            ("br0", false),
            ("ib0", true),
            ("bond0", false),
            ("ifb0", false),
        ] {
            assert_eq!(
                counts(name.as_bytes(), By::Name, &Context::default()),
                expect,
                "{name}"
            );
        }
    }
}
