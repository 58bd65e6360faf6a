//! PromQL as Prometheus 3.16 has it, over floats: [`parse`] makes an [`Expr`] of a text and checks its types.
//!
//! Experimental functions and those of native histograms are refused by name. Nothing here does I/O or asks a clock.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ast;
mod duration;
mod error;
mod functions;
mod functions_table;
mod operators;
mod parser;

pub use ast::{Expr, Span, ValueType};
pub use duration::{Duration, DurationError, DurationExpr, DurationOp, QueryTimes};
pub use error::ParseError;
pub use functions::{Function, FunctionId, Variadic};
pub use operators::{AggregateOp, BinaryOp, Cardinality, UnaryOp};
pub use parser::{parse, parse_selector};
