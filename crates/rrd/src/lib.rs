//! Round-robin archives exactly as rrdtool 1.7.2 to 1.9 keeps them: the .rrd file and the arithmetic,
//! equal to the last bit. Pure: bytes come in and go out; files, locks and clocks are the callers' affair.
//!
//! [`header`] is the file up to its rows, [`rrd`] a whole file in memory, [`rows`] where an update writes.
//! The arithmetic is not the textbook's: number parsing, counter wraps and the PDP split are rrdtool's own.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aberrant;
pub mod at_time;
pub mod calendar;
pub mod cf;
pub mod compute_text;
pub mod create;
pub mod dump;
mod dump_number;
pub mod error;
pub mod fetch;
#[cfg(feature = "testing")]
pub mod fuzz;
#[cfg(feature = "testing")]
pub mod fuzz_files;
pub mod header;
pub mod info;
pub mod kind;
mod modify;
pub mod number;
pub mod options;
mod preparation;
pub mod resize;
pub mod restore;
mod room;
mod row_time;
pub mod rows;
pub mod rpn;
pub mod rrd;
mod source;
pub mod spec;
pub mod tune;
pub mod update;
mod xml;

pub use error::{Error, Kind};
pub use header::Header;
pub use rows::{Rows, Tip};
pub use rrd::Rrd;

/// The unknown value as rrdtool writes it on x86_64: `0.0 / 0.0` with the sign set, printed `-nan`.
pub const UNKNOWN: f64 = f64::from_bits(0xfff8_0000_0000_0000);
