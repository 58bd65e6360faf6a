//! Traffic of ports that lead to neighbours: two readings of the counters of IF-MIB.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::snmp::ObjectValue;

use super::{Neighbour, oid};
use crate::asked_agent::AskedAgent;

/// Columns of IF-MIB: ifHCInOctets, ifHCOutOctets; ifInOctets, ifOutOctets.
const LONG: [[u32; 11]; 2] = [
    [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6],
    [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10],
];
const SHORT: [[u32; 10]; 2] = [
    [1, 3, 6, 1, 2, 1, 2, 2, 1, 10],
    [1, 3, 6, 1, 2, 1, 2, 2, 1, 16],
];

/// A counter, and the number at which it begins again at zero.
type Counter = (u64, u64);

/// Counters of an interface, and the moment of their reading.
struct Octets {
    counters: [Option<Counter>; 2],
    at_ns: u64,
}

/// Measures the ports of these neighbours for a time.
pub(super) fn measure(
    agent: &mut AskedAgent,
    neighbours: &mut [Neighbour],
    time: Duration,
) -> Result<(), String> {
    let indexes: BTreeSet<u32> = neighbours
        .iter()
        .filter_map(|neighbour| neighbour.interface)
        .collect();
    if indexes.is_empty() {
        return Ok(());
    }
    let read = |agent: &mut AskedAgent| -> Result<BTreeMap<u32, Octets>, String> {
        let all = indexes.iter();
        all.map(|&index| Ok((index, octets(agent, index)?)))
            .collect()
    };
    let before = read(agent)?;
    std::thread::sleep(time);
    let after = read(agent)?;
    for neighbour in neighbours {
        let index = neighbour.interface;
        let both = index.and_then(|index| before.get(&index).zip(after.get(&index)));
        neighbour.traffic = both.and_then(|(before, after)| rates(before, after));
    }
    Ok(())
}

fn octets(agent: &mut AskedAgent, index: u32) -> Result<Octets, String> {
    let mut counters = [None; 2];
    for (at, counter) in counters.iter_mut().enumerate() {
        *counter = agent.get(&oid(&LONG[at], &[index]), counter_of)?;
        if counter.is_none() {
            *counter = agent.get(&oid(&SHORT[at], &[index]), counter_of)?;
        }
    }
    let at_ns = RealClock.mono_ns();
    Ok(Octets { counters, at_ns })
}

fn counter_of(value: ObjectValue) -> Option<Counter> {
    match value {
        ObjectValue::Counter64(count) => Some((count, u64::MAX)),
        ObjectValue::Counter32(count) => Some((count, u64::from(u32::MAX))),
        _ => None,
    }
}

/// Bits a second in and out.
fn rates(before: &Octets, after: &Octets) -> Option<[u64; 2]> {
    let passed_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
    let rate = |at: usize| {
        let (before, most) = before.counters[at]?;
        let (after, _) = after.counters[at]?;
        let octets = match after.checked_sub(before) {
            Some(octets) => octets,
            None => most
                .saturating_sub(before)
                .saturating_add(after)
                .saturating_add(1),
        };
        u64::try_from(u128::from(octets) * 8 * 1_000_000_000 / u128::from(passed_ns)).ok()
    };
    Some([rate(0)?, rate(1)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_octets_times_eight_in_a_second() {
        let octets = |counters: [Option<Counter>; 2], at_ns| Octets { counters, at_ns };
        let long = |count| Some((count, u64::MAX));
        let short = |count| Some((count, u64::from(u32::MAX)));
        for (before, after, expected) in [
            (
                [long(1000), long(0)],
                [long(3000), long(250)],
                Some([8000, 1000]),
            ),
            (
                [short(u32::MAX.into()), short(5)],
                [short(999), short(5)],
                Some([4000, 0]),
            ),
            ([long(1), None], [long(2), long(2)], None),
        ] {
            let found = rates(&octets(before, 0), &octets(after, 2_000_000_000));
            assert_eq!(found, expected, "{before:?}");
        }
    }
}
