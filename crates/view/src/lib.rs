//! Rows → bytes: brief, verbose, detail, plot, CSV, JSON, top; series → SVG. Pure: samples come from a
//! [`kymo_query::source::Source`], bytes go to a [`sink::Sink`]; no file, no clock, no terminal.
//!
//! One file a format. What is shown, under which name and how wide, is declared in the
//! subsystems' tables alone.

#![forbid(unsafe_code)]

mod brief;
mod csv;
mod feed;
mod form;
mod format;
pub mod graphs;
mod json;
pub mod metrics;
pub mod options;
mod play;
mod plot;
mod plot_header;
pub mod processes;
pub mod prometheus;
mod row;
mod selection;
pub mod sink;
pub mod standard;
pub mod svg;
pub mod time;
mod verbose;

pub use metrics::metrics_md;
pub use options::Options;
pub use play::{Shown, Stopped, play};
