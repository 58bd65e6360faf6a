//! Backups of a data folder. A backup is a manifest, which lists files with their contents, and the contents themselves, each
//! named by its hash and shared by all backups. So a backup sends what changed, and its manifest, which comes last.
//!
//! `manifest` has the list and its text, `target` the names that backups consist of, `store` the places where they are: a folder
//! or a bucket. `send` has what a backup sends, `restore` and `check` read one, `keep` removes old ones. The caller chooses the files. Format: docs/formats/backup.md.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
mod error;
#[cfg(feature = "testing")]
pub mod fuzz;
mod hash;
mod in_memory;
mod keep;
mod manifest;
mod restore;
mod send;
mod store;
mod target;

pub use check::{Checked, Finding, check};
pub use error::Error;
pub use hash::ContentHash;
pub use in_memory::InMemory;
pub use keep::{Keep, Removed, prune};
pub use manifest::{BackedUpFile, Manifest, Piece, Version};
pub use restore::{Restored, restore};
pub use send::{Sender, Sent, Source, Trust, Writing};
pub use store::s3::{Keys, S3Place};
pub use target::Target;
