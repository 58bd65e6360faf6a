//! Informs and their responses. A sender repeats an inform until it has a response, which it gets when the event is saved; a
//! repeated inform changes nothing, and is answered again.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use kymo_wire::keeper::Event;

/// Most informs that wait for a save.
const WAITING_MAX: usize = 1024;
/// Most informs that are remembered.
const ANSWERED_MAX: usize = 4096;

/// A sender's inform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct InformKey {
    pub(super) sender: SocketAddr,
    pub(super) id: i32,
    /// Hash of its varbinds.
    pub(super) content: u64,
}

/// An inform whose event is not saved yet.
#[derive(Debug)]
pub(super) struct Inform {
    pub(super) key: InformKey,
    /// Number of the socket that it came by.
    pub(super) socket: usize,
    pub(super) response: Vec<u8>,
    pub(super) event: Arc<Event>,
}

/// The state of an inform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InformState {
    New,
    /// An event that waits to be saved.
    Waiting,
    /// A saved event.
    Answered,
}

/// Informs that wait, and those that were answered last.
#[derive(Debug, Default)]
pub(super) struct Informs {
    waiting: Vec<Inform>,
    answered: HashSet<InformKey>,
    order: VecDeque<InformKey>,
}

impl Informs {
    pub(super) fn state(&self, key: &InformKey) -> InformState {
        if self.answered.contains(key) {
            return InformState::Answered;
        }
        match self.waiting.iter().any(|waiting| waiting.key == *key) {
            true => InformState::Waiting,
            false => InformState::New,
        }
    }

    /// True if no more informs can wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    pub(super) fn wait(&mut self, inform: Inform) {
        self.waiting.push(inform);
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes out all that wait, after a save: those whose events `is_saved`. The others are forgotten, and new when they come
    /// again.
    pub(super) fn take(&mut self, is_saved: impl Fn(&Arc<Event>) -> bool) -> Vec<Inform> {
        let mut all = std::mem::take(&mut self.waiting);
        all.retain(|inform| is_saved(&inform.event));
        for Inform { key, .. } in &all {
            if self.answered.insert(*key) {
                self.order.push_back(*key);
            }
        }
        while self.order.len() > ANSWERED_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.answered.remove(&oldest);
            }
        }
        all
    }
}
