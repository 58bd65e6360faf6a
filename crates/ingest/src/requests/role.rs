//! The role of a client of the keeper: the requests that a socket answers, its users, and the names that each user may
//! write.

use std::os::fd::{AsFd, BorrowedFd};

use kymo_store::{SeriesName, Writer};
use kymo_sys::ancestry;
use kymo_sys::listen::{self, Peer};
use kymo_sys::machine::{self, ROOT};

use kymo_wire::keeper::{IMPORT_MAX, PUSH_MAX, QUESTION_MAX};

use crate::name_space::Input;

/// Most bytes of a PUSH: a request, and its sender.
const PUSH_FRAME_MAX: usize = PUSH_MAX + 4096;

/// Role of the clients of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads stored series. Each user that can open the socket may.
    Read,
    /// Reads, and adds to series. Only root, the keeper's own user, the poller's and that of the process that asks database
    /// servers may.
    Write {
        /// The poller's user number.
        poller: u32,
        /// User number of the process that asks database servers.
        postgres: u32,
    },
    /// Requests, and removal of series. The keeper answers only root and this user, and no process of kymo serve
    /// itself.
    Admin {
        /// The user's number.
        owner: u32,
        /// The process that has started all processes of kymo serve.
        guardian: u32,
    },
}

/// The client of a connection, as a writer.
#[derive(Clone, Debug)]
pub(super) struct Author {
    /// Inputs of the client's user; one user may run several.
    inputs: Vec<Input>,
    /// The client as the store knows it.
    pub writer: Writer,
}

impl Author {
    /// Refuses a name that this client may not write.
    pub(super) fn may_write(&self, name: SeriesName) -> Result<(), String> {
        match self.inputs.iter().any(|input| input.may_write(name)) {
            true => Ok(()),
            false => Err("series of this name are written by another process".into()),
        }
    }
}

impl Author {
    /// True if this client hands over requests of senders: the hub does, under no name of its own.
    pub(super) fn may_push(&self) -> bool {
        self.inputs.contains(&Input::Hub)
    }
}

impl Role {
    /// Most bytes of a request of this socket's clients.
    pub(super) fn request_max(self) -> usize {
        match self {
            Role::Write { .. } => PUSH_FRAME_MAX,
            Role::Admin { .. } => IMPORT_MAX,
            Role::Read => QUESTION_MAX,
        }
    }

    /// The client of a connection as a writer; `None`: the client may not write.
    pub(super) fn author(self, connection: impl AsFd) -> Option<Author> {
        let Role::Write { poller, postgres } = self else {
            return None;
        };
        let Some(Peer::User(peer)) = listen::peer(connection) else {
            return None;
        };
        Some(Role::author_of(peer, machine::user(), poller, postgres))
    }

    fn author_of(peer: u32, hub: u32, poller: u32, postgres: u32) -> Author {
        let users = [
            (hub, Input::Hub),
            (poller, Input::Poller),
            (postgres, Input::Postgres),
        ];
        let inputs = users
            .into_iter()
            .filter(|(user, _)| peer == ROOT || peer == *user);
        Author {
            inputs: inputs.map(|(_, input)| input).collect(),
            writer: Writer::uid(peer),
        }
    }

    /// True if the client may ask.
    pub(super) fn admits(self, connection: impl AsFd) -> bool {
        let users = match self {
            Role::Read => return true,
            Role::Write { poller, postgres } => [machine::user(), poller, postgres],
            Role::Admin { owner, .. } => [owner; 3],
        };
        let connection = connection.as_fd();
        match listen::peer(connection) {
            Some(Peer::User(peer)) if peer == ROOT || users.contains(&peer) => {
                self.admits_process(connection, peer)
            }
            Some(Peer::User(_) | Peer::Address(_)) | None => false,
        }
    }

    /// An administrator's process and a hub under foreign control may have the same user, so processes of kymo serve are
    /// refused.
    fn admits_process(self, connection: BorrowedFd<'_>, user: u32) -> bool {
        let guardian = match self {
            Role::Read | Role::Write { .. } => return true,
            Role::Admin { guardian, .. } => guardian,
        };
        match ancestry::descends_from(connection, guardian) {
            Some(is_own) => !is_own,
            // The process is in another container. It cannot be the hub unless the hub is root.
            None => user == ROOT && machine::user() != ROOT,
        }
    }

    /// True if a client may follow the journal: root, the keeper's own user, and clients that may write or remove.
    pub(super) fn may_tail(self, connection: impl AsFd) -> bool {
        self.lets_tail(listen::peer(connection), machine::user())
    }

    fn lets_tail(self, peer: Option<Peer>, own: u32) -> bool {
        match (self, peer) {
            (Role::Write { .. } | Role::Admin { .. }, _) => true,
            (Role::Read, Some(Peer::User(peer))) => peer == ROOT || peer == own,
            (Role::Read, Some(Peer::Address(_)) | None) => false,
        }
    }

    /// True if a client may pin the store for a backup: an administrator, and the process of `[backup]`, which has the keeper's
    /// own user.
    pub(super) fn may_pin(self, connection: impl AsFd) -> bool {
        self.lets_pin(listen::peer(connection), machine::user())
    }

    fn lets_pin(self, peer: Option<Peer>, own: u32) -> bool {
        match (self, peer) {
            (Role::Admin { .. }, _) => true,
            (Role::Write { .. }, Some(Peer::User(peer))) => peer == ROOT || peer == own,
            (Role::Write { .. }, Some(Peer::Address(_)) | None) | (Role::Read, _) => false,
        }
    }

    /// True if clients of the socket may remove series.
    pub(super) fn may_remove(self) -> bool {
        match self {
            Role::Admin { .. } => true,
            Role::Read | Role::Write { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_only_read_tails_as_the_keeper_or_root_alone() {
        let write = Role::Write {
            poller: 2,
            postgres: 3,
        };
        for (role, peer, may) in [
            (Role::Read, Some(Peer::User(7)), false),
            (Role::Read, Some(Peer::User(1)), true),
            (Role::Read, Some(Peer::User(0)), true),
            (Role::Read, None, false),
            (write, Some(Peer::User(2)), true),
        ] {
            assert_eq!(role.lets_tail(peer, 1), may, "{role:?} {peer:?}");
        }
    }

    #[test]
    fn administrators_and_the_keepers_user_pin() {
        let write = Role::Write {
            poller: 2,
            postgres: 3,
        };
        let admin = Role::Admin {
            owner: 1,
            guardian: 9,
        };
        for (role, peer, may) in [
            (Role::Read, Some(Peer::User(1)), false),
            (Role::Read, Some(Peer::User(0)), false),
            (write, Some(Peer::User(1)), true),
            (write, Some(Peer::User(0)), true),
            (write, Some(Peer::User(2)), false),
            (write, None, false),
            (admin, Some(Peer::User(1)), true),
        ] {
            assert_eq!(role.lets_pin(peer, 1), may, "{role:?} {peer:?}");
        }
    }

    #[test]
    fn a_user_writes_the_names_of_his_processes() {
        use Input::{Hub, Poller, Postgres};
        for (peer, [hub, poller, postgres], inputs) in [
            (1, [1, 2, 3], &[Hub][..]),
            (2, [1, 2, 3], &[Poller]),
            (3, [1, 2, 3], &[Postgres]),
            (0, [1, 2, 3], &[Hub, Poller, Postgres]),
            (1, [1, 1, 3], &[Hub, Poller]),
            (4, [1, 2, 3], &[]),
        ] {
            let author = Role::author_of(peer, hub, poller, postgres);
            assert_eq!(author.inputs, inputs, "{peer}");
            assert_eq!(author.may_push(), inputs.contains(&Hub), "{peer}");
        }
    }
}
