//! The write-ahead log (the journal): what is acknowledged before anything else. docs/formats/journal.md.

pub(crate) mod crc_ranges;
pub(crate) mod frame;
pub(crate) mod live;
pub(crate) mod point;
pub(crate) mod point_records;
pub(crate) mod record;
pub(crate) mod tailed;
pub(crate) mod tails;
pub(crate) mod value;
pub(crate) mod writer;
