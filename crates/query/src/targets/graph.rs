//! MRTG's graphs of a target: a day of rows of 5 minutes, a week of 30 minutes, a month of 2 hours, a year of days; and the
//! numbers below them, by MRTG's rules.

use kymo_wire::keeper::{Range, Rows};
use kymo_wire::targets::DescribedTarget;

use super::{column, columns};

/// Points of a graph that says nothing else.
const POINTS: u32 = 400;
/// A value counts as the current one if it is of the last rows.
const CURRENT: usize = 3;

/// Which graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Period {
    /// Rows of 5 minutes.
    Day,
    /// Rows of 30 minutes.
    Week,
    /// Rows of 2 hours.
    Month,
    /// Rows of a day.
    Year,
}

/// Which of a target's two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The first.
    In,
    /// The second.
    Out,
}

/// A graph of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetGraph {
    /// Which.
    pub period: Period,
    /// Where it begins and ends, seconds since 1970.
    pub range: (i64, i64),
    /// Where the first row begins.
    pub start: i64,
    /// Seconds of a row.
    pub step: u32,
    /// In and out.
    pub lines: [TargetLine; 2],
}

/// One direction: rates as they are stored; NaN is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetLine {
    /// Mean of each row.
    pub averages: Vec<f64>,
    /// Maximum of each row; empty: not asked for.
    pub peaks: Vec<f64>,
    /// The largest of all that is drawn.
    pub max: f64,
    /// The mean of `averages`.
    pub average: f64,
    /// Value at the end.
    pub current: f64,
    /// The mean of the largest ones.
    pub average_peak: f64,
}

impl Direction {
    /// Both, in their order.
    pub const ALL: [Direction; 2] = [Direction::In, Direction::Out];

    /// The direction's part of a pair.
    pub fn of<T>(self, [in_, out]: &[T; 2]) -> &T {
        match self {
            Direction::In => in_,
            Direction::Out => out,
        }
    }

    /// True if a target shows this direction.
    pub fn is_shown(self, target: &DescribedTarget) -> bool {
        !target.has(match self {
            Direction::In => "noi",
            Direction::Out => "noo",
        })
    }
}

impl Period {
    /// All, the shortest first.
    pub const ALL: [Period; 4] = [Period::Day, Period::Week, Period::Month, Period::Year];

    /// `day`, `week` ...
    pub fn name(self) -> &'static str {
        match self {
            Period::Day => "day",
            Period::Week => "week",
            Period::Month => "month",
            Period::Year => "year",
        }
    }

    /// Period of a name.
    pub fn parse(name: &str) -> Option<Period> {
        Period::ALL.into_iter().find(|period| period.name() == name)
    }

    /// As `Unscaled`, `WithPeak` and `Suppress` call it.
    fn letter(self) -> char {
        match self {
            Period::Day => 'd',
            Period::Week => 'w',
            Period::Month => 'm',
            Period::Year => 'y',
        }
    }

    /// Seconds of a row, as MRTG has it.
    pub fn row_s(self) -> u32 {
        match self {
            Period::Day => 300,
            Period::Week => 1800,
            Period::Month => 7200,
            Period::Year => 86_400,
        }
    }

    /// True if a target has this graph.
    pub fn is_shown(self, target: &DescribedTarget) -> bool {
        !target.suppress.contains(self.letter())
    }

    /// True if the axis ends at MaxBytes.
    pub fn is_unscaled(self, target: &DescribedTarget) -> bool {
        target.unscaled.contains(self.letter())
    }

    /// True if the graph shows peaks. A day of rows of 5 minutes has none.
    pub fn has_peaks(self, target: &DescribedTarget) -> bool {
        self != Period::Day && target.with_peak.contains(self.letter())
    }

    /// From when to when it is.
    pub fn range(self, target: &DescribedTarget, now: i64) -> (i64, i64) {
        let points = target.x_size.unwrap_or(POINTS);
        (now - i64::from(points) * i64::from(self.row_s()), now)
    }

    /// Question for the keeper.
    pub fn question(self, target: &DescribedTarget, now: i64) -> Range {
        let (from, thru) = self.range(target, now);
        rows_of(target, from, thru, self.row_s())
    }
}

/// Rows of about `row_s` seconds. The keeper puts rows together where there are more than were asked for: there may be
/// two more than the range holds, since it begins and ends within one.
pub(super) fn rows_of(target: &DescribedTarget, from: i64, thru: i64, row_s: u32) -> Range {
    let rows = thru.abs_diff(from).div_ceil(row_s.into()) + 2;
    Range {
        names: vec![target.series.clone().into_bytes()],
        from,
        thru,
        rows_max: u32::try_from(rows).unwrap_or(u32::MAX),
    }
}

impl TargetGraph {
    /// The graph of rows that were asked for with [`Period::question`] at `now`.
    pub fn new(period: Period, target: &DescribedTarget, rows: &Rows, now: i64) -> TargetGraph {
        let step = rows.step.max(1);
        let columns = columns(rows);
        // A row that has not ended yet has no value yet.
        let over = usize::try_from((now - rows.start) / i64::from(step)).unwrap_or(0);
        let known = |cells: &[f64], of| {
            let mut cells = column(rows, cells, of);
            cells.truncate(over);
            cells
        };
        let averages = columns.map(|of| known(&rows.mean, of));
        let largest = match rows.max.is_empty() {
            true => averages.clone(),
            false => columns.map(|of| known(&rows.max, of)),
        };
        let counts = counting(&averages, target);
        let [peaks_in, peaks_out] = largest;
        let [in_, out] = averages;
        let has_peaks = period.has_peaks(target);
        let line = |averages, peaks| TargetLine::new(averages, peaks, &counts, has_peaks);
        TargetGraph {
            period,
            range: period.range(target, now),
            start: rows.start,
            step,
            lines: [line(in_, peaks_in), line(out, peaks_out)],
        }
    }

    /// Upper end of the axis: MaxBytes where the graph is unscaled, else the largest drawn value; with `secondmean` the
    /// mean of the values above the mean. 0: nothing is known.
    pub fn top(&self, target: &DescribedTarget) -> f64 {
        let [one, other] = target.max_bytes;
        if self.period.is_unscaled(target) && one.max(other) > 0 {
            return one.max(other) as f64;
        }
        let shown = Direction::ALL.into_iter().zip(&self.lines);
        let shown = shown.filter(|(direction, _)| direction.is_shown(target));
        let shown = shown.map(|(_, line)| line);
        match target.has("secondmean") {
            true => second_mean(shown.flat_map(|line| line.drawn())),
            false => shown.map(|line| line.max).fold(0.0, f64::max),
        }
    }
}

/// The mean of the values that are above the mean.
fn second_mean<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let values: Vec<f64> = values.copied().filter(|value| !value.is_nan()).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let first = mean(&values);
    let above: Vec<f64> = values
        .iter()
        .copied()
        .filter(|&value| value > first)
        .collect();
    match above.is_empty() {
        true => first,
        false => mean(&above),
    }
}

/// Which rows count for means: MRTG leaves those out in which both values are 0, but for `withzeroes`.
fn counting([in_, out]: &[Vec<f64>; 2], target: &DescribedTarget) -> Vec<bool> {
    let with_zeroes = target.has("withzeroes");
    let pairs = in_.iter().zip(out);
    pairs
        .map(|(&in_, &out)| with_zeroes || in_ != 0.0 || out != 0.0)
        .collect()
}

impl TargetLine {
    fn new(averages: Vec<f64>, largest: Vec<f64>, counts: &[bool], has_peaks: bool) -> TargetLine {
        let drawn = if has_peaks { &largest } else { &averages };
        let latest = averages.iter().rev().take(CURRENT);
        let current = latest.copied().find(|value| !value.is_nan());
        TargetLine {
            max: drawn.iter().copied().fold(f64::NAN, f64::max),
            average: mean(&averages, counts),
            current: current.unwrap_or(f64::NAN),
            average_peak: mean(&largest, counts),
            peaks: if has_peaks { largest } else { Vec::new() },
            averages,
        }
    }

    /// Greatest drawn value.
    fn drawn(&self) -> &[f64] {
        match self.peaks.is_empty() {
            true => &self.averages,
            false => &self.peaks,
        }
    }
}

fn mean(values: &[f64], counts: &[bool]) -> f64 {
    let known = values.iter().zip(counts);
    let known = known.filter(|(value, counts)| **counts && !value.is_nan());
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), (value, _)| {
        (sum + value, count + 1.0)
    });
    match (count > 0.0, values.iter().any(|value| !value.is_nan())) {
        (true, _) => sum / count,
        (false, true) => 0.0,
        (false, false) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    fn target(words: &[&str], with_peak: &str) -> DescribedTarget {
        DescribedTarget {
            name: "a".into(),
            series: "a.rrd".into(),
            options: words.iter().map(|word| word.to_string()).collect(),
            with_peak: with_peak.into(),
            ..DescribedTarget::default()
        }
    }

    fn rows(step: u32, mean: &[f64], max: &[f64]) -> Rows {
        Rows {
            start: 0,
            step,
            columns: vec![b"ds0".to_vec(), b"ds1".to_vec()],
            mean: mean.to_vec(),
            min: Vec::new(),
            max: max.to_vec(),
        }
    }

    #[test]
    fn numbers_are_those_of_rateup() {
        // In and out of four rows, as rateup 2.17.10 was given them: (0, 100), (100, 0), (0, 0), (100, 100).
        let mean = [0.0, 100.0, 100.0, 0.0, 0.0, 0.0, 100.0, 100.0];
        let numbers = |target: &DescribedTarget| {
            let graph = TargetGraph::new(Period::Day, target, &rows(300, &mean, &[]), 1200);
            graph
                .lines
                .map(|line| (line.max, line.average.round(), line.current))
        };
        assert_eq!(numbers(&target(&[], "")), [(100.0, 67.0, 100.0); 2]);
        assert_eq!(
            numbers(&target(&["withzeroes"], "")),
            [(100.0, 50.0, 100.0); 2]
        );
    }

    #[test]
    fn peaks_count_where_they_are_shown() {
        let rows = rows(
            1800,
            &[1.0, 2.0, 3.0, 4.0, NAN, NAN],
            &[5.0, 2.0, 7.0, 8.0, NAN, NAN],
        );
        let graph = |with_peak, period| {
            TargetGraph::new(period, &target(&[], with_peak), &rows, 3 * 1800).lines
        };
        let [in_, out] = graph("w", Period::Week);
        assert_eq!(
            (in_.max, in_.average, in_.current, in_.average_peak),
            (7.0, 2.0, 3.0, 6.0)
        );
        assert_eq!((out.max, out.average_peak, out.peaks.len()), (8.0, 5.0, 3));
        let [in_, _] = graph("my", Period::Week);
        assert_eq!((in_.max, in_.average_peak, in_.peaks.len()), (3.0, 6.0, 0));
        assert_eq!(graph("d", Period::Day)[0].max, 3.0);
    }

    #[test]
    fn axes_end_where_mrtg_ends_them() {
        let top = |words: &[&str], unscaled: &str, with_peak: &str| {
            let target = DescribedTarget {
                unscaled: unscaled.into(),
                max_bytes: [50, 70],
                ..target(words, with_peak)
            };
            let rows = rows(
                1800,
                &[1.0, 2.0, 3.0, 4.0, NAN, NAN],
                &[5.0, 2.0, 7.0, 8.0, NAN, NAN],
            );
            TargetGraph::new(Period::Week, &target, &rows, 3 * 1800).top(&target)
        };
        for (words, unscaled, with_peak, expect) in [
            (&[][..], "d", "", 4.0),
            (&[], "d", "w", 8.0),
            (&[], "w", "w", 70.0),
            (&["noo"], "", "", 3.0),
            (&["secondmean"], "", "", 3.5),
            (&["noi", "noo"], "", "", 0.0),
        ] {
            assert_eq!(
                top(words, unscaled, with_peak),
                expect,
                "{words:?} {unscaled} {with_peak}"
            );
        }
    }

    #[test]
    fn rows_that_are_not_over_do_not_count() {
        let rows = rows(300, &[1.0, 1.0, 9.0, 9.0], &[]);
        let graph = TargetGraph::new(Period::Day, &target(&[], ""), &rows, 599);
        assert_eq!(graph.lines[0].averages, [1.0]);
        let empty = TargetGraph::new(Period::Day, &target(&[], ""), &Rows::default(), 599);
        assert!(empty.lines[0].max.is_nan() && empty.lines[1].average.is_nan());
    }

    #[test]
    fn the_keeper_is_asked_for_rows_as_mrtg_has_them() {
        let wide = DescribedTarget {
            x_size: Some(600),
            ..target(&[], "")
        };
        for (period, target, span, rows) in [
            (Period::Day, target(&[], ""), 120_000, 402),
            (Period::Week, target(&[], ""), 720_000, 402),
            (Period::Year, wide, 600 * 86_400, 602),
        ] {
            let question = period.question(&target, 1_700_000_100);
            assert_eq!(question.thru - question.from, span);
            assert_eq!(question.rows_max, rows);
            // The keeper takes the archive with the nearest step.
            let step = (span as u64).div_ceil(rows.into());
            let nearest = Period::ALL.map(Period::row_s).into_iter();
            let nearest = nearest.min_by_key(|&row_s| step.abs_diff(row_s.into()));
            assert_eq!(nearest, Some(period.row_s()));
        }
        let quiet = DescribedTarget {
            suppress: "my".into(),
            ..target(&[], "")
        };
        let shown = Period::ALL.map(|period| period.is_shown(&quiet));
        assert_eq!(shown, [true, true, false, false]);
        assert_eq!(Period::parse("week"), Some(Period::Week));
        assert_eq!(Period::parse("hour"), None);
    }
}
