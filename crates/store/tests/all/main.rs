//! The store as its users see it, on a simulated disk and on a real one.

#![allow(clippy::print_stderr, reason = "a person reads it")]
#![allow(clippy::unwrap_used, missing_docs)]

mod behaviour;
mod common;
mod damage;
mod define;
mod erase;
mod faults;
mod fetch;
mod fixtures;
mod hostile;
mod import;
mod join;
mod join_points;
mod labels;
mod limits;
mod many;
mod pin;
mod points;
mod points_damage;
mod points_erase;
mod points_kept;
mod redefine;
mod remove;
mod rests;
mod status;
mod tail;
mod tail_faults;
mod verify;
mod verify_beside;
mod views;
