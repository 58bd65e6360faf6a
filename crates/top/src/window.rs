//! The meters over a range of time: around the moment for the header, over a day for the slider.

use std::collections::VecDeque;

use kymo_query::marks::{Kind, Mark, Origin};
use kymo_query::series::{Point, Series};
use kymo_recording::reader::TimeRange;

use crate::meters::{self, COUNT, Join, METERS, Meter};
use crate::readings::Readings;
use crate::retrieve::Retrieve;

/// Live samples that are kept.
const TRAIL_MAX: usize = 900;
/// Share by which values differ that are as good as equal.
const ALIKE: f64 = 0.02;

/// The field of processes that were killed for lack of memory.
const KILLS: &str = "memory.oom_kills";
/// Text of a mark of such a kill.
pub const KILLED: &str = "a process was killed: no memory was left (OOM)";

/// Values over a range, in points of equal length.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Begin of the first point, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Length of a point.
    pub step_ns: i64,
    /// Points of each line; NaN where nothing is known.
    pub lines: Vec<Vec<f64>>,
    /// Events in the range.
    pub marks: Vec<Mark>,
}

/// A range to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Begin, in nanoseconds since 1970.
    pub from_ns: i64,
    /// End.
    pub thru_ns: i64,
    /// Most points.
    pub points: usize,
}

impl Range {
    /// True if the range includes a moment.
    pub fn holds(&self, at_ns: i64) -> bool {
        (self.from_ns..self.thru_ns).contains(&at_ns)
    }
}

impl Window {
    /// Reads the meters.
    pub fn of_meters(archive: &dyn Retrieve, range: Range) -> Result<Window, String> {
        let fields = METERS.iter().flat_map(|meter| meter.fields).copied();
        let fields: Vec<&str> = fields.chain([KILLS]).collect();
        let (mut window, ids) = Window::read(archive, range, &fields)?;
        window.mark_kills(&ids);
        let lines = METERS.iter().map(|meter| window.joined(&ids, meter));
        window.lines = lines.collect();
        Ok(window)
    }

    /// Reads the events alone.
    pub fn of_events(archive: &dyn Retrieve, range: Range) -> Result<Vec<Mark>, String> {
        let (mut window, ids) = Window::read(archive, range, &[KILLS])?;
        window.mark_kills(&ids);
        Ok(window.marks)
    }

    /// Adds marks of processes that were killed for lack of memory: the kernel only counts them.
    fn mark_kills(&mut self, ids: &[String]) {
        let line = ids.iter().position(|id| id == KILLS);
        let Some(line) = line.and_then(|line| self.lines.get(line)) else {
            return;
        };
        let mut was_killed = false;
        for (point, value) in line.iter().enumerate() {
            let is_killed = *value > 0.0;
            if is_killed && !was_killed {
                let until_ns = self.end_ns(point);
                self.marks.push(Mark {
                    from_ns: until_ns.saturating_sub(self.step_ns),
                    until_ns,
                    kind: Kind::Failure,
                    text: KILLED.into(),
                    origin: Origin::Machine,
                });
            }
            was_killed = is_killed;
        }
    }

    /// One meter of a series of its fields.
    pub fn of_meter(series: Series, meter: &Meter) -> Window {
        let (mut window, ids) = Window::of(series);
        window.lines = vec![window.joined(&ids, meter)];
        window
    }

    /// The fields of a meter as one line.
    fn joined(&self, ids: &[String], meter: &Meter) -> Vec<f64> {
        let points = self.lines.first().map_or(0, Vec::len);
        let line = |field: &&str| ids.iter().position(|id| id == field);
        let lines: Vec<usize> = meter.fields.iter().filter_map(line).collect();
        let value = |point: usize| meter.join(lines.iter().map(|&line| self.lines[line][point]));
        (0..points).map(value).collect()
    }

    /// Reads columns of one process: CPU in percent, memory, and bytes read and written.
    pub fn of_process(archive: &dyn Retrieve, range: Range, pid: u64) -> Result<Window, String> {
        let fields = LIFE.map(|(_, field)| format!("process.{field}:{pid}"));
        let fields = fields.each_ref().map(String::as_str);
        Window::read(archive, range, &fields).map(|(window, _)| window)
    }

    /// Reads fields; also the ids of the lines.
    fn read(
        archive: &dyn Retrieve,
        range: Range,
        fields: &[&str],
    ) -> Result<(Window, Vec<String>), String> {
        let between = TimeRange {
            from_ns: range.from_ns,
            thru_ns: range.thru_ns,
        };
        let series = archive.series(fields, between, range.points.max(1))?;
        Ok(Window::of(series))
    }

    /// The lines of a series, and their ids. Points have the greatest value, those of differences the mean.
    fn of(series: Series) -> (Window, Vec<String>) {
        let rest = METERS.iter().filter(|meter| meter.join == Join::Rest);
        let means: Vec<&str> = rest.flat_map(|meter| meter.fields).copied().collect();
        let lines = series
            .lines
            .iter()
            .zip(&series.points)
            .map(|(line, points)| {
                let is_mean = means.contains(&line.id.as_str());
                let value = |point: &Point| match point.seconds > 0.0 {
                    true if is_mean => point.mean(),
                    true => point.max,
                    false => f64::NAN,
                };
                points.iter().map(value).collect()
            });
        let window = Window {
            from_ns: series.grid.from_ns,
            step_ns: series.grid.step_ns,
            lines: lines.collect(),
            marks: series.marks,
        };
        let ids = series.lines.into_iter().map(|line| line.id).collect();
        (window, ids)
    }

    /// The moment at which a point ends.
    pub fn end_ns(&self, point: usize) -> i64 {
        let points = i64::try_from(point).unwrap_or(i64::MAX).saturating_add(1);
        self.from_ns
            .saturating_add(self.step_ns.saturating_mul(points))
    }

    /// The point that covers a moment.
    pub fn point(&self, at_ns: i64) -> Option<usize> {
        if self.step_ns <= 0 || at_ns <= self.from_ns {
            return None;
        }
        let point = (at_ns - self.from_ns - 1) / self.step_ns;
        let count = self.lines.first().map_or(0, Vec::len);
        usize::try_from(point).ok().filter(|point| *point < count)
    }

    /// The moment of the greatest value of a line.
    pub fn worst_ns(&self, line: usize) -> Option<i64> {
        let values = self.lines.get(line)?;
        middle_of_greatest(values).map(|point| self.end_ns(point))
    }
}

/// The middle of the longest run of values that are as good as the greatest one: at a run's end those who caused it may be gone.
fn middle_of_greatest(values: &[f64]) -> Option<usize> {
    let known = values.iter().copied().filter(|value| !value.is_nan());
    let greatest = known.reduce(f64::max)?;
    let least = greatest - greatest.abs() * ALIKE;
    let (mut longest, mut begin) = (0..0, 0);
    for (at, value) in values.iter().enumerate() {
        if value.is_nan() || *value < least {
            begin = at + 1;
        } else if at + 1 - begin > longest.len() {
            longest = begin..at + 1;
        }
    }
    Some((longest.start + longest.end - 1) / 2)
}

/// Lines over a process's life: their names and columns.
pub const LIFE: [(&str, &str); 4] = [
    ("CPU %", "pct"),
    ("Memory", "rss"),
    ("Read", "rkb"),
    ("Write", "wkb"),
];

/// The meters of the last live samples.
#[derive(Default)]
pub struct Trail(VecDeque<(i64, [f64; COUNT])>);

impl Trail {
    /// Takes in the present sample.
    pub fn push(&mut self, readings: &Readings) {
        if let Some(at) = readings.at {
            self.0.push_back((at.real_ns, meters::values(readings)));
            if self.0.len() > TRAIL_MAX {
                self.0.pop_front();
            }
        }
    }

    /// Begins with recorded values, which are before all others.
    pub fn begin(&mut self, window: &Window) {
        let first_ns = self.0.front().map_or(i64::MAX, |(at_ns, _)| *at_ns);
        let points = window.lines.first().map_or(0, Vec::len);
        for point in (0..points).rev() {
            let at_ns = window.end_ns(point);
            if at_ns >= first_ns || self.0.len() >= TRAIL_MAX {
                continue;
            }
            let mut values = [f64::NAN; COUNT];
            for (value, line) in values.iter_mut().zip(&window.lines) {
                *value = line[point];
            }
            self.0.push_front((at_ns, values));
        }
    }

    /// The moment of a meter's greatest value.
    pub fn worst_ns(&self, meter: usize) -> Option<i64> {
        let values: Vec<f64> = self.0.iter().map(|(_, values)| values[meter]).collect();
        middle_of_greatest(&values).map(|at| self.0[at].0)
    }

    /// The last `count` values of a meter.
    pub fn last(&self, meter: usize, count: usize) -> Vec<f64> {
        let skipped = self.0.len().saturating_sub(count);
        let values = self.0.iter().skip(skipped).map(|(_, values)| values[meter]);
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_in_the_middle() {
        const NONE: f64 = f64::NAN;
        for (values, expect) in [
            (vec![], None),
            (vec![NONE], None),
            (vec![0.0, 5.0, 1.0], Some(1)),
            (vec![0.0, 99.0, 100.0, 99.5, 99.0, 98.5, 0.0], Some(3)),
            (vec![100.0, NONE, 100.0, 100.0, 100.0], Some(3)),
            (vec![-1.0, -3.0], Some(0)),
        ] {
            assert_eq!(middle_of_greatest(&values), expect, "{values:?}");
        }
    }

    #[test]
    fn each_run_of_kills_is_a_mark() {
        let mut window = Window {
            from_ns: 100,
            step_ns: 10,
            lines: vec![vec![9.0; 6], vec![0.0, f64::NAN, 1.0, 2.0, 0.0, 0.5]],
            marks: Vec::new(),
        };
        window.mark_kills(&["cpu.total".into(), KILLS.into()]);
        let found = window
            .marks
            .iter()
            .map(|mark| (mark.from_ns, mark.until_ns));
        assert_eq!(found.collect::<Vec<_>>(), [(120, 130), (150, 160)]);
        window.mark_kills(&["cpu.total".into()]);
        assert_eq!(window.marks.len(), 2);
    }
}
