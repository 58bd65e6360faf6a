//! Samples of a series of which some are rows.

use crate::Sample;

/// Samples in the order of their times, in runs of one resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleRuns {
    samples: Vec<Sample>,
    /// Place of the first sample of each run, and the resolution of the run in seconds; 0: single samples.
    runs: Vec<(usize, u32)>,
}

impl SampleRuns {
    /// Adds later samples. `resolution_s` is the length of the rows that they are; 0: they are single samples.
    pub fn extend(&mut self, samples: &[Sample], resolution_s: u32) {
        let is_new = self.runs.last().is_none_or(|run| run.1 != resolution_s);
        if is_new && !samples.is_empty() {
            self.runs.push((self.samples.len(), resolution_s));
        }
        self.samples.extend_from_slice(samples);
    }

    /// Removes all samples.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.runs.clear();
    }

    /// All samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Each run: its samples, and its resolution in seconds.
    pub fn runs(&self) -> impl Iterator<Item = (&[Sample], u32)> {
        let ends = self.runs.iter().skip(1).map(|(first, _)| *first);
        let ends = ends.chain([self.samples.len()]);
        let runs = self.runs.iter().zip(ends);
        runs.map(|(&(first, resolution_s), end)| {
            let samples = self.samples.get(first..end).unwrap_or_default();
            (samples, resolution_s)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stay_in_runs() {
        let sample = |t_ms| Sample { t_ms, v: 1.0 };
        let mut runs = SampleRuns::default();
        runs.extend(&[], 300);
        runs.extend(&[sample(1)], 3600);
        runs.extend(&[sample(2), sample(3)], 3600);
        runs.extend(&[sample(4)], 0);
        runs.extend(&[], 0);
        let found: Vec<(Vec<i64>, u32)> = runs
            .runs()
            .map(|(samples, of)| (samples.iter().map(|sample| sample.t_ms).collect(), of))
            .collect();
        assert_eq!(found, [(vec![1, 2, 3], 3600), (vec![4], 0)]);
        runs.clear();
        assert_eq!((runs.samples().len(), runs.runs().count()), (0, 0));
    }
}
