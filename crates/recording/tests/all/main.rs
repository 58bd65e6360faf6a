//! The writer and the readers of recordings, on a simulated disk and on a real one.

#![allow(clippy::print_stderr, reason = "a person reads it")]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
mod faults;
mod real_disk;
mod round_trip;
