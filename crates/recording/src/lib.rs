//! The recording: the sampler's output in a ring of files that survives kill -9, power cuts, full
//! disks and flipped bits, and that can be read while it is being written.
//!
//! A record is a head and opaque sections; this crate stores their bytes unchanged and gives no kind
//! a meaning. Format: docs/formats/recording.md.
//!
//! - [`record`]: build records: `begin(out, &Head::sample(stamp, key, missed))`, `section(..)`,
//!   `end()`; `push_event`, `push_context`.
//! - [`writer`]: `Writer::open(disk, clock, Place, Options)`, then `recover`, `append(&mut batch)`,
//!   `tick(now)`, `set_context`, `close`; `key_wanted()` is shared with the sampler.
//! - [`reader`], [`cursor`]: `Recording::open(disk, path)`, `Cursor::new(&recording, range, kinds)`,
//!   `next()` → [`cursor::Item`]; after `None` it can be asked again.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod beat;
pub mod block;
pub mod collectl;
pub mod cursor;
mod error;
pub mod exported;
pub mod folder;
#[cfg(feature = "testing")]
pub mod fuzz;
mod heads;
pub mod queue;
pub mod reader;
pub mod record;
mod ring;
mod seal;
pub mod tail;
pub mod writer;

pub use error::{Error, Result};
