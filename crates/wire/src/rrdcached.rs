//! rrdcached's protocol: lines in, lines out. `fields` and `request` read what a client says, `answers` and
//! `lines` write what it is told, `verb` is the table of commands, `reply` is the client's side.
//!
//! Texts and their order are those of rrdcached 1.7.2, with TUNE and DUMP of the versions after it.

mod answers;
mod fields;
mod lines;
pub mod reply;
mod request;
mod verb;

pub use answers::{Answers, Mark, STATUS_MAX};
pub use fields::{Fields, put_field, take_line};
pub use lines::{ColumnRefusal, Stats, Table, columns};
pub use request::{
    CreateWords, Fetch, Refusal, Request, TuneRefusal, atoi, atol, create_words, list_words, parse,
    time_of, tune_words,
};
pub use verb::{Context, Permissions, Verb};
