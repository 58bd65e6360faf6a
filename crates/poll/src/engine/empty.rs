//! Reasons why targets have no value. A reason that differs from the last cycle's is an event. All targets of a host with the
//! same new reason share one event, which comes when all sessions of the host are idle.

use std::sync::Arc;

use kymo_wire::snmp::usm::UsmReport;

use super::device::{Device, Reference};
use super::interfaces::Column;
use super::security::Security;
use super::walk::Walked;
use super::{Engine, Happening};

/// Reasons why an interface has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// No interface of the device has that key.
    Absent,
    /// Several interfaces have the key.
    Several,
    /// The device's list came back to earlier rows before it named the interface.
    Looped,
    /// The device fell silent, or sent nonsense, before it named the interface.
    Broken,
}

/// Reasons why a number of a target is unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Empty {
    /// The device's name has no address.
    NoAddress,
    /// The device does not answer at all.
    NoAnswer,
    /// The device does not answer the user of SNMPv3 at all.
    NoAnswerToUser,
    /// The device answers to other communities.
    NoCommunity,
    /// The device answers others, but not the user of SNMPv3.
    NoUser,
    /// The device does not answer the user of SNMPv3.
    Refusal(UsmReport),
    /// The device did not answer to this in time.
    Late,
    /// The configuration's name of an interface leads to no number.
    NoInterface {
        /// Column that the configuration names the interface by.
        column: Column,
        /// Name of the interface: untrusted text from the configuration.
        key: Arc<[u8]>,
        /// Why it has no number.
        why: Missing,
    },
    /// The device has no such object, or refuses it.
    NoObject,
    /// The device's object is no number.
    NoNumber,
}

impl Empty {
    /// The reason for silence; `is_refused`: the device answers others.
    pub(crate) fn silence(security: &Security, is_refused: bool) -> Empty {
        match (security, is_refused) {
            (Security::V1 | Security::V2c, false) => Empty::NoAnswer,
            (Security::V1 | Security::V2c, true) => Empty::NoCommunity,
            (Security::V3(_), false) => Empty::NoAnswerToUser,
            (Security::V3(_), true) => Empty::NoUser,
        }
    }
}

/// A session and its reason.
pub(crate) type Blame = (usize, Empty);

/// Reasons of the last cycle by target, and those that are new.
#[derive(Default)]
pub(crate) struct Blames {
    before: Vec<Option<Blame>>,
    new: Vec<(Blame, usize)>,
    /// Number of changes so far.
    pub changes: u64,
}

impl Blames {
    /// No reasons, for this number of targets.
    pub(crate) fn new(targets: usize) -> Blames {
        Blames {
            before: vec![None; targets],
            new: Vec::new(),
            changes: 0,
        }
    }

    /// Notes the reason of a target in this cycle; `None`: it has its value.
    pub(crate) fn note(&mut self, target: usize, blame: Option<Blame>) {
        if self.before[target] == blame {
            return;
        }
        self.changes += 1;
        self.before[target].clone_from(&blame);
        self.new.extend(blame.map(|blame| (blame, target)));
    }

    /// Targets that have a reason: target, session, reason.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, usize, &Empty)> {
        let known = self.before.iter().enumerate();
        known.filter_map(|(target, blame)| {
            blame.as_ref().map(|(session, why)| (target, *session, why))
        })
    }
}

impl Engine {
    /// Notes why a reading will lack a number. The first reason counts.
    pub(super) fn blame(&mut self, number: usize, reading: usize, why: Empty) {
        let session = self.devices[number].session;
        let given = self.outcomes.given(reading);
        given.blame.get_or_insert((session, why));
    }

    /// Notes the reason for a reading that is open at the end of a cycle.
    pub(super) fn blame_open(&mut self, number: usize, reading: usize) {
        let device = &self.devices[number];
        let references = (0..2).filter_map(|side| self.sides.reference(reading, side));
        let mut references = references.map(|of| &device.references[of]);
        let why = match (device.address, device.cycle.answered_ns) {
            (None, _) => Empty::NoAddress,
            (Some(_), None) if let Some(report) = device.refusal => Empty::Refusal(report),
            (Some(_), None) => Empty::silence(&device.security, self.is_refused(number)),
            _ => match references.find(|of| of.index.is_none()) {
                Some(reference) => no_interface(device, reference),
                None => Empty::Late,
            },
        };
        self.blame(number, reading, why);
    }

    /// True if the agent of a silent device answers to other sessions.
    fn is_refused(&self, number: usize) -> bool {
        let device = &self.devices[number];
        let began_ns = device.cycle.began_ns;
        let since_ns = match device.seen_ns {
            // After a change of the configuration, a session's poll may be up to an interval after those of the others.
            0 => began_ns.saturating_sub(self.interval_ns),
            _ => began_ns,
        };
        self.agents.has_answered(number, since_ns)
    }

    /// Makes events for the hosts whose sessions are all idle again.
    pub(super) fn tell_hosts(&mut self) {
        let over = self.hosts.take_over();
        for &host in &over {
            self.tell_silence(host);
        }
        let new = std::mem::take(&mut self.outcomes.blames.new);
        let (mut blames, kept): (Vec<_>, Vec<_>) = new
            .into_iter()
            .partition(|((session, _), _)| over.binary_search(&self.hosts.first(*session)).is_ok());
        self.outcomes.blames.new = kept;
        let hosts = &self.hosts;
        blames.sort_by_cached_key(|((session, why), target)| {
            (hosts.first(*session), why.clone(), *target)
        });
        for group in blames.chunk_by(|((one, why), _), ((other, other_why), _)| {
            hosts.first(*one) == hosts.first(*other) && why == other_why
        }) {
            let (session, why) = &group[0].0;
            self.happenings.push(Happening::Empty {
                session: *session,
                why: why.clone(),
                targets: group.iter().map(|of| of.1).collect(),
            });
        }
    }

    /// Makes an event if all sessions of a host have become silent, or one answers again.
    fn tell_silence(&mut self, host: usize) {
        let mut sessions = self.hosts.sessions(host).iter();
        let is_silent = sessions.all(|&session| self.devices[session].is_silent());
        let session = host;
        match (self.hosts.replace_silence(host, is_silent), is_silent) {
            (false, true) => self.happenings.push(Happening::Silent { session }),
            (true, false) => self.happenings.push(Happening::Back { session }),
            _ => {}
        }
    }
}

/// The reason why an interface of a device that answers has no number.
fn no_interface(device: &Device, reference: &Reference) -> Empty {
    let (column, key) = (reference.column, &reference.key);
    let found = device.interfaces.find(column, key);
    let why = match (found, device.columns.get(&column)) {
        (Some(_), _) => Missing::Several,
        (None, Some(Walked::Looped)) => Missing::Looped,
        (None, Some(Walked::Broken)) => Missing::Broken,
        (None, Some(Walked::Whole) | None) => Missing::Absent,
    };
    Empty::NoInterface {
        column,
        key: key.clone(),
        why,
    }
}
