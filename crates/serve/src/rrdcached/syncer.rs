//! The thread that waits for the disk with `--durable`: while it waits, the next turns gather, and all of them
//! are answered after the next wait.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_store::Position;

use super::event_loop::Wake;
use super::{Severity, Shared};

/// How often a failed wait is tried again: the store begins a new journal file meanwhile.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// What the thread is asked, and how far it is.
#[derive(Default)]
pub struct Syncer {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    wanted: Option<Position>,
    ending: bool,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// What lies before is on the disk.
    To(Position),
    /// Nobody knows whether it is; whoever waits for it must not be told that it is.
    Failed(Position),
}

impl Syncer {
    /// Starts the thread.
    pub fn start(shared: Arc<Shared>, wake: Arc<Wake>) -> std::io::Result<Arc<Syncer>> {
        let syncer = Arc::new(Syncer::default());
        let own = Arc::clone(&syncer);
        let thread = std::thread::Builder::new().name("durable".into());
        thread.spawn(move || own.run(&shared, &wake))?;
        Ok(syncer)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers wait for this position.
    pub fn want(&self, position: Position) {
        let mut state = self.lock();
        state.wanted = state.wanted.max(Some(position));
        drop(state);
        self.bell.notify_one();
    }

    /// Ends the thread.
    pub fn end(&self) {
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
