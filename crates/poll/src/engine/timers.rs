//! A queue of timers. A void timer stays until it is the next one and is then dropped, so that it wakes up no thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timers, the earliest first.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(u64, u64, T)>>,
    /// Number of timers set so far. Timers of the same time come in the order in which they were set.
    count: u64,
}

impl<T: Ord + Copy> Timers<T> {
    /// No timers.
    pub(crate) fn new() -> Timers<T> {
        Timers {
            heap: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Sets a timer to a time of the monotonic clock.
    pub(crate) fn set(&mut self, due_ns: u64, what: T) {
        self.count += 1;
        self.heap.push(Reverse((due_ns, self.count, what)));
    }

    /// Time of the next timer.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_ns, _, _))| *due_ns)
    }

    /// Drops void timers at the head of the queue.
    pub(crate) fn forget_next(&mut self, is_void: impl Fn(T) -> bool) {
        while let Some(Reverse((_, _, what))) = self.heap.peek()
            && is_void(*what)
        {
            self.heap.pop();
        }
    }

    /// Takes the next timer that is due.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<T> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, what))| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_in_order_and_not_too_early() {
        let mut timers = Timers::new();
        for (due_ns, what) in [(30, 'c'), (10, 'b'), (10, 'a'), (20, 'x')] {
            timers.set(due_ns, what);
        }
        assert_eq!(timers.next_ns(), Some(10));
        let due: Vec<char> = std::iter::from_fn(|| timers.take(20)).collect();
        assert_eq!(due, ['b', 'a', 'x']);
        assert_eq!(timers.take(29), None);
        assert_eq!(timers.take(30), Some('c'));
        assert_eq!(timers.next_ns(), None);
    }

    #[test]
    fn what_means_nothing_is_not_the_next_one() {
        let mut timers = Timers::new();
        for (due_ns, what) in [(10, 'v'), (20, 'v'), (30, 'c'), (40, 'v')] {
            timers.set(due_ns, what);
        }
        timers.forget_next(|what| what == 'v');
        assert_eq!(timers.next_ns(), Some(30));
        assert_eq!(timers.take(50), Some('c'));
        timers.forget_next(|what| what == 'v');
        assert_eq!(timers.next_ns(), None);
    }
}
