//! The write-ahead log (the journal), which has each value before it is acknowledged.
//! docs/formats/journal.md.

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
