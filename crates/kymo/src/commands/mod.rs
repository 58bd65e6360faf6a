//! The commands, one file each.

#[cfg(feature = "serve")]
pub mod config;
pub mod cost;
pub mod doctor;
pub mod dump;
#[cfg(feature = "serve")]
pub mod graph;
#[cfg(feature = "serve")]
pub mod hub;
#[cfg(feature = "serve")]
pub mod keeper;
pub mod live;
pub mod play;
pub mod record;
#[cfg(feature = "serve")]
pub mod rrd;
#[cfg(feature = "serve")]
pub mod rrdcached;
#[cfg(feature = "serve")]
pub mod series;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "serve")]
pub mod status;
#[cfg(feature = "serve")]
pub mod verify;
