//! Prometheus' own expressions: those of its test files, and those of its parser's tests with their errors. All are
//! read from its Go module, which is downloaded at the time of the test and is no part of this tree. So are its parser
//! and its engine, which are asked the same questions.

#![allow(clippy::print_stderr, reason = "a person reads it")]
#![allow(clippy::unwrap_used)]

mod cases;
mod engine;
mod exceptions;
mod expressions;
mod go_module;
mod grown;
mod loaded;
mod oracle;
mod pieces;
mod refusals;
mod script;

mod bounds;
mod round_trip;
mod rows;
mod same_answers;
mod same_engine;
mod same_errors;
mod same_values;
mod speed;
