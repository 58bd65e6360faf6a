//! Consolidation of values into rows: the schema
//! of a series, and rrdtool's arithmetic on it.

pub(crate) mod apply;
pub(crate) mod archive;
pub(crate) mod points_schema;
pub(crate) mod row_sink;
pub(crate) mod rows;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod schema;
pub(crate) mod tiers;
pub(crate) mod timeline;
