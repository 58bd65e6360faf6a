//! Counts of receivers of `[[forward]]`, as the process that forwards gave them last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_wire::keeper::{Answer, ReceiverAccount};

/// Counts of all receivers, shared by the sockets for requests.
#[derive(Clone, Debug, Default)]
pub struct Receivers(Arc<Mutex<Vec<ReceiverAccount>>>);

impl Receivers {
    /// Replaces all counts.
    pub(super) fn take(&self, receivers: &[ReceiverAccount]) {
        *self.list() = receivers.to_vec();
    }

    /// The answer to RECEIVERS.
    pub(super) fn answer(&self) -> Answer {
        Answer::Receivers(self.list().clone())
    }

    fn list(&self) -> MutexGuard<'_, Vec<ReceiverAccount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
