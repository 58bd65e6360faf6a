//! What the kernel says: the table of its sources, the subsystems made of them, and
//! the only place where a text gets meaning ([`interpret`]).

#![forbid(unsafe_code)]

pub mod interpret;
pub mod source;
pub mod subsystem;
