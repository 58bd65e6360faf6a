//! What was acknowledged and is not yet in a file: one journal, values in memory, and the .rrd files that
//! are brought up to date from them.
//!
//! Version 0: the .rrd files are the truth, the journal and memory hold what is not yet in them.
//! A [`Turn`] takes requests and costs one write of the journal; [`Store`]'s other functions open files and
//! may wait for locks and disks, so they are for worker threads. Nothing here knows sockets or replies.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod error;
pub mod read;
pub mod settings;
pub mod store;
pub mod turn;

pub use error::{Error, FileError, Refusal};
pub use read::{FileRows, Opened};
pub use settings::Settings;
pub use store::{Flushed, Fresh, Replayed, Stats, Store, Threads};
pub use turn::{Position, Turn};
