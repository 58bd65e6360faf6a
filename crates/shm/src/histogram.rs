//! Log-linear histograms: the bucket of a value, and the sum of the buckets over all slots.

/// Cells before the buckets: samples and sum.
pub(crate) const BEFORE_BUCKETS: usize = 2;

/// The buckets of a histogram: 2^`bits` of equal width for each power of two from 2^`low` to 2^`high`, one for smaller values,
/// one for values from 2^`high` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    bits: u8,
    low: u8,
    /// From the lowest to the highest.
    powers: u8,
}

impl Buckets {
    /// `None` unless `bits` <= 6, `bits` <= `low` < `high` <= 63.
    pub const fn new(bits: u8, low: u8, high: u8) -> Option<Buckets> {
        if bits > 6 || bits > low || low >= high || high > 63 {
            return None;
        }
        Some(Buckets {
            bits,
            low,
            powers: high - low,
        })
    }

    /// How many there are.
    pub const fn count(self) -> usize {
        ((self.powers as usize) << self.bits) + 2
    }

    /// Cells that the histogram takes in a slot.
    pub const fn cells(self) -> usize {
        BEFORE_BUCKETS + self.count()
    }

    /// The bucket that a value is in, from 0.
    #[inline(always)]
    pub const fn index(self, value: u64) -> usize {
        let exponent = 63 ^ (value | 1).leading_zeros();
        let power = exponent.wrapping_sub(self.low as u32);
        if power >= self.powers as u32 {
            return if exponent < self.low as u32 {
                0
            } else {
                self.count() - 1
            };
        }
        // The highest bit of `value` and the `bits` bits behind it: from 2^bits on, as if there were a power before the lowest.
        let within = (value >> (exponent - self.bits as u32)) as usize;
        ((power as usize) << self.bits) + within + 1 - (1 << self.bits)
    }

    /// The lowest value of a bucket; 0 for bucket 0.
    pub const fn lower(self, bucket: usize) -> u64 {
        if bucket == 0 {
            return 0;
        }
        let (power, within) = (
            (bucket - 1) >> self.bits,
            (bucket - 1) & ((1 << self.bits) - 1),
        );
        let exponent = self.low as usize + power;
        (((1 << self.bits) + within) as u64) << (exponent - self.bits as usize)
    }

    /// The lowest value above a bucket: what its values are less than. `None` of the last one.
    pub const fn upper(self, bucket: usize) -> Option<u64> {
        if bucket + 1 >= self.count() {
            return None;
        }
        Some(self.lower(bucket + 1))
    }

    /// The three numbers of a histogram, as in a file.
    pub const fn parameters(self) -> [u8; 3] {
        [self.bits, self.low, self.low + self.powers]
    }
}

/// A histogram's cells, added up over all slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramTotal<'a> {
    /// How many values were recorded.
    pub samples: u64,
    /// Sum of the values times their weights, not yet scaled.
    pub sum: u64,
    /// Bounds of the buckets, not yet scaled.
    pub buckets: Buckets,
    /// Weight in each bucket: an estimate of how many values there were, recorded or not.
    pub weights: &'a [u64],
}

impl HistogramTotal<'_> {
    /// How many values there were, by weight.
    pub fn count(&self) -> u64 {
        self.weights
            .iter()
            .fold(0, |sum, weight| sum.wrapping_add(*weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_within_the_bounds_of_its_bucket() {
        for (bits, low, high) in [
            (0, 0, 1),
            (0, 0, 63),
            (2, 10, 36),
            (3, 3, 63),
            (6, 6, 7),
            (1, 5, 9),
        ] {
            let buckets = Buckets::new(bits, low, high).expect("buckets");
            let mut values = vec![0, 1, 2, 3, u64::MAX];
            for shift in 0..64 {
                for near in 0..3 {
                    values.push((1u64 << shift).wrapping_add(near).wrapping_sub(1));
                    values.push((3u64 << shift.min(62)).wrapping_add(near).wrapping_sub(1));
                }
            }
            for value in values {
                let bucket = buckets.index(value);
                assert!(bucket < buckets.count());
                assert!(buckets.lower(bucket) <= value, "{value} of {buckets:?}");
                assert!(
                    buckets.upper(bucket).is_none_or(|upper| value < upper),
                    "{value} of {buckets:?}"
                );
            }
            for bucket in 1..buckets.count() {
                assert_eq!(buckets.index(buckets.lower(bucket)), bucket);
                assert_eq!(buckets.index(buckets.lower(bucket) - 1), bucket - 1);
            }
        }
    }

    #[test]
    fn buckets_that_make_no_sense_are_none() {
        for (bits, low, high) in [
            (7, 8, 20),
            (3, 2, 20),
            (2, 20, 20),
            (2, 10, 64),
            (2, 21, 20),
        ] {
            assert_eq!(Buckets::new(bits, low, high), None);
        }
    }
}
