//! What was acknowledged: one journal, values in memory, the drum of blocks they are saved in, and .rrd files that are
//! brought up to date from there.
//!
//! The drum is the truth, the journal and memory hold what is not yet in it, .rrd files are views.
//! A [`Turn`] takes requests and costs one write of the journal; [`Store`]'s other functions open files and
//! may wait for locks and disks, so they are for worker threads. Nothing here knows sockets or replies.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adopt;
mod ask;
mod chunks;
mod claim;
mod drum;
mod edits;
mod entry;
pub mod error;
mod export;
mod fence;
mod fetch;
mod files;
mod frame;
pub mod fuzz;
mod groups;
mod hole;
mod import;
mod journal;
mod limits;
mod list;
mod look;
mod lost;
mod make;
mod names;
mod owner;
mod pending;
mod pieces;
mod ranges;
pub mod read;
mod recent;
mod recover;
mod replay;
mod reserve;
mod roster;
mod rounds;
mod rrd_file;
mod save;
pub mod settings;
mod snapshot;
mod state;
pub mod status;
mod stock;
mod store;
mod take_in;
pub mod turn;
mod value;
pub mod verify;

pub use ask::{Flushed, Fresh};
pub use claim::Claim;
pub use error::{Error, FetchError, FileError, Refusal};
pub use export::Exported;
pub use import::WholeFile;
pub use look::{place_of_store, store_folder};
pub use read::{FileRows, Opened, SeriesRows};
pub use rounds::Threads;
pub use settings::Settings;
pub use store::{Replayed, Stats, Store};
pub use turn::{Position, Switched, Turn};
