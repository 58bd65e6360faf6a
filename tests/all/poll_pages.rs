//! MRTG's pages in a folder beside MRTG's own: graphs have the pixels that its program rateup draws, and pages
//! have the elements, comments and numbers that MRTG writes.

mod about;
mod existing;
mod files;
mod graphs;
mod index;
mod moments;
mod rrd;
pub(crate) mod sides;
