//! Quantiles of a histogram of an interval: what its buckets have more than before.

use kymo_shm::Buckets;

/// The parts of all values that lie below.
pub(super) const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The same as labels.
pub(super) const LABELS: [&str; 3] = ["0.5", "0.9", "0.99"];
/// Cells before the buckets: samples and sum.
pub(super) const BEFORE: usize = 2;

/// What a histogram has more than before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gain {
    pub(super) samples: u64,
    /// By weight.
    pub(super) count: u64,
    /// Not yet scaled; NaN: there are no values.
    pub(super) quantiles: [f64; 3],
}

/// Between two readings of a histogram's cells.
pub(super) fn gain(buckets: Buckets, before: &[u64], now: &[u64]) -> Gain {
    let more = |at: usize| {
        let (before, now) = (before.get(at).copied(), now.get(at).copied());
        now.unwrap_or(0).saturating_sub(before.unwrap_or(0))
    };
    let weights: Vec<u64> = (BEFORE..now.len()).map(more).collect();
    let sum = |weights: &[u64]| {
        let weights = weights.iter();
        weights.fold(0_u64, |sum, weight| sum.saturating_add(*weight))
    };
    let count = sum(&weights);
    Gain {
        samples: more(0),
        count,
        quantiles: QUANTILES.map(|part| quantile(buckets, &weights, count, part)),
    }
}

/// Between a bucket's bounds values lie evenly; what has no upper bound is at its lower one.
fn quantile(buckets: Buckets, weights: &[u64], count: u64, part: f64) -> f64 {
    if count == 0 {
        return f64::NAN;
    }
    let wanted = part * count as f64;
    let mut below = 0.0;
    for (bucket, &weight) in weights.iter().enumerate() {
        let weight = weight as f64;
        if weight > 0.0 && below + weight >= wanted {
            let lower = buckets.lower(bucket) as f64;
            let width = buckets
                .upper(bucket)
                .map_or(0.0, |upper| upper as f64 - lower);
            return lower + width * ((wanted - below) / weight).clamp(0.0, 1.0);
        }
        below += weight;
    }
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_came_in_between() {
        let buckets = Buckets::new(2, 2, 10).unwrap();
        let mut before = vec![0; buckets.cells()];
        let mut now = before.clone();
        before[BEFORE + buckets.index(500)] = 1000;
        now[BEFORE + buckets.index(500)] = 1000;
        for value in 1..=400_u64 {
            now[BEFORE + buckets.index(value)] += 1;
            now[0] += 1;
        }
        let gain = gain(buckets, &before, &now);
        assert_eq!((gain.samples, gain.count), (400, 400));
        for (quantile, value) in gain.quantiles.into_iter().zip([200.0, 360.0, 396.0]) {
            assert!(
                (quantile / value - 1.0).abs() < 0.13,
                "{quantile} for {value}"
            );
        }
    }

    #[test]
    fn where_there_are_no_values_there_is_no_quantile() {
        let buckets = Buckets::new(0, 0, 1).unwrap();
        let cells = vec![0; buckets.cells()];
        assert!(gain(buckets, &cells, &cells).quantiles[0].is_nan());
        let last = [vec![1; 1], vec![0; cells.len() - 2], vec![7]].concat();
        assert_eq!(gain(buckets, &cells, &last).quantiles, [2.0; 3]);
        assert_eq!(gain(buckets, &last, &cells).count, 0, "fewer than before");
    }
}
