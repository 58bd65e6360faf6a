//! Accounts of senders and hosts for requests: a copy that each round updates with its changes. The lock is held only
//! while the copy is updated or copied, never while a disk or a client is waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_wire::keeper::{Accounts, OddType, SocketAccount};

use super::accounts::Sender;
use super::hosts::Host;

/// The copy. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Senders(Arc<Mutex<Snapshot>>);

#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub sockets: Vec<SocketSnapshot>,
    pub hosts: Vec<Option<Host>>,
    /// Types that types.db lacks.
    pub odd: Vec<OddType>,
}

#[derive(Clone, Debug)]
pub(super) struct SocketSnapshot {
    pub name: String,
    pub lost: u64,
    pub senders: Vec<Option<Sender>>,
}

impl Senders {
    pub(super) fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with these sockets.
    pub(super) fn begin(&self, names: impl Iterator<Item = String>) {
        let sockets = names.map(|name| SocketSnapshot {
            name,
            lost: 0,
            senders: Vec::new(),
        });
        self.lock().sockets = sockets.collect();
    }

    /// The accounts at this time, by a clock that does not go back.
    pub fn accounts(&self, now_ns: u64) -> Accounts {
        let Snapshot {
            sockets,
            hosts,
            odd: types,
        } = self.lock().clone();
        let sockets = sockets.into_iter().map(|socket| SocketAccount {
            name: socket.name.into_bytes(),
            lost: socket.lost,
            senders: known(&socket.senders)
                .map(|sender| sender.account(now_ns))
                .collect(),
        });
        Accounts {
            sockets: sockets.collect(),
            hosts: known(&hosts).map(|host| host.account(now_ns)).collect(),
            types,
        }
    }
}

fn known<T>(copies: &[Option<T>]) -> impl Iterator<Item = &T> {
    copies.iter().flatten()
}

/// Puts a copy into the place with this number.
pub(super) fn put<T: Clone>(copies: &mut Vec<Option<T>>, number: u16, one: &T) {
    let at = usize::from(number);
    if copies.len() <= at {
        copies.resize(at + 1, None);
    }
    copies[at] = Some(one.clone());
}
