//! `--tcpfilt`: selects the protocols of `-st` and `-sT`, each with its part of collectl's lines.

use crate::filters::{Names, Spelling};
use crate::layouts::{Layout, Table};
use crate::options::Options;

/// A protocol: letter, prefixes of its counters' names, and its part of the brief and of the verbose lines.
struct StackPart {
    letter: char,
    counters: &'static str,
    brief: (&'static str, &'static str),
    banner: &'static str,
    head: &'static str,
    row: &'static str,
}

const PROTOCOLS: &[StackPart] = &[
    StackPart {
        letter: 'i',
        counters: "Ip_,Ip6_",
        brief: ("  IP ", "{ip_errors:4c} "),
        banner: "<----------------------------------IpPkts----------------------------------->",
        head: " Receiv Delivr Forwrd DiscdI InvAdd   Sent DiscrO ReasRq ReasOK FragOK FragCr",
        row: "  {ip_received:6d} {ip_delivered:6d} {ip_forwarded:6d} {ip_in_discarded:6d} {ip_in_address_errors:6d} {ip_sent:6d} {ip_out_discarded:6d} {ip_fragments_received:6d} {ip_reassembled:6d} {ip_fragmented:6d} {ip_fragments_made:6d}",
    },
    StackPart {
        letter: 't',
        counters: "Tcp_",
        brief: (" Tcp ", "{tcp_errors:4c} "),
        banner: "<---------------------------------Tcp--------------------------------->",
        head: " ActOpn PasOpn Failed ResetR  Estab   SegIn SegOut SegRtn SegBad SegRes",
        row: " {tcp_active_opens:6d} {tcp_passive_opens:6d} {tcp_failed:6d} {tcp_resets:6d} {tcp_established:6d}  {tcp_in:6d} {tcp_out:6d} {tcp_retransmitted:6d} {tcp_in_errors:6d} {tcp_out_resets:6d}",
    },
    StackPart {
        letter: 'u',
        counters: "Udp_,UdpLite_,Udp6_,UdpLite6_",
        brief: (" Udp ", "{udp_errors:4c} "),
        banner: "<------------Udp----------->",
        head: "  InDgm OutDgm NoPort Errors",
        row: " {udp_in:6d} {udp_out:6d} {udp_no_port:6d} {udp_in_errors:6d}",
    },
    StackPart {
        letter: 'c',
        counters: "Icmp_,IcmpMsg_,Icmp6_",
        brief: ("Icmp ", "{icmp_errors:4c} "),
        banner: "<----------------------------Icmp--------------------------->",
        head: " Recvd FailI UnreI EchoI ReplI  Trans FailO UnreO EchoO ReplO",
        row: " {icmp_in:5d} {icmp_in_errors:5d} {icmp_in_unreachable:5d} {icmp_in_echos:5d} {icmp_in_replies:5d}  {icmp_out:5d} {icmp_out_errors:5d} {icmp_out_unreachable:5d} {icmp_out_echos:5d} {icmp_out_replies:5d}",
    },
    StackPart {
        letter: 'I',
        counters: "IpExt_",
        brief: ("", ""),
        banner: "<-------------------------IpExt------------------------>",
        head: " MPktsI BPktsI OctetI MOctsI BOctsI MPktsI OctetI MOctsI",
        row: " {ip_in_multicast:6d} {ip_in_broadcast:6d} {ip_in_bytes:6d} {ip_in_multicast_bytes:6d} {ip_in_broadcast_bytes:6d} {ip_out_multicast:6d} {ip_out_bytes:6d} {ip_out_multicast_bytes:6d}",
    },
    StackPart {
        letter: 'T',
        counters: "TcpExt_,MPTcpExt_",
        brief: ("TcpX ", "{tcp_lost:4c} "),
        banner: "<-------------------------------------------------TcpExt------------------------------------------------>",
        head: " FasTim Reject DelAck QikAck PktQue PreQuB HdPdct PurAck HPAcks DsAcks RUData REClos  SackS PkLoss FTrans",
        row: " {tcp_time_wait:6d} {tcp_old_stamps:6d} {tcp_delayed_acks:6d} {tcp_quick_acks:6d} {tcp_prequeued:6d} {tcp_prequeue_copied:6d} {tcp_predicted:6d} {tcp_pure_acks:6d} {tcp_predicted_acks:6d} {tcp_dsacks_sent:6d} {tcp_aborted_on_data:6d} {tcp_aborted_on_close:6d} {tcp_sack_fallbacks:6d} {tcp_losses:6d} {tcp_fast_retransmits:6d}",
    },
];

impl Options {
    /// Sets `--tcpfilt`.
    pub fn set_protocols(&mut self, letters: &str) -> Result<(), String> {
        let wrong =
            |cause: &str| format!("cannot use --tcpfilt {}: {cause}", letters.escape_debug());
        let known = |letter: char| PROTOCOLS.iter().any(|one| one.letter == letter);
        if letters.is_empty() || !letters.chars().all(known) {
            return Err(wrong("it takes i t u c I T"));
        }
        if !self
            .choices
            .iter()
            .any(|choice| choice.subsystem.letter == 't')
        {
            return Err(wrong("it is for -st and -sT"));
        }
        let chosen = || PROTOCOLS.iter().filter(|one| letters.contains(one.letter));
        let counters: Vec<&str> = chosen().map(|one| one.counters).collect();
        let counters = Names::parse("--tcpfilt", &counters.join(","), Spelling::Starts)?;
        self.filters.add('t', counters);
        self.protocols = Some(letters.into());
        let joined =
            |part: fn(&StackPart) -> &'static str| -> String { chosen().map(part).collect() };
        let names = joined(|one| one.brief.0);
        self.layouts.replace(
            't',
            Table::Brief,
            Layout {
                title: brief_title(names.len()),
                heads: vec![names],
                row: joined(|one| one.brief.1),
            },
        );
        self.layouts.replace(
            't',
            Table::Verbose,
            Layout {
                title: "TCP STACK SUMMARY ({rate})".into(),
                heads: vec![joined(|one| one.banner), joined(|one| one.head)],
                row: verbose_row(&joined(|one| one.row)),
            },
        );
        // IpExt has no columns in the brief line.
        self.wants_verbose |= letters.contains('I');
        Ok(())
    }
}

/// The row begins with one blank more.
fn verbose_row(row: &str) -> String {
    format!("  {}", row.trim_start())
}

/// A banner as wide as the names, with `TCP` in the middle.
fn brief_title(width: usize) -> String {
    let around = width.saturating_sub(5);
    let (before, behind) = (around / 2, around - around / 2);
    format!("<{:-<before$}TCP{:-<behind$}>", "", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_kernel::subsystem;

    #[test]
    fn every_place_has_its_column() {
        let of = subsystem::of('t').expect("a subsystem");
        for protocol in PROTOCOLS {
            for place in [protocol.brief.1, protocol.row].concat().split('{').skip(1) {
                let name = place.split(':').next().unwrap_or_default();
                assert!(of.columns.iter().any(|c| c.name == name), "{name}");
            }
        }
    }

    /// Without the switch, the rows equal those of its default.
    #[test]
    fn the_default_is_ituc() {
        let options = |letters| Options::new(letters).expect("sound");
        let tcp = subsystem::of('t').expect("a subsystem");
        let (plain, mut named) = (options("t"), options("t"));
        named.set_protocols("ituc").expect("sound");
        for table in [Table::Brief, Table::Verbose] {
            assert_eq!(plain.layouts.of(tcp, table), named.layouts.of(tcp, table));
        }
        for wrong in ["", "x", "itx"] {
            assert!(named.set_protocols(wrong).is_err());
        }
        assert!(options("c").set_protocols("i").is_err());
    }
}
