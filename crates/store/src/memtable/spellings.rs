//! The names that clients use for one file.

use kymo_sys::prefetch::prefetch;
use std::sync::Arc;

/// Other spellings of one file that are remembered; more are found again by looking at the disk.
const SPELLINGS_MAX: usize = 8;

/// The name that a file was last found by, and others before.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    last: Option<Arc<[u8]>>,
    before: Vec<Arc<[u8]>>,
}

impl Spellings {
    /// Whether it was last found by this name.
    pub(crate) fn is_last(&self, name: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|last| **last == *name)
    }

    /// Another name; the one that is remembered no longer.
    pub(crate) fn push(&mut self, name: Arc<[u8]>) -> Option<Arc<[u8]>> {
        let dropped = (self.before.len() == SPELLINGS_MAX).then(|| self.before.remove(0));
        self.before.extend(self.last.replace(name));
        dropped
    }

    /// The name stands for another file now.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        self.before.retain(|spelling| **spelling != *name);
        if self.is_last(name) {
            self.last = self.before.pop();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.before.iter().chain(&self.last)
    }

    /// It will soon be asked for by name.
    pub(crate) fn expect(&self) {
        self.last.iter().for_each(|name| prefetch(&**name));
    }
}
