//! Readers of series: the recording, and several readers as one. The keeper's is in `stored`.

mod collection;
mod discovery;
mod pass;
mod recorded;
mod rows;
mod scan;
mod union;

pub use recorded::{Open, RecordedReader};
pub use rows::RowMaker;
pub use union::Union;
