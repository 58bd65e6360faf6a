//! State in memory of each series: its values that
//! are in no block yet, and the state of its file.

pub(crate) mod accepted;
pub(crate) mod buffer;
pub(crate) mod chunks;
pub(crate) mod departed;
pub(crate) mod epochs;
pub(crate) mod file_state;
pub(crate) mod pins;
mod point_state;
pub(crate) mod point_tail;
pub(crate) mod series;
pub(crate) mod spellings;
pub(crate) mod state;
pub(crate) mod writer;
