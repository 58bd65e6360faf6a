//! The command line's operations on a store:
//! verify, status, look, import, export.

pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod look;
pub(crate) mod space;
pub mod status;
pub mod verify;
