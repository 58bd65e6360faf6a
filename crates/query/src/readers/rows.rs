//! Rows that are made from samples.

use kymo_series::{Row, RowSink, Sample, SampleSink, SeriesId};

/// Makes rows of equal length from samples: minimum, mean, maximum and last of the samples in each.
pub struct RowMaker<'a> {
    step_s: u32,
    sink: &'a mut dyn RowSink,
}

impl RowMaker<'_> {
    /// Gives rows of `step_s` seconds to `sink`.
    pub fn new(step_s: u32, sink: &mut dyn RowSink) -> RowMaker<'_> {
        RowMaker {
            step_s: step_s.max(1),
            sink,
        }
    }
}

impl SampleSink for RowMaker<'_> {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
        let rows = rows(samples, self.step_s, resolution_s);
        if !rows.is_empty() {
            self.sink.rows(id, &rows, self.step_s);
        }
    }
}

/// Rows of all samples of a series. A sample stands for the time since the one before, and for no longer than the usual distance
/// between samples.
fn rows(samples: &[Sample], step_s: u32, resolution_s: u32) -> Vec<Row> {
    let step_ms = i64::from(step_s) * 1000;
    let usual_ms = match resolution_s {
        0 => usual_distance_ms(samples).unwrap_or(step_ms),
        resolution_s => i64::from(resolution_s) * 1000,
    };
    let share = usual_ms as f64 / step_ms as f64;
    let mut rows: Vec<Row> = Vec::new();
    let mut count = 0.0;
    for sample in samples.iter().filter(|sample| !sample.v.is_nan()) {
        let ends = sample.t_ms.saturating_add(step_ms - 1).div_euclid(step_ms);
        let t_ms = ends.saturating_mul(step_ms);
        match rows.last_mut().filter(|row| row.t_ms == t_ms) {
            Some(row) => {
                count += 1.0;
                row.mean += (sample.v - row.mean) / count;
                row.min = row.min.min(sample.v);
                row.max = row.max.max(sample.v);
                row.last = sample.v;
                row.covered = (row.covered + share).min(1.0);
            }
            None => {
                count = 1.0;
                rows.push(Row {
                    t_ms,
                    mean: sample.v,
                    min: sample.v,
                    max: sample.v,
                    last: sample.v,
                    covered: share.min(1.0),
                });
            }
        }
    }
    rows
}

/// The median of the distances between samples.
fn usual_distance_ms(samples: &[Sample]) -> Option<i64> {
    let pairs = samples.windows(2);
    let mut distances: Vec<i64> = pairs
        .map(|pair| pair[1].t_ms.saturating_sub(pair[0].t_ms))
        .collect();
    let middle = distances.len() / 2;
    if distances.is_empty() {
        return None;
    }
    Some(*distances.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<Row>);

    impl RowSink for Kept {
        fn rows(&mut self, _id: SeriesId, rows: &[Row], _step_s: u32) {
            self.0.extend_from_slice(rows);
        }
    }

    #[test]
    fn rows_of_samples() {
        let mut kept = Kept(Vec::new());
        let samples = [
            (1_000, 1.0),
            (6_000, 4.0),
            (10_001, f64::NAN),
            (20_000, 7.0),
        ];
        let samples = samples.map(|(t_ms, v)| Sample { t_ms, v });
        RowMaker::new(10, &mut kept).samples(SeriesId(1), &samples, 0);
        let rows = kept.0;
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].t_ms, rows[0].mean, rows[0].last),
            (10_000, 2.5, 4.0)
        );
        assert_eq!((rows[0].min, rows[0].max, rows[1].t_ms), (1.0, 4.0, 20_000));
        assert_eq!((rows[0].covered, rows[1].covered), (1.0, 0.5));
    }
}
