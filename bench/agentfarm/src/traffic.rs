//! Counters of the farm's interfaces: bytes grow at a constant rate since 1970, so that the rate between any two moments
//! is known beforehand. Rates are small enough that 32 bits wrap at most once in 5 minutes.

/// Direction of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// ifInOctets.
    In,
    /// ifOutOctets.
    Out,
}

/// Least and greatest bytes a second.
pub const RATES: std::ops::RangeInclusive<u64> = 1_000..=12_000_000;
/// Bytes of a packet.
pub const PACKET_BYTES: u64 = 600;

/// Bytes a second of an interface of a device, both numbered from 0.
pub fn rate(device: u32, interface: u32, direction: Direction) -> u64 {
    let way = match direction {
        Direction::In => 0,
        Direction::Out => 1,
    };
    let place = u64::from(device) << 33 | u64::from(interface) << 1 | way;
    RATES.start() + scatter(place) % (RATES.end() - RATES.start() + 1)
}

/// Bytes of an interface's counter at a moment, nanoseconds since 1970.
pub fn value_at(device: u32, interface: u32, direction: Direction, at_ns: u64) -> u64 {
    counted(rate(device, interface, direction), at_ns)
}

/// Units counted in `ns` nanoseconds, at `rate` units a second.
pub(crate) fn counted(rate: u64, ns: u64) -> u64 {
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    rate.wrapping_mul(seconds)
        .wrapping_add(rate * rest / 1_000_000_000)
}

/// splitmix64.
pub(crate) fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_its_rate_times_the_time() {
        for (device, interface) in [(0, 0), (31, 98), (1009, 7)] {
            for direction in [Direction::In, Direction::Out] {
                let rate = rate(device, interface, direction);
                assert!(RATES.contains(&rate));
                let now_ns = 1_800_000_000_000_000_123;
                let value = |ns| value_at(device, interface, direction, ns);
                let exact = |ns: u64| (u128::from(rate) * u128::from(ns) / 1_000_000_000) as u64;
                for ns in [0, 1, 999_999_999, now_ns, now_ns + 300_000_000_000] {
                    assert_eq!(value(ns), exact(ns));
                }
                assert_eq!(value(now_ns + 300_000_000_000) - value(now_ns), 300 * rate);
            }
        }
        assert_ne!(rate(0, 0, Direction::In), rate(0, 0, Direction::Out));
        assert_ne!(rate(0, 1, Direction::In), rate(1, 0, Direction::In));
    }
}
