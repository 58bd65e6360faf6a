//! A walk down a column, request by request. An agent that goes round in circles, or on for ever, is found out.

use std::cmp::Ordering;

use kymo_wire::snmp::{ErrorStatus, Message, ObjectValue, Oid, compare_oids};

/// Rows of one column that are believed.
const ROWS_MAX: u32 = 1 << 17;

/// How far a walk has come.
#[derive(Debug)]
pub(crate) struct Walk {
    column: Oid,
    /// The last row that was seen, the column itself at first.
    at: Oid,
    rows: u32,
    /// Rows that a reply is asked for.
    pub repetitions: u16,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask again, from where it is now.
    More,
    /// That was all.
    End,
    /// What the device says cannot be.
    Broken,
}

impl Walk {
    /// At the beginning of a column.
    pub(crate) fn new(column: Oid, repetitions: u16) -> Walk {
        Walk {
            at: column.clone(),
            column,
            rows: 0,
            repetitions: repetitions.max(1),
        }
    }

    /// What to ask for the next one of.
    pub(crate) fn at(&self) -> &Oid {
        &self.at
    }

    /// Takes a reply; `each` gets the sub-identifiers behind the column and the value of each row, and says whether to go on.
    pub(crate) fn take(
        &mut self,
        reply: &Message<'_>,
        mut each: impl FnMut(&[u8], ObjectValue<'_>) -> bool,
    ) -> Next {
        match reply.error_status() {
            ErrorStatus::NO_ERROR => {}
            ErrorStatus::NO_SUCH_NAME => return Next::End,
            ErrorStatus::TOO_BIG if self.repetitions > 1 => {
                self.repetitions /= 2;
                return Next::More;
            }
            _ => return Next::Broken,
        }
        let (mut last, column): (Option<&[u8]>, &[u8]) = (None, self.column.as_ref());
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
            let before = last.unwrap_or(self.at.as_ref());
            self.rows += 1;
            if compare_oids(before, name) != Ordering::Less || self.rows > ROWS_MAX {
                return Next::Broken;
            }
            last = Some(name);
            if !each(behind, value) {
                return Next::End;
            }
        }
        let Some(last) = last else {
            return Next::End;
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
