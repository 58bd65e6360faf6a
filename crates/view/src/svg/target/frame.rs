//! Maps rates and times of a target's graph to places.

use kymo_query::targets::{TargetGraph, TargetUnit};

use crate::svg::pen::{Area, Path};
use crate::svg::scale::round_step;

/// Pixels between ticks.
const TICK_ROOM: f64 = 26.0;
/// Most ticks of an axis.
const TICKS_MAX: u32 = 100;
/// Most decades of a logarithmic axis.
const DECADES_MAX: f64 = 5.0;

/// The box to draw in, with its axes.
pub(super) struct Frame {
    pub area: Area,
    /// Seconds since 1970.
    pub range: (i64, i64),
    /// True if the newest time is at the left.
    pub leftward: bool,
    pub ends: Ends,
}

/// Ends of the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ends {
    Linear(f64),
    /// Whole exponents of ten.
    Decades(f64, f64),
}

impl Ends {
    pub(super) fn linear(top: f64) -> Ends {
        Ends::Linear(if top.is_finite() && top > 0.0 {
            top
        } else {
            1.0
        })
    }

    pub(super) fn decades(least: f64, most: f64) -> Ends {
        let most = if most.is_finite() && most > 0.0 {
            most
        } else {
            1.0
        };
        let high = most.log10().ceil();
        let low = match least.is_finite() && least > 0.0 {
            true => least.log10().floor(),
            false => high - 1.0,
        };
        Ends::Decades(low.clamp(high - DECADES_MAX, high - 1.0), high)
    }

    /// True if a value lies between the ends.
    pub(super) fn holds(self, value: f64) -> bool {
        match self {
            Ends::Linear(top) => (0.0..=top * 1.000_001).contains(&value),
            Ends::Decades(..) => (0.0..=1.0).contains(&self.part(value)),
        }
    }

    /// Relative height of a value: 0 at the lower end, 1 at the upper.
    fn part(self, value: f64) -> f64 {
        match self {
            Ends::Linear(top) => value / top,
            Ends::Decades(low, high) => (value.log10() - low) / (high - low),
        }
    }

    /// Round values with their labels.
    pub(super) fn ticks(self, unit: &TargetUnit, height: f64) -> Vec<(f64, String)> {
        match self {
            Ends::Linear(top) => {
                let kilo = unit.kilo;
                let turns = (top * unit.tics_factor.abs()).log(kilo).floor().max(0.0);
                let size = kilo.powf(turns) / unit.tics_factor.abs();
                let step = round_step(top / size / (height / TICK_ROOM).max(1.0)) * size;
                let ticks = (0..TICKS_MAX).map(|n| f64::from(n) * step);
                let ticks = ticks.take_while(|value| *value <= top * 1.000_001);
                ticks.map(|value| (value, unit.tick(value))).collect()
            }
            Ends::Decades(low, high) => {
                let powers = (0..TICKS_MAX).map(|n| low + f64::from(n));
                let ticks = powers
                    .take_while(|power| *power <= high)
                    .map(|power| 10f64.powf(power));
                ticks.map(|value| (value, unit.tick(value))).collect()
            }
        }
    }
}

impl Frame {
    /// The x of a time, limited to the box.
    pub(super) fn x(&self, at: i64) -> f64 {
        let (from, thru) = self.range;
        let part = (at - from) as f64 / (thru - from).max(1) as f64;
        let part = part.clamp(0.0, 1.0);
        let part = if self.leftward { 1.0 - part } else { part };
        self.area.left + part * self.area.width
    }

    /// The y of a value, limited to the box.
    pub(super) fn y(&self, value: f64) -> f64 {
        let part = self.ends.part(value);
        let part = if part.is_nan() {
            0.0
        } else {
            part.clamp(0.0, 1.0)
        };
        self.area.bottom() - part * self.area.height
    }

    /// A line through rates, which breaks where there is no data.
    pub(super) fn line(&self, graph: &TargetGraph, rates: &[f64], scale: f64) -> String {
        let mut path = Path::default();
        self.runs(graph, rates, &mut |first, run| {
            path.move_to(self.edge(graph, first), self.y(run[0] * scale));
            self.through(&mut path, graph, (first, run), scale);
        });
        path.text()
    }

    /// The area below rates.
    pub(super) fn filled(&self, graph: &TargetGraph, rates: &[f64], scale: f64) -> String {
        let mut path = Path::default();
        self.runs(graph, rates, &mut |first, run| {
            path.move_to(self.edge(graph, first), self.area.bottom());
            path.line_to(self.edge(graph, first), self.y(run[0] * scale));
            self.through(&mut path, graph, (first, run), scale);
            path.line_to(self.edge(graph, first + run.len()), self.area.bottom());
            path.close();
        });
        path.text()
    }

    /// Appends a line through the rows' middles to the last edge.
    fn through(
        &self,
        path: &mut Path,
        graph: &TargetGraph,
        (first, run): (usize, &[f64]),
        scale: f64,
    ) {
        for (n, rate) in run.iter().enumerate() {
            let middle = (self.edge(graph, first + n) + self.edge(graph, first + n + 1)) / 2.0;
            path.line_to(middle, self.y(rate * scale));
        }
        let last = run.last().copied().unwrap_or_default();
        path.line_to(self.edge(graph, first + run.len()), self.y(last * scale));
    }

    /// The x of a row's start.
    fn edge(&self, graph: &TargetGraph, row: usize) -> f64 {
        let row = i64::try_from(row).unwrap_or(i64::MAX);
        self.x(graph
            .start
            .saturating_add(row.saturating_mul(graph.step.into())))
    }

    /// Calls `each` with runs of rates and the index of their first row.
    fn runs(&self, graph: &TargetGraph, rates: &[f64], each: &mut dyn FnMut(usize, &[f64])) {
        let (mut first, step) = (0, i64::from(graph.step));
        for run in rates.split(|rate| !rate.is_finite()) {
            let begin = first;
            first += run.len() + 1;
            // Rows before the range are left out, because they would all
            // be drawn on its edge.
            let end = |row: usize| graph.start + i64::try_from(row + 1).unwrap_or(i64::MAX) * step;
            let early = (0..run.len())
                .take_while(|n| end(begin + n) <= self.range.0)
                .count();
            if early < run.len() {
                each(begin + early, &run[early..]);
            }
        }
    }
}
