//! A request as the answers see it: the asker, its scopes and its connection.

use std::sync::Arc;

use crate::access::Scopes;
use crate::asker::Asker;
use crate::connections::Connection;

/// A request's asker, its scopes, and its connection.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) asker: Asker,
    pub(crate) scopes: Scopes,
    pub(crate) connection: Arc<Connection>,
}
