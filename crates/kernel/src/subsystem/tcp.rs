//! `t` and `T`: the kernel's counters of IP, TCP, UDP and ICMP: version 4 from /proc/net/snmp and netstat, version 6
//! from snmp6. Each number is found by name, since the columns differ between kernels.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Exposed, Family};
use super::{
    Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, known_rates,
    now, number, place, plot, rate, text, value,
};
use crate::layout::{Cell, Layout, RowLayout};
use crate::source::kind;

// Fields of a row: a counter has `COUNT`, a gauge `LEVEL`.
const COUNT: usize = at(FIELDS, "count");
const LEVEL: usize = at(FIELDS, "level");

const fn counter(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Count, help)
}

const fn octets(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Bytes, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Count, help)
}

/// The column of a field: the rate of a counter, the value of a gauge.
const fn shown<const N: usize>(name: &'static str) -> Column {
    let Field {
        rule, unit, help, ..
    } = &GLOBALS[N];
    match (rule, unit) {
        (Rule::Gauge, _) => number(name, Unit::Count, help, now::<N>),
        (_, Unit::Bytes) => number(name, Unit::BytesPerSecond, help, rate::<N>),
        _ => number(name, Unit::PerSecond, help, rate::<N>),
    }
}

/// Fields, named PROTOCOL_NAME, each with its column; then columns made from several fields.
macro_rules! table {
    ($($moves:ident $field:literal $column:literal $help:literal;)* $(+ $more:expr;)*) => {
        const GLOBALS: &[Field] = &[$($moves($field, $help)),*];
        const COLUMNS: &[Column] = &[$(shown::<{ at(GLOBALS, $field) }>($column),)* $($more),*];
    };
}

table! {
    gauge "Ip_Forwarding" "ip_forwarding" "1 if the machine is a router, 2 if not";
    counter "Ip_InReceives" "ip_received" "IPv4 packets received";
    counter "Ip_InDelivers" "ip_delivered" "IPv4 packets given to a protocol";
    counter "Ip_ForwDatagrams" "ip_forwarded" "IPv4 packets forwarded";
    counter "Ip_InDiscards" "ip_in_discarded" "Received IPv4 packets dropped, as for want of memory";
    counter "Ip_InHdrErrors" "ip_in_header_errors" "Received IPv4 packets with a wrong header";
    counter "Ip_InAddrErrors" "ip_in_address_errors" "Received IPv4 packets for an address that is not here";
    counter "Ip_InUnknownProtos" "ip_in_unknown_protocols" "Received IPv4 packets of a protocol nothing serves";
    counter "Ip_OutRequests" "ip_sent" "IPv4 packets to be sent";
    counter "Ip_OutDiscards" "ip_out_discarded" "IPv4 packets to be sent dropped";
    counter "Ip_OutNoRoutes" "ip_no_route" "IPv4 packets without a route";
    counter "Ip_ReasmReqds" "ip_fragments_received" "IPv4 fragments received";
    counter "Ip_ReasmOKs" "ip_reassembled" "IPv4 packets put together of fragments";
    counter "Ip_ReasmFails" "ip_reassembly_failed" "IPv4 packets that could not be put together";
    counter "Ip_FragOKs" "ip_fragmented" "IPv4 packets cut into fragments";
    counter "Ip_FragFails" "ip_fragmentation_failed" "IPv4 packets that could not be cut";
    counter "Ip_FragCreates" "ip_fragments_made" "IPv4 fragments made";
    counter "Tcp_ActiveOpens" "tcp_active_opens" "Connections begun here";
    counter "Tcp_PassiveOpens" "tcp_passive_opens" "Connections accepted";
    counter "Tcp_AttemptFails" "tcp_failed" "Connections that failed while they were made";
    counter "Tcp_EstabResets" "tcp_resets" "Connections ended by a reset";
    gauge "Tcp_CurrEstab" "tcp_established" "Connections established or in CLOSE-WAIT";
    counter "Tcp_InSegs" "tcp_in" "Segments received";
    counter "Tcp_OutSegs" "tcp_out" "Segments sent";
    counter "Tcp_RetransSegs" "tcp_retransmitted" "Segments sent again";
    counter "Tcp_InErrs" "tcp_in_errors" "Segments received with errors";
    counter "Tcp_OutRsts" "tcp_out_resets" "Resets sent";
    counter "Udp_InDatagrams" "udp_in" "UDP datagrams received";
    counter "Udp_OutDatagrams" "udp_out" "UDP datagrams sent";
    counter "Udp_NoPorts" "udp_no_port" "UDP datagrams to a port nothing listens on";
    counter "Udp_InErrors" "udp_in_errors" "UDP datagrams not delivered for other reasons";
    counter "Udp_RcvbufErrors" "udp_in_full" "UDP datagrams dropped, as the receive buffer was full";
    counter "Udp_SndbufErrors" "udp_out_full" "UDP datagrams not sent, as the send buffer was full";
    counter "UdpLite_InErrors" "udplite_in_errors" "UDP-Lite datagrams not delivered";
    counter "Icmp_InMsgs" "icmp_in" "ICMP messages received";
    counter "Icmp_InErrors" "icmp_in_errors" "ICMP messages received with errors";
    counter "Icmp_InDestUnreachs" "icmp_in_unreachable" "Destination unreachable, received";
    counter "Icmp_InEchos" "icmp_in_echos" "Echo requests received";
    counter "Icmp_InEchoReps" "icmp_in_replies" "Echo replies received";
    counter "Icmp_OutMsgs" "icmp_out" "ICMP messages sent";
    counter "Icmp_OutErrors" "icmp_out_errors" "ICMP messages not sent";
    counter "Icmp_OutDestUnreachs" "icmp_out_unreachable" "Destination unreachable, sent";
    counter "Icmp_OutEchos" "icmp_out_echos" "Echo requests sent";
    counter "Icmp_OutEchoReps" "icmp_out_replies" "Echo replies sent";
    counter "IpExt_InMcastPkts" "ip_in_multicast" "IPv4 multicast packets received";
    counter "IpExt_InBcastPkts" "ip_in_broadcast" "IPv4 broadcast packets received";
    octets "IpExt_InOctets" "ip_in_bytes" "Bytes of IPv4 packets received";
    octets "IpExt_InMcastOctets" "ip_in_multicast_bytes" "Bytes of IPv4 multicast packets received";
    octets "IpExt_InBcastOctets" "ip_in_broadcast_bytes" "Bytes of IPv4 broadcast packets received";
    counter "IpExt_OutMcastPkts" "ip_out_multicast" "IPv4 multicast packets sent";
    octets "IpExt_OutOctets" "ip_out_bytes" "Bytes of IPv4 packets sent";
    octets "IpExt_OutMcastOctets" "ip_out_multicast_bytes" "Bytes of IPv4 multicast packets sent";
    counter "TcpExt_TW" "tcp_time_wait" "Connections that ended their TIME-WAIT by its clock";
    counter "TcpExt_PAWSEstab" "tcp_old_stamps" "Segments rejected, as their time stamp was old";
    counter "TcpExt_DelayedACKs" "tcp_delayed_acks" "Delayed acknowledgements sent";
    counter "TcpExt_DelayedACKLost" "tcp_quick_acks" "Times quick acknowledgements were switched on";
    counter "TcpExt_TCPPrequeued" "tcp_prequeued" "Segments queued for the process (kernels before 4.14)";
    counter "TcpExt_TCPDirectCopyFromPrequeue" "tcp_prequeue_copied" "Bytes copied from that queue (kernels before 4.14)";
    counter "TcpExt_TCPHPHits" "tcp_predicted" "Segments whose header was as predicted";
    counter "TcpExt_TCPPureAcks" "tcp_pure_acks" "Acknowledgements without data received";
    counter "TcpExt_TCPHPAcks" "tcp_predicted_acks" "Acknowledgements that were as predicted";
    counter "TcpExt_TCPDSACKOldSent" "tcp_dsacks_sent" "Duplicate SACKs sent for old segments";
    counter "TcpExt_TCPAbortOnData" "tcp_aborted_on_data" "Connections reset, as data came after their end";
    counter "TcpExt_TCPAbortOnClose" "tcp_aborted_on_close" "Connections reset, as they were closed with data unread";
    counter "TcpExt_TCPSackShiftFallback" "tcp_sack_fallbacks" "SACKs that could not be merged";
    counter "TcpExt_TCPLoss" "tcp_losses" "Losses of data found by SACK (kernels before 2.6.39)";
    counter "TcpExt_TCPFastRetrans" "tcp_fast_retransmits" "Segments sent again before a timeout";
    counter "TcpExt_ListenOverflows" "tcp_listen_overflows" "Connections refused, as the queue of a listener was full";
    counter "TcpExt_ListenDrops" "tcp_listen_drops" "Connections refused by listeners, for any reason";
    counter "TcpExt_SyncookiesSent" "tcp_syncookies_sent" "SYN cookies sent";
    counter "TcpExt_SyncookiesRecv" "tcp_syncookies_received" "SYN cookies received";
    counter "TcpExt_SyncookiesFailed" "tcp_syncookies_failed" "SYN cookies that were wrong";
    counter "TcpExt_TCPSynRetrans" "tcp_syn_retransmits" "SYNs sent again";
    counter "TcpExt_TCPTimeouts" "tcp_timeouts" "Retransmit timeouts";
    counter "TcpExt_TCPOFOQueue" "tcp_out_of_order" "Segments received out of order";
    counter "TcpExt_TCPRcvQDrop" "tcp_in_full" "Segments dropped, as the receive buffer was full";
    counter "Ip6_InReceives" "ip6_received" "IPv6 packets received";
    counter "Ip6_InDelivers" "ip6_delivered" "IPv6 packets given to a protocol";
    counter "Ip6_OutForwDatagrams" "ip6_forwarded" "IPv6 packets forwarded";
    counter "Ip6_OutRequests" "ip6_sent" "IPv6 packets to be sent";
    counter "Ip6_InHdrErrors" "ip6_in_header_errors" "Received IPv6 packets with a wrong header";
    counter "Ip6_InTooBigErrors" "ip6_in_too_big" "Received IPv6 packets larger than the link allows";
    counter "Ip6_InNoRoutes" "ip6_in_no_route" "Received IPv6 packets without a route";
    counter "Ip6_InAddrErrors" "ip6_in_address_errors" "Received IPv6 packets for an address that is not here";
    counter "Ip6_InUnknownProtos" "ip6_in_unknown_protocols" "Received IPv6 packets of a protocol nothing serves";
    counter "Ip6_InTruncatedPkts" "ip6_in_truncated" "Received IPv6 packets that were cut short";
    counter "Ip6_InDiscards" "ip6_in_discarded" "Received IPv6 packets dropped";
    counter "Ip6_OutDiscards" "ip6_out_discarded" "IPv6 packets to be sent dropped";
    counter "Ip6_OutNoRoutes" "ip6_no_route" "IPv6 packets to be sent without a route";
    counter "Ip6_ReasmFails" "ip6_reassembly_failed" "IPv6 packets that could not be put together";
    counter "Ip6_FragFails" "ip6_fragmentation_failed" "IPv6 packets that could not be cut";
    octets "Ip6_InOctets" "ip6_in_bytes" "Bytes of IPv6 packets received";
    octets "Ip6_OutOctets" "ip6_out_bytes" "Bytes of IPv6 packets sent";
    counter "Icmp6_InMsgs" "icmp6_in" "ICMPv6 messages received";
    counter "Icmp6_InErrors" "icmp6_in_errors" "ICMPv6 messages received with errors";
    counter "Icmp6_OutMsgs" "icmp6_out" "ICMPv6 messages sent";
    counter "Udp6_InDatagrams" "udp6_in" "UDP datagrams received over IPv6";
    counter "Udp6_OutDatagrams" "udp6_out" "UDP datagrams sent over IPv6";
    counter "Udp6_NoPorts" "udp6_no_port" "UDP datagrams over IPv6 to a port nothing listens on";
    counter "Udp6_InErrors" "udp6_in_errors" "UDP datagrams over IPv6 not delivered for other reasons";
    counter "Udp6_RcvbufErrors" "udp6_in_full" "UDP datagrams over IPv6 dropped, as the receive buffer was full";
    counter "Udp6_SndbufErrors" "udp6_out_full" "UDP datagrams over IPv6 not sent, as the send buffer was full";
    counter "UdpLite6_InErrors" "udplite6_in_errors" "UDP-Lite datagrams over IPv6 not delivered";
    gauge "Tcp_MaxConn" "tcp_connections_max" "Most connections there may be; -1: no limit";
    + errors("ip_errors", "Wrong header, address or protocol, dropped, not put together, not cut: IPv4", |c| known_rates(c, IP_ERRORS));
    + errors("tcp_errors", "tcp_failed + tcp_in_errors", |c| known_rates(c, TCP_ERRORS));
    + errors("udp_errors", "udp_no_port + udp_in_errors", |c| known_rates(c, UDP_ERRORS));
    + errors("icmp_errors", "icmp_in_errors + icmp_in_unreachable + icmp_out_errors", |c| known_rates(c, ICMP_ERRORS));
    + errors("tcp_lost", "tcp_losses + tcp_fast_retransmits", |c| known_rates(c, LOST));
    + errors("ip6_errors", "The errors of ip_errors, of IPv6", |c| known_rates(c, IP6_ERRORS));
}

const fn errors(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

const fn f(name: &str) -> usize {
    at(GLOBALS, name)
}

const IP_ERRORS: &[usize] = &[
    f("Ip_InHdrErrors"),
    f("Ip_InAddrErrors"),
    f("Ip_InUnknownProtos"),
    f("Ip_InDiscards"),
    f("Ip_OutDiscards"),
    f("Ip_ReasmFails"),
    f("Ip_FragFails"),
];
const TCP_ERRORS: &[usize] = &[f("Tcp_AttemptFails"), f("Tcp_InErrs")];
const UDP_ERRORS: &[usize] = &[f("Udp_NoPorts"), f("Udp_InErrors")];
const ICMP_ERRORS: &[usize] = &[
    f("Icmp_InErrors"),
    f("Icmp_InDestUnreachs"),
    f("Icmp_OutErrors"),
];
const LOST: &[usize] = &[f("TcpExt_TCPLoss"), f("TcpExt_TCPFastRetrans")];
const IP6_ERRORS: &[usize] = &[
    f("Ip6_InHdrErrors"),
    f("Ip6_InTooBigErrors"),
    f("Ip6_InNoRoutes"),
    f("Ip6_InAddrErrors"),
    f("Ip6_InUnknownProtos"),
    f("Ip6_InTruncatedPkts"),
    f("Ip6_InDiscards"),
    f("Ip6_OutDiscards"),
    f("Ip6_ReasmFails"),
    f("Ip6_FragFails"),
];

/// Gauges among the kernel's counters.
const GAUGES: &[&str] = &[
    "Ip_Forwarding",
    "Ip_DefaultTTL",
    "Tcp_RtoAlgorithm",
    "Tcp_RtoMin",
    "Tcp_RtoMax",
    "Tcp_MaxConn",
    "Tcp_CurrEstab",
    "MPTcpExt_MPCurrEstab",
];

const FIELDS: &[Field] = &[
    counter("count", "How often it happened"),
    gauge("level", "The value of what is a state or a setting"),
];

const DETAIL: &[Column] = &[
    text(
        "counter",
        "PROTOCOL_NAME, in the kernel's words",
        |c, out| out.extend_from_slice(c.name),
    ),
    number(
        "value",
        Unit::None,
        "A second; of a state or a setting its value",
        |c| match c.now[LEVEL].is_nan() {
            true => c.rate(COUNT),
            false => c.now[LEVEL],
        },
    ),
];

const PLOT: &[PlotColumn] = &[
    plot("IpErr", "ip_errors"),
    plot("TcpErr", "tcp_errors"),
    plot("UdpErr", "udp_errors"),
    plot("IcmpErr", "icmp_errors"),
    plot("Loss", "tcp_losses"),
    plot("FTrans", "tcp_fast_retransmits"),
];

const PLOT_DETAIL: &[PlotColumn] = &[place("[TCPD]{name}", "value", Form::Whole)];

const fn untyped(name: &'static str) -> Family {
    const PREFIX: usize = "node_netstat_".len();
    let (_, field) = name.split_at(PREFIX);
    exposed::untyped(name, at(GLOBALS, field))
}

/// Metrics that node_exporter exposes by default, and three that dashboards ask for and its switches can add.
const EXPOSED: Exposed = Exposed::machine(&[
    untyped("node_netstat_Icmp6_InErrors"),
    untyped("node_netstat_Icmp6_InMsgs"),
    untyped("node_netstat_Icmp6_OutMsgs"),
    untyped("node_netstat_Icmp_InErrors"),
    untyped("node_netstat_Icmp_InMsgs"),
    untyped("node_netstat_Icmp_OutMsgs"),
    untyped("node_netstat_Ip6_InOctets"),
    untyped("node_netstat_Ip6_OutOctets"),
    untyped("node_netstat_IpExt_InOctets"),
    untyped("node_netstat_IpExt_OutOctets"),
    untyped("node_netstat_Ip_Forwarding"),
    untyped("node_netstat_TcpExt_ListenDrops"),
    untyped("node_netstat_TcpExt_ListenOverflows"),
    untyped("node_netstat_TcpExt_SyncookiesFailed"),
    untyped("node_netstat_TcpExt_SyncookiesRecv"),
    untyped("node_netstat_TcpExt_SyncookiesSent"),
    untyped("node_netstat_TcpExt_TCPOFOQueue"),
    untyped("node_netstat_TcpExt_TCPRcvQDrop"),
    untyped("node_netstat_TcpExt_TCPSynRetrans"),
    untyped("node_netstat_TcpExt_TCPTimeouts"),
    untyped("node_netstat_Tcp_ActiveOpens"),
    untyped("node_netstat_Tcp_CurrEstab"),
    untyped("node_netstat_Tcp_InErrs"),
    untyped("node_netstat_Tcp_InSegs"),
    untyped("node_netstat_Tcp_MaxConn"),
    untyped("node_netstat_Tcp_OutRsts"),
    untyped("node_netstat_Tcp_OutSegs"),
    untyped("node_netstat_Tcp_PassiveOpens"),
    untyped("node_netstat_Tcp_RetransSegs"),
    untyped("node_netstat_Udp6_InDatagrams"),
    untyped("node_netstat_Udp6_InErrors"),
    untyped("node_netstat_Udp6_NoPorts"),
    untyped("node_netstat_Udp6_OutDatagrams"),
    untyped("node_netstat_Udp6_RcvbufErrors"),
    untyped("node_netstat_Udp6_SndbufErrors"),
    untyped("node_netstat_UdpLite6_InErrors"),
    untyped("node_netstat_UdpLite_InErrors"),
    untyped("node_netstat_Udp_InDatagrams"),
    untyped("node_netstat_Udp_InErrors"),
    untyped("node_netstat_Udp_NoPorts"),
    untyped("node_netstat_Udp_OutDatagrams"),
    untyped("node_netstat_Udp_RcvbufErrors"),
    untyped("node_netstat_Udp_SndbufErrors"),
]);

/// The TCP stack.
pub static TCP: Subsystem = Subsystem {
    letter: 't',
    name: "tcp",
    help: "Packets, connections and errors of IP, TCP, UDP and ICMP, v4 and v6",
    sources: &[kind::SNMP, kind::NETSTAT, kind::SNMP6],
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
    unused: Unused::NotOnTerminals,
    text: Text {
        brief: Lines {
            title: "<-------TCP-------->",
            heads: &["  IP  Tcp  Udp Icmp "],
            row: "{ip_errors:4c} {tcp_errors:4c} {udp_errors:4c} {icmp_errors:4c} ",
        },
        verbose: Lines {
            title: "TCP STACK SUMMARY ({rate})",
            heads: &[
                "<----------------------------------IpPkts-----------------------------------><---------------------------------Tcp---------------------------------><------------Udp-----------><----------------------------Icmp--------------------------->",
                " Receiv Delivr Forwrd DiscdI InvAdd   Sent DiscrO ReasRq ReasOK FragOK FragCr ActOpn PasOpn Failed ResetR  Estab   SegIn SegOut SegRtn SegBad SegRes  InDgm OutDgm NoPort Errors Recvd FailI UnreI EchoI ReplI  Trans FailO UnreO EchoO ReplO",
            ],
            row: "  {ip_received:6d} {ip_delivered:6d} {ip_forwarded:6d} {ip_in_discarded:6d} {ip_in_address_errors:6d} {ip_sent:6d} {ip_out_discarded:6d} {ip_fragments_received:6d} {ip_reassembled:6d} {ip_fragmented:6d} {ip_fragments_made:6d} {tcp_active_opens:6d} {tcp_passive_opens:6d} {tcp_failed:6d} {tcp_resets:6d} {tcp_established:6d}  {tcp_in:6d} {tcp_out:6d} {tcp_retransmitted:6d} {tcp_in_errors:6d} {tcp_out_resets:6d} {udp_in:6d} {udp_out:6d} {udp_no_port:6d} {udp_in_errors:6d} {icmp_in:5d} {icmp_in_errors:5d} {icmp_in_unreachable:5d} {icmp_in_echos:5d} {icmp_in_replies:5d}  {icmp_out:5d} {icmp_out_errors:5d} {icmp_out_unreachable:5d} {icmp_out_echos:5d} {icmp_out_replies:5d}",
        },
        detail: Lines {
            title: "TCP STACK COUNTERS ({rate})",
            heads: &["Counter                                  Value"],
            row: "{name:-34s} {value:11.1}",
        },
    },
    plot: Plot {
        tag: "TCP",
        order: 9,
        file: "tcp",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let lines = template.lines();
    let mut found = Vec::new();
    match kind {
        kind::SNMP6 => {
            for line in &lines {
                if let [Piece::Text(name), number, ..] = &line[..]
                    && let Some(six) = name.iter().position(|&b| b == b'6')
                {
                    let (protocol, name) = name.split_at(six + 1);
                    found.push((named(protocol, name), number));
                }
            }
        }
        _ => {
            for pair in lines.windows(2) {
                names_and_numbers(&pair[0], &pair[1], &mut found);
            }
            // Sorts by collectl's order of protocols; within each the stable sort keeps the kernel's order.
            found.sort_by_key(|(name, _)| rank(name));
        }
    }
    let mut layout = Layout::default();
    for (name, number) in found {
        put(name, number, &mut layout);
    }
    layout
}

/// Pairs a line of names with the line of numbers after it: `Ip: Forwarding DefaultTTL` and `Ip: 1 64`.
fn names_and_numbers<'a>(
    names: &[Piece],
    numbers: &'a [Piece<'a>],
    found: &mut Vec<(Vec<u8>, &'a Piece<'a>)>,
) {
    let ([Piece::Text(of_names), names @ ..], [Piece::Text(of_numbers), numbers @ ..]) =
        (names, numbers)
    else {
        return;
    };
    let Some(protocol) = of_names.strip_suffix(b":") else {
        return;
    };
    if of_names != of_numbers || numbers.first().is_none_or(|first| value(first).is_none()) {
        return;
    }
    for (name, number) in names.iter().zip(numbers) {
        if let Piece::Text(name) = name {
            found.push((named(protocol, name), number));
        }
    }
}

fn named(protocol: &[u8], name: &[u8]) -> Vec<u8> {
    [protocol, b"_", name].concat()
}

/// Position of a protocol in the order of the counters.
fn rank(name: &[u8]) -> usize {
    const ORDER: &[&str] = &["Ip_", "Tcp_", "Udp_", "Icmp_", "IpExt_", "TcpExt_"];
    let place = ORDER
        .iter()
        .position(|protocol| name.starts_with(protocol.as_bytes()));
    place.unwrap_or(ORDER.len())
}

fn put(name: Vec<u8>, number: &Piece, layout: &mut Layout) {
    let Some(from) = value(number) else { return };
    let known = GLOBALS.iter().position(|f| f.name.as_bytes() == name);
    layout
        .globals
        .extend(known.map(|field| Cell { field, from }));
    let is_gauge = GAUGES.iter().any(|gauge| gauge.as_bytes() == name);
    let field = if is_gauge { LEVEL } else { COUNT };
    layout.rows.push(RowLayout {
        name,
        cells: vec![Cell { field, from }],
        ..RowLayout::default()
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    /// The order of columns differs between kernels, and some have more of them.
    #[test]
    fn columns_go_by_their_names() {
        let snmp = "Ip: Forwarding New InReceives DefaultTTL\nIp: 2 7 100 64\nIcmpMsg: InType3\nIcmpMsg: 9\nTcp: MaxConn CurrEstab InSegs\nTcp: -1 25 300\nTcp: orphan\n";
        let netstat = "TcpExt: SyncookiesSent TCPFastRetrans\nTcpExt: 1 2\nIpExt: InOctets\nIpExt: 5000000000\n";
        let six = "Ip6InReceives                   \t44\nUdpLite6InErrors                \t6\nIcmp6OutType135 \t3\nnothing\n";
        let reading = read(
            &TCP,
            &[
                (kind::SNMP, snmp),
                (kind::NETSTAT, netstat),
                (kind::SNMP6, six),
            ],
            &Context::default(),
        );
        for (field, expect) in [
            ("Ip_Forwarding", 2),
            ("Ip_InReceives", 100),
            ("Ip_InDiscards", MISSING),
            ("Tcp_CurrEstab", 25),
            ("Tcp_InSegs", 300),
            ("TcpExt_TCPFastRetrans", 2),
            ("TcpExt_TCPLoss", MISSING),
            ("IpExt_InOctets", 5_000_000_000),
            ("Ip6_InReceives", 44),
            ("UdpLite6_InErrors", 6),
        ] {
            assert_eq!(reading.globals[f(field)], expect, "{field}");
        }
        const M: u64 = MISSING;
        let rows: Vec<_> = reading
            .rows
            .iter()
            .map(|row| (&row.name[..], [row.values[COUNT], row.values[LEVEL]]))
            .collect();
        assert_eq!(
            rows,
            [
                (&b"Ip_Forwarding"[..], [M, 2]),
                (b"Ip_New", [7, M]),
                (b"Ip_InReceives", [100, M]),
                (b"Ip_DefaultTTL", [M, 64]),
                (b"Tcp_MaxConn", [M, -1i64 as u64]),
                (b"Tcp_CurrEstab", [M, 25]),
                (b"Tcp_InSegs", [300, M]),
                (b"IcmpMsg_InType3", [9, M]),
                (b"IpExt_InOctets", [5_000_000_000, M]),
                (b"TcpExt_SyncookiesSent", [1, M]),
                (b"TcpExt_TCPFastRetrans", [2, M]),
                (b"Ip6_InReceives", [44, M]),
                (b"UdpLite6_InErrors", [6, M]),
                (b"Icmp6_OutType135", [3, M]),
            ]
        );
    }
}
