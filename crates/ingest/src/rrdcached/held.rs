//! Memory for clients: unserved input and unsent answers, with one limit for all clients. Above the limit, connections
//! of the clients that hold most are closed.

use kymo_base::limits::HELD_MAX;

use super::connection::Connection;

/// Bytes that connections hold, as counted last.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: usize,
    /// Bytes of the connections that workers have.
    away: usize,
}

impl Held {
    /// Counts a connection again.
    pub(super) fn count(&mut self, connection: &mut Connection) {
        let now = connection.held();
        self.bytes = self.bytes + now - connection.counted;
        connection.counted = now;
    }

    /// Forgets a closed connection.
    pub(super) fn forget(&mut self, connection: &Connection) {
        self.bytes -= connection.counted;
    }

    /// Counts a connection for a worker; `false`: workers have too much already, and cannot be made to release it.
    pub(super) fn lend(&mut self, connection: &mut Connection) -> bool {
        self.count(connection);
        let fits = self.away + connection.counted <= HELD_MAX / 2;
        if fits {
            self.away += connection.counted;
        }
        fits
    }

    /// Notes that a worker returns a connection.
    pub(super) fn take_back(&mut self, connection: &Connection) {
        self.away -= connection.counted;
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.bytes > HELD_MAX
    }

    /// True if enough connections were closed: a little more than necessary, so that the next byte does not start a
    /// search again.
    pub(super) fn is_enough(&self) -> bool {
        self.bytes <= HELD_MAX / 8 * 7
    }
}
