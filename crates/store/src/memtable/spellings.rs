//! The spellings that clients use for the name of one file.

use kymo_sys::prefetch::prefetch;
use std::sync::Arc;

/// Limit of the other spellings that are remembered; further ones are found again on the disk.
const SPELLINGS_MAX: usize = 8;

/// The last used spelling of a file's name, and earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    last: Option<Arc<[u8]>>,
    before: Vec<Arc<[u8]>>,
}

impl Spellings {
    /// Returns true if this is the last used spelling.
    pub(crate) fn is_last(&self, name: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|last| **last == *name)
    }

    /// Adds a spelling; returns the one that is dropped for it.
    pub(crate) fn push(&mut self, name: Arc<[u8]>) -> Option<Arc<[u8]>> {
        let dropped = (self.before.len() == SPELLINGS_MAX).then(|| self.before.remove(0));
        self.before.extend(self.last.replace(name));
        dropped
    }

    /// Removes a spelling that belongs to another file now.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        self.before.retain(|spelling| **spelling != *name);
        if self.is_last(name) {
            self.last = self.before.pop();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.before.iter().chain(&self.last)
    }

    /// Prefetches the last used spelling, which will soon be compared.
    pub(crate) fn expect(&self) {
        self.last.iter().for_each(|name| prefetch(&**name));
    }
}
