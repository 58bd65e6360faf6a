//! The hosts that values belong to: their senders, the times of their last values, and their clocks. A sender can
//! make up hosts, so the number of accounts has a limit, and a host that was silent for long makes room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use kymo_wire::collectd::Cdtime;
use kymo_wire::keeper::HostAccount;

use super::recent::{Gap, Least, Rate};

/// Hosts with accounts.
const HOSTS_MAX: usize = 4096;
/// A host silent for this long gives up its account when all are taken.
const SILENT_NS: u64 = 600 * SECOND_NS;
/// Shortest time between two searches for a silent host.
const LOOK_NS: u64 = 10 * SECOND_NS;

/// The place of a host's account, and its owner: accounts change hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostId {
    place: u16,
    owner: u32,
}

/// A host without an account.
const NONE: HostId = HostId {
    place: u16::MAX,
    owner: 0,
};

/// The account of a host. Nanoseconds are of a clock that does not go back.
#[derive(Clone, Debug)]
pub(super) struct Host {
    name: Arc<[u8]>,
    owner: u32,
    address: Option<IpAddr>,
    seen_ns: u64,
    gap: Gap,
    offset: Least,
    rate: Rate,
    values: u64,
    /// Number of values in this round, and the newest of their times.
    round: (u64, Cdtime),
}

impl Host {
    fn new(name: Arc<[u8]>, owner: u32, now_ns: u64) -> Host {
        Host {
            name,
            owner,
            address: None,
            seen_ns: now_ns,
            gap: Gap::default(),
            offset: Least::default(),
            rate: Rate::default(),
            values: 0,
            round: (0, Cdtime::ZERO),
        }
    }

    /// The account at this time.
    pub(super) fn account(&self, now_ns: u64) -> HostAccount {
        HostAccount {
            host: self.name.to_vec(),
            address: self.address,
            age_s: seconds(now_ns.saturating_sub(self.seen_ns)),
            gap_s: self.gap.get(),
            offset_s: self.offset.get(),
            rate: self.rate.get(now_ns / SECOND_NS),
            values: self.values,
        }
    }
}

pub(super) const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Seconds that a time is behind the clock.
pub(super) fn behind(real_ns: u64, time: Cdtime) -> f64 {
    let time_ns = time.nanoseconds();
    match real_ns.checked_sub(time_ns) {
        Some(behind_ns) => seconds(behind_ns),
        None => -seconds(time_ns - real_ns),
    }
}

/// All accounts of hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    places: HashMap<Arc<[u8]>, u16>,
    /// Number of accounts given out so far.
    owners: u32,
    /// No account is free before this time.
    taken_until_ns: u64,
    /// Hosts with values in this round.
    touched: Vec<u16>,
}

impl Hosts {
    /// Account of a host; begins one if the host has none.
    pub(super) fn find(&mut self, name: &[u8], now_ns: u64) -> HostId {
        if let Some(&place) = self.places.get(name) {
            let owner = self.hosts.get(usize::from(place));
            return owner.map_or(NONE, |host| HostId {
                place,
                owner: host.owner,
            });
        }
        let Some(place) = self.free_place(now_ns) else {
            return NONE;
        };
        self.owners += 1;
        let (name, owner): (Arc<[u8]>, u32) = (Arc::from(name), self.owners);
        self.places.insert(Arc::clone(&name), place);
        let host = Host::new(name, owner, now_ns);
        match self.hosts.get_mut(usize::from(place)) {
            Some(before) => *before = host,
            None => self.hosts.push(host),
        }
        HostId { place, owner }
    }

    /// True if the account still has the same owner; for a host without an account, true while no account can be
    /// free.
    pub(super) fn is_current(&self, id: HostId, now_ns: u64) -> bool {
        match id {
            NONE => now_ns < self.taken_until_ns,
            id => {
                let host = self.hosts.get(usize::from(id.place));
                host.is_some_and(|host| host.owner == id.owner)
            }
        }
    }

    /// A place for one more account; if all are taken, that of the host silent for longest.
    fn free_place(&mut self, now_ns: u64) -> Option<u16> {
        if self.hosts.len() < HOSTS_MAX {
            return u16::try_from(self.hosts.len()).ok();
        }
        if now_ns < self.taken_until_ns {
            return None;
        }
        let (place, host) = (0..)
            .zip(&self.hosts)
            .min_by_key(|(_, host)| host.seen_ns)?;
        let silent_ns = now_ns.saturating_sub(host.seen_ns);
        if silent_ns <= SILENT_NS || host.round.0 > 0 {
            self.taken_until_ns = now_ns + LOOK_NS;
            return None;
        }
        self.places.remove(&host.name);
        Some(place)
    }

    /// Counts values of a host that came in this round.
    pub(super) fn note(&mut self, id: HostId, address: IpAddr, count: u64, time: Cdtime) {
        let host = self.hosts.get_mut(usize::from(id.place));
        let Some(host) = host.filter(|host| host.owner == id.owner) else {
            return;
        };
        if host.round.0 == 0 {
            self.touched.push(id.place);
            host.address = Some(address);
        }
        host.round = (host.round.0 + count, host.round.1.max(time));
    }

    /// Ends a round: gives each changed account to `publish`.
    pub(super) fn end_round(
        &mut self,
        real_ns: u64,
        mono_ns: u64,
        mut publish: impl FnMut(u16, &Host),
    ) {
        for number in self.touched.drain(..) {
            let Some(host) = self.hosts.get_mut(usize::from(number)) else {
                continue;
            };
            let (second, (count, newest)) = (mono_ns / SECOND_NS, host.round);
            match host.values {
                0 => host.rate = Rate::begin(second),
                _ => host.gap.note(seconds(mono_ns.saturating_sub(host.seen_ns))),
            }
            host.seen_ns = mono_ns;
            host.values += count;
            host.rate.add(second, count);
            host.offset.note(second, behind(real_ns, newest));
            host.round = (0, Cdtime::ZERO);
            publish(number, host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_values_and_its_clock() {
        let (mut hosts, address) = (Hosts::default(), IpAddr::from([192, 0, 2, 1]));
        let id = hosts.find(b"web1", 0);
        assert_eq!(hosts.find(b"web1", 0), id);
        assert_ne!(hosts.find(b"web2", 0), id);
        let mut last = None;
        for round in 0..30 {
            let now_s = 1_700_000_000 + round * 10;
            // Values one hour late; older values of the same round change nothing.
            for late_s in [7, 0, 3] {
                let time = Cdtime::from_seconds(now_s - 3600 - late_s);
                hosts.note(id, address, 2, time);
            }
            let mono_ns = (500 + round * 10) * SECOND_NS;
            let mut count = 0;
            hosts.end_round(now_s * SECOND_NS, mono_ns, |_, host| {
                count += 1;
                last = Some(host.account(mono_ns + SECOND_NS / 2));
            });
            assert_eq!(count, 1);
        }
        let want = HostAccount {
            host: b"web1".to_vec(),
            address: Some(address),
            age_s: 0.5,
            gap_s: 10.0,
            offset_s: 3600.0,
            rate: 0.6,
            values: 180,
        };
        assert_eq!(last, Some(want));
    }

    /// Made-up hosts once took all accounts, and later hosts were not shown.
    #[test]
    fn hosts_that_are_made_up_take_no_more_room_and_give_it_back() {
        let mut hosts = Hosts::default();
        let address = IpAddr::from([192, 0, 2, 1]);
        let made_up: Vec<HostId> = (0..5000u32)
            .map(|n| hosts.find(&n.to_be_bytes(), SECOND_NS))
            .collect();
        assert_eq!(hosts.hosts.len(), HOSTS_MAX);
        let end_round = |hosts: &mut Hosts, now_ns| {
            let mut count = 0;
            hosts.end_round(0, now_ns, |_, _| count += 1);
            count
        };
        for &id in &made_up {
            hosts.note(id, address, 1, Cdtime::ZERO);
        }
        assert_eq!(end_round(&mut hosts, SECOND_NS), HOSTS_MAX);
        let later = 2 * SECOND_NS + SILENT_NS;
        assert_eq!(hosts.find(b"early", SECOND_NS + 1), NONE);
        hosts.note(made_up[0], address, 1, Cdtime::ZERO);
        end_round(&mut hosts, later);
        let id = hosts.find(b"late", later);
        assert!(hosts.is_current(id, later) && hosts.is_current(made_up[0], later));
        let gone = made_up
            .iter()
            .position(|&one| !hosts.is_current(one, later));
        assert_eq!(gone, Some(1));
        // Values of the former owner are not counted for the new one.
        hosts.note(made_up[1], address, 1, Cdtime::ZERO);
        assert_eq!(end_round(&mut hosts, later), 0);
    }

    #[test]
    fn clocks_ahead_are_below_zero() {
        let time = Cdtime::from_seconds(1000);
        for (now_ns, want) in [
            (1_000_000_000_000, 0.0),
            (1_000_500_000_000, 0.5),
            (999_000_000_000, -1.0),
        ] {
            assert_eq!(behind(now_ns, time), want);
        }
    }
}
