//! From a datagram to an event, or to a count of refused ones.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::datagrams::{Datagram, Outbox};
use kymo_wire::snmp::{
    Malformed, MessageHead, NotificationMessage, PduKind, SnmpNotification, Version, put_message,
};

use kymo_wire::snmp::usm::UsmMessage;

use super::TrapSettings;
use super::event::event;
use super::informs::{Inform, InformKey, InformState, Informs};
use super::usm::{AGAIN, OpenedMessage, Outcome, Usm};
use crate::collectd::EventKeeper;
use crate::collectd::notifications::Notifications;
use crate::common::troubles::Troubles;
use crate::sender_group::SenderGroup;

/// Reasons of refusals, for the log and for the page.
const FOREIGN: &str = "a datagram of another network than those of allow";
const TOO_LONG: &str = "a datagram that is too long";
const OTHER_COMMUNITY: &str = "a trap of a community that auth_file does not have";
const TOO_MANY: &str = "an inform beyond 1,024 that wait";

/// The intake of all sockets.
pub(super) struct TrapIntake {
    settings: TrapSettings,
    events: EventKeeper,
    pub(super) troubles: Troubles,
    /// Events for the log.
    pub(super) notifications: Notifications,
    pub(super) informs: Informs,
    pub(super) usm: Usm,
    hasher: RandomState,
    /// A decrypted text.
    plain: Vec<u8>,
    /// Traps and informs taken since the start.
    pub(super) taken: u64,
}

/// Where a datagram came from, and by which socket.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) sender: SocketAddr,
    pub(super) socket: usize,
}

impl Origin {
    fn address(self) -> IpAddr {
        self.sender.ip().to_canonical()
    }
}

impl TrapIntake {
    pub(super) fn new(settings: TrapSettings, events: EventKeeper, usm: Usm) -> TrapIntake {
        TrapIntake {
            settings,
            events,
            troubles: Troubles::default(),
            notifications: Notifications::default(),
            informs: Informs::default(),
            usm,
            hasher: RandomState::new(),
            plain: Vec::new(),
            taken: 0,
        }
    }

    /// Takes a datagram; responses that can be sent at once go to `outbox`.
    pub(super) fn take(&mut self, datagram: &Datagram, socket: usize, outbox: &mut Outbox) {
        let origin = Origin {
            sender: datagram.sender,
            socket,
        };
        let (allow, address) = (&self.settings.allow, origin.address());
        if !allow.is_empty() && !allow.iter().any(|prefix| prefix.holds(address)) {
            return self.refuse(FOREIGN, origin);
        }
        if datagram.truncated {
            return self.refuse(TOO_LONG, origin);
        }
        match NotificationMessage::decode(datagram.bytes) {
            Ok(message) => self.take_message(&message, origin, outbox),
            Err(Malformed::Version) => match UsmMessage::decode(datagram.bytes) {
                Ok(message) => self.take_usm(&message, datagram.bytes, origin, outbox),
                Err(why) => self.refuse(why.why(), origin),
            },
            Err(why) => self.refuse(why.why(), origin),
        }
    }

    fn refuse(&mut self, why: &'static str, origin: Origin) {
        let address = origin.address();
        self.troubles.note(why, || format!("{why}, from {address}"));
    }

    fn take_message(&mut self, message: &NotificationMessage, origin: Origin, outbox: &mut Outbox) {
        let access = self.settings.access.as_ref().map(|access| access.get());
        if access.is_some_and(|access| !access.allows(message.community)) {
            return self.refuse(OTHER_COMMUNITY, origin);
        }
        let response = |out: &mut Vec<u8>| put_response(out, message);
        if let Err(why) = self.notify(&message.notification, None, origin, outbox, response) {
            self.refuse(why.why(), origin);
        }
    }

    fn take_usm(
        &mut self,
        message: &UsmMessage,
        packet: &[u8],
        origin: Origin,
        outbox: &mut Outbox,
    ) {
        let access = self.settings.access.as_ref().map(|access| access.get());
        let access = access.unwrap_or_default();
        let mut plain = std::mem::take(&mut self.plain);
        let now_ns = RealClock.now().boot_ns;
        match self
            .usm
            .open(&access, (message, packet), &mut plain, now_ns)
        {
            Outcome::Refused(why, report) => {
                if let Some(why) = why {
                    self.refuse(why, origin);
                }
                if let Some(report) = report {
                    outbox.push(origin.sender, |out| out.extend_from_slice(&report));
                }
            }
            Outcome::Notification(opened) => self.take_opened(&opened, origin, outbox),
        }
        self.plain = plain;
    }

    fn take_opened(&mut self, opened: &OpenedMessage, origin: Origin, outbox: &mut Outbox) {
        let notification = &opened.notification;
        let (response, came_before) = match &opened.response {
            Some((response, came_before)) => (&response[..], *came_before),
            None => (&[][..], false),
        };
        // A sender may repeat its inform; a copy from elsewhere is a replay.
        if came_before && self.informs.state(&self.key(notification, origin)) == InformState::New {
            return self.refuse(AGAIN, origin);
        }
        let put = |out: &mut Vec<u8>| out.extend_from_slice(response);
        let user = opened.signed_by.as_deref();
        if let Err(why) = self.notify(notification, user, origin, outbox, put) {
            self.refuse(why.why(), origin);
        }
    }

    fn key(&self, notification: &SnmpNotification, origin: Origin) -> InformKey {
        InformKey {
            sender: origin.sender,
            id: notification.id,
            content: self.hasher.hash_one(notification.varbinds.bytes()),
        }
    }

    /// Takes a notification of somebody who may send, and of the user who signed it.
    fn notify(
        &mut self,
        notification: &SnmpNotification,
        user: Option<&[u8]>,
        origin: Origin,
        outbox: &mut Outbox,
        response: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Malformed> {
        let key = self.key(notification, origin);
        let state = match notification.is_inform {
            true => self.informs.state(&key),
            false => InformState::New,
        };
        match state {
            InformState::Answered => {
                outbox.push(origin.sender, response);
                return Ok(());
            }
            InformState::Waiting => return Ok(()),
            InformState::New => {}
        }
        if notification.is_inform && self.informs.is_full() {
            self.refuse(TOO_MANY, origin);
            return Ok(());
        }
        let (address, now) = (origin.address(), RealClock.now());
        let event = event(notification, address, &self.settings.hosts, now.real_ns)?;
        let group = SenderGroup::of(address).to_string();
        // No event of before is the same one: each has a time of its own.
        let Some(event) = self.events.add(&group, user, event) else {
            return Ok(());
        };
        self.taken += 1;
        self.notifications.add(&event);
        if notification.is_inform {
            self.informs.wait(inform(key, origin, event, response));
        }
        Ok(())
    }
}

fn inform(
    key: InformKey,
    origin: Origin,
    event: Arc<kymo_wire::keeper::Event>,
    put: impl FnOnce(&mut Vec<u8>),
) -> Inform {
    let mut response = Vec::new();
    put(&mut response);
    Inform {
        key,
        socket: origin.socket,
        response,
        event,
    }
}

/// Appends the response to an inform: the same varbinds, and no error.
fn put_response(out: &mut Vec<u8>, message: &NotificationMessage) {
    let head = MessageHead {
        version: Version::V2c,
        community: message.community,
        kind: PduKind::Response,
        id: message.notification.id,
        status: 0,
        index: 0,
    };
    put_message(out, &head, message.notification.varbinds.bytes());
}
