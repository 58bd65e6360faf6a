//! `--stats`: totals and averages of all intervals in the brief format. Counts are summed, CPU shares refer to the
//! whole time, and momentary values are averaged.

use kymo_base::context::Context;
use kymo_query::delta::Numbers;

/// Lines of totals to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TotalLines {
    /// `a`: shows averages.
    pub(crate) averages: bool,
    /// `i`: shows each interval.
    pub(crate) intervals: bool,
    /// `s`: shows totals also at the end of a recording that the next one does not continue.
    pub(crate) each_recording: bool,
}

impl TotalLines {
    /// Parses the letters of `--statopts`.
    pub(crate) fn parse(letters: &str) -> Result<TotalLines, String> {
        let other = letters.chars().find(|&letter| !"ais".contains(letter));
        match other {
            Some(other) => Err(format!(
                "cannot use --statopts {}: it takes a, i and s",
                other.escape_debug()
            )),
            None => Ok(TotalLines {
                averages: letters.contains('a'),
                intervals: letters.contains('i'),
                each_recording: letters.contains('s'),
            }),
        }
    }
}

/// Sums so far.
#[derive(Default)]
pub(crate) struct Totals {
    parts: Vec<Sum>,
    elapsed: f64,
    /// Latest facts of the machine.
    pub(crate) context: Context,
    /// The stamp of the last interval.
    pub(crate) stamp: Vec<u8>,
}

/// Sums of one subsystem.
#[derive(Default)]
struct Sum {
    now: Vec<(f64, f64)>,
    delta: Vec<f64>,
    /// Seconds of its intervals, and for each of `delta` the seconds without a known value.
    elapsed: f64,
    unknown: Vec<f64>,
}

impl Totals {
    /// Resets all sums.
    pub(crate) fn clear(&mut self) {
        *self = Totals::default();
    }

    /// True if no interval was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds the length of an interval, in seconds.
    pub(crate) fn interval(&mut self, elapsed: f64) {
        self.elapsed += elapsed;
    }

    /// Adds an interval's numbers of the n-th subsystem. `elapsed` is in seconds; 0 if the subsystem was not read.
    pub(crate) fn add(&mut self, part: usize, numbers: &Numbers, elapsed: f64) {
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, Sum::default);
        }
        let sum = &mut self.parts[part];
        sum.now.resize(numbers.now.len(), (0.0, 0.0));
        sum.delta.resize(numbers.delta.len(), f64::NAN);
        sum.unknown.resize(numbers.delta.len(), 0.0);
        sum.elapsed += elapsed;
        for ((total, count), now) in sum.now.iter_mut().zip(&numbers.now) {
            if !now.is_nan() {
                (*total, *count) = (*total + now, *count + 1.0);
            }
        }
        let totals = sum.delta.iter_mut().zip(&mut sum.unknown);
        for ((total, unknown), delta) in totals.zip(&numbers.delta) {
            if delta.is_nan() {
                *unknown += elapsed;
            } else {
                *total = if total.is_nan() {
                    *delta
                } else {
                    *total + delta
                };
            }
        }
    }

    /// The totals of the n-th subsystem: means of momentary values, sums of all others. Where values are missing, for
    /// example after a reset, the sum is extrapolated from the known part.
    pub(crate) fn of(&self, part: usize) -> Numbers {
        let Some(sum) = self.parts.get(part) else {
            return Numbers::default();
        };
        Numbers {
            now: sum.now.iter().map(|(total, count)| total / count).collect(),
            delta: sum
                .delta
                .iter()
                .zip(&sum.unknown)
                .map(|(total, unknown)| match *unknown > 0.0 {
                    true => total * (sum.elapsed / (sum.elapsed - unknown)),
                    false => *total,
                })
                .collect(),
        }
    }

    /// Length of all intervals, in seconds.
    pub(crate) fn elapsed(&self) -> f64 {
        self.elapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_moments_averaged() {
        let mut totals = Totals::default();
        for (now, delta) in [(10.0, 5.0), (f64::NAN, f64::NAN), (20.0, 8.0)] {
            totals.interval(2.0);
            let numbers = Numbers {
                now: vec![now],
                delta: vec![delta],
            };
            totals.add(0, &numbers, 2.0);
        }
        let sum = totals.of(0);
        // The value is known in two of three intervals: 13 in 4 of 6 seconds.
        assert_eq!((sum.now[0], sum.delta[0]), (15.0, 19.5));
        assert!((totals.elapsed() - 6.0).abs() < 1e-9);
        assert!(TotalLines::parse("ais").is_ok() && TotalLines::parse("x").is_err());
    }
}
