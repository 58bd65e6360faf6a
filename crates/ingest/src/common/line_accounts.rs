//! Counts of the listeners for lines since the keeper's start, which the listeners publish and requests read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_wire::keeper::LineAccount;

/// Counts of all listeners; clones share them.
#[derive(Clone, Debug, Default)]
pub struct LineAccounts(Arc<Mutex<Vec<LineAccount>>>);

impl LineAccounts {
    fn lock(&self) -> MutexGuard<'_, Vec<LineAccount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the counts of a listener.
    pub(crate) fn publish(&self, account: LineAccount) {
        let mut accounts = self.lock();
        let mut known = accounts.iter_mut();
        match known.find(|known| known.protocol == account.protocol) {
            Some(known) => *known = account,
            None => accounts.push(account),
        }
    }

    /// The counts of all listeners.
    pub fn all(&self) -> Vec<LineAccount> {
        self.lock().clone()
    }
}
