//! What a series is at a moment: blocks, memory and the file put together.

pub(crate) mod raw_points;
pub(crate) mod rows;
pub(crate) mod series_cache;
pub(crate) mod snapshot;
pub(crate) mod view;
