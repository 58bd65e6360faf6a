//! The screen of `kymo top`: readings of a moment as a picture of cells, and what keys do to it.
//!
//! A view cannot tell live from recorded: both are [`readings::Readings`], advanced by a `Source`. The crate has no terminal, no
//! thread and no clock: the caller passes in keys, samples and times, and shows the picture.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod app;
pub mod areas;
pub mod draw;
pub mod fleet;
pub mod help;
pub mod hosts;
pub mod key;
pub mod lines;
pub mod meters;
pub mod palette;
pub mod past;
pub mod readings;
pub mod retrieve;
pub mod screen;
pub mod tables;
pub mod window;

#[cfg(test)]
mod tests;
