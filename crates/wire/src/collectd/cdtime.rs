//! collectd's time: 2^-30 seconds in 64 bits.

/// A time since 1970, or a duration, in units of 2^-30 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cdtime(pub u64);

const SECOND: u64 = 1 << 30;

impl Cdtime {
    /// The value of a field that the packet has not set.
    pub const ZERO: Cdtime = Cdtime(0);

    /// Converts whole seconds, as the parts TIME and INTERVAL have them. Seconds that do not fit become the latest time;
    /// collectd drops their upper bits and gets a time in the past.
    pub fn from_seconds(seconds: u64) -> Cdtime {
        Cdtime(seconds.saturating_mul(SECOND))
    }

    /// The seconds as collectd computes with them, rounded to a double.
    pub fn seconds_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Whole seconds, a half rounded up, as collectd writes them into .rrd files.
    pub fn seconds(self) -> u64 {
        self.0.saturating_add(SECOND / 2) >> 30
    }

    /// Nanoseconds, a half rounded up. The result is less than 2^64 * 0.94, so that it fits.
    pub fn nanoseconds(self) -> u64 {
        let product = u128::from(self.0) * 1_000_000_000;
        ((product + u128::from(SECOND / 2)) >> 30) as u64
    }

    /// Converts nanoseconds, a half rounded up. Nanoseconds that do not fit become the latest time.
    pub fn from_nanoseconds(nanoseconds: u64) -> Cdtime {
        let units = ((u128::from(nanoseconds) << 30) + 500_000_000) / 1_000_000_000;
        Cdtime(u64::try_from(units).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_half_up() {
        for (units, seconds, nanoseconds) in [
            (0, 0, 0),
            (1, 0, 1),
            (SECOND / 2 - 1, 0, 499_999_999),
            (SECOND / 2, 1, 500_000_000),
            (SECOND, 1, 1_000_000_000),
            (SECOND * 3 / 2, 2, 1_500_000_000),
            (
                0x1954_fc40_0000_0000,
                1_700_000_000,
                1_700_000_000_000_000_000,
            ),
            (u64::MAX, (1 << 34) - 1, 17_179_869_183_999_999_999),
        ] {
            let time = Cdtime(units);
            assert_eq!(
                (time.seconds(), time.nanoseconds()),
                (seconds, nanoseconds),
                "{units}"
            );
        }
    }

    #[test]
    fn times_come_back() {
        for seconds in [0, 1, 10, 1_700_000_000, (1 << 34) - 1] {
            assert_eq!(Cdtime::from_seconds(seconds).0, seconds << 30);
        }
        assert_eq!(Cdtime::from_seconds(1 << 34), Cdtime(u64::MAX));
        assert_eq!(Cdtime::from_seconds(u64::MAX), Cdtime(u64::MAX));
        for nanoseconds in [0, 1, 999_999_999, 1_700_000_000_123_456_789] {
            assert_eq!(
                Cdtime::from_nanoseconds(nanoseconds).nanoseconds(),
                nanoseconds
            );
        }
        assert_eq!(Cdtime::from_nanoseconds(u64::MAX), Cdtime(u64::MAX));
    }
}
