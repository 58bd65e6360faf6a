//! Histograms with fixed bounds: four to a power of two, at 1, 1.25, 1.5 and 1.75 times it, likewise below 0, and 0 itself. A
//! bound's number is the upper bits of its double, so that a value's bucket is found by a shift.

use super::part::Part;

/// Mantissa bits of a double that do not count: two are left, four bounds to a power of two.
const SHIFT: u32 = 50;
/// Bounds to a power of two.
const STEPS: i32 = 4;
/// Difference between a double's exponent and its power of two.
const BIAS: i32 = 1023;
/// Number of the least bound above 0, 2^-30, and of the greatest, 2^63.
const LEAST: i32 = (BIAS - 30) * STEPS;
const GREATEST: i32 = (BIAS + 63) * STEPS;

/// The number of a bound. A greater bound has a greater number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bound(i32);

impl Bound {
    /// The least bound that is not below `value`; `None`: there is none.
    pub(super) fn of(value: f64) -> Option<Bound> {
        let number = |bits: u64| i32::try_from(bits >> SHIFT).unwrap_or(i32::MAX);
        let bits = value.abs().to_bits();
        if value == 0.0 {
            return Some(Bound(0));
        }
        if value > 0.0 {
            let least = number(bits - 1).saturating_add(1).max(LEAST);
            return (least <= GREATEST).then_some(Bound(least));
        }
        match number(bits) {
            least if least < LEAST => Some(Bound(0)),
            least => Some(Bound(-least.min(GREATEST))),
        }
    }

    /// Value of the bound.
    pub(super) fn value(self) -> f64 {
        let bits = u64::from(self.0.unsigned_abs()) << SHIFT;
        match self.0 {
            0 => 0.0,
            1.. => f64::from_bits(bits),
            _ => -f64::from_bits(bits),
        }
    }

    /// The next bound below. 0 has none, because most values are times.
    fn below(self) -> Option<Bound> {
        match self.0 {
            0 => None,
            LEAST => Some(Bound(0)),
            number if number == -GREATEST => None,
            number => Some(Bound(number - 1)),
        }
    }
}

/// Values up to a bound, and above the bound before.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) bound: Bound,
    pub(super) count: f64,
    pub(super) part: Part,
}

/// Sums since the metric began, and extremes since the last flush.
#[derive(Debug)]
pub(super) struct Histogram {
    pub(super) count: f64,
    pub(super) sum: f64,
    /// Infinite: no value came.
    pub(super) min: f64,
    pub(super) max: f64,
    /// Sorted by bound.
    pub(super) buckets: Vec<Bucket>,
    /// Series of the count, the sum, the infinite bucket, the least and the greatest value.
    pub(super) parts: [Part; 5],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            count: 0.0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            buckets: Vec::new(),
            parts: Default::default(),
        }
    }
}

impl Histogram {
    /// Adds a value that stands for `weight` values, with at most `room` new buckets. Returns the number of new buckets.
    pub(super) fn add(&mut self, value: f64, weight: f64, room: usize) -> usize {
        self.count += weight;
        self.sum += value * weight;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        // Values above all bounds are only in the count.
        let Some(bound) = Bound::of(value) else {
            return 0;
        };
        let at = self.buckets.binary_search_by_key(&bound, |it| it.bound);
        let (at, made) = match at {
            Ok(at) => (at, 0),
            Err(at) if room >= 2 => self.make(bound, at),
            // Coarser, but not wrong: the next bucket counts the value, or only `count` does.
            Err(at) => (at, 0),
        };
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.count += weight;
        }
        made
    }

    /// Makes a bucket at this index, and one for the bound below it: readers assume that a bucket's values lie between these
    /// bounds. Returns the index of the bucket, and the number of new buckets.
    fn make(&mut self, bound: Bound, at: usize) -> (usize, usize) {
        let bucket = |bound| Bucket {
            bound,
            count: 0.0,
            part: Part::default(),
        };
        self.buckets.insert(at, bucket(bound));
        let before = at.checked_sub(1).and_then(|at| self.buckets.get(at));
        let before = before.map(|before| before.bound);
        match bound.below().filter(|below| before != Some(*below)) {
            Some(below) => {
                self.buckets.insert(at, bucket(below));
                (at + 1, 2)
            }
            None => (at, 1),
        }
    }

    /// Begins new extremes for the next flush.
    pub(super) fn begin_flush(&mut self) {
        (self.min, self.max) = (f64::INFINITY, f64::NEG_INFINITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_four_to_a_power_of_two() {
        for (value, bound) in [
            (1.0, Some(1.0)),
            (1.000_001, Some(1.25)),
            (1.25, Some(1.25)),
            (1.3, Some(1.5)),
            (1.6, Some(1.75)),
            (1.76, Some(2.0)),
            (2.1, Some(2.5)),
            (100.0, Some(112.0)),
            (0.1, Some(0.109_375)),
            (0.0, Some(0.0)),
            (-0.0, Some(0.0)),
            (1e-30, Some(2f64.powi(-30))),
            (5e-324, Some(2f64.powi(-30))),
            (2f64.powi(63), Some(2f64.powi(63))),
            (1e19, None),
            (f64::MAX, None),
            (-1e-30, Some(0.0)),
            (-1.0, Some(-1.0)),
            (-1.1, Some(-1.0)),
            (-1.25, Some(-1.25)),
            (-3.2, Some(-3.0)),
            (-1e30, Some(-(2f64.powi(63)))),
        ] {
            assert_eq!(Bound::of(value).map(Bound::value), bound, "{value}");
        }
        let below = |value| Bound::of(value).and_then(Bound::below).map(Bound::value);
        let found = [1.25, 1.0, 0.0, 1e-30, -1.0, -1e30].map(below);
        let expected = [Some(1.0), Some(0.875), None, Some(0.0), Some(-1.25), None];
        assert_eq!(found, expected);
    }

    #[test]
    fn buckets_are_made_as_values_come() {
        let mut histogram = Histogram::default();
        let made: Vec<usize> = [(5.0, 1.0, 9), (4.5, 1.0, 9), (5.0, 10.0, 0), (5.5, 1.0, 9)]
            .map(|(value, weight, room)| histogram.add(value, weight, room))
            .into();
        assert_eq!(made, [2, 0, 0, 1]);
        let counts = |histogram: &Histogram| -> Vec<(f64, f64)> {
            let buckets = histogram.buckets.iter();
            let pair = |it: &Bucket| (it.bound.value(), it.count);
            buckets.map(pair).collect()
        };
        // 4.5 is in the bucket up to 5, whose lower bound is 4; 5.5 in the one up to 6.
        assert_eq!(counts(&histogram), [(4.0, 0.0), (5.0, 12.0), (6.0, 1.0)]);
        // Without room a value counts in the next bucket, or only in the count.
        assert_eq!(histogram.add(0.5, 1.0, 1), 0);
        assert_eq!(histogram.add(50.0, 1.0, 1), 0);
        assert_eq!(counts(&histogram), [(4.0, 1.0), (5.0, 12.0), (6.0, 1.0)]);
        let all = (histogram.count, histogram.sum, histogram.min, histogram.max);
        assert_eq!(all, (15.0, 115.5, 0.5, 50.0));
    }
}
