//! An event with the sender group, user or kind of source that its share belongs to.

use std::sync::Arc;

use kymo_wire::keeper::Event;

/// Sender of the events of devices. `USER` is the prefix of the senders of signed events. No address looks
/// like these.
pub(super) const DEVICES: &[u8] = b"devices";
pub(super) const USER: &[u8] = b"user ";

/// The ring that an event is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Plain,
    Signed,
    Devices,
}

/// An event and the owner of its share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) from: Arc<[u8]>,
    pub(super) event: Arc<Event>,
}

impl Kept {
    pub(super) fn new(from: &[u8], event: Event) -> Kept {
        Kept {
            from: from.into(),
            event: Arc::new(event),
        }
    }

    /// An event of an older file, which does not name the sender.
    pub(super) fn unsaid(event: Event) -> Kept {
        let is_devices = event.plugin == kymo_wire::keeper::POLL;
        Kept::new(if is_devices { DEVICES } else { b"" }, event)
    }

    /// The group for shares, and the host for shares within the group.
    pub(super) fn who(&self) -> (&Arc<[u8]>, &Vec<u8>) {
        (&self.from, &self.event.host)
    }

    pub(super) fn class(&self) -> Class {
        match &*self.from {
            DEVICES => Class::Devices,
            from if from.starts_with(USER) => Class::Signed,
            _ => Class::Plain,
        }
    }
}
