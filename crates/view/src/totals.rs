//! `--stats`: what all intervals of the brief format add up to, and their averages. Counts are added, shares of the CPU
//! are those of the whole time, what is of a moment is averaged.

use kymo_base::context::Context;
use kymo_query::delta::Numbers;

/// What is shown of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TotalLines {
    /// `a`: averages as well.
    pub(crate) averages: bool,
    /// `i`: each interval as well.
    pub(crate) intervals: bool,
    /// `s`: also where a recording ends that the next one does not continue.
    pub(crate) each_recording: bool,
}

impl TotalLines {
    /// Reads the letters of `--statopts`.
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

/// What has been added up so far.
#[derive(Default)]
pub(crate) struct Totals {
    parts: Vec<Sum>,
    elapsed: f64,
    /// Facts of the machine as they were last.
    pub(crate) context: Context,
    /// The stamp of the last interval.
    pub(crate) stamp: Vec<u8>,
}

/// The sum of one subsystem.
#[derive(Default)]
struct Sum {
    now: Vec<(f64, f64)>,
    delta: Vec<f64>,
    /// Seconds of its intervals, and those of them in which what was added is not known, of each of `delta`.
    elapsed: f64,
    unknown: Vec<f64>,
}

impl Totals {
    /// Begins again.
    pub(crate) fn clear(&mut self) {
        *self = Totals::default();
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// An interval of this many seconds.
    pub(crate) fn interval(&mut self, elapsed: f64) {
        self.elapsed += elapsed;
    }

    /// The numbers of the n-th subsystem in an interval of this many seconds; 0: it was not read.
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

    /// What the n-th subsystem adds up to: means of what is of a moment, totals of all else. Where some of it is not
    /// known, as after a reset, it is taken to have been as in the rest: a part must not pass for the whole.
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

    /// Seconds of all intervals.
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
        // Of two of three intervals it is known: 13 in 4 of 6 seconds.
        assert_eq!((sum.now[0], sum.delta[0]), (15.0, 19.5));
        assert!((totals.elapsed() - 6.0).abs() < 1e-9);
        assert!(TotalLines::parse("ais").is_ok() && TotalLines::parse("x").is_err());
    }
}
