//! New definitions for series whose values now have another interval or other kinds. A thread makes them, because it reads and
//! writes all rows of a series: datagrams do not wait for it. Until the change is made, values are stored by the old definition.

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

/// Most series that wait for a change. Further ones are asked for again with their next values.
const WAITING_MAX: usize = 64;
/// Series that are changed together: all their rows are in memory.
const AT_ONCE: usize = 16;

/// A change of the definition of a series.
pub(super) struct Change {
    pub series: u32,
    pub path: Box<[u8]>,
    pub from: Header,
    pub to: Header,
    /// Time of the first value that the new definition is for, in seconds.
    pub since_s: u64,
    pub why: Why,
}

/// Reason for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Values come at another interval.
    Interval,
    /// Values have another number or other kinds.
    Kinds,
    /// types.db has names for the sources now, and had none before.
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

/// The end that asks for changes.
pub(super) struct Requests {
    changes: Sender<Change>,
    ended: Receiver<Ended>,
    waiting: usize,
}

/// A series, and true if its change failed.
type Ended = (u32, bool);

/// The end that makes changes.
pub(super) struct Redefiner {
    changes: Receiver<Change>,
    ended: Sender<Ended>,
    /// Changes that were not logged yet, by reason; `failed` and `last_failure`: changes that failed, and why the last one did.
    changed: [ChangeCount; 3],
    failed: u64,
    last_failure: String,
}

/// Number of changes for one reason, and the last changed series.
#[derive(Default)]
struct ChangeCount {
    count: u64,
    last: String,
}

/// Makes both ends.
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
    /// True if one more change may wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < WAITING_MAX
    }

    /// Asks for a change.
    pub(super) fn ask(&mut self, change: Change) {
        self.waiting += 1;
        // This fails only if the thread has ended, and then the listener is about to end, too.
        let _ = self.changes.send(change);
    }

    /// A series whose change has ended, and true if it failed.
    pub(super) fn next_ended(&mut self) -> Option<(u32, bool)> {
        let ended = self.ended.try_recv().ok()?;
        self.waiting = self.waiting.saturating_sub(1);
        Some(ended)
    }
}

impl Redefiner {
    /// Makes changes until the asking end is gone or the keeper stops.
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
                self.report(log);
                lines.begin_again();
            }
            let ready = machine::wait_readable(&[stop.as_fd()], Duration::ZERO);
            if ready.first() == Some(&true) {
                break;
            }
        }
        self.report(log);
    }

    /// Makes this change together with waiting ones.
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
            // The asking end may be gone.
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

    fn report(&mut self, log: &Log) {
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
