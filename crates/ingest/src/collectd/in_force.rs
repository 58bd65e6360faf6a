//! Contents of files that may change: who may sign and encrypt, and types. Each is replaced as a whole when its file is read again,
//! while datagrams come.

use std::sync::{Arc, Mutex, PoisonError};

/// The newest contents; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct InForce<T>(Arc<Mutex<Arc<T>>>);

impl<T> InForce<T> {
    /// The contents of now.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something else from now on.
    pub fn set(&self, said: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(said);
    }
}
