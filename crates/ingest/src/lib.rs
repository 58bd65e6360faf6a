//! Where values come in: the keeper, which owns the store, its threads and its end, and the listeners, each of which
//! turns what clients of one protocol send into write batches.

#![forbid(unsafe_code)]

pub mod keeper;
pub mod log;
pub mod rrdcached;
