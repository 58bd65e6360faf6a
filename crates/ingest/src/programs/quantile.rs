//! Quantiles of histograms over an interval, from the growth of their buckets; also of several histograms with different buckets.

use kymo_shm::Buckets;

/// Quantiles, as parts of all values below them.
pub(super) const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// Labels of the quantiles.
pub(super) const LABELS: [&str; 3] = ["0.5", "0.9", "0.99"];
/// Cells before the buckets: samples and sum.
pub(super) const BEFORE: usize = 2;

/// Weights of values in buckets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) buckets: Buckets,
    /// Factor from values to the unit.
    pub(super) scale: f64,
    pub(super) weights: Vec<u64>,
}

/// The quantiles of all values of several histograms, in their unit. NaN: there are no values.
pub(super) fn of_all(spreads: &[Spread]) -> [f64; 3] {
    let filled = spreads.iter().filter(|spread| sum(&spread.weights) > 0);
    let filled: Vec<&Spread> = filled.collect();
    if let [one] = filled[..] {
        let count = sum(&one.weights);
        let of = |part| quantile(one.buckets, &one.weights, count, part) * one.scale;
        return QUANTILES.map(of);
    }
    let total: f64 = filled.iter().map(|each| sum(&each.weights) as f64).sum();
    let steps = steps(&filled);
    QUANTILES.map(|part| reach(&steps, part * total))
}

/// Places where the density of values changes: place, change, and number of values exactly at the place.
fn steps(spreads: &[&Spread]) -> Vec<(f64, f64, f64)> {
    let mut steps = Vec::new();
    for spread in spreads {
        let filled = spread.weights.iter().enumerate();
        for (bucket, &weight) in filled.filter(|(_, weight)| **weight > 0) {
            let (weight, lower) = (weight as f64, spread.buckets.lower(bucket));
            let upper = spread.buckets.upper(bucket).unwrap_or(lower);
            let [a, b] = [lower, upper].map(|bound| bound as f64 * spread.scale);
            let (from, to) = (a.min(b), a.max(b));
            match to > from {
                true => {
                    let density = weight / (to - from);
                    steps.extend([(from, density, 0.0), (to, -density, 0.0)]);
                }
                false => steps.push((from, 0.0, weight)),
            }
        }
    }
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    steps
}

/// The place with this number of values below it; NaN: there are no values.
fn reach(steps: &[(f64, f64, f64)], wanted: f64) -> f64 {
    let (mut below, mut density) = (0.0, 0.0);
    let mut at = steps.first().map_or(f64::NAN, |step| step.0);
    for (place, change, here) in steps {
        let more = density * (place - at);
        if more > 0.0 && below + more >= wanted {
            return at + (wanted - below) / density;
        }
        (below, at) = (below + more + here, *place);
        if *here > 0.0 && below >= wanted {
            return at;
        }
        density += change;
    }
    at
}

/// Growth of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gain {
    pub(super) samples: u64,
    /// Sum of weights.
    pub(super) count: u64,
    /// Unscaled; NaN: there are no values.
    pub(super) quantiles: [f64; 3],
}

/// Growth between two readings of a histogram's cells.
pub(super) fn gain(buckets: Buckets, before: &[u64], now: &[u64]) -> Gain {
    let samples = |cells: &[u64]| cells.first().copied().unwrap_or(0);
    let weights = more(before, now);
    let count = sum(&weights);
    Gain {
        samples: samples(now).saturating_sub(samples(before)),
        count,
        quantiles: QUANTILES.map(|part| quantile(buckets, &weights, count, part)),
    }
}

/// Weights that were added between two readings of a histogram's cells.
pub(super) fn more(before: &[u64], now: &[u64]) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    let pairs = now.iter().zip(before).skip(BEFORE);
    pairs
        .map(|(now, before)| now.saturating_sub(before))
        .collect()
}

pub(super) fn sum(weights: &[u64]) -> u64 {
    let weights = weights.iter();
    weights.fold(0_u64, |sum, weight| sum.saturating_add(*weight))
}

/// A quantile. Values lie evenly between a bucket's bounds; in a bucket without an upper bound they lie at the lower one.
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

    /// Two versions of a program run at once: quantiles over values in different buckets and units are those of all values.
    #[test]
    fn quantiles_of_different_buckets_are_of_all_values() {
        let spread = |bits, scale, values: &mut dyn Iterator<Item = u64>| {
            let buckets = Buckets::new(bits, 6, 40).unwrap();
            let mut weights = vec![0; buckets.cells() - BEFORE];
            values.for_each(|value| weights[buckets.index(value)] += 1);
            Spread {
                buckets,
                scale,
                weights,
            }
        };
        // 1 to 2 ms in microseconds, 2 to 4 ms in nanoseconds: three quarters of them are the latter.
        let slow = |bits| spread(bits, 1e-9, &mut (2_000_000..4_000_000).step_by(333));
        let fast = |bits| spread(bits, 1e-6, &mut (0..2002).map(|n| 1000 + n / 2));
        for spreads in [
            vec![fast(3), slow(6)],
            vec![slow(4), fast(5)],
            vec![slow(4), spread(2, 1.0, &mut std::iter::empty()), fast(5)],
        ] {
            let found = of_all(&spreads);
            for (quantile, value) in found.into_iter().zip([2.667e-3, 3.733e-3, 3.973e-3]) {
                assert!((quantile / value - 1.0).abs() < 0.03, "{found:?}");
            }
        }
        let same = [slow(6), slow(6)];
        let (both, one) = (of_all(&same), of_all(&same[..1]));
        for (both, one) in both.into_iter().zip(one) {
            assert!((both / one - 1.0).abs() < 1e-9, "{both} {one}");
        }
        let beyond = spread(0, 1.0, &mut [u64::MAX].into_iter());
        assert_eq!(of_all(&[beyond.clone(), beyond]), [(1_u64 << 40) as f64; 3]);
        let none = spread(0, 1.0, &mut std::iter::empty());
        assert!(of_all(&[none.clone(), none])[0].is_nan() && of_all(&[])[0].is_nan());
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
