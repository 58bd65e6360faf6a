//! Flush: the values of a chunk become a block.

pub(crate) mod chunk;
mod points;
