//! Processes of kymo: in the background, confined, with lines on stderr.

pub(crate) mod daemon;
pub(crate) mod notices;
#[cfg(feature = "serve")]
pub(crate) mod order;
#[cfg(feature = "serve")]
pub(crate) mod sandbox;
