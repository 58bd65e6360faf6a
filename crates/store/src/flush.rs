//! Flush: saves values of a chunk as a block.

pub(crate) mod chunk;
mod points;
