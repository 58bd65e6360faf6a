//! EVENTS and NOTIFY: notifications of senders, as collectd has them, and events of polled devices. The keeper's files have the
//! bytes of an event as well (docs/formats/notifications.md).

use super::NAMES_MAX;
use super::body::{Put, Take};
use crate::collectd::Severity;

/// The plugin of events of polled devices; the host is the device.
pub const POLL: &[u8] = b"poll";
/// The plugin of traps of devices; the host is the device.
pub const TRAP: &[u8] = b"trap";
/// Most events of one NOTIFY.
pub const NOTIFIED_MAX: usize = 1024;

/// A choice of events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventRange {
    /// First second, since 1970.
    pub from: i64,
    /// End, seconds since 1970; not included.
    pub thru: i64,
    /// Most events of an answer; the latest are kept.
    pub events_max: u32,
    /// Hosts of the events; none: all hosts.
    pub hosts: Vec<Vec<u8>>,
}

/// A notification of a sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Time that the sender gives; nanoseconds since 1970.
    pub time_ns: i64,
    /// Severity of the event.
    pub severity: Severity,
    /// Host, as in the label `host` of its series; may be empty, as each further name.
    pub host: Vec<u8>,
    /// Plugin; may be empty.
    pub plugin: Vec<u8>,
    /// Instance of the plugin; may be empty.
    pub plugin_instance: Vec<u8>,
    /// Type; may be empty.
    pub type_name: Vec<u8>,
    /// Instance of the type; may be empty.
    pub type_instance: Vec<u8>,
    /// Text for people.
    pub message: Vec<u8>,
}

impl Event {
    /// True if the event is of a device, not of a host that sends values.
    pub fn is_of_device(&self) -> bool {
        self.plugin == POLL || self.plugin == TRAP
    }

    /// `host/plugin[-plugin_instance]/type[-type_instance]`, without the empty parts.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.host.clone();
        for (first, instance) in [
            (&self.plugin, &self.plugin_instance),
            (&self.type_name, &self.type_instance),
        ] {
            for (mark, part) in [(b'/', first), (b'-', instance)] {
                if !part.is_empty() {
                    name.push(mark);
                    name.extend_from_slice(part);
                }
            }
        }
        name
    }

    /// Appends the bytes of the event.
    pub fn put(&self, out: &mut Vec<u8>) {
        let [severity, ..] = self.severity.code().to_le_bytes();
        out.i64(self.time_ns);
        out.u8(severity);
        self.texts().into_iter().for_each(|text| out.text(text));
    }

    /// Reads an event; `None`: the bytes are not exactly one event.
    pub fn read(bytes: &[u8]) -> Option<Event> {
        let mut body = Take::of(bytes);
        let event = Event::take(&mut body)?;
        body.end().is_ok().then_some(event)
    }

    fn take(body: &mut Take) -> Option<Event> {
        let time_ns = body.i64()?;
        let severity = Severity::of_code(body.u8()?.into())?;
        let mut text = || body.text().map(<[u8]>::to_vec);
        Some(Event {
            time_ns,
            severity,
            host: text()?,
            plugin: text()?,
            plugin_instance: text()?,
            type_name: text()?,
            type_instance: text()?,
            message: text()?,
        })
    }

    fn texts(&self) -> [&[u8]; 6] {
        [
            &self.host,
            &self.plugin,
            &self.plugin_instance,
            &self.type_name,
            &self.type_instance,
            &self.message,
        ]
    }
}

impl EventRange {
    /// True if the event is in the range and of one of the hosts.
    pub fn has(&self, event: &Event) -> bool {
        let second = event.time_ns.div_euclid(1_000_000_000);
        (self.from..self.thru).contains(&second)
            && (self.hosts.is_empty() || self.hosts.contains(&event.host))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.i64(self.from);
        out.i64(self.thru);
        out.u32(self.events_max);
        out.u16(self.hosts.len());
        self.hosts.iter().for_each(|host| out.text(host));
    }

    pub(super) fn take(body: &mut Take) -> Option<EventRange> {
        let (from, thru) = (body.i64()?, body.i64()?);
        let events_max = body.u32()?;
        let hosts = body.count(NAMES_MAX)?;
        let hosts = (0..hosts).map(|_| body.text().map(<[u8]>::to_vec));
        Some(EventRange {
            from,
            thru,
            events_max,
            hosts: hosts.collect::<Option<_>>()?,
        })
    }
}

pub(super) fn put_events(events: &[Event], out: &mut Vec<u8>) {
    out.length(events.len());
    events.iter().for_each(|event| event.put(out));
}

pub(super) fn put_notified(events: &[Event], out: &mut Vec<u8>) {
    out.u16(events.len());
    events.iter().for_each(|event| event.put(out));
}

pub(super) fn take_notified(body: &mut Take) -> Option<Vec<Event>> {
    let count = body.count(NOTIFIED_MAX)?;
    (0..count).map(|_| Event::take(body)).collect()
}

pub(super) fn take_events(body: &mut Take) -> Option<Vec<Event>> {
    let count = body.u32()?;
    (0..count).map(|_| Event::take(body)).collect()
}
