//! What was acknowledged and is not yet in a file: one journal, values in memory, and the .rrd files that
//! are brought up to date from them.

#![forbid(unsafe_code)]
