//! What was acknowledged and is not yet in a file: one journal, values in memory, and the .rrd files that
//! are brought up to date from them.
//!
//! Version 0: the .rrd files are the truth, the journal and memory hold what is not yet in them.
//! A [`Turn`] takes requests and costs one write of the journal; [`Store`]'s other functions open files and
//! may wait for locks and disks, so they are for worker threads. Nothing here knows sockets or replies.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the store is about to be built on it")
)]
mod drum;
mod entry;
pub mod error;
mod files;
mod frame;
pub mod fuzz;
mod journal;
mod list;
mod names;
pub mod read;
mod recover;
mod replay;
mod rounds;
mod rows;
mod rrd_file;
pub mod settings;
mod state;
mod stock;
pub mod store;
pub mod turn;
mod values;
mod write;

pub use error::{Error, FileError, Refusal};
pub use read::{FileRows, Opened};
pub use rounds::Threads;
pub use settings::Settings;
pub use store::{Flushed, Fresh, Replayed, Stats, Store};
pub use turn::{Position, Switched, Turn};
