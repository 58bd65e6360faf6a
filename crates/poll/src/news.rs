//! Events of devices in words, and as records for the keeper, which become marks on the graphs of a device's targets.

use std::collections::HashMap;

use kymo_base::name::DisplayName;
use kymo_wire::collectd::Severity;
use kymo_wire::keeper::{Event, POLL};
use kymo_wire::snmp::usm::UsmReport;

use crate::engine::{Column, Empty, Happening, Missing};

/// Longest host name, bytes: no DNS name with a port is longer.
const HOST_MAX: usize = 300;
/// Number of remembered events at which old ones are removed.
const RECENT_MAX: usize = 4096;

/// An event in words, without the device's name.
pub fn words(happening: &Happening) -> String {
    match happening {
        Happening::Silent { .. } => "does not answer".into(),
        Happening::Back { .. } => "answers again".into(),
        Happening::Restarted { .. } => {
            "was started again: its counters begin at zero, and there is a gap".into()
        }
        Happening::AgentRestarted { .. } => {
            "has an uptime that begins again, and counters that go on: its agent was started again, there is no gap".into()
        }
        Happening::Empty { why, .. } => reason(why),
        Happening::Narrow { .. } => {
            "has no counters of 64 bits for interfaces: those of 32 bits are read, which wrap early".into()
        }
        Happening::FirstNumber { text, .. } => {
            format!("answers with the text {}, of which the first number counts", DisplayName(text))
        }
    }
}

/// The reason why a target has no value, without the device's name.
pub fn reason(why: &Empty) -> String {
    let (column, key, why) = match why {
        Empty::NoInterface { column, key, why } => (noun(*column), DisplayName(key), why),
        Empty::NoAddress => return "cannot be asked: its name has no address".into(),
        Empty::NoAnswer => {
            return "does not answer; see whether it is up, and whether the community is right"
                .into();
        }
        Empty::NoAnswerToUser => {
            return "does not answer; see whether it is up, and whether the user, its passwords and contextname of SnmpOptions are right"
                .into();
        }
        Empty::NoCommunity => {
            return "answers to another community, but not to this one; see whether it is right"
                .into();
        }
        Empty::NoUser => {
            return "answers others, but not this user; see whether its passwords and contextname of SnmpOptions are right"
                .into();
        }
        Empty::Refusal(report) => return refusal(*report).into(),
        Empty::Late => return "does not answer to this in time".into(),
        Empty::NoObject => return "has no such object, or refuses it".into(),
        Empty::NoNumber => return "answers with what is no number".into(),
    };
    match why {
        Missing::Absent => format!("has no interface of the {column} {key}"),
        Missing::Several => format!("has several interfaces of the {column} {key}"),
        Missing::Looped => format!(
            "has no interface of the {column} {key} in its list, which comes back to the same rows again and again"
        ),
        Missing::Broken => format!(
            "has no interface of the {column} {key} in its list, which breaks off: it answers with an error or not at all"
        ),
    }
}

/// The reason why a device does not answer the user of SNMPv3.
fn refusal(report: UsmReport) -> &'static str {
    match report {
        UsmReport::UnsupportedLevel => {
            "refuses requests of the user that are signed or encrypted like these; see what it allows the user, and authprotocol and privprotocol of SnmpOptions"
        }
        UsmReport::NotInTimeWindow => {
            "takes no request as one of now; see whether its clock, or its count of starts, stands still"
        }
        UsmReport::UnknownUser => "has no such user; see username of SnmpOptions",
        UsmReport::UnknownEngine => {
            "has another engine id for each request; see how it makes its id"
        }
        UsmReport::WrongDigest => {
            "refuses the signature of the user; see authprotocol and authpassword of SnmpOptions"
        }
        UsmReport::DecryptionError => {
            "cannot decrypt requests of the user; see privprotocol and privpassword of SnmpOptions"
        }
    }
}

/// The noun for the interfaces' key of a column.
fn noun(column: Column) -> &'static str {
    match column {
        Column::Name => "name",
        Column::Descr => "description",
        Column::Type => "type",
        Column::Ip => "address",
        Column::Eth => "hardware address",
    }
}

/// Severity of an event; `None`: it concerns single targets, which show it.
fn severity(happening: &Happening) -> Option<Severity> {
    match happening {
        Happening::Silent { .. } => Some(Severity::Failure),
        Happening::Restarted { .. } => Some(Severity::Warning),
        Happening::Back { .. } | Happening::AgentRestarted { .. } => Some(Severity::Okay),
        Happening::Empty { .. } | Happening::Narrow { .. } | Happening::FirstNumber { .. } => None,
    }
}

/// Makes records of events. A device with several sessions, for its communities, reports an event in each; only the first
/// counts.
#[derive(Default)]
pub(crate) struct News(HashMap<(Vec<u8>, Vec<u8>), i64>);

impl News {
    /// The record of an event at this time, unless the same device had the same one within the last interval.
    pub(crate) fn event(
        &mut self,
        happening: &Happening,
        real_ns: i64,
        devices: &[String],
        interval_s: u32,
    ) -> Option<Event> {
        let severity = severity(happening)?;
        let host = devices.get(happening.session())?.as_bytes().to_vec();
        if host.len() > HOST_MAX {
            return None;
        }
        let message = words(happening).into_bytes();
        let span_ns = i64::from(interval_s) * 1_000_000_000;
        let is_near = |at_ns: i64| real_ns.saturating_sub(at_ns).saturating_abs() < span_ns;
        if self.0.len() >= RECENT_MAX {
            self.0.retain(|_, at_ns| is_near(*at_ns));
        }
        let before = self.0.get(&(host.clone(), message.clone())).copied();
        if before.is_some_and(is_near) {
            return None;
        }
        self.0.insert((host.clone(), message.clone()), real_ns);
        Some(Event {
            time_ns: real_ns,
            severity,
            host,
            plugin: POLL.to_vec(),
            plugin_instance: Vec::new(),
            type_name: Vec::new(),
            type_instance: Vec::new(),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_several_sessions_tells_once() {
        let devices = ["sw1", "sw1", "sw2"].map(String::from);
        let mut news = News::default();
        let mut event = |happening: Happening, second: i64| {
            let event = news.event(&happening, second * 1_000_000_000, &devices, 300)?;
            assert_eq!(
                (event.time_ns, &*event.plugin),
                (second * 1_000_000_000, POLL)
            );
            let host = String::from_utf8(event.host).unwrap();
            Some((host, event.severity))
        };
        let silent = |session| Happening::Silent { session };
        let back = Happening::Back { session: 0 };
        for (happening, second, want) in [
            (silent(0), 1000, Some(("sw1", Severity::Failure))),
            (silent(1), 1020, None),
            (silent(2), 1020, Some(("sw2", Severity::Failure))),
            (back, 1300, Some(("sw1", Severity::Okay))),
            (silent(1), 1600, Some(("sw1", Severity::Failure))),
            (
                Happening::Restarted { session: 2 },
                1600,
                Some(("sw2", Severity::Warning)),
            ),
            (silent(3), 1600, None),
        ] {
            let want = want.map(|(host, severity)| (host.to_string(), severity));
            assert_eq!(event(happening.clone(), second), want, "{happening:?}");
        }
        for (why, want) in [
            (Missing::Absent, "has no interface of the name Gi0/1\\x1b"),
            (
                Missing::Several,
                "has several interfaces of the name Gi0/1\\x1b",
            ),
            (
                Missing::Looped,
                "has no interface of the name Gi0/1\\x1b in its list, which comes back to the same rows again and again",
            ),
        ] {
            let missing = Happening::Empty {
                session: 0,
                why: Empty::NoInterface {
                    column: Column::Name,
                    key: b"Gi0/1\x1b"[..].into(),
                    why,
                },
                targets: vec![0],
            };
            assert_eq!(event(missing.clone(), 2000), None);
            assert_eq!(words(&missing), want);
        }
    }
}
