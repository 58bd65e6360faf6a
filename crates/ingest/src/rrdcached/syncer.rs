//! The thread that waits for the disk with `--durable`: a group commit. While the thread waits, the next updates gather, and one
//! sync answers all of them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo_store::Position;

use super::wake::{Synced, Wake};
use super::{Severity, Shared};

/// How often a failed sync is tried again: the store begins a new journal file meanwhile.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// Requests to the thread.
#[derive(Default)]
pub(super) struct Syncer {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    wanted: Option<Position>,
    ending: bool,
}

/// Answers that wait for the next sync, and the begin of that sync. Clients that were answered a moment ago ask again at once, so
/// it pays to wait for them: otherwise the first one gets a sync of its own, and all others wait for two.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Position to sync to; `None`: no answer waits.
    upto: Option<Position>,
    /// Number of waiting answers; one client may have several.
    waiting: usize,
    /// Number of answers that the last sync released, and of those that waited at its end.
    expected: usize,
    /// Begin of the current sync.
    begun: Option<Instant>,
    /// Latest begin of the next sync.
    begin_by: Option<Instant>,
}

impl Group {
    /// Adds an answer that waits for this position.
    pub(super) fn add(&mut self, position: Position) {
        self.upto = self.upto.max(Some(position));
        self.waiting += 1;
    }

    /// The position to sync to now, or the longest wait before that; `None`: no answer waits, or a sync is under way.
    pub(super) fn begin(
        &mut self,
        now: impl Fn() -> Instant,
    ) -> Option<Result<Position, Duration>> {
        let position = self.upto.filter(|_| self.begun.is_none())?;
        let now = now();
        if self.waiting < self.expected
            && let Some(left) = self.begin_by.and_then(|by| by.checked_duration_since(now))
            && !left.is_zero()
        {
            return Some(Err(left));
        }
        self.begun = Some(now);
        self.upto = None;
        self.waiting = 0;
        Some(Ok(position))
    }

    /// Ends a sync that released `answered` answers, while `waiting` wait for the next one. The next sync waits for others at
    /// most half as long as this one needed.
    pub(super) fn done(&mut self, now: Instant, answered: usize, waiting: usize) {
        let took = self.begun.take().map(|begun| now - begun);
        self.begin_by = took.map(|took| now + took / 2);
        self.expected = answered + waiting;
    }
}

impl Syncer {
    /// Starts the thread.
    pub(super) fn start(shared: Arc<Shared>, wake: Arc<Wake>) -> std::io::Result<Arc<Syncer>> {
        let syncer = Arc::new(Syncer::default());
        let own = Arc::clone(&syncer);
        let thread = std::thread::Builder::new().name("durable".into());
        thread.spawn(move || own.run(&shared, &wake))?;
        Ok(syncer)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a sync to this position.
    pub(super) fn want(&self, position: Position) {
        let mut state = self.lock();
        state.wanted = state.wanted.max(Some(position));
        drop(state);
        self.bell.notify_one();
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.lock().ending = true;
        self.bell.notify_one();
    }

    fn run(&self, shared: &Shared, wake: &Wake) {
        loop {
            let mut state = self.lock();
            let position = loop {
                if let Some(position) = state.wanted.take() {
                    break position;
                }
                if state.ending {
                    return;
                }
                state = self
                    .bell
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            wake.synced(sync(shared, position));
        }
    }
}

fn sync(shared: &Shared, position: Position) -> Synced {
    for _ in 0..TRIES {
        match shared.store.durable(position) {
            Ok(()) => return Synced::To(position),
            Err(error) => shared.log(Severity::Critical, &format!("cannot sync journal: {error}")),
        }
        std::thread::sleep(PAUSE);
    }
    Synced::Failed(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_waits_for_those_who_were_just_answered_but_not_long() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let mut group = Group::default();
        assert_eq!(group.begin(|| at(0)), None);
        group.add(Position(1));
        assert_eq!(group.begin(|| at(0)), Some(Ok(Position(1))));
        // Two more answers come during the sync.
        group.add(Position(2));
        group.add(Position(3));
        assert_eq!(group.begin(|| at(50)), None);
        group.done(at(100), 1, 2);
        let left = Duration::from_micros(30);
        assert_eq!(group.begin(|| at(120)), Some(Err(left)));
        group.add(Position(4));
        assert_eq!(group.begin(|| at(120)), Some(Ok(Position(4))));
        group.done(at(220), 3, 0);
        assert_eq!(group.begin(|| at(230)), None);
        group.add(Position(5));
        assert_eq!(group.begin(|| at(270)), Some(Ok(Position(5))));
    }
}
