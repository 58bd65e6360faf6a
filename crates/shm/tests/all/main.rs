//! Publishers and readers of real files in memory.

#![allow(clippy::print_stderr, reason = "a person reads it")]

mod c;
mod examples;
mod folder;
mod golden;
mod hostile;
mod owners;
mod places;
mod publish;
mod running;
mod writers;
