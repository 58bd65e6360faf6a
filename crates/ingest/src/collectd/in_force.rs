//! Contents of files that are replaced while datagrams come: users of the AuthFile, and types. New contents replace the old ones
//! as a whole when the file is read again.

use std::sync::{Arc, Mutex, PoisonError};

/// The newest contents; clones share them.
#[derive(Clone, Debug, Default)]
pub struct InForce<T>(Arc<Mutex<Arc<T>>>);

impl<T> InForce<T> {
    /// The current contents.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the contents.
    pub fn set(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}
