//! What happened, as rates: the one trait all data comes through, and the one
//! place where two readings are subtracted.

#![forbid(unsafe_code)]

pub mod collectl;
pub mod delta;
pub mod live;
pub mod recorded;
pub mod source;
