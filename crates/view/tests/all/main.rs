//! Tests of the formats.

mod formats;
mod graph;
