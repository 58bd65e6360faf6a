//! A trap as an event: the device it is of, how grave it is, and all that it tells as one text. Names and values from outside have
//! limits; bytes that are no text are shown as hexadecimal digits, and a value cannot look like two.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use kymo_base::name::DisplayName;
use kymo_wire::collectd::{Severity, escape};
use kymo_wire::keeper::{Event, TRAP};
use kymo_wire::snmp::{Malformed, ObjectValue, SnmpNotification, put_oid_text};

use super::object_names::{
    DOWN, IF_ADMIN_STATUS, IF_DESCR, IF_INDEX, IF_NAME, ValueForm, object, standard_trap, state,
};

/// Most bytes of a value that are shown.
const VALUE_MAX: usize = 160;
/// Most bytes of an identifier that are shown.
const OID_MAX: usize = 128;
/// Length of a text, bytes, from which on no object is added.
const TEXT_MAX: usize = 1024;
/// Most bytes of an interface's name in an event's name.
const INTERFACE_MAX: usize = 64;

/// Names of devices by their addresses.
pub(super) type DeviceNames = HashMap<IpAddr, String>;

/// Makes the event of a trap from `sender`. A malformed object is an error.
pub(super) fn event(
    trap: &SnmpNotification,
    sender: IpAddr,
    names: &DeviceNames,
    time_ns: i64,
) -> Result<Event, Malformed> {
    let standard = standard_trap(&trap.name);
    let objects = TrapObjects::of(trap)?;
    let interface = standard.filter(|trap| trap.is_of_interface);
    let interface = interface.and(objects.interface()).unwrap_or_default();
    let mut title = match standard {
        Some(trap) => trap.name.to_string(),
        None => oid_text(&trap.name),
    };
    let type_name = title.clone();
    if !interface.is_empty() {
        title = format!("{title} of {}", DisplayName(&interface));
    }
    let device = device(trap.agent, sender);
    let by = match device == sender {
        true => String::new(),
        false => format!(", sent by {sender}"),
    };
    let mark = if objects.text.is_empty() { "" } else { ": " };
    Ok(Event {
        time_ns,
        severity: match standard {
            Some(trap) if trap.severity == Severity::Failure && objects.is_turned_off => {
                Severity::Warning
            }
            Some(trap) => trap.severity,
            None => Severity::Warning,
        },
        host: names
            .get(&device)
            .map_or_else(|| device.to_string(), String::clone)
            .into_bytes(),
        plugin: TRAP.to_vec(),
        plugin_instance: Vec::new(),
        type_name: type_name.into_bytes(),
        type_instance: escape(&interface).into_owned(),
        message: format!("{title}{mark}{}{by}", objects.text).into_bytes(),
    })
}

/// The address of the device. The one in a trap of v1 counts if it can be one of another machine: proxies send traps of others.
fn device(agent: Option<[u8; 4]>, sender: IpAddr) -> IpAddr {
    let agent = agent.map(Ipv4Addr::from).filter(|agent| {
        let is_none = agent.is_unspecified() || agent.is_broadcast() || agent.is_multicast();
        !is_none && !agent.is_loopback()
    });
    agent.map_or(sender, IpAddr::V4)
}

/// The objects of a trap.
#[derive(Default)]
struct TrapObjects {
    /// All of them, as `name = value`.
    text: String,
    name: Option<Vec<u8>>,
    descr: Option<Vec<u8>>,
    index: Option<String>,
    /// True if the interface is down because an administrator turned it off.
    is_turned_off: bool,
}

impl TrapObjects {
    fn of(trap: &SnmpNotification) -> Result<TrapObjects, Malformed> {
        let mut objects = TrapObjects::default();
        for object in trap.objects {
            let (name, value) = object?;
            objects.look(name, value);
            objects.add(name, value);
        }
        Ok(objects)
    }

    /// Notes the names and the state of an interface.
    fn look(&mut self, name: &[u8], value: ObjectValue) {
        let text = |value| match value {
            ObjectValue::OctetString(text) if is_text(flat(text)) => Some(flat(text).to_vec()),
            _ => None,
        };
        if name.starts_with(IF_NAME) {
            self.name = text(value);
        } else if name.starts_with(IF_DESCR) {
            self.descr = text(value);
        } else if let (true, Some(number)) = (name.starts_with(IF_INDEX), value.number()) {
            self.index = Some(number.to_string());
        } else if name.starts_with(IF_ADMIN_STATUS) {
            self.is_turned_off = value == ObjectValue::Integer(DOWN);
        }
    }

    /// The best name of the interface.
    fn interface(&self) -> Option<Vec<u8>> {
        let text = [&self.name, &self.descr].into_iter().flatten();
        let text = text.filter(|text| !text.is_empty()).map(Vec::as_slice);
        let index = self
            .index
            .as_ref()
            .map(|index| format!("interface {index}"));
        let index = index.map(String::into_bytes);
        let text = text.map(|text| cut(text, INTERFACE_MAX).to_vec()).next();
        text.or(index)
    }

    fn add(&mut self, name: &[u8], value: ObjectValue) {
        const MORE: &str = ", ...";
        if self.text.ends_with(MORE) {
            return;
        }
        let (word, shown) = match object(name) {
            Some((_, ValueForm::Never, _)) => return,
            Some((word, shown, instance)) => (format!("{word}{}", suffix(instance)), shown),
            None => (oid_text(name), ValueForm::Plain),
        };
        if self.text.len() > TEXT_MAX {
            self.text.push_str(MORE);
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(", ");
        }
        let value = match (shown, value) {
            (ValueForm::State, ObjectValue::Integer(number)) => state(number).map(String::from),
            _ => None,
        }
        .unwrap_or_else(|| value_text(value));
        self.text.push_str(&format!("{word} = {value}"));
    }
}

/// The instance of an object: the arcs behind its name, which are no identifier of their own.
fn suffix(instance: &[u8]) -> String {
    // The first byte of an identifier has two arcs, 1.3 here.
    let whole = oid_text(&[&[43], cut(instance, OID_MAX)].concat());
    whole.strip_prefix("1.3").unwrap_or(&whole).to_string()
}

fn oid_text(content: &[u8]) -> String {
    let mut text = Vec::new();
    put_oid_text(&mut text, cut(content, OID_MAX));
    if content.len() > OID_MAX {
        text.extend_from_slice(b"...");
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn value_text(value: ObjectValue) -> String {
    let mut text = Vec::new();
    match value {
        ObjectValue::OctetString(content) => return octets(content),
        ObjectValue::Oid(content) => return oid_text(content),
        ObjectValue::Null => return "null".into(),
        ObjectValue::NoSuchObject => return "noSuchObject".into(),
        ObjectValue::NoSuchInstance => return "noSuchInstance".into(),
        ObjectValue::EndOfMibView => return "endOfMibView".into(),
        ObjectValue::Opaque(content) => {
            if !value.put_reading(&mut text) {
                return hexadecimal(content);
            }
        }
        ObjectValue::Other { content, .. } => return hexadecimal(content),
        ObjectValue::Integer(_)
        | ObjectValue::Counter32(_)
        | ObjectValue::Gauge32(_)
        | ObjectValue::Counter64(_)
        | ObjectValue::UInteger32(_)
        | ObjectValue::TimeTicks(_)
        | ObjectValue::IpAddress(_) => drop(value.put_text(&mut text)),
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A text in quotes, or bytes that are none.
fn octets(content: &[u8]) -> String {
    let text = flat(content);
    if !is_text(text) {
        return hexadecimal(content);
    }
    let shown = String::from_utf8_lossy(cut(text, VALUE_MAX)).replace(['\t', '\r', '\n'], " ");
    let shown = shown.trim_end_matches('\u{fffd}').replace('"', "'");
    let more = if text.len() > VALUE_MAX { "..." } else { "" };
    format!("\"{shown}{more}\"")
}

/// A text without the NULs that some agents end it with.
fn flat(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != 0);
    &text[..end.map_or(0, |last| last + 1)]
}

/// True for UTF-8 without control characters, but for those between lines and columns.
fn is_text(text: &[u8]) -> bool {
    let is_plain = |one: char| !one.is_control() || matches!(one, '\t' | '\r' | '\n');
    std::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_plain))
}

fn hexadecimal(content: &[u8]) -> String {
    let mut text = String::from("0x");
    let digits = cut(content, VALUE_MAX / 2).iter();
    digits.for_each(|byte| text.push_str(&format!("{byte:02x}")));
    if content.len() > VALUE_MAX / 2 {
        text.push_str("...");
    }
    text
}

fn cut(bytes: &[u8], most: usize) -> &[u8] {
    bytes.get(..most).unwrap_or(bytes)
}

/// Reads any bytes as a trap, and as the objects of one: its event is short, and has no control characters.
#[cfg(feature = "testing")]
pub(crate) fn fuzz(input: &[u8]) {
    use kymo_wire::snmp::{
        MessageHead, NotificationMessage, PduKind, Version, put_message, put_varbind,
    };
    let (mut objects, mut packet) = (Vec::new(), Vec::new());
    let (names, name) = (
        [43, 6, 1, 6, 3, 1, 1, 4, 1, 0],
        [43, 6, 1, 6, 3, 1, 1, 5, 3],
    );
    put_varbind(&mut objects, &names, ObjectValue::Oid(&name));
    objects.extend_from_slice(input);
    let head = MessageHead {
        version: Version::V2c,
        community: b"public",
        kind: PduKind::Inform,
        id: 1,
        status: 0,
        index: 0,
    };
    put_message(&mut packet, &head, &objects);
    for packet in [input, &packet] {
        let Ok(message) = NotificationMessage::decode(packet) else {
            continue;
        };
        let sender = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Ok(event) = event(&message.notification, sender, &DeviceNames::new(), 0) {
            let Ok(text) = String::from_utf8(event.message) else {
                unreachable!("BUG: no text")
            };
            assert!(text.len() < 4096 && !text.contains(char::is_control));
            assert!(event.type_instance.len() <= INTERFACE_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::snmp::{
        MessageHead, NotificationMessage, Oid, PduKind, Version, put_message, put_varbind,
    };

    const SENDER: &str = "192.0.2.7";

    /// The event of a trap with these objects.
    fn event_of(name: &str, objects: &[(&str, ObjectValue)]) -> Event {
        let oid = |text: &str| Oid::parse(text).unwrap();
        let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
        let value = oid(name);
        put_varbind(
            &mut varbinds,
            &oid("1.3.6.1.6.3.1.1.4.1.0"),
            ObjectValue::Oid(&value),
        );
        for (name, value) in objects {
            put_varbind(&mut varbinds, &oid(name), *value);
        }
        let head = MessageHead {
            version: Version::V2c,
            community: b"public",
            kind: PduKind::Trap,
            id: 1,
            status: 0,
            index: 0,
        };
        put_message(&mut packet, &head, &varbinds);
        let message = NotificationMessage::decode(&packet).unwrap();
        let names = [(SENDER.parse().unwrap(), "core-1".to_string())].into();
        event(&message.notification, SENDER.parse().unwrap(), &names, 5).unwrap()
    }

    const LINK_DOWN: &str = "1.3.6.1.6.3.1.1.5.3";
    const INDEX: (&str, ObjectValue) = ("1.3.6.1.2.1.2.2.1.1.2", ObjectValue::Integer(2));
    const DOWN_STATE: (&str, ObjectValue) = ("1.3.6.1.2.1.2.2.1.8.2", ObjectValue::Integer(2));
    const DESCR: (&str, ObjectValue) = (
        "1.3.6.1.2.1.2.2.1.2.2",
        ObjectValue::OctetString(b"Gi0/2\0"),
    );
    const NAME: (&str, ObjectValue) =
        ("1.3.6.1.2.1.31.1.1.1.1.2", ObjectValue::OctetString(b"Gi2"));
    const UP: (&str, ObjectValue) = ("1.3.6.1.2.1.2.2.1.7.2", ObjectValue::Integer(1));
    const OFF: (&str, ObjectValue) = ("1.3.6.1.2.1.2.2.1.7.2", ObjectValue::Integer(2));

    #[test]
    fn standard_traps_are_said_by_their_names() {
        for (name, objects, severity, instance, text) in [
            (
                LINK_DOWN,
                &[INDEX, UP, DOWN_STATE][..],
                Severity::Failure,
                "interface 2",
                "linkDown of interface 2: ifIndex.2 = 2, ifAdminStatus.2 = up, ifOperStatus.2 = down",
            ),
            (
                LINK_DOWN,
                &[INDEX, OFF, DESCR],
                Severity::Warning,
                "Gi0_2",
                "linkDown of Gi0/2: ifIndex.2 = 2, ifAdminStatus.2 = down, ifDescr.2 = \"Gi0/2\"",
            ),
            (
                "1.3.6.1.6.3.1.1.5.4",
                &[DESCR, NAME],
                Severity::Okay,
                "Gi2",
                "linkUp of Gi2: ifDescr.2 = \"Gi0/2\", ifName.2 = \"Gi2\"",
            ),
            (
                "1.3.6.1.6.3.1.1.5.1",
                &[],
                Severity::Warning,
                "",
                "coldStart",
            ),
            (
                "1.3.6.1.4.1.8072.2.3.0.1",
                &[("1.3.6.1.4.1.8072.2.3.2.1.0", ObjectValue::Counter64(7))],
                Severity::Warning,
                "",
                "1.3.6.1.4.1.8072.2.3.0.1: 1.3.6.1.4.1.8072.2.3.2.1.0 = 7",
            ),
        ] {
            let event = event_of(name, objects);
            assert_eq!(String::from_utf8(event.message).unwrap(), text);
            assert_eq!((event.severity, event.time_ns), (severity, 5), "{text}");
            assert_eq!(event.type_instance, instance.as_bytes());
            assert_eq!((&*event.host, &*event.plugin), (&b"core-1"[..], TRAP));
        }
    }

    #[test]
    fn values_are_short_and_no_value_looks_like_two() {
        let long = [b'x'; 5000];
        for (value, shown) in [
            (
                ObjectValue::OctetString(b"a\", b = \"c\nd"),
                "\"a', b = 'c d\"",
            ),
            (ObjectValue::OctetString(b"\0\x1b\xff"), "0x001bff"),
            (ObjectValue::OctetString(b"\x1b[2J"), "0x1b5b324a"),
            (ObjectValue::OctetString("Zürich".as_bytes()), "\"Zürich\""),
            (ObjectValue::OctetString(b""), "\"\""),
            (ObjectValue::Integer(-7), "-7"),
            (ObjectValue::IpAddress([10, 0, 0, 1]), "10.0.0.1"),
            (ObjectValue::Oid(&[43, 6, 1]), "1.3.6.1"),
            (ObjectValue::Null, "null"),
            (ObjectValue::NoSuchInstance, "noSuchInstance"),
            (
                ObjectValue::Opaque(&[0x9f, 0x78, 4, 0x41, 0x19, 0x99, 0x9a]),
                "9.6",
            ),
            (ObjectValue::Opaque(&[1, 2]), "0x0102"),
            (
                ObjectValue::Other {
                    tag: 9,
                    content: &[3],
                },
                "0x03",
            ),
        ] {
            let event = event_of("1.3.6.1.4.1.9.0.1", &[("1.3.6.1.4.1.9.1", value)]);
            let text = String::from_utf8(event.message).unwrap();
            let want = format!("1.3.6.1.4.1.9.0.1: 1.3.6.1.4.1.9.1 = {shown}");
            assert_eq!(text, want, "{value:?}");
        }
        let objects = vec![("1.3.6.1.4.1.9.1", ObjectValue::OctetString(&long)); 30];
        let event = event_of("1.3.6.1.4.1.9.0.1", &objects);
        assert!(event.message.len() < 1500 && event.message.ends_with(b", ..."));
        let community = ("1.3.6.1.6.3.18.1.4.0", ObjectValue::OctetString(b"s3cr3t"));
        assert_eq!(event_of(LINK_DOWN, &[community]).message, b"linkDown");
    }

    #[test]
    fn the_address_in_a_trap_of_v1_counts_where_it_is_another_machine() {
        let sender: IpAddr = SENDER.parse().unwrap();
        for (agent, of) in [
            (None, SENDER),
            (Some([0, 0, 0, 0]), SENDER),
            (Some([127, 0, 0, 1]), SENDER),
            (Some([255; 4]), SENDER),
            (Some([224, 0, 0, 1]), SENDER),
            (Some([10, 0, 0, 9]), "10.0.0.9"),
        ] {
            assert_eq!(device(agent, sender).to_string(), of);
        }
    }
}
