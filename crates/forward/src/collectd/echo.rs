//! Hosts whose values come from the receiver itself: they do not go back to it. The keeper knows the address that sent the last
//! datagram of each host. On one machine all senders have the same address: there the rule says nothing, and a value that comes
//! back has a time that its series has already, so that it is refused and goes no further.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use kymo_keeper_client::Keeper;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::collectd::escape;
use kymo_wire::keeper::Accounts;

/// Longest wait for a piece of the keeper's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Least time between two looks at the accounts.
const LOOK_NS: u64 = 1_000_000_000;

/// Hosts of the receiver.
pub(super) struct Echo {
    keeper: Keeper,
    hosts: HashSet<Vec<u8>>,
    looked_ns: Option<u64>,
}

impl Echo {
    /// No host yet; the accounts are those of the keeper with this socket.
    pub(super) fn new(keeper: &Path) -> Echo {
        Echo {
            keeper: Keeper::shared(keeper.into(), 1, PATIENCE),
            hosts: HashSet::new(),
            looked_ns: None,
        }
    }

    /// Looks which hosts the receiver has sent values of.
    pub(super) fn look(&mut self, peer: Option<IpAddr>) {
        let Some(peer) = peer.filter(|peer| !peer.is_loopback()) else {
            self.hosts.clear();
            return;
        };
        let now_ns = RealClock.mono_ns();
        let is_new = |looked_ns: u64| now_ns.saturating_sub(looked_ns) < LOOK_NS;
        if self.looked_ns.is_some_and(is_new) {
            return;
        }
        // A keeper that is away has sent nothing since.
        if let Ok(accounts) = self.keeper.accounts() {
            self.looked_ns = Some(now_ns);
            self.hosts = hosts_of(&accounts, peer);
        }
    }

    /// True if values of this host, as paths have it, come from the receiver.
    pub(super) fn has(&self, host: &[u8]) -> bool {
        self.hosts.contains(host)
    }
}

fn hosts_of(accounts: &Accounts, peer: IpAddr) -> HashSet<Vec<u8>> {
    let hosts = accounts.hosts.iter();
    let of_peer = hosts.filter(|host| {
        let address = host.address.map(|address| address.to_canonical());
        address == Some(peer)
    });
    of_peer.map(|of| escape(&of.host).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::keeper::HostAccount;

    #[test]
    fn hosts_of_the_receiver_are_those_of_its_address() {
        let host = |name: &str, address: &str| HostAccount {
            host: name.into(),
            address: address.parse().ok(),
            age_s: 0.0,
            gap_s: f64::NAN,
            offset_s: f64::NAN,
            rate: f64::NAN,
            values: 0,
        };
        let accounts = Accounts {
            hosts: vec![
                host("a", "192.0.2.1"),
                host("b/c", "::ffff:192.0.2.1"),
                host("d", "192.0.2.2"),
                host("e", ""),
            ],
            ..Accounts::default()
        };
        let hosts = hosts_of(&accounts, "192.0.2.1".parse().unwrap());
        assert_eq!(hosts, HashSet::from([b"a".to_vec(), b"b_c".to_vec()]));
    }
}
