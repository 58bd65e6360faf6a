//! Rows → bytes: brief, verbose, detail, plot, CSV, JSON, top. Pure.

#![forbid(unsafe_code)]
