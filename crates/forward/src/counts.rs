//! Counts of the values for a receiver, by their fate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kymo_wire::keeper::{ReceiverAccount, TailAccount};

/// Counts of a receiver since the process began.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Samples that the receiver has.
    pub(crate) sent: AtomicU64,
    /// Samples that the receiver refuses.
    pub(crate) refused: AtomicU64,
    /// Values that the journal had no more.
    pub(crate) missed: AtomicU64,
    /// Requests.
    pub(crate) requests: AtomicU64,
    /// Requests that are sent again.
    pub(crate) failed: AtomicU64,
    /// Bytes of requests that the receiver has, packed.
    pub(crate) bytes: AtomicU64,
    /// True if the last request failed.
    pub(crate) is_down: AtomicBool,
}

impl Counts {
    /// The counts of the receiver with this name, and how far its tail is behind.
    pub(crate) fn account(&self, name: &str, tail: Option<&TailAccount>) -> ReceiverAccount {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ReceiverAccount {
            name: name.into(),
            sent: of(&self.sent),
            refused: of(&self.refused),
            missed: of(&self.missed),
            requests: of(&self.requests),
            failed: of(&self.failed),
            bytes: of(&self.bytes),
            is_up: !self.is_down.load(Ordering::Relaxed),
            backlog_bytes: tail.map_or(0, |tail| tail.backlog_bytes),
            backlog_age_s: tail.map_or(0.0, |tail| tail.backlog_age_s),
        }
    }
}

/// Adds to a count.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
