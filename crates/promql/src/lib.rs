//! PromQL as Prometheus 3.16 has it, over floats: [`parse`] makes an [`Expr`] of a text and checks its types, an
//! [`Engine`] evaluates it over a [`kymo_series::Reader`].
//!
//! Experimental functions and those of native histograms are refused by name. Nothing here does I/O or asks a clock.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ast;
mod check;
mod duration;
mod error;
mod eval;
mod functions;
mod functions_table;
#[cfg(feature = "testing")]
pub mod fuzz;
mod lexer;
mod number;
mod number_text;
mod operators;
mod parser;
mod pretty;
mod print;
mod span;
mod string;
mod token;
mod tree;
mod value_type;

pub use ast::{Expr, Span, ValueType};
pub use duration::{Duration, DurationError, DurationExpr, DurationOp, QueryTimes};
pub use error::ParseError;
pub use eval::{Answer, Engine, EvalError, LabelSet, Limits, Note, NoteKind, Track, Value, Watch};
pub use functions::{Function, FunctionId, Variadic};
pub use number_text::push_number;
pub use operators::{AggregateOp, BinaryOp, Cardinality, UnaryOp};
pub use parser::{LEVELS_MAX, TEXT_MAX, parse, parse_selector};
pub use pretty::pretty;
pub use tree::Tree;
