//! Signals to all threads of a poller.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// Asks all threads to end, or to read their configuration
/// again.
#[derive(Default)]
pub(super) struct Bell {
    /// True if they are to end.
    pub ends: AtomicBool,
    /// Number of requests to read the configuration again.
    pub reads: AtomicU64,
}
