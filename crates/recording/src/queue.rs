//! The queue between sampler and writer, in which whole records wait while the disk is busy.
//! The sampler never waits; a sample that finds no room is dropped and counted.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_base::limits;

/// A queue of records between the sampler and its consumer.
pub struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    bytes: Vec<u8>,
    capacity: usize,
    closed: bool,
    /// Set by [`Queue::wake`]: the consumer returns from [`Queue::take`] without records.
    woken: bool,
    dropped: u64,
    grown: u32,
}

/// Result of [`Queue::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The buffer has records.
    Records,
    /// No record came before the timeout or [`Queue::wake`].
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

impl Default for Queue {
    fn default() -> Queue {
        let state = State {
            bytes: Vec::new(),
            capacity: limits::QUEUE_START,
            closed: false,
            woken: false,
            dropped: 0,
            grown: 0,
        };
        Queue {
            state: Mutex::new(state),
            arrived: Condvar::new(),
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a record of `length` bytes has
    /// room; an empty queue can grow for any record.
    pub fn has_room(&self, length: usize) -> bool {
        let state = self.lock();
        state.bytes.is_empty() || state.bytes.len() + length <= state.capacity
    }

    /// Adds a record. Without room it is dropped and counted, the result
    /// is `false`, and the next sample must be a key.
    pub fn push(&self, record: &[u8]) -> bool {
        let mut state = self.lock();
        let needed = state.bytes.len() + record.len();
        while needed > state.capacity
            && record.len() > state.capacity
            && state.capacity < limits::QUEUE_MAX
        {
            state.capacity *= 2;
            state.grown += 1;
        }
        if needed > state.capacity {
            state.dropped += 1;
            return false;
        }
        let was_empty = state.bytes.is_empty();
        state.bytes.extend_from_slice(record);
        drop(state);
        if was_empty {
            self.arrived.notify_one();
        }
        true
    }

    /// Swaps all waiting records into `into`; waits at most `at_most` for the first one.
    pub fn take(&self, into: &mut Vec<u8>, at_most: Duration) -> Taken {
        into.clear();
        let mut state = self.lock();
        if state.bytes.is_empty() && !state.closed {
            let waited = self.arrived.wait_timeout_while(state, at_most, |s| {
                s.bytes.is_empty() && !s.closed && !s.woken
            });
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.woken = false;
        match (state.bytes.is_empty(), state.closed) {
            (true, true) => Taken::Closed,
            (true, false) => Taken::Nothing,
            _ => {
                std::mem::swap(&mut state.bytes, into);
                Taken::Records
            }
        }
    }

    /// Makes the current or else the next [`Queue::take`] return, even without records.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.arrived.notify_all();
    }

    /// Closes the queue; no more records may be pushed.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Number of records dropped for want of room, and number of times that the queue grew.
    pub fn counts(&self) -> (u64, u32) {
        let state = self.lock();
        (state.dropped, state.grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_means_dropped_and_counted() {
        let queue = Queue::default();
        let record = vec![7; 300 << 10];
        let pushed = (0..5).filter(|_| queue.push(&record)).count();
        assert_eq!((pushed, queue.counts()), (3, (2, 0)));
        let mut taken = Vec::new();
        assert_eq!(queue.take(&mut taken, Duration::ZERO), Taken::Records);
        assert_eq!(taken.len(), 3 * record.len());
        assert_eq!(queue.take(&mut taken, Duration::ZERO), Taken::Nothing);
        assert!(queue.push(&vec![1; 3 << 20]), "one large record makes room");
        queue.wake();
        assert_eq!(queue.take(&mut taken, Duration::MAX), Taken::Records);
        queue.wake();
        assert_eq!(queue.take(&mut taken, Duration::MAX), Taken::Nothing);
        assert!(queue.push(&record));
        queue.close();
        assert_eq!(queue.take(&mut taken, Duration::ZERO), Taken::Records);
        assert_eq!(queue.take(&mut taken, Duration::ZERO), Taken::Closed);
    }
}
