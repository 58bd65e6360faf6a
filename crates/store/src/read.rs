//! Reading a series at a moment: joins blocks, memory and the file.

pub(crate) mod raw_points;
pub(crate) mod rows;
pub(crate) mod series_cache;
pub(crate) mod snapshot;
pub(crate) mod view;
