//! Quantiles: of values, and of the buckets of a histogram.

use crate::eval::number::{almost_equal, count, nan_first, place};

/// Counts that differ by less are the same count with rounding errors.
const SAME_COUNT: f64 = 1e-12;

/// A quantile of values, which it sorts; between two values it is a weighted mean of them.
pub(crate) fn quantile(share: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || share.is_nan() {
        return f64::NAN;
    }
    if let Some(beyond) = beyond(share) {
        return beyond;
    }
    values.sort_unstable_by(nan_first);
    let rank = share * count(values.len() - 1);
    let weight = rank - rank.floor();
    let lower = place(rank);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    if weight == 0.0 {
        return at(lower);
    }
    at(lower) * (1.0 - weight) + at((lower + 1).min(values.len() - 1)) * weight
}

/// The quantile of a share below 0 or above 1.
fn beyond(share: f64) -> Option<f64> {
    match share {
        ..0.0 => Some(f64::NEG_INFINITY),
        _ if share > 1.0 => Some(f64::INFINITY),
        _ => None,
    }
}

/// A bucket of a classic histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// The upper bound, `le`.
    pub(crate) bound: f64,
    /// How much was observed up to that bound.
    pub(crate) count: f64,
}

/// Where counts of buckets fell with rising bounds, and were raised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Repair {
    /// The lowest bound.
    pub(crate) lowest: f64,
    /// The highest bound.
    pub(crate) highest: f64,
    /// The largest fall.
    pub(crate) most: f64,
}

/// A quantile of a histogram whose buckets are sorted by their bounds, and how counts had to be repaired for it.
pub(crate) fn of_buckets(share: f64, buckets: &mut Vec<Bucket>) -> (f64, Option<Repair>) {
    if share.is_nan() {
        return (f64::NAN, None);
    }
    if let Some(beyond) = beyond(share) {
        return (beyond, None);
    }
    if !is_whole(buckets) {
        return (f64::NAN, None);
    }
    join_same_bounds(buckets);
    let repair = make_monotonic(buckets);
    (interpolated(share, buckets).unwrap_or(f64::NAN), repair)
}

/// False comparisons are those with NaN, too.
fn is_not(is_true: bool) -> bool {
    !is_true
}

fn interpolated(share: f64, buckets: &[Bucket]) -> Option<f64> {
    let [below @ .., last] = buckets else {
        return None;
    };
    let (highest, first) = (below.last()?, below.first()?);
    if last.count == 0.0 {
        return None;
    }
    let rank = share * last.count;
    let at = below.partition_point(|bucket| is_not(bucket.count >= rank));
    let Some(bucket) = below.get(at) else {
        return Some(highest.bound);
    };
    if at == 0 && first.bound <= 0.0 {
        return Some(first.bound);
    }
    let before = at.checked_sub(1).and_then(|at| below.get(at));
    let (begin, counted) = before.map_or((0.0, 0.0), |before| (before.bound, before.count));
    let within = (rank - counted) / (bucket.count - counted);
    Some(begin + (bucket.bound - begin) * within)
}

/// True if the last bucket has no bound, and so all that was observed.
fn is_whole(buckets: &[Bucket]) -> bool {
    buckets
        .last()
        .is_some_and(|bucket| bucket.bound == f64::INFINITY)
}

/// Buckets of the same bound, such as `1` and `1.0`, are one.
fn join_same_bounds(buckets: &mut Vec<Bucket>) {
    buckets.dedup_by(|next, kept| {
        let is_same = next.bound == kept.bound;
        if is_same {
            kept.count += next.count;
        }
        is_same
    });
}

fn make_monotonic(buckets: &mut [Bucket]) -> Option<Repair> {
    let mut repair: Option<Repair> = None;
    let (first, rest) = buckets.split_first_mut()?;
    let mut before = first.count;
    for bucket in rest {
        let fall = before - bucket.count;
        if fall == 0.0 {
            continue;
        }
        if almost_equal(before, bucket.count, SAME_COUNT) {
            bucket.count = before;
        } else if bucket.count < before {
            let old = repair.unwrap_or(Repair {
                lowest: bucket.bound,
                highest: bucket.bound,
                most: 0.0,
            });
            repair = Some(Repair {
                lowest: old.lowest.min(bucket.bound),
                highest: old.highest.max(bucket.bound),
                most: old.most.max(fall),
            });
            bucket.count = before;
        } else {
            before = bucket.count;
        }
    }
    repair
}

/// The share of observations between two values, of a histogram whose buckets are sorted by their bounds.
pub(crate) fn fraction(lower: f64, upper: f64, buckets: &mut Vec<Bucket>) -> f64 {
    if !is_whole(buckets) {
        return f64::NAN;
    }
    join_same_bounds(buckets);
    let all = buckets.last().map_or(0.0, |bucket| bucket.count);
    if all == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    let rank = |value| {
        rank(value, buckets)
            .filter(|&rank| is_not(rank > all))
            .unwrap_or(all)
    };
    (rank(upper) - rank(lower)) / all
}

/// How much was observed below a value; `None`: all of it.
fn rank(value: f64, buckets: &[Bucket]) -> Option<f64> {
    // Where the lowest bound is above 0, observations are taken to be, too.
    let is_positive = buckets.first().is_some_and(|bucket| bucket.bound > 0.0);
    let mut begin = if is_positive { 0.0 } else { f64::NEG_INFINITY };
    let mut below = 0.0;
    for bucket in buckets {
        if begin >= value {
            return Some(below);
        }
        if begin < value && bucket.bound > value {
            // Nothing is known of where observations lie in a bucket without a begin.
            return Some(match begin == f64::NEG_INFINITY {
                true => bucket.count,
                false => below + (bucket.count - below) * (value - begin) / (bucket.bound - begin),
            });
        }
        (begin, below) = (bucket.bound, bucket.count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(list: &[(f64, f64)]) -> Vec<Bucket> {
        list.iter()
            .map(|&(bound, count)| Bucket { bound, count })
            .collect()
    }

    #[test]
    fn quantiles_of_values() {
        let nan = f64::NAN;
        for (share, values, expected) in [
            (0.5, &[3.0, 1.0][..], 2.0),
            (0.25, &[1.0, 2.0, 3.0, 4.0, 5.0], 2.0),
            (1.0, &[1.0, 2.0], 2.0),
            (-0.1, &[1.0], f64::NEG_INFINITY),
            (1.1, &[1.0], f64::INFINITY),
            (1.0, &[nan, 5.0], 5.0),
        ] {
            assert_eq!(quantile(share, &mut values.to_vec()), expected);
        }
        assert!(quantile(nan, &mut [1.0]).is_nan() && quantile(0.5, &mut []).is_nan());
    }

    #[test]
    fn quantiles_of_histograms() {
        let inf = f64::INFINITY;
        let usual = [(0.1, 2.0), (0.2, 6.0), (0.4, 8.0), (inf, 10.0)];
        for (share, expected) in [(0.1, 0.05), (0.4, 0.15), (0.95, 0.4), (0.0, 0.0)] {
            let (value, repair) = of_buckets(share, &mut buckets(&usual));
            assert!((value - expected).abs() < 1e-12, "{share}: {value}");
            assert_eq!(repair, None);
        }
        let falling = [(1.0, 5.0), (2.0, 3.0), (2.0, 1.0), (3.0, 9.0), (inf, 9.0)];
        let (_, repair) = of_buckets(0.5, &mut buckets(&falling));
        let expected = Repair {
            lowest: 2.0,
            highest: 2.0,
            most: 1.0,
        };
        assert_eq!(repair, Some(expected));
        assert!(of_buckets(0.5, &mut buckets(&[(1.0, 5.0)])).0.is_nan());
        assert!(of_buckets(0.5, &mut buckets(&[(inf, 5.0)])).0.is_nan());
        assert_eq!(
            of_buckets(0.5, &mut buckets(&[(-1.0, 5.0), (inf, 5.0)])).0,
            -1.0
        );
    }

    #[test]
    fn shares_between_two_values() {
        let usual = [(0.1, 2.0), (0.2, 6.0), (f64::INFINITY, 10.0)];
        for (lower, upper, expected) in [
            (0.0, 0.1, 0.2),
            (0.1, 0.15, 0.2),
            (0.0, f64::INFINITY, 1.0),
            (0.2, 0.1, 0.0),
            (-5.0, 0.2, 0.6),
        ] {
            let value = fraction(lower, upper, &mut buckets(&usual));
            assert!((value - expected).abs() < 1e-12, "{lower} {upper}: {value}");
        }
    }
}
