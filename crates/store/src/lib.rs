//! The store of acknowledged values: a journal, values in memory, segments
//! with saved blocks, and .rrd files that are updated from these.
//!
//! The segments are authoritative; the journal and memory have the values that no segment has yet; .rrd files are views.
//! A [`WriteBatch`] takes requests and costs one write of the journal. The other functions of [`Store`] open files and
//! may wait for locks and disks, so they are for worker threads. This crate has no sockets and no replies.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod background;
mod bell;
mod checkpoint;
mod compaction;
mod consolidation;
mod engine;
mod erase;
pub mod error;
mod fetch;
mod flush;
mod folder;
#[cfg(feature = "testing")]
pub mod fuzz;
mod hole;
mod join;
mod known;
mod layout;
mod memtable;
pub mod names;
mod pin;
mod points;
mod read;
mod recovery;
mod remove;
mod retention;
mod rrd_file;
mod segment;
pub mod settings;
mod stats;
mod tail;
mod tools;
mod wal;
pub mod write_batch;

pub use background::Threads;
pub use consolidation::points_schema::{PointsKind, PointsSchema, TierDefinition};
pub use consolidation::schema::keep_points;
pub use consolidation::tiers::Tier;
pub use engine::Store;
pub use erase::TimeRange;
pub use error::{Error, FetchError, FileError, Refusal};
pub use fetch::{LookRange, RowsWithExtremes};
pub use folder::claim::Claim;
pub use folder::read_only::{place_of_store, store_folder};
pub use join::{ForeignPoints, ForeignSeries, JoinMode, Joined};
pub use known::{Columns, KnownSeries, KnownSlice};
pub use memtable::point_tail::PointRefusal;
pub use memtable::writer::Writer;
pub use names::SeriesName;
pub use pin::{Pinned, PinnedFile};
pub use points::{ExpiredRows, PointSeries, ReadSamples, TierRow};
pub use read::rows::{FileRows, Opened, SeriesRows};
pub use recovery::moved::{PLACE_FILE, PLACE_NAME, base_of, is_place};
pub use rrd_file::define::Definition;
pub use rrd_file::open::{Flushed, Fresh};
pub use rrd_file::redefine::Redefinition;
pub use settings::{Files, PointsRetention, Settings};
pub use stats::{Replayed, Stats};
pub use tail::{TailError, TailFrom, TailReader, TailSample, TailSeries, TailSink, TailStatus};
pub use tools::export::Exported;
pub use tools::import::WholeFile;
pub use tools::{status, verify};
pub use wal::point::Point;
pub use wal::tails::{Missed, TAILS_FILE, TAILS_NAME, is_tails};
pub use write_batch::{Position, Switched, WriteBatch};
