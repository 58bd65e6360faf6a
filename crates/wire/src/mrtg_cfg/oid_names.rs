//! Names of OIDs that MRTG knows without a MIB file: MIB-II (RFC 1213), frame relay (RFC 1315), ifXTable (RFC 2863), and
//! `hrSystemUptime`. As in MRTG, names of scalars include the `.0`.

/// A node of the tree and its children: `name number`, separated by blanks.
const NAMES: &[(&str, &str)] = &[
    ("", "iso 1"),
    ("1", "org 3"),
    ("1.3", "dod 6"),
    ("1.3.6", "internet 1"),
    ("1.3.6.1", "directory 1 mgmt 2 experimental 3 private 4"),
    ("1.3.6.1.2", "mib-2 1"),
    (
        "1.3.6.1.2.1",
        "system 1 interfaces 2 at 3 ip 4 icmp 5 tcp 6 udp 7 egp 8 transmission 10 snmp 11",
    ),
    (
        "1.3.6.1.2.1.1",
        "sysDescr 1.0 sysObjectID 2.0 sysUpTime 3.0 sysUptime 3.0 sysContact 4.0 sysName 5.0 sysLocation 6.0 \
         sysServices 7.0",
    ),
    ("1.3.6.1.2.1.2", "ifNumber 1.0 ifTable 2"),
    ("1.3.6.1.2.1.2.2", "ifEntry 1"),
    (
        "1.3.6.1.2.1.2.2.1",
        "ifIndex 1 ifDescr 2 ifType 3 ifMtu 4 ifSpeed 5 ifPhysAddress 6 ifAdminHack 7 ifAdminStatus 7 \
         ifOperHack 8 ifOperStatus 8 ifLastChange 9 ifInOctets 10 ifInUcastPkts 11 ifInNUcastPkts 12 \
         ifInDiscards 13 ifInErrors 14 ifInUnknownProtos 15 ifOutOctets 16 ifOutUcastPkts 17 ifOutNUcastPkts \
         18 ifOutDiscards 19 ifOutErrors 20 ifOutQLen 21 ifSpecific 22",
    ),
    ("1.3.6.1.2.1.3", "atTable 1"),
    ("1.3.6.1.2.1.3.1", "atEntry 1"),
    (
        "1.3.6.1.2.1.3.1.1",
        "atIfIndex 1 atPhysAddress 2 atNetAddress 3",
    ),
    (
        "1.3.6.1.2.1.4",
        "ipForwarding 1 ipDefaultTTL 2 ipInReceives 3 ipInHdrErrors 4 ipInAddrErrors 5 ipForwDatagrams 6 \
         ipInUnknownProtos 7 ipInDiscards 8 ipInDelivers 9 ipOutRequests 10 ipOutDiscards 11 ipOutNoRoutes 12 \
         ipReasmTimeout 13 ipReasmReqds 14 ipReasmOKs 15 ipReasmFails 16 ipFragOKs 17 ipFragFails 18 \
         ipFragCreates 19 ipAddrTable 20 ipRouteTable 21 ipNetToMediaTable 22 ipRoutingDiscards 23",
    ),
    ("1.3.6.1.2.1.4.20", "ipAddrEntry 1"),
    (
        "1.3.6.1.2.1.4.20.1",
        "ipAdEntAddr 1 ipAdEntIfIndex 2 ipAdEntNetMask 3 ipAdEntBcastAddr 4 ipAdEntReasmMaxSize 5",
    ),
    ("1.3.6.1.2.1.4.21", "ipRouteEntry 1"),
    (
        "1.3.6.1.2.1.4.21.1",
        "ipRouteDest 1 ipRouteIfIndex 2 ipRouteMetric1 3 ipRouteMetric2 4 ipRouteMetric3 5 ipRouteMetric4 6 \
         ipRouteNextHop 7 ipRouteType 8 ipRouteProto 9 ipRouteAge 10 ipRouteMask 11 ipRouteMetric5 12 \
         ipRouteInfo 13",
    ),
    ("1.3.6.1.2.1.4.22", "ipNetToMediaEntry 1"),
    (
        "1.3.6.1.2.1.4.22.1",
        "ipNetToMediaIfIndex 1 ipNetToMediaPhysAddress 2 ipNetToMediaNetAddress 3 ipNetToMediaType 4",
    ),
    (
        "1.3.6.1.2.1.5",
        "icmpInMsgs 1 icmpInErrors 2 icmpInDestUnreachs 3 icmpInTimeExcds 4 icmpInParmProbs 5 \
         icmpInSrcQuenchs 6 icmpInRedirects 7 icmpInEchos 8 icmpInEchoReps 9 icmpInTimestamps 10 \
         icmpInTimestampReps 11 icmpInAddrMasks 12 icmpInAddrMaskReps 13 icmpOutMsgs 14 icmpOutErrors 15 \
         icmpOutDestUnreachs 16 icmpOutTimeExcds 17 icmpOutParmProbs 18 icmpOutSrcQuenchs 19 icmpOutRedirects \
         20 icmpOutEchos 21 icmpOutEchoReps 22 icmpOutTimestamps 23 icmpOutTimestampReps 24 icmpOutAddrMasks \
         25 icmpOutAddrMaskReps 26",
    ),
    (
        "1.3.6.1.2.1.6",
        "tcpRtoAlgorithm 1 tcpRtoMin 2 tcpRtoMax 3 tcpMaxConn 4 tcpActiveOpens 5 tcpPassiveOpens 6 \
         tcpAttemptFails 7 tcpEstabResets 8 tcpCurrEstab 9 tcpInSegs 10 tcpOutSegs 11 tcpRetransSegs 12 \
         tcpConnTable 13 tcpInErrs 14 tcpOutRsts 15",
    ),
    ("1.3.6.1.2.1.6.13", "tcpConnEntry 1"),
    (
        "1.3.6.1.2.1.6.13.1",
        "tcpConnState 1 tcpConnLocalAddress 2 tcpConnLocalPort 3 tcpConnRemAddress 4 tcpConnRemPort 5",
    ),
    (
        "1.3.6.1.2.1.7",
        "udpInDatagrams 1 udpNoPorts 2 udpInErrors 3 udpOutDatagrams 4 udpTable 5",
    ),
    ("1.3.6.1.2.1.7.5", "udpEntry 1"),
    ("1.3.6.1.2.1.7.5.1", "udpLocalAddress 1 udpLocalPort 2"),
    (
        "1.3.6.1.2.1.8",
        "egpInMsgs 1 egpInErrors 2 egpOutMsgs 3 egpOutErrors 4 egpNeighTable 5 egpAs 6",
    ),
    ("1.3.6.1.2.1.8.5", "egpNeighEntry 1"),
    (
        "1.3.6.1.2.1.8.5.1",
        "egpNeighState 1 egpNeighAddr 2 egpNeighAs 3 egpNeighInMsgs 4 egpNeighInErrs 5 egpNeighOutMsgs 6 \
         egpNeighOutErrs 7 egpNeighInErrMsgs 8 egpNeighOutErrMsgs 9 egpNeighStateUps 10 egpNeighStateDowns 11 \
         egpNeighIntervalHello 12 egpNeighIntervalPoll 13 egpNeighMode 14 egpNeighEventTrigger 15",
    ),
    ("1.3.6.1.2.1.10", "frame-relay 32"),
    (
        "1.3.6.1.2.1.10.32",
        "frDlcmiTable 1 frCircuitTable 2 frErrTable 3 frame-relay-globals 4",
    ),
    ("1.3.6.1.2.1.10.32.1", "frDlcmiEntry 1"),
    (
        "1.3.6.1.2.1.10.32.1.1",
        "frDlcmiIfIndex 1 frDlcmiState 2 frDlcmiAddress 3 frDlcmiAddressLen 4 frDlcmiPollingInterval 5 \
         frDlcmiFullEnquiryInterval 6 frDlcmiErrorThreshold 7 frDlcmiMonitoredEvents 8 frDlcmiMaxSupportedVCs \
         9 frDlcmiMulticast 10",
    ),
    ("1.3.6.1.2.1.10.32.2", "frCircuitEntry 1"),
    (
        "1.3.6.1.2.1.10.32.2.1",
        "frCircuitIfIndex 1 frCircuitDlci 2 frCircuitState 3 frCircuitReceivedFECNs 4 frCircuitReceivedBECNs \
         5 frCircuitSentFrames 6 frCircuitSentOctets 7 frOutOctets 7 frCircuitReceivedFrames 8 \
         frCircuitReceivedOctets 9 frInOctets 9 frCircuitCreationTime 10 frCircuitLastTimeChange 11 \
         frCircuitCommittedBurst 12 frCircuitExcessBurst 13 frCircuitThroughput 14",
    ),
    ("1.3.6.1.2.1.10.32.3", "frErrEntry 1"),
    (
        "1.3.6.1.2.1.10.32.3.1",
        "frErrIfIndex 1 frErrType 2 frErrData 3 frErrTime 4",
    ),
    ("1.3.6.1.2.1.10.32.4", "frTrapState 1"),
    (
        "1.3.6.1.2.1.11",
        "snmpInPkts 1 snmpOutPkts 2 snmpInBadVersions 3 snmpInBadCommunityNames 4 snmpInBadCommunityUses 5 \
         snmpInASNParseErrs 6 snmpInTooBigs 8 snmpInNoSuchNames 9 snmpInBadValues 10 snmpInReadOnlys 11 \
         snmpInGenErrs 12 snmpInTotalReqVars 13 snmpInTotalSetVars 14 snmpInGetRequests 15 snmpInGetNexts 16 \
         snmpInSetRequests 17 snmpInGetResponses 18 snmpInTraps 19 snmpOutTooBigs 20 snmpOutNoSuchNames 21 \
         snmpOutBadValues 22 snmpOutGenErrs 24 snmpOutGetRequests 25 snmpOutGetNexts 26 snmpOutSetRequests 27 \
         snmpOutGetResponses 28 snmpOutTraps 29 snmpEnableAuthenTraps 30",
    ),
    ("1.3.6.1.2.1.25.1", "hrSystemUptime 1"),
    (
        "1.3.6.1.2.1.31.1.1.1",
        "ifName 1 ifInMulticastPkts 2 ifInBroadcastPkts 3 ifOutMulticastPkts 4 ifOutBroadcastPkts 5 \
         ifHCInOctets 6 ifHCInUcastPkts 7 ifHCInMulticastPkts 8 ifHCInBroadcastPkts 9 ifHCOutOctets 10 \
         ifHCOutUcastPkts 11 ifHCOutMulticastPkts 12 ifHCOutBroadcastPkts 13 ifLinkUpDownTrapEnable 14 \
         ifHighSpeed 15 ifPromiscuousMode 16 ifConnectorPresent 17 ifAlias 18 ifCounterDiscontinuityTime 19",
    ),
    ("1.3.6.1.4", "enterprises 1"),
];

/// The sub-identifiers of a name.
pub(super) fn known(name: &[u8]) -> Option<Vec<u32>> {
    NAMES.iter().find_map(|(folder, entries)| {
        let mut words = entries.split(' ');
        while let (Some(entry), Some(numbers)) = (words.next(), words.next()) {
            if entry.as_bytes() == name {
                return numbers_of(&[folder, numbers].join("."));
            }
        }
        None
    })
}

/// Parses numbers separated by dots, with or without a leading dot.
pub(super) fn numbers_of(text: &str) -> Option<Vec<u32>> {
    let text = text.strip_prefix('.').unwrap_or(text);
    let numbers = text.split('.').map(|part| {
        let is_number = super::perl::is_digits(part.as_bytes());
        part.parse().ok().filter(|_| is_number)
    });
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        for (name, expected) in [
            ("iso", Some("1")),
            ("ifInOctets", Some("1.3.6.1.2.1.2.2.1.10")),
            ("ifHCOutOctets", Some("1.3.6.1.2.1.31.1.1.1.10")),
            ("sysUptime", Some("1.3.6.1.2.1.1.3.0")),
            ("ifOperHack", Some("1.3.6.1.2.1.2.2.1.8")),
            ("hrSystemUptime", Some("1.3.6.1.2.1.25.1.1")),
            ("ifinoctets", None),
            ("10", None),
        ] {
            assert_eq!(
                known(name.as_bytes()),
                expected.and_then(numbers_of),
                "{name}"
            );
        }
    }

    #[test]
    fn there_are_as_many_as_in_mrtg() {
        let words = NAMES.iter().map(|(_, entries)| entries.split(' ').count());
        assert_eq!(words.sum::<usize>(), 2 * 272);
    }

    #[test]
    fn numbers_are_numbers() {
        assert_eq!(numbers_of(".1.3"), Some(vec![1, 3]));
        for text in ["", "1..2", "1.", "1.x", "1.+2", "1.4294967296"] {
            assert_eq!(numbers_of(text), None, "{text}");
        }
    }
}
