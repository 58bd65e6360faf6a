//! What may be asked on a socket, and by whom.

use std::os::fd::AsFd;

use kymo_sys::listen::{self, Peer};
use kymo_sys::machine::{self, ROOT};
use kymo_wire::keeper::Question;

/// What may be asked on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What is stored: whoever can open the socket may.
    Read,
    /// That, and to add to series. Only root, the keeper's own user and those of the processes that ask others are answered.
    Write {
        /// The poller's user number.
        poller: u32,
        /// The number of the user who asks database servers.
        postgres: u32,
    },
    /// What is stored, and that series go. Only root and this user are answered.
    Admin {
        /// His number.
        owner: u32,
    },
}

impl Role {
    /// Whether who is at the other end may ask at all.
    pub(super) fn admits(self, connection: impl AsFd) -> bool {
        let users = match self {
            Role::Read => return true,
            Role::Write { poller, postgres } => [machine::user(), poller, postgres],
            Role::Admin { owner } => [owner; 3],
        };
        match listen::peer(connection) {
            Some(Peer::User(peer)) => peer == ROOT || users.contains(&peer),
            Some(Peer::Address(_)) | None => false,
        }
    }

    /// Whether this may be asked.
    pub(super) fn takes(self, question: &Question) -> bool {
        match question {
            Question::Define(_)
            | Question::Write(_)
            | Question::Create(_)
            | Question::Update(_)
            | Question::Notify(_)
            | Question::Activity(_) => matches!(self, Role::Write { .. }),
            Question::Remove(_) => matches!(self, Role::Admin { .. }),
            _ => true,
        }
    }
}
