//! A running recorder, and its cost.

pub(crate) mod cost;
pub(crate) mod session;
