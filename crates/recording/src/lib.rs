//! The recording: what the sampler saw, kept in a ring of files that survives kill -9, power cuts,
//! full disks and flipped bits, and read back while it is being written.
//!
//! Bytes in, the same bytes out: a record is a head and opaque sections, and this crate gives no
//! kind a meaning. Format: docs/formats/recording.md.
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
