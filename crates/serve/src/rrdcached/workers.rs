//! Threads for requests that open files: as many as there is work, up to a limit. A connection is handed over
//! whole and comes back when its next line needs no file, so nobody else sees it meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connection::Connection;
use super::event_loop::Wake;
use super::quick::{Stop, take_turn};
use super::slow::{self, After};
use super::{Severity, Shared};

/// Most threads: each FLUSH that waits for somebody's lock takes one.
const THREADS_MAX: usize = 64;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);
/// How often a file is made known for one line: others may forget it in between.
const TOUCHES_MAX: u32 = 100;

/// A connection that comes back, and how far its lines were served.
pub type Returned = (Box<Connection>, Stop);

/// The threads.
pub struct Workers(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    wake: Arc<Wake>,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Box<Connection>>,
    idle: usize,
    threads: usize,
}

impl Workers {
    pub fn new(shared: Arc<Shared>, wake: Arc<Wake>) -> Workers {
        Workers(Arc::new(Inner {
            shared,
            wake,
            state: Mutex::default(),
            bell: Condvar::new(),
        }))
    }

    /// Has the next lines of a connection served, the first of which takes a file.
    pub fn submit(&self, connection: Box<Connection>) {
        let mut state = self.0.lock();
        state.queue.push_back(connection);
        if state.idle >= state.queue.len() || state.threads >= THREADS_MAX {
            drop(state);
            self.0.bell.notify_one();
            return;
        }
        state.threads += 1;
        let inner = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("worker".into());
        if let Err(error) = thread.spawn(move || inner.run()) {
            state.threads -= 1;
            let alone = state.threads == 0;
            drop(state);
            self.0
                .shared
                .log(Severity::Error, &format!("cannot start a thread: {error}"));
            if alone {
                // Then everybody waits, but nobody for ever.
                self.0.serve_one();
            }
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What is guarded is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            while self.serve_one() {}
            let mut state = self.lock();
            if !state.queue.is_empty() {
                continue;
            }
            state.idle += 1;
            let (mut state, waited) = self
                .bell
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            if waited.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// `false`: nobody waits.
    fn serve_one(&self) -> bool {
        let next = self.lock().queue.pop_front();
        let Some(mut connection) = next else {
            return false;
        };
        let stop = serve(&self.shared, &mut connection);
        self.wake.bring((connection, stop));
        true
    }
}

/// Serves lines until one needs no file, and those behind it.
fn serve(shared: &Shared, connection: &mut Connection) -> Stop {
    let mut touches = 0;
    loop {
        match slow::serve(shared, connection) {
            After::Close => return Stop::Close,
            After::Next => touches = 0,
            After::Again if touches == TOUCHES_MAX => return Stop::Close,
            After::Again => touches += 1,
        }
        let before = connection.consumed;
        let (stops, position) = take_turn(shared, &mut [connection]);
        if shared.settings.durable {
            connection.hold(position);
        }
        if connection.consumed > before {
            touches = 0;
        }
        match stops.first() {
            Some(Stop::Slow) => {}
            Some(stop) => return *stop,
            None => return Stop::Close,
        }
    }
}
