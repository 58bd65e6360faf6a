//! The hosts that values are of: who sends them, when the last ones came, and what their clocks say. Hosts can be made up:
//! only the first ones have accounts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use kymo_wire::collectd::Cdtime;
use kymo_wire::keeper::HostAccount;

use super::recent::{Gap, Least, Rate};

/// Hosts with accounts.
const HOSTS_MAX: usize = 4096;
/// The number of those that have none.
const NONE: u16 = u16::MAX;

/// What is known of a host. Nanoseconds are of a clock that does not go back.
#[derive(Clone, Debug)]
pub(super) struct Host {
    name: Arc<[u8]>,
    address: Option<IpAddr>,
    seen_ns: u64,
    gap: Gap,
    offset: Least,
    rate: Rate,
    values: u64,
    /// Values of this round, and the newest of their times.
    round: (u64, Cdtime),
}

impl Host {
    /// As it is now.
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

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    numbers: HashMap<Arc<[u8]>, u16>,
    /// Those of which values came in this round.
    touched: Vec<u16>,
}

impl Hosts {
    /// The number of a host.
    pub(super) fn number(&mut self, name: &[u8]) -> u16 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.hosts.len() >= HOSTS_MAX {
            return NONE;
        }
        let number = u16::try_from(self.hosts.len()).unwrap_or(NONE);
        let name: Arc<[u8]> = Arc::from(name);
        self.numbers.insert(Arc::clone(&name), number);
        self.hosts.push(Host {
            name,
            address: None,
            seen_ns: 0,
            gap: Gap::default(),
            offset: Least::default(),
            rate: Rate::default(),
            values: 0,
            round: (0, Cdtime::ZERO),
        });
        number
    }

    /// Values of a host came.
    pub(super) fn note(&mut self, number: u16, address: IpAddr, count: u64, time: Cdtime) {
        let Some(host) = self.hosts.get_mut(usize::from(number)) else {
            return;
        };
        if host.round.0 == 0 {
            self.touched.push(number);
            host.address = Some(address);
        }
        host.round = (host.round.0 + count, host.round.1.max(time));
    }

    /// The round ends: `publish` is given what has changed.
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
        let number = hosts.number(b"web1");
        assert_eq!(hosts.number(b"web1"), number);
        assert_ne!(hosts.number(b"web2"), number);
        let mut last = None;
        for round in 0..30 {
            let now_s = 1_700_000_000 + round * 10;
            // An hour behind; older values of the same round change nothing.
            for late_s in [7, 0, 3] {
                let time = Cdtime::from_seconds(now_s - 3600 - late_s);
                hosts.note(number, address, 2, time);
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

    #[test]
    fn hosts_that_are_made_up_take_no_more_room() {
        let mut hosts = Hosts::default();
        let numbers: Vec<u16> = (0..5000u32)
            .map(|n| hosts.number(&n.to_be_bytes()))
            .collect();
        assert_eq!(hosts.hosts.len(), HOSTS_MAX);
        let address = IpAddr::from([192, 0, 2, 1]);
        for number in numbers {
            hosts.note(number, address, 1, Cdtime::ZERO);
        }
        let mut count = 0;
        hosts.end_round(0, 0, |_, _| count += 1);
        assert_eq!(count, HOSTS_MAX);
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
