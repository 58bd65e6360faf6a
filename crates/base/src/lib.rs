//! The vocabulary every layer shares: numbers, templates, tracks, fields and
//! readings. Pure: no I/O, no clock, no unsafe code.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![forbid(unsafe_code)]

pub mod activity;
pub mod column;
pub mod context;
pub mod cost;
pub mod errno;
pub mod field;
mod held;
pub mod label_set;
pub mod labels;
pub mod limits;
pub mod name;
pub mod pattern;
pub mod printf;
pub mod random;
pub mod reading;
pub mod scan;
pub mod statement;
pub mod template;
pub mod text;
pub mod track;
pub mod track_writer;
pub mod varint;
pub mod words;
pub mod zone;
