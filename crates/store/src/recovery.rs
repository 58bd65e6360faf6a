//! What a start makes of a store: its segments, its journal, and what is damaged.

pub(crate) mod files;
pub(crate) mod lost;
pub(crate) mod moved;
pub(crate) mod open;
pub(crate) mod replay;
pub(crate) mod stock_journal;
pub(crate) mod tails;
