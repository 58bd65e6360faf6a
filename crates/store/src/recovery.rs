//! Recovery of a store at its start: segments, journal, and damage in both.

pub(crate) mod files;
pub(crate) mod lost;
pub(crate) mod moved;
pub(crate) mod open;
pub(crate) mod replay;
pub(crate) mod stock_journal;
pub(crate) mod tails;
