//! A walk down a column, request by request. Agents give rows in any order, and some rows twice: a walk goes on while a reply
//! has a row that is new. An agent that goes round in circles, or on for ever, is found out.

use std::collections::HashSet;

use kymo_wire::snmp::{ErrorStatus, ObjectValue, Oid, Response};

/// Rows of one column that are believed.
const ROWS_MAX: usize = 1 << 17;

/// How far a walk has come.
#[derive(Debug)]
pub(crate) struct Walk {
    column: Oid,
    /// The last row that was seen, the column itself at first.
    at: Oid,
    /// The sub-identifiers behind the column, of each row.
    seen: HashSet<Box<[u8]>>,
    /// Rows that a reply is asked for; 0: the next one, by GETNEXT.
    pub repetitions: u16,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask again, from where it is now.
    More,
    /// That was all.
    End,
    /// All rows of the reply came before: those behind them cannot be had.
    Looped,
    /// What the device says cannot be.
    Broken,
}

/// How the walk of a column ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// At the column's end.
    Whole,
    /// Among rows that came before.
    Looped,
    /// By silence, an error, or an answer without a row.
    Broken,
}

impl Walk {
    /// At the beginning of a column.
    pub(crate) fn new(column: Oid, repetitions: u16) -> Walk {
        Walk {
            at: column.clone(),
            column,
            seen: HashSet::new(),
            repetitions,
        }
    }

    /// True if the walk asks for more than one row, and none has come yet.
    pub(crate) fn is_large(&self) -> bool {
        self.repetitions > 1 && self.seen.is_empty()
    }

    /// What to ask for the next one of.
    pub(crate) fn at(&self) -> &Oid {
        &self.at
    }

    /// Takes a reply; `each` gets the sub-identifiers behind the column and the value of each row, and says whether to go on.
    pub(crate) fn take(
        &mut self,
        reply: &Response<'_>,
        mut each: impl FnMut(&[u8], ObjectValue<'_>) -> bool,
    ) -> Next {
        match reply.status {
            ErrorStatus::NO_ERROR => {}
            ErrorStatus::NO_SUCH_NAME => return Next::End,
            status if self.repetitions > 0 => {
                self.repetitions = match status {
                    ErrorStatus::TOO_BIG => self.repetitions / 2,
                    _ => 0,
                };
                return Next::More;
            }
            _ => return Next::Broken,
        }
        let (mut last, column): (Option<&[u8]>, &[u8]) = (None, self.column.as_ref());
        let mut is_empty = true;
        for varbind in reply.varbinds {
            let Ok((name, value)) = varbind else {
                return Next::Broken;
            };
            let Some(behind) = name.strip_prefix(column).filter(|rest| !rest.is_empty()) else {
                return Next::End;
            };
            if value == ObjectValue::EndOfMibView {
                return Next::End;
            }
            is_empty = false;
            if !self.seen.insert(behind.into()) {
                continue;
            }
            if self.seen.len() > ROWS_MAX {
                return Next::Broken;
            }
            last = Some(name);
            if !each(behind, value) {
                return Next::End;
            }
        }
        let Some(last) = last else {
            return if is_empty { Next::End } else { Next::Looped };
        };
        self.at = Oid::of_bytes(last);
        Next::More
    }
}

/// The sub-identifiers behind a column; `None`: one is cut short or too large.
pub(crate) fn place_of(behind: &[u8]) -> Option<Vec<u32>> {
    let (mut all, mut value) = (Vec::new(), 0u32);
    for &byte in behind {
        value = value.checked_mul(128)? | u32::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            all.push(std::mem::take(&mut value));
        }
    }
    behind
        .last()
        .is_none_or(|last| last & 0x80 == 0)
        .then_some(all)
}
