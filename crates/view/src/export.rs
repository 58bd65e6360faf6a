//! Formats for other programs and eyes, collectl's exports: one file each.

pub(crate) mod vmstat;
