//! What clients have sent that could not be served yet, and what they were answered and have not taken: one budget for
//! all of them. Where it is used up those go that hold most.

use kymo_base::limits::HELD_MAX;

use super::connection::Connection;

/// Bytes that connections hold, as they were counted last.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: usize,
    /// Of those that workers have.
    away: usize,
}

impl Held {
    /// Counts a connection again.
    pub(super) fn count(&mut self, connection: &mut Connection) {
        let now = connection.held();
        self.bytes = self.bytes + now - connection.counted;
        connection.counted = now;
    }

    /// It is no more.
    pub(super) fn forget(&mut self, connection: &Connection) {
        self.bytes -= connection.counted;
    }

    /// A worker gets it; `false`: workers have too much already, and cannot be made to let go of it.
    pub(super) fn lend(&mut self, connection: &mut Connection) -> bool {
        self.count(connection);
        let fits = self.away + connection.counted <= HELD_MAX / 2;
        if fits {
            self.away += connection.counted;
        }
        fits
    }

    /// A worker brings it back.
    pub(super) fn take_back(&mut self, connection: &Connection) {
        self.away -= connection.counted;
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.bytes > HELD_MAX
    }

    /// Whether enough have gone; a little more than need be, so that it is not looked for after each byte.
    pub(super) fn is_enough(&self) -> bool {
        self.bytes <= HELD_MAX / 8 * 7
    }
}
