//! The commands, one file each.

pub mod cost;
pub mod doctor;
pub mod dump;
pub mod live;
pub mod play;
pub mod record;
