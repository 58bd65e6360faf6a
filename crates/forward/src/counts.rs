//! Counts of the values for a receiver, by their fate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// Adds to a count.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// A count as a sample: exact up to 2^53.
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
