//! Fields as their means over equal lengths of time, one after the other, while samples come.

use std::collections::BTreeMap;

use crate::marks::Marker;
use crate::series::{Grid, Point, nanoseconds};
use crate::sheet::{Cell, Line, Pick, Sheet};
use crate::source::{Source, Step};

/// Lengths of time that one value may cover; of one that covers more nothing is taken.
const COVERED_MAX: usize = 4096;

/// The means of one length of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// End, in nanoseconds since 1970.
    pub thru_ns: i64,
    /// By the number of the line; NaN, or none: not known for half of the time.
    pub means: Vec<f64>,
}

/// Values of lengths of time that have not ended.
pub struct Downsampler {
    step_ns: i64,
    sheet: Sheet,
    marker: Marker,
    /// By when they begin, a point for each line.
    open: BTreeMap<i64, Vec<Point>>,
}

impl Downsampler {
    /// Downsamples these fields over lengths of `step_ns`, into at most `lines_max` lines.
    pub fn new(picks: &[Pick], step_ns: i64, lines_max: usize) -> Downsampler {
        Downsampler {
            step_ns,
            sheet: Sheet::new(picks, lines_max),
            marker: Marker::default(),
            open: BTreeMap::new(),
        }
    }

    /// The lines there are; more may come with more samples.
    pub fn lines(&self) -> &[Line] {
        self.sheet.lines()
    }

    /// Reads on to the end of the source, or until there are `rows_max` rows.
    pub fn read(&mut self, source: &mut dyn Source, rows_max: usize) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        while rows.len() < rows_max {
            let Some(step) = source.next()? else { break };
            if self.marker.step(&step, source.context(), &mut |_| {}) {
                self.sheet.restart();
            }
            let Step::Sample(moment) = step else { continue };
            let (open, step_ns) = (&mut self.open, self.step_ns);
            self.sheet.advance(source, &moment, &mut |cell| {
                if !moment.warmup && !cell.value.is_nan() {
                    add(open, step_ns, moment.real_ns, &cell);
                }
            });
            self.close(moment.real_ns, &mut rows);
        }
        Ok(rows)
    }

    /// Rows of lengths that ended up to this moment.
    fn close(&mut self, now_ns: i64, rows: &mut Vec<Row>) {
        let step_ns = self.step_ns;
        while let Some(first) = self.open.first_entry()
            && *first.key() + step_ns <= now_ns
        {
            let thru_ns = *first.key() + step_ns;
            let half = step_ns as f64 / 2e9;
            let mean = |point: &Point| match point.seconds < half {
                true => f64::NAN,
                false => point.mean(),
            };
            let means: Vec<f64> = first.get().iter().map(mean).collect();
            first.remove();
            if means.iter().any(|mean| !mean.is_nan()) {
                rows.push(Row { thru_ns, means });
            }
        }
    }
}

fn add(open: &mut BTreeMap<i64, Vec<Point>>, step_ns: i64, real_ns: i64, cell: &Cell) {
    let begin_ns = real_ns.saturating_sub(nanoseconds(cell.elapsed));
    let first = begin_ns.div_euclid(step_ns);
    let count = usize::try_from(real_ns.div_euclid(step_ns) - first + 1);
    let Some(count) = count.ok().filter(|&count| count <= COVERED_MAX) else {
        return;
    };
    let grid = Grid {
        from_ns: first * step_ns,
        step_ns,
        count,
    };
    for (n, seconds) in grid.covered(real_ns, cell.elapsed) {
        let points = open.entry(grid.begin_ns(n)).or_default();
        if points.len() <= cell.line {
            points.resize(cell.line + 1, Point::NONE);
        }
        points[cell.line].add(cell.value, seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn downsampler() -> Downsampler {
        Downsampler::new(&[], 10 * S, 8)
    }

    fn cell(line: usize, elapsed: f64, value: f64) -> Cell {
        Cell {
            line,
            elapsed,
            value,
        }
    }

    fn rows(samples: &[(i64, f64, f64)]) -> Vec<(i64, f64)> {
        let (mut means, mut rows) = (downsampler(), Vec::new());
        for &(at_ns, elapsed, value) in samples {
            add(&mut means.open, 10 * S, at_ns, &cell(0, elapsed, value));
            means.close(at_ns, &mut rows);
        }
        rows.iter()
            .map(|row| (row.thru_ns / S, row.means[0]))
            .collect()
    }

    #[test]
    fn seconds_become_means_of_ten() {
        let samples: Vec<_> = (1001..=1030).map(|at| (at * S, 1.0, at as f64)).collect();
        assert_eq!(
            rows(&samples),
            [(1010, 1005.5), (1020, 1015.5), (1030, 1025.5)]
        );
        // A little early or late is no matter.
        let late: Vec<_> = (1001..=1031)
            .map(|at| (at * S + S / 1000 - (at % 3) * S / 1000, 1.0, at as f64))
            .collect();
        for ((_, mean), expected) in rows(&late).into_iter().zip([1005.5, 1015.5, 1025.5]) {
            assert!((mean - expected).abs() < 0.01, "{mean}");
        }
    }

    #[test]
    fn a_long_interval_counts_for_all_that_it_covers() {
        assert_eq!(rows(&[(1060 * S, 60.0, 7.0)]).len(), 6);
        assert_eq!(rows(&[(1060 * S, 60.0, 7.0)])[5], (1060, 7.0));
        assert!(rows(&[(1_000_000 * S, 900_000.0, 7.0)]).is_empty());
    }

    #[test]
    fn what_is_known_for_less_than_half_is_not_known() {
        let samples: Vec<_> = (1007..=1025).map(|at| (at * S, 1.0, 1.0)).collect();
        assert_eq!(rows(&samples), [(1020, 1.0)]);
    }
}
