//! A running recorder, and its cost.

pub(crate) mod cost;
#[cfg(feature = "serve")]
pub(crate) mod scans;
pub(crate) mod session;
