//! The commands, one file each.

#[cfg(feature = "serve")]
pub(crate) mod config;
pub(crate) mod cost;
pub(crate) mod doctor;
pub(crate) mod dump;
#[cfg(feature = "serve")]
pub(crate) mod graph;
#[cfg(feature = "serve")]
pub(crate) mod hub;
#[cfg(feature = "serve")]
pub(crate) mod keeper;
pub(crate) mod live;
pub(crate) mod play;
pub(crate) mod record;
#[cfg(feature = "serve")]
pub(crate) mod rrd;
#[cfg(feature = "serve")]
pub(crate) mod rrdcached;
#[cfg(feature = "serve")]
pub(crate) mod series;
#[cfg(feature = "serve")]
pub(crate) mod serve;
#[cfg(feature = "serve")]
pub(crate) mod status;
#[cfg(feature = "serve")]
pub(crate) mod verify;
