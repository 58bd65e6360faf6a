//! What all threads of a poller hear.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// Tells all threads to do something.
#[derive(Default)]
pub(super) struct Bell {
    /// To end.
    pub ends: AtomicBool,
    /// To read the configuration again: how often that was said.
    pub reads: AtomicU64,
}
