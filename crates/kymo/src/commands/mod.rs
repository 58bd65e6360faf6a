//! The commands, one file each.

pub mod cost;
pub mod doctor;
pub mod dump;
#[cfg(feature = "serve")]
pub mod graph;
pub mod live;
pub mod play;
pub mod record;
