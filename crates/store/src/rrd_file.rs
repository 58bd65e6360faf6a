//! .rrd files: views that the store updates, and files of other programs that it adopts.

pub(crate) mod adopt;
pub(crate) mod create;
pub(crate) mod define;
pub(crate) mod diff;
pub(crate) mod file_rows;
pub(crate) mod header;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod open;
pub(crate) mod pieces;
pub(crate) mod placeholder;
pub(crate) mod reconcile;
pub(crate) mod redefine;
pub(crate) mod write_back;
