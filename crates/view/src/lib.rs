//! Turns rows into bytes (brief, verbose, detail, plot, CSV, JSON, top), and series into SVG. The
//! crate uses no file, no clock and no terminal: samples come from a [`kymo_query::source::Source`],
//! bytes go to a [`sink::Sink`].
//!
//! One module per format. The subsystems' tables alone declare columns with their names and widths.

#![forbid(unsafe_code)]

mod brief;
mod csv;
mod exceptions;
mod export;
mod feed;
mod filters;
mod form;
mod format;
pub mod graphs;
mod json;
mod layouts;
pub mod metrics;
pub mod network_map;
pub mod options;
mod play;
mod plot;
mod plot_header;
pub mod processes;
mod procopts;
pub mod programs;
pub mod prometheus;
mod row;
mod selection;
pub mod sink;
mod stack;
pub mod standard;
pub mod svg;
mod switches;
pub mod time;
mod totals;
mod verbose;
pub mod why;

pub use export::vmstat::LETTERS as VMSTAT_LETTERS;
pub use export::{forest, sums};
pub use metrics::metrics_md;
pub use options::Options;
pub use options::export::Export;
pub use play::{Shown, Stopped, play};
pub use plot_header::header;
pub use row::RowText;
