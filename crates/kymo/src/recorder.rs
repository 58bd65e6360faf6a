//! A recorder at work, and what it costs.

pub(crate) mod cost;
pub(crate) mod session;
