//! Who may sign and encrypt: replaced as a whole when the AuthFile is read again, while datagrams come.

use std::sync::{Arc, Mutex, PoisonError};

use kymo_wire::collectd::Users;

/// The users of the last AuthFile; clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct UsersInForce(Arc<Mutex<Arc<Users>>>);

impl UsersInForce {
    /// Those of now.
    pub fn get(&self) -> Arc<Users> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Others from now on.
    pub fn set(&self, users: Users) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(users);
    }
}
