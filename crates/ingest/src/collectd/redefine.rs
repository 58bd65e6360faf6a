//! Other definitions for series whose values come at another interval, or are of other kinds. A thread makes them, as that reads and writes all rows of
//! a series: datagrams do not wait for it, and what comes meanwhile is for the old definitions until then.

use std::mem::take;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use kymo_base::name::DisplayName;
use kymo_rrd::Header;
use kymo_store::{Redefinition, Store};
use kymo_sys::machine;

use super::TELL_EVERY;
use crate::common::rhythm::Rhythm;
use crate::listener::StopSignal;
use crate::log::{Log, Severity};

/// Series that wait; others are asked for again with their next value.
const WAITING_MAX: usize = 64;
/// Series that are changed together: all their rows are in memory.
const AT_ONCE: usize = 16;

/// A series that is to have other definitions.
pub(super) struct Change {
    pub series: u32,
    pub path: Box<[u8]>,
    pub from: Header,
    pub to: Header,
    /// The stamp of the first value that these are for.
    pub since_s: u64,
    pub why: Why,
}

/// Why a series is to have other definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Values come at another interval.
    Interval,
    /// Values are of another number, or of other kinds.
    Kinds,
    /// types.db has names for them, and had none.
    Names,
}

impl Why {
    const ALL: [Why; 3] = [Why::Interval, Why::Kinds, Why::Names];

    fn words(self) -> &'static str {
        match self {
            Why::Interval => "for another interval, at which their values come now",
            Why::Kinds => "for other kinds of values, which come now",
            Why::Names => "with the names that types.db has now",
        }
    }
}

/// Where changes are asked for.
pub(super) struct Requests {
    changes: Sender<Change>,
    ended: Receiver<Ended>,
    waiting: usize,
}

/// A series, and whether it failed.
type Ended = (u32, bool);

/// Where they are made.
pub(super) struct Redefiner {
    changes: Receiver<Change>,
    ended: Sender<Ended>,
    /// What no line speaks of yet: how many were changed, how many could not be, and why.
    changed: [ChangeCount; 3],
    failed: u64,
    last_failure: String,
}

/// Series that were changed for one reason.
#[derive(Default)]
struct ChangeCount {
    count: u64,
    last: String,
}

/// Both ends.
pub(super) fn redefiner() -> (Requests, Redefiner) {
    let (ask, changes) = channel();
    let (answer, ended) = channel();
    let requests = Requests {
        changes: ask,
        ended,
        waiting: 0,
    };
    let redefiner = Redefiner {
        changes,
        ended: answer,
        changed: Default::default(),
        failed: 0,
        last_failure: String::new(),
    };
    (requests, redefiner)
}

impl Requests {
    /// Whether one more may be asked for.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < WAITING_MAX
    }

    /// Asks for a change.
    pub(super) fn ask(&mut self, change: Change) {
        self.waiting += 1;
        // It may have ended, and so will all else.
        let _ = self.changes.send(change);
    }

    /// A series whose change ended, and whether it failed.
    pub(super) fn next_ended(&mut self) -> Option<(u32, bool)> {
        let ended = self.ended.try_recv().ok()?;
        self.waiting = self.waiting.saturating_sub(1);
        Some(ended)
    }
}

impl Redefiner {
    /// Makes changes until there is no one to ask, or all is to stop.
    pub(super) fn run(mut self, store: &Store, stop: &StopSignal, log: &Log) {
        let mut lines = Rhythm::of(TELL_EVERY);
        loop {
            let next = match self.has_news() {
                false => self
                    .changes
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                true => self.changes.recv_timeout(lines.wait()),
            };
            match next {
                Ok(first) => self.make(first, store),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.has_news() && lines.is_due() {
                self.tell(log);
                lines.begin_again();
            }
            let ready = machine::wait_readable(&[stop.as_fd()], Duration::ZERO);
            if ready.first() == Some(&true) {
                break;
            }
        }
        self.tell(log);
    }

    /// Some changes together.
    fn make(&mut self, first: Change, store: &Store) {
        let mut changes = vec![first];
        changes.extend(self.changes.try_iter().take(AT_ONCE - 1));
        let wanted = changes.iter().map(|change| Redefinition {
            name: &change.path,
            from: &change.from,
            to: &change.to,
            since: change.since_s as f64,
        });
        let wanted: Vec<Redefinition<'_>> = wanted.collect();
        for (change, outcome) in changes.iter().zip(store.redefine(&wanted)) {
            // Whoever asked may have ended.
            let _ = self.ended.send((change.series, outcome.is_err()));
            match outcome {
                Ok(false) => {}
                Ok(true) => {
                    let mut counts = self.changed.iter_mut().zip(Why::ALL);
                    let of_why = counts.find(|(_, why)| *why == change.why);
                    if let Some((changed, _)) = of_why {
                        changed.count += 1;
                        changed.last = DisplayName(&change.path).to_string();
                    }
                }
                Err(error) => {
                    self.failed += 1;
                    self.last_failure = format!("{}: {error}", DisplayName(&change.path));
                }
            }
        }
    }

    fn has_news(&self) -> bool {
        self.changed
            .iter()
            .map(|changed| changed.count)
            .sum::<u64>()
            + self.failed
            > 0
    }

    fn tell(&mut self, log: &Log) {
        let changed = take(&mut self.changed);
        for (ChangeCount { count, last }, why) in changed.into_iter().zip(Why::ALL) {
            let words = why.words();
            if count > 0 {
                let line =
                    format!("collectd: {count} series are defined {words}; the last was {last}");
                log(Severity::Info, &line);
            }
        }
        let failed = take(&mut self.failed);
        if failed > 0 {
            let last = &self.last_failure;
            let line = format!(
                "collectd: cannot give {failed} series other definitions; the last was {last}"
            );
            log(Severity::Warning, &line);
        }
    }
}
