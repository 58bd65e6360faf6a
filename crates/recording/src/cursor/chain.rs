//! Sequence numbers link the records of a recording. This module decides by them which
//! records the cursor may return, and which are missing.

use super::Gap;
use crate::record::{Head, RecordType};

/// Message of a hole without damage.
pub(super) const NOT_WRITTEN: &str = "the records were not written";

/// Position of the cursor in the sequence.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) seen: Option<u64>,
    pub(super) expected: Option<u64>,
    pub(super) broken: bool,
    pub(super) damage: Option<String>,
}

impl Chain {
    /// Notes that records were skipped on purpose,
    /// so that the next record may have any number.
    pub(super) fn jump(&mut self) {
        if self.damage.is_none() {
            self.expected = None;
            self.broken = true;
        }
    }

    /// Notes that the records up to `seq` were skipped on purpose.
    pub(super) fn passed(&mut self, seq: u64) {
        self.seen = self.seen.max(Some(seq));
        self.expected = Some(seq.wrapping_add(1));
    }

    pub(super) fn damaged(&mut self, seq: u64, message: String) {
        self.broken = true;
        self.expected.get_or_insert(seq);
        self.damage.get_or_insert(message);
    }

    /// Returns true if a record is new and the records that it depends on are known.
    pub(super) fn admits(&mut self, head: &Head) -> bool {
        if self.seen.is_some_and(|seen| head.seq <= seen) {
            return false;
        }
        let expected = *self.expected.get_or_insert(head.seq);
        self.broken |= expected != head.seq;
        let depends = head.record_type == RecordType::Sample && !head.key;
        if depends && self.broken {
            self.seen = Some(head.seq);
            let lost = || "the key that the records need is lost".to_string();
            self.damage.get_or_insert_with(lost);
            return false;
        }
        true
    }

    /// Accepts a record; returns the hole before it, if there is one.
    pub(super) fn admit(&mut self, head: &Head) -> Option<Gap> {
        let expected = self.expected.unwrap_or(head.seq);
        let damage = self.damage.take();
        let hole = expected < head.seq || damage.is_some();
        let gap = hole.then(|| Gap {
            first_missing_seq: expected,
            last_missing_seq: Some(head.seq.wrapping_sub(1)),
            kind: None,
            message: damage.unwrap_or_else(|| NOT_WRITTEN.to_string()),
        });
        if head.record_type == RecordType::Sample {
            self.broken = false;
        }
        self.seen = Some(head.seq);
        self.expected = Some(head.seq.wrapping_add(1));
        gap
    }

    pub(super) fn take_open_gap(&mut self) -> Option<Gap> {
        let message = self.damage.take()?;
        Some(Gap {
            first_missing_seq: self.expected.unwrap_or(0),
            last_missing_seq: self.seen.filter(|seen| Some(*seen) >= self.expected),
            kind: None,
            message,
        })
    }
}
