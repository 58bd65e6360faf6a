//! Round-robin archives exactly like rrdtool 1.7.2 to 1.9: the .rrd file and its arithmetic, equal to the
//! last bit. The crate has no files, locks and clocks, which belong to its callers.
//!
//! [`header`] is the file up to its rows, [`rrd`] a whole file in memory, [`rows`] the rows that an update
//! writes. Number parsing, counter wraps and the split of points over time are those of rrdtool and differ
//! from the textbook.

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
pub mod zone;

pub use error::{Error, Kind};
pub use header::Header;
pub use rows::{Rows, Tip};
pub use rrd::Rrd;
pub use source::take_rows;

/// The unknown value that rrdtool writes on x86_64: `0.0 / 0.0` with the sign set, printed `-nan`.
pub const UNKNOWN: f64 = f64::from_bits(0xfff8_0000_0000_0000);
