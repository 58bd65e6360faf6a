//! rrdcached's protocol of lines. `fields` and `request` read a client's commands, `answers` and `lines`
//! write the answers, `verb` is the table of commands, and `reply` reads answers for a client.
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
