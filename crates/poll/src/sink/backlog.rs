//! Values that wait for a daemon that is away, in their order.

use super::{Series, index};
use crate::batch::{Batch, Update};
use std::collections::{HashMap, VecDeque};

/// Limit of waiting values in bytes: half a day of 3,000 targets.
const BYTES_MAX: usize = 32 << 20;
/// Bytes that a value needs beside its text.
const OVERHEAD: usize = 32;

/// Values, oldest first.
#[derive(Default)]
pub(super) struct Backlog {
    values: VecDeque<(u32, Box<[u8]>)>,
    bytes: usize,
}

impl Backlog {
    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds a value. Returns the number of older ones dropped to make room.
    pub(super) fn push(&mut self, target: u32, argument: &[u8]) -> u64 {
        self.bytes += argument.len() + OVERHEAD;
        self.values.push_back((target, argument.into()));
        let mut dropped = 0;
        while self.bytes > BYTES_MAX && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }

    /// The values, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Update<'_>> {
        self.values.iter().map(|(target, argument)| Update {
            target: *target,
            argument,
            about: None,
        })
    }

    /// Removes the oldest values, `count` of them.
    pub(super) fn drop_first(&mut self, count: usize) {
        for _ in 0..count {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<(u32, Box<[u8]>)> {
        let (target, argument) = self.values.pop_front()?;
        self.bytes -= argument.len() + OVERHEAD;
        Some((target, argument))
    }

    /// Renumbers the targets after a change of the series. Values of series that
    /// no longer exist are dropped.
    pub(super) fn follow(&mut self, before: &[Series], now: &[Series]) {
        if self.values.is_empty() {
            return;
        }
        let places: HashMap<&[u8], u32> =
            now.iter().map(|series| &series.name[..]).zip(0..).collect();
        for (target, argument) in std::mem::take(self).values {
            let name = before.get(index(target)).map(|series| &series.name[..]);
            if let Some(&target) = name.and_then(|name| places.get(name)) {
                self.push(target, &argument);
            }
        }
    }
}

/// All values to be sent: the waiting ones, then the new ones.
pub(super) fn all<'a>(backlog: &'a Backlog, batch: &'a Batch) -> impl Iterator<Item = Update<'a>> {
    backlog.iter().chain(batch.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{Kind, Layout, Layouts, Spans};

    fn series(name: &str) -> Series {
        Series {
            path: name.into(),
            folder_bytes: 0,
            name: name.into(),
            step_s: 300,
            heartbeat_s: 600,
            kind: Kind::Gauge,
            max: [None; 2],
            archives: Layouts::default().archives(Layout {
                interval_s: 300,
                spans: Spans::Log,
                rows: [None; 4],
                seasonal: Vec::new(),
            }),
            points_kept_s: 0,
            log: Default::default(),
            max_age_s: None,
        }
    }

    fn texts(backlog: &Backlog) -> Vec<(u32, &[u8])> {
        let updates = backlog.iter();
        updates
            .map(|update| (update.target, update.argument))
            .collect()
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room() {
        let (mut backlog, mut dropped) = (Backlog::default(), 0);
        let text = vec![b'1'; (1 << 20) - OVERHEAD];
        for target in 0..40 {
            dropped += backlog.push(target, &text);
        }
        assert_eq!((backlog.len(), dropped), (32, 8));
        assert_eq!(backlog.iter().next().map(|update| update.target), Some(8));
        backlog.drop_first(31);
        assert_eq!(texts(&backlog), [(39, &text[..])]);
        assert_eq!(backlog.bytes, 1 << 20);
    }

    #[test]
    fn targets_that_have_other_numbers_keep_their_values() {
        let mut backlog = Backlog::default();
        for (target, text) in [(0, b"1:1"), (1, b"1:2"), (0, b"2:1"), (7, b"1:7")] {
            backlog.push(target, text);
        }
        backlog.follow(&[series("a"), series("b")], &[series("c"), series("a")]);
        assert_eq!(texts(&backlog), [(1, &b"1:1"[..]), (1, b"2:1")]);
    }
}
