//! Notifications: traps of v1 (RFC 1157, 4.1.6), traps and informs of v2c and v3 (RFC 3416, 4.2.6 and 4.2.7). A trap of v1 gets
//! the name that RFC 3584, 3.1 gives it.

use super::ber::{self, tag};
use super::malformed::Malformed;
use super::message::{PduKind, Response, Varbinds, Version, take_head, take_number, take_pdu};
use super::object_value::ObjectValue;
use super::oid::Oid;

/// Tag of the PDU that only v1 has.
const TRAP_V1: u8 = 0xa4;
/// The enterprise-specific generic-trap of v1.
const ENTERPRISE_SPECIFIC: i32 = 6;
/// snmpTraps, 1.3.6.1.6.3.1.1.5.
const STANDARD: [u8; 8] = [43, 6, 1, 6, 3, 1, 1, 5];
/// sysUpTime.0.
const UP_TIME: [u8; 8] = [43, 6, 1, 2, 1, 1, 3, 0];
/// snmpTrapOID.0.
const TRAP_NAME: [u8; 10] = [43, 6, 1, 6, 3, 1, 1, 4, 1, 0];

/// A notification without its message.
#[derive(Clone, Debug)]
pub struct SnmpNotification<'a> {
    /// True if the sender wants a response.
    pub is_inform: bool,
    /// Id of an inform, which the response repeats.
    pub id: i32,
    /// The event's name: snmpTrapOID.
    pub name: Oid,
    /// The address that a trap of v1 has in it: of the agent, as it sees itself.
    pub agent: Option<[u8; 4]>,
    /// Objects of the event, not decoded yet: each may still be malformed.
    pub objects: Varbinds<'a>,
    /// All varbinds, for the response.
    pub varbinds: Varbinds<'a>,
}

/// A message of v1 or v2c with a notification.
#[derive(Clone)]
pub struct NotificationMessage<'a> {
    /// The version.
    pub version: Version,
    /// The community, a password in plain text.
    pub community: &'a [u8],
    /// The notification.
    pub notification: SnmpNotification<'a>,
}

impl<'a> NotificationMessage<'a> {
    /// Decodes a trap or an inform; any other PDU is malformed.
    pub fn decode(packet: &'a [u8]) -> Result<NotificationMessage<'a>, Malformed> {
        let (version, community, pdu) = take_head(packet)?;
        let notification = match version {
            Version::V1 => SnmpNotification::of_v1(pdu)?,
            Version::V2c => {
                let (kind, id, pdu) = take_pdu(pdu)?;
                SnmpNotification::of_pdu(kind, id, &pdu)?
            }
        };
        Ok(NotificationMessage {
            version,
            community,
            notification,
        })
    }
}

impl<'a> SnmpNotification<'a> {
    /// The notification of a PDU of v2c or v3. Its first varbinds are sysUpTime.0, which some senders leave out, and its name.
    pub fn of_pdu(
        kind: PduKind,
        id: i32,
        pdu: &Response<'a>,
    ) -> Result<SnmpNotification<'a>, Malformed> {
        let is_inform = match kind {
            PduKind::Inform => true,
            PduKind::Trap => false,
            PduKind::Get
            | PduKind::GetNext
            | PduKind::Response
            | PduKind::GetBulk
            | PduKind::Report => return Err(Malformed::Kind),
        };
        let mut objects = pdu.varbinds;
        let mut first = objects.next().ok_or(Malformed::NoName)??;
        if first.0 == UP_TIME {
            first = objects.next().ok_or(Malformed::NoName)??;
        }
        match first {
            (name, ObjectValue::Oid(of)) if name == TRAP_NAME => Ok(SnmpNotification {
                is_inform,
                id,
                name: Oid::of_bytes(of),
                agent: None,
                objects,
                varbinds: pdu.varbinds,
            }),
            _ => Err(Malformed::NoName),
        }
    }

    fn of_v1(input: &'a [u8]) -> Result<SnmpNotification<'a>, Malformed> {
        let (pdu, behind) = ber::take(input)?;
        if !behind.is_empty() {
            return Err(Malformed::Trailing);
        }
        if pdu.tag != TRAP_V1 {
            return Err(Malformed::Kind);
        }
        let (enterprise, rest) = ber::expect(pdu.content, tag::OID)?;
        let (agent, rest) = ber::expect(rest, tag::IP_ADDRESS)?;
        let (generic, rest) = take_number(rest)?;
        let (specific, rest) = take_number(rest)?;
        let (_, rest) = ber::expect(rest, tag::TIME_TICKS)?;
        let varbinds = Varbinds(ber::expect_last(rest, tag::SEQUENCE)?);
        let name = match u8::try_from(generic) {
            Ok(generic @ 0..=5) => Oid::of_bytes(&STANDARD).with(&[u32::from(generic) + 1]),
            _ if generic == ENTERPRISE_SPECIFIC => {
                Oid::of_bytes(enterprise).with(&[0, specific.cast_unsigned()])
            }
            _ => return Err(Malformed::Number),
        };
        Ok(SnmpNotification {
            is_inform: false,
            id: 0,
            name,
            agent: Some(agent.try_into().map_err(|_| Malformed::Number)?),
            objects: varbinds,
            varbinds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MessageHead, put_message, put_varbind};
    use super::*;

    /// ifIndex.2 = 2.
    const INDEX: [u8; 10] = [43, 6, 1, 2, 1, 2, 2, 1, 1, 2];
    /// linkDown.
    const LINK_DOWN: [u8; 9] = [43, 6, 1, 6, 3, 1, 1, 5, 3];

    fn trap_of_v1(generic: i64, specific: i64, agent: &[u8]) -> Vec<u8> {
        let (mut varbinds, mut pdu) = (Vec::new(), Vec::new());
        put_varbind(&mut varbinds, &INDEX, ObjectValue::Integer(2));
        ber::put(&mut pdu, tag::OID, &[43, 6, 1, 4, 1, 9]);
        ber::put(&mut pdu, tag::IP_ADDRESS, agent);
        ber::put_signed(&mut pdu, tag::INTEGER, generic);
        ber::put_signed(&mut pdu, tag::INTEGER, specific);
        ber::put_unsigned(&mut pdu, tag::TIME_TICKS, 4_000_000_000);
        ber::put(&mut pdu, tag::SEQUENCE, &varbinds);
        let (mut message, mut packet) = (Vec::new(), Vec::new());
        ber::put_signed(&mut message, tag::INTEGER, 0);
        ber::put(&mut message, tag::OCTET_STRING, b"public");
        ber::put(&mut message, TRAP_V1, &pdu);
        ber::put(&mut packet, tag::SEQUENCE, &message);
        packet
    }

    fn of_v2c(kind: PduKind, objects: &[(&[u8], ObjectValue)]) -> Vec<u8> {
        let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
        for (name, value) in objects {
            put_varbind(&mut varbinds, name, *value);
        }
        let head = MessageHead {
            version: Version::V2c,
            community: b"public",
            kind,
            id: 77,
            status: 0,
            index: 0,
        };
        put_message(&mut packet, &head, &varbinds);
        packet
    }

    #[test]
    fn traps_of_v1_have_the_names_of_rfc_3584() {
        let agent = [192, 0, 2, 7];
        for (generic, specific, name) in [
            (0, 0, Some("1.3.6.1.6.3.1.1.5.1")),
            (2, 9, Some("1.3.6.1.6.3.1.1.5.3")),
            (5, 0, Some("1.3.6.1.6.3.1.1.5.6")),
            (6, 17, Some("1.3.6.1.4.1.9.0.17")),
            (6, -1, Some("1.3.6.1.4.1.9.0.4294967295")),
            (7, 0, None),
            (-1, 0, None),
            (256, 0, None),
        ] {
            let packet = trap_of_v1(generic, specific, &agent);
            let message = NotificationMessage::decode(&packet);
            let Some(name) = name else {
                assert_eq!(message.err(), Some(Malformed::Number), "{generic}");
                continue;
            };
            let NotificationMessage {
                version,
                community,
                notification,
            } = message.unwrap();
            assert_eq!((version, community), (Version::V1, &b"public"[..]));
            assert_eq!(notification.name.to_string(), name);
            assert_eq!(notification.agent, Some(agent));
            assert!(!notification.is_inform);
            let objects: Vec<_> = notification.objects.map(Result::unwrap).collect();
            assert_eq!(objects, [(&INDEX[..], ObjectValue::Integer(2))]);
        }
        let short = trap_of_v1(0, 0, &[1, 2, 3]);
        let refused = NotificationMessage::decode(&short).err();
        assert_eq!(refused, Some(Malformed::Number));
    }

    #[test]
    fn notifications_of_v2c_are_named_by_their_first_varbinds() {
        let time = (&UP_TIME[..], ObjectValue::TimeTicks(5));
        let name = (&TRAP_NAME[..], ObjectValue::Oid(&LINK_DOWN));
        let index = (&INDEX[..], ObjectValue::Integer(2));
        for (kind, objects, count) in [
            (PduKind::Trap, &[time, name, index][..], Ok(1)),
            (PduKind::Inform, &[time, name], Ok(0)),
            (PduKind::Trap, &[name, index, index], Ok(2)),
            (PduKind::Response, &[time, name], Err(Malformed::Kind)),
            (PduKind::Get, &[time, name], Err(Malformed::Kind)),
            (PduKind::Trap, &[], Err(Malformed::NoName)),
            (PduKind::Trap, &[time], Err(Malformed::NoName)),
            (PduKind::Trap, &[index, name], Err(Malformed::NoName)),
            (
                PduKind::Trap,
                &[(&TRAP_NAME, ObjectValue::Integer(2))],
                Err(Malformed::NoName),
            ),
        ] {
            let packet = of_v2c(kind, objects);
            let message = NotificationMessage::decode(&packet);
            let found = message.as_ref().map(|message| {
                let notification = &message.notification;
                assert_eq!(notification.name.to_string(), "1.3.6.1.6.3.1.1.5.3");
                assert_eq!(notification.is_inform, kind == PduKind::Inform);
                assert_eq!((notification.id, notification.agent), (77, None));
                let all = notification.varbinds.map(Result::unwrap).count();
                assert_eq!(all, objects.len());
                notification.objects.count()
            });
            assert_eq!(found.map_err(|why| *why), count, "{kind:?} {objects:?}");
        }
    }

    #[test]
    fn a_packet_that_is_cut_or_longer_is_refused() {
        let name = (&TRAP_NAME[..], ObjectValue::Oid(&LINK_DOWN));
        for whole in [
            trap_of_v1(3, 0, &[10, 0, 0, 1]),
            of_v2c(PduKind::Inform, &[name]),
        ] {
            assert!(NotificationMessage::decode(&whole).is_ok());
            for end in 0..whole.len() {
                let cut = NotificationMessage::decode(&whole[..end]);
                assert!(cut.is_err(), "{end} bytes");
            }
            let longer = [&whole[..], &[0]].concat();
            let refused = NotificationMessage::decode(&longer).err();
            assert_eq!(refused, Some(Malformed::Trailing));
        }
    }
}
