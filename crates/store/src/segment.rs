//! Segments: files of blocks to which blocks
//! are only appended. docs/formats/store.md.

pub(crate) mod ages;
pub(crate) mod append;
pub(crate) mod block;
pub(crate) mod block_cache;
pub(crate) mod builder;
pub(crate) mod catalog;
pub(crate) mod codec;
pub(crate) mod file;
pub(crate) mod open;
pub(crate) mod placed;
pub(crate) mod point_column;
pub(crate) mod points;
pub(crate) mod samples;
pub(crate) mod set;
pub(crate) mod value_column;
pub(crate) mod writer;
