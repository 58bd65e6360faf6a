//! A walk down a column, request by request. Agents may list rows in any order, and rows twice, so a walk goes on while a
//! reply has a new row. It ends if an agent repeats itself or never ends.

use std::collections::HashSet;

use kymo_wire::snmp::{ErrorStatus, ObjectValue, Oid, Response};

/// Most rows of a column that are accepted.
const ROWS_MAX: usize = 1 << 17;

/// State of a walk.
#[derive(Debug)]
pub(crate) struct Walk {
    column: Oid,
    /// The last row so far, at first the column itself.
    at: Oid,
    /// The sub-identifiers of each row behind the column.
    seen: HashSet<Box<[u8]>>,
    /// Rows of a GETBULK; 0: use GETNEXT.
    pub repetitions: u16,
}

/// Result of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// More rows may follow: send the next request.
    More,
    /// The walk is complete.
    End,
    /// All rows of the reply have come before, so rows behind them are out of reach.
    Looped,
    /// The reply is malformed or an error.
    Broken,
}

/// Ends of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// At the column's end.
    Whole,
    /// The agent repeated rows.
    Looped,
    /// Silence, an error or a malformed answer.
    Broken,
}

impl Walk {
    /// A walk from the beginning of a column.
    pub(crate) fn new(column: Oid, repetitions: u16) -> Walk {
        Walk {
            at: column.clone(),
            column,
            seen: HashSet::new(),
            repetitions,
        }
    }

    /// True if the walk asks for several rows at a time and has got none yet.
    pub(crate) fn is_large(&self) -> bool {
        self.repetitions > 1 && self.seen.is_empty()
    }

    /// The name that the next request asks to continue from.
    pub(crate) fn at(&self) -> &Oid {
        &self.at
    }

    /// Takes a reply. `each` gets the sub-identifiers behind the column and the value of each new row, and returns true to go
    /// on.
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

/// The sub-identifiers behind a column; `None`: one is truncated or too large.
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
