//! Reading the kernel: the table of its sources, their readers, the subsystems built on
//! them, and [`interpret`], the only place where texts get meaning.

#![forbid(unsafe_code)]

mod activity;
pub mod backoff;
pub mod choice;
pub mod containers;
pub mod digest;
pub mod exposition;
pub mod facts;
mod group_names;
pub mod groups;
pub mod hierarchies;
pub mod identity;
mod idle;
pub mod interpret;
pub mod layout;
pub mod listing;
pub mod mounts;
pub mod mountstats;
pub mod reader;
pub mod sampler;
pub mod source;
pub mod subsystem;
mod task_states;
mod task_tables;
pub mod tasks;

#[cfg(test)]
mod tests;
