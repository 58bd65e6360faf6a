//! What the formats make of samples.

mod formats;
mod graph;
