//! Series: fields over a range of time, cut into points of equal length with minimum, mean and maximum.
//!
//! A value is of the interval that ends at its sample. Points that it covers have it; where nothing is
//! known there is no value, so a gap stays a gap whatever the scale.

use kymo_recording::reader::TimeRange;

use crate::marks::{Mark, Marker};
use crate::sheet::{Cell, Line, Pick, Sheet};
use crate::source::{Source, Step};

const SECOND_NS: i64 = 1_000_000_000;

/// Lengths of points, in milliseconds: what divides minutes, hours and days without a rest.
const STEPS_MS: &[i64] = &[
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
];

/// Points of equal length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Where the first point begins, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Length of a point.
    pub step_ns: i64,
    /// How many there are.
    pub count: usize,
}

impl Grid {
    /// At most `points` points of a round length, no shorter than `least_ns`, which cover the range.
    pub fn new(from_ns: i64, thru_ns: i64, points: usize, least_ns: i64) -> Grid {
        let span_ns = thru_ns.saturating_sub(from_ns).max(1);
        let points = points.max(1) as i64;
        let fits = |step_ns: i64| {
            let (first, end) = (from_ns.div_euclid(step_ns), ceil(thru_ns, step_ns));
            step_ns >= least_ns && end - first <= points
        };
        let round = STEPS_MS.iter().map(|ms| ms * 1_000_000);
        let step_ns = round.clone().find(|&step_ns| fits(step_ns));
        let step_ns = step_ns.unwrap_or_else(|| {
            let whole_days = |ns: i64| ceil(ns, 86_400 * SECOND_NS) * 86_400 * SECOND_NS;
            // One point more than the span needs: it may begin within the first.
            let least_ns = whole_days(ceil(span_ns, (points - 1).max(1)).max(least_ns));
            let longer = std::iter::successors(Some(least_ns), |step_ns| step_ns.checked_mul(2));
            // A single point may have to begin at the epoch.
            let mut longer = longer.chain([whole_days(thru_ns)]);
            longer.find(|&step_ns| fits(step_ns)).unwrap_or(least_ns)
        });
        let first = from_ns.div_euclid(step_ns);
        Grid {
            from_ns: first * step_ns,
            step_ns,
            count: (ceil(thru_ns, step_ns) - first).clamp(1, points) as usize,
        }
    }

    /// The end of the last point.
    pub fn thru_ns(&self) -> i64 {
        self.begin_ns(self.count)
    }

    /// The begin of a point.
    pub(crate) fn begin_ns(&self, n: usize) -> i64 {
        self.from_ns + self.step_ns * n as i64
    }

    /// Range to read: rates at the beginning need the sample before.
    pub fn range(&self) -> TimeRange {
        TimeRange {
            from_ns: self.from_ns,
            // The sample whose interval begins in the last point comes later.
            thru_ns: self
                .thru_ns()
                .saturating_add((2 * self.step_ns).clamp(2 * SECOND_NS, 120 * SECOND_NS)),
        }
    }

    /// The points that an interval covers, each with the seconds of it. A small rest at either end is left out:
    /// samples come a little late, and a peak is not to be seen twice.
    pub(crate) fn covered(&self, thru_ns: i64, elapsed: f64) -> impl Iterator<Item = (usize, f64)> {
        let elapsed_ns = nanoseconds(elapsed);
        let (begin, step_ns) = (self.from_ns, self.step_ns);
        let from_ns = thru_ns.saturating_sub(elapsed_ns);
        let rest_ns = elapsed_ns.min(step_ns) / 4;
        let last = self.count as i64 - 1;
        let place = |ns: i64| (ns.saturating_sub(begin)).div_euclid(step_ns);
        let (first, end) = (
            place(from_ns).max(0),
            place(thru_ns.saturating_sub(1)).min(last),
        );
        (first..=end).filter_map(move |n| {
            let point = begin + n * step_ns;
            let overlap_ns = thru_ns.min(point + step_ns) - from_ns.max(point);
            (overlap_ns > rest_ns).then_some((n as usize, overlap_ns as f64 / 1e9))
        })
    }
}

/// Converts seconds to nanoseconds.
pub(crate) fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

fn ceil(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)
}

/// Values of one line in one point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Least value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Values times seconds.
    pub sum: f64,
    /// Seconds; 0: nothing is known.
    pub seconds: f64,
}

impl Point {
    /// Nothing.
    pub const NONE: Point = Point {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        sum: 0.0,
        seconds: 0.0,
    };

    /// Adds a value that held for `seconds`.
    pub fn add(&mut self, value: f64, seconds: f64) {
        self.merge(&Point {
            min: value,
            max: value,
            sum: value * seconds,
            seconds,
        });
    }

    /// Adds the values of another point of the same line.
    pub fn merge(&mut self, other: &Point) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.seconds += other.seconds;
    }

    /// The mean over time; NaN where nothing is known.
    pub fn mean(&self) -> f64 {
        if self.seconds > 0.0 {
            // No rounding gets it out of its bounds.
            (self.sum / self.seconds).clamp(self.min, self.max)
        } else {
            f64::NAN
        }
    }
}

/// Lines over a grid.
pub struct Series {
    /// The grid.
    pub grid: Grid,
    /// The lines.
    pub lines: Vec<Line>,
    /// Points, a row a line.
    pub points: Vec<Vec<Point>>,
    /// Marks of events.
    pub marks: Vec<Mark>,
    /// Samples that were taken in.
    pub samples: u64,
    /// There were more lines than allowed.
    pub full: bool,
    lines_max: usize,
}

impl Series {
    /// An empty series over a grid, for at most `lines_max` lines.
    pub fn new(grid: Grid, lines_max: usize) -> Series {
        Series {
            grid,
            lines: Vec::new(),
            points: Vec::new(),
            marks: Vec::new(),
            samples: 0,
            full: false,
            lines_max,
        }
    }

    /// Reads `picks` from a source that gives the grid's range.
    pub fn read(
        source: &mut dyn Source,
        picks: &[Pick],
        grid: Grid,
        lines_max: usize,
    ) -> Result<Series, String> {
        let mut series = Series::new(grid, lines_max);
        series.take_in(source, picks)?;
        Ok(series)
    }

    /// Adds all that a source gives.
    pub fn take_in(&mut self, source: &mut dyn Source, picks: &[Pick]) -> Result<(), String> {
        let (mut sheet, mut marker) = (Sheet::new(picks, self.lines_max), Marker::default());
        // Where the sheet's lines are here, and the values of one sample.
        let (mut places, mut cells) = (Vec::new(), Vec::new());
        let grid = self.grid;
        while let Some(step) = source.next()? {
            let mut keep = |mark: Mark| {
                if mark.until_ns >= grid.from_ns && mark.from_ns < grid.thru_ns() {
                    self.marks.push(mark);
                }
            };
            if marker.step(&step, source.context(), &mut keep) {
                sheet.restart();
            }
            let Step::Sample(moment) = step else { continue };
            cells.clear();
            sheet.advance(source, &moment, &mut |cell: Cell| cells.push(cell));
            if moment.warmup {
                continue;
            }
            self.samples += 1;
            self.learn(&sheet, &mut places);
            for cell in cells.iter().filter(|cell| !cell.value.is_nan()) {
                let Some(place) = places[cell.line] else {
                    continue;
                };
                let points = &mut self.points[place];
                for (n, seconds) in grid.covered(moment.real_ns, cell.elapsed) {
                    points[n].add(cell.value, seconds);
                }
            }
        }
        self.learn(&sheet, &mut places);
        self.full |= sheet.is_full();
        Ok(())
    }

    /// Finds or makes room for the lines that have come.
    fn learn(&mut self, sheet: &Sheet, places: &mut Vec<Option<usize>>) {
        while let Some(line) = sheet.lines().get(places.len()) {
            places.push(self.place(line));
        }
    }

    /// The place of a line, made when it is not there yet and there is room.
    pub fn place(&mut self, line: &Line) -> Option<usize> {
        let known = self
            .lines
            .iter()
            .position(|known| known.pick == line.pick && known.id == line.id);
        if known.is_none() {
            if self.lines.len() >= self.lines_max {
                self.full = true;
                return None;
            }
            self.lines.push(line.clone());
            self.points.push(vec![Point::NONE; self.grid.count]);
        }
        known.or(Some(self.lines.len() - 1))
    }

    /// The lines in the order in which they were asked for, instances by name.
    pub fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by(|&a, &b| natural(&self.lines[a], &self.lines[b]));
        self.lines = order.iter().map(|&n| self.lines[n].clone()).collect();
        self.points = order
            .iter()
            .map(|&n| std::mem::take(&mut self.points[n]))
            .collect();
        self.marks.sort_by_key(|mark| mark.from_ns);
        self.marks.dedup();
    }
}

/// By pick, then `2` before `10`.
fn natural(a: &Line, b: &Line) -> std::cmp::Ordering {
    let digits = |line: &Line| {
        line.id
            .rsplit_once(':')
            .and_then(|(_, instance)| instance.parse::<u64>().ok())
    };
    let instances = match (digits(a), digits(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.id.cmp(&b.id),
    };
    a.pick.cmp(&b.pick).then(instances)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = SECOND_NS;

    #[test]
    fn grids_are_round_and_cover_the_range() {
        for (from, thru, points, least, expect) in [
            (0, 60 * S, 600, S, (0, S, 60)),
            (S / 2, 60 * S, 600, S, (0, S, 60)),
            (0, 60 * S, 600, 0, (0, S / 10, 600)),
            (0, 60 * S, 60, 0, (0, S, 60)),
            (1, 60 * S + 1, 60, 0, (0, 2 * S, 31)),
            (0, 3600 * S, 600, S, (0, 10 * S, 360)),
            (0, 86_400 * S, 600, 60 * S, (0, 300 * S, 288)),
            (-S, S, 10, S, (-S, S, 2)),
            (0, 0, 10, S, (0, S, 1)),
            (72_222 * S, 152_222 * S, 1, S, (0, 172_800 * S, 1)),
        ] {
            let grid = Grid::new(from, thru, points, least);
            assert_eq!(
                (grid.from_ns, grid.step_ns, grid.count),
                expect,
                "{from} {thru}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_grid_covers(from in -1_000_000_000_000_000i64..4_000_000_000_000_000_000, span in 0i64..900_000_000_000_000_000, points in 1usize..2000) {
            let from = if points == 1 { from.abs() } else { from };
            let grid = Grid::new(from, from + span, points, S);
            assert!(grid.count <= points);
            assert!(grid.from_ns <= from && grid.thru_ns() >= from + span, "{grid:?} {from} {span}");
        }
    }

    #[test]
    fn intervals_cover_points() {
        let grid = Grid::new(0, 10 * S, 10, S);
        let whole = |range: std::ops::Range<usize>| range.map(|n| (n, 1.0)).collect::<Vec<_>>();
        for (thru_ms, elapsed, expect) in [
            (1_000, 1.0, whole(0..1)),
            (1_003, 1.003, whole(0..1)),
            (2_001, 0.998, vec![(1, 0.997)]),
            (3_000, 3.0, whole(0..3)),
            (9_000, 5.0, whole(4..9)),
            (12_000, 5.0, whole(7..10)),
            (12_000, 1.0, vec![]),
            (500, 0.1, vec![(0, 0.1)]),
            (-500, 0.1, vec![]),
            // Between two points it is in both: no hole, whatever the phase.
            (1_500, 1.0, vec![(0, 0.5), (1, 0.5)]),
            (5_200, 1.0, vec![(4, 0.8)]),
            (700, 2.0, vec![(0, 0.7)]),
        ] {
            let points: Vec<_> = grid.covered(thru_ms * 1_000_000, elapsed).collect();
            assert_eq!(points, expect, "{thru_ms} {elapsed}");
        }
    }

    proptest::proptest! {
        /// Intervals end to end leave no hole, at any phase and length.
        #[test]
        fn no_holes(phase_ms in 0i64..1000, every_ms in 100i64..7000, jitter in proptest::collection::vec(0i64..3, 60)) {
            let grid = Grid::new(0, 30 * S, 30, S);
            let mut filled = [false; 30];
            let mut last = phase_ms - 10_000;
            for (n, jitter) in jitter.iter().enumerate() {
                let now = phase_ms - 10_000 + every_ms * (n as i64 + 1) + jitter;
                for (point, _) in grid.covered(now * 1_000_000, (now - last) as f64 / 1e3) {
                    filled[point] = true;
                }
                last = now;
            }
            let known = usize::try_from(last / 1000).unwrap_or(0).min(30);
            assert!(filled[..known].iter().all(|&filled| filled), "{filled:?}");
        }
    }

    #[test]
    fn means_weigh_time() {
        let mut point = Point::NONE;
        assert!(point.mean().is_nan());
        point.add(1.0, 1.0);
        point.add(4.0, 3.0);
        assert_eq!((point.min, point.max, point.mean()), (1.0, 4.0, 3.25));
    }
}
