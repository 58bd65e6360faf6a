//! Threads for requests that open files: as many as there is work, up to a limit. A worker has a connection until its
//! next line needs no file; no other thread sees the connection meanwhile. For a client that asks for one file after
//! the other, the thread waits a moment for the next line, if no connection waits for a thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::{Came, Connection, READ_SIZE};
use super::quick::{Stop, serve_batch};
use super::slow::{self, After, Lane};
use super::wake::Wake;
use super::{Severity, Shared};

/// Most threads: each FLUSH that waits for the lock of another program occupies one.
const THREADS_MAX: usize = 64;
/// Most threads for long work: each works as long as its client reads the answer, and no other client has to wait for
/// that.
const LONG_THREADS_MAX: usize = 16;
/// Time after which a thread without work ends.
const IDLE: Duration = Duration::from_secs(10);
/// Time for which a thread waits for a client's next line.
const LINGER: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// Turns without a file that a thread serves for such a client in a row, before it returns the connection.
const QUICK_MAX: u32 = 16;
/// Times that a file is made known for one line: other threads may make the store forget it in between.
const TOUCHES_MAX: u32 = 100;

/// The threads.
pub(super) struct Workers {
    short: Arc<Inner>,
    long: Arc<Inner>,
}

struct Inner {
    lane: Lane,
    threads_max: usize,
    /// The threads for long work; `None`: these are the ones.
    long: Option<Arc<Inner>>,
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
    ending: bool,
}

impl Workers {
    pub(super) fn new(shared: Arc<Shared>, wake: Arc<Wake>) -> Workers {
        let lane = |lane, threads_max, long| {
            Arc::new(Inner {
                lane,
                threads_max,
                long,
                shared: Arc::clone(&shared),
                wake: Arc::clone(&wake),
                state: Mutex::default(),
                bell: Condvar::new(),
            })
        };
        let long = lane(Lane::Long, LONG_THREADS_MAX, None);
        Workers {
            short: lane(Lane::Short, THREADS_MAX, Some(Arc::clone(&long))),
            long,
        }
    }

    /// Ends: threads wait for no further lines of clients.
    pub(super) fn end(&self) {
        self.short.lock().ending = true;
        self.long.lock().ending = true;
    }

    /// Serves the next lines of a connection, the first of which needs a file.
    pub(super) fn submit(&self, connection: Box<Connection>) {
        self.short.submit(connection);
    }
}

impl Inner {
    fn submit(self: &Arc<Inner>, connection: Box<Connection>) {
        let mut state = self.lock();
        state.queue.push_back(connection);
        if state.idle >= state.queue.len() || state.threads >= self.threads_max {
            drop(state);
            self.bell.notify_one();
            return;
        }
        state.threads += 1;
        let inner = Arc::clone(self);
        let thread = std::thread::Builder::new().name("worker".into());
        if let Err(error) = thread.spawn(move || inner.run()) {
            state.threads -= 1;
            let alone = state.threads == 0;
            drop(state);
            self.shared
                .log(Severity::Error, &format!("cannot start a thread: {error}"));
            if alone {
                // Without any thread this one serves: all connections wait, but none for ever.
                self.serve_one(&mut Vec::with_capacity(READ_SIZE));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The guarded state is complete after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut room = Vec::with_capacity(READ_SIZE);
        loop {
            while self.serve_one(&mut room) {}
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

    /// Serves one connection; `false`: no connection waits.
    fn serve_one(&self, room: &mut Vec<u8>) -> bool {
        let next = self.lock().queue.pop_front();
        let Some(mut connection) = next else {
            return false;
        };
        let (mut stop, mut quick) = (Stop::Slow, 0);
        loop {
            if stop == Stop::Slow {
                stop = serve(&self.shared, &mut connection, self.lane);
                quick = 0;
            }
            if self.lane == Lane::Long {
                // Other connections wait for this thread, and the next lines need not be long.
                break;
            }
            // Sends at once, so that the client need not wait for the loop. The loop notices a failure.
            let sent = connection.send().is_ok() && !connection.has_answers();
            let drained = sent && stop == Stop::Drained && quick < QUICK_MAX;
            if drained && self.hears_more(&mut connection, room) {
                stop = serve_quick(&self.shared, &mut connection);
                quick += 1;
            } else if stop != Stop::Slow {
                break;
            }
        }
        // Sends the last answers.
        let _ = connection.send();
        match (&self.long, stop) {
            (Some(long), Stop::Long) => long.submit(connection),
            _ => self.wake.bring((connection, stop)),
        }
        true
    }

    /// True if the client sends more within a moment.
    fn hears_more(&self, connection: &mut Connection, room: &mut Vec<u8>) -> bool {
        let state = self.lock();
        if connection.ended || state.ending || !state.queue.is_empty() {
            return false;
        }
        drop(state);
        let mut polled = [PollFd::new(&connection.socket, PollFlags::IN)];
        if !poll(&mut polled, Some(&LINGER)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        // The loop will see the same error when it reads.
        match connection.read(room) {
            Ok(Came::Bytes) => true,
            Ok(Came::End) => {
                connection.ended = true;
                false
            }
            Err(_) => false,
        }
    }
}

/// Serves lines until none of the next ones needs a file. In the long lane, serves only the first line and those after
/// it that need no file.
fn serve(shared: &Shared, connection: &mut Connection, lane: Lane) -> Stop {
    let mut touches = 0;
    loop {
        match slow::serve(shared, connection, lane) {
            After::Close => return Stop::Close,
            After::Long => return Stop::Long,
            After::Next => touches = 0,
            After::Again if touches == TOUCHES_MAX => return Stop::Close,
            After::Again => touches += 1,
        }
        let before = connection.consumed;
        let stop = serve_quick(shared, connection);
        if connection.consumed > before {
            touches = 0;
        }
        if stop != Stop::Slow || lane == Lane::Long {
            return stop;
        }
    }
}

/// Serves the next lines that need no file.
fn serve_quick(shared: &Shared, connection: &mut Connection) -> Stop {
    let (stops, position) = serve_batch(shared, &mut [connection]);
    if shared.settings.durable {
        connection.hold(position);
    }
    stops.first().copied().unwrap_or(Stop::Close)
}
