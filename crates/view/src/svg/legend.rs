//! The table below a graph: one line per curve with minimum, average, maximum and last value.

use kymo_base::field::Unit;
use kymo_query::series::Point;

use super::curves::{PEAK_OPACITY, stroke};
use super::font::{fit, width};
use super::palette::Inks;
use super::pen::{Anchor, Area, Path, put_path, put_rect, put_text};
use super::{Curve, Graph, Shape, TEXT};
use crate::svg::scale;

/// Height of a line.
const LINE: f64 = 16.0;
/// Width of a swatch with the blank behind it.
const SWATCH: f64 = 20.0;
/// Space between number and unit.
const BLANK: f64 = 4.0;
/// Space between columns, and between tables side by side.
const GAP: f64 = 12.0;
const TABLE_GAP: f64 = 36.0;
const LABEL_MOST: f64 = 220.0;
const LABEL_LEAST: f64 = 48.0;
/// Least rows of a table before another one is put beside it.
const ROWS_LEAST: usize = 4;

/// A statistic of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Statistic {
    Min,
    Avg,
    Max,
    Last,
}

impl Statistic {
    /// Sets of columns, from all to fewer, for less and less room.
    const CHOICES: [&[Statistic]; 4] = [
        &[
            Statistic::Min,
            Statistic::Avg,
            Statistic::Max,
            Statistic::Last,
        ],
        &[Statistic::Avg, Statistic::Max, Statistic::Last],
        &[Statistic::Avg, Statistic::Max],
        &[Statistic::Avg],
    ];

    fn name(self) -> &'static str {
        match self {
            Statistic::Min => "min",
            Statistic::Avg => "avg",
            Statistic::Max => "max",
            Statistic::Last => "last",
        }
    }

    fn of(self, points: &[Point]) -> f64 {
        let known = || points.iter().filter(|point| point.seconds > 0.0);
        match self {
            Statistic::Min => known().map(|point| point.min).fold(f64::NAN, f64::min),
            Statistic::Max => known().map(|point| point.max).fold(f64::NAN, f64::max),
            Statistic::Last => known().next_back().map_or(f64::NAN, Point::mean),
            Statistic::Avg => {
                let mut all = Point::NONE;
                known().for_each(|point| all.merge(point));
                match all.seconds > 0.0 {
                    true => all.mean(),
                    false => f64::NAN,
                }
            }
        }
    }
}

/// A legend that is laid out.
pub(super) struct Legend {
    statistic: &'static [Statistic],
    rows: Vec<Row>,
    /// Rows per table.
    lines: usize,
    /// Number of tables side by side.
    tables: usize,
    label: f64,
    /// Widths of the numbers and of the units in a column.
    number: f64,
    unit: f64,
}

struct Row {
    label: String,
    cells: Vec<(String, &'static str)>,
}

impl Legend {
    /// Lays out the table of a graph so that it fits into a width.
    pub(super) fn new(graph: &Graph, room: f64) -> Legend {
        let labels = graph.curves.iter().map(|curve| width(&curve.label, TEXT));
        let label = labels.fold(LABEL_LEAST, f64::max).min(LABEL_MOST);
        let mut legend = Legend::telling(Statistic::CHOICES[0], graph, label);
        for statistic in Statistic::CHOICES {
            legend = Legend::telling(statistic, graph, label);
            let spare = room - (legend.table() - label);
            legend.label = label.min(spare.max(LABEL_LEAST));
            if spare >= LABEL_LEAST {
                break;
            }
        }
        let side = ((room + TABLE_GAP) / (legend.table() + TABLE_GAP)) as usize;
        let wanted = graph.curves.len().div_ceil(ROWS_LEAST);
        legend.lines = graph.curves.len().div_ceil(side.clamp(1, wanted.max(1)));
        legend.tables = graph.curves.len().div_ceil(legend.lines.max(1));
        for row in &mut legend.rows {
            row.label = fit(&row.label, TEXT, legend.label).into_owned();
        }
        legend
    }

    fn telling(statistic: &'static [Statistic], graph: &Graph, label: f64) -> Legend {
        let row = |curve: &Curve| Row {
            label: curve.label.clone(),
            cells: statistic
                .iter()
                .map(|statistic| scale::number(graph.unit, statistic.of(curve.points)))
                .collect(),
        };
        let rows: Vec<Row> = graph.curves.iter().map(row).collect();
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| width(text, TEXT)).fold(0.0, f64::max)
        };
        Legend {
            statistic,
            lines: rows.len(),
            tables: 1,
            label,
            number: widest(&mut cells().map(|(number, _)| &number[..])).max(width("0000.00", TEXT)),
            unit: widest(&mut cells().map(|(_, unit)| *unit)),
            rows,
        }
    }

    fn column(&self) -> f64 {
        let unit = if self.unit > 0.0 {
            BLANK + self.unit
        } else {
            0.0
        };
        GAP + self.number + unit
    }

    /// Width of one table.
    fn table(&self) -> f64 {
        SWATCH + self.label + self.statistic.len() as f64 * self.column()
    }

    /// Height of the legend.
    pub(super) fn height(&self) -> f64 {
        match self.rows.is_empty() {
            true => 0.0,
            false => (self.lines + 1) as f64 * LINE,
        }
    }

    /// Draws the legend with its upper left corner at a point.
    pub(super) fn draw(
        &self,
        graph: &Graph,
        (left, top): (f64, f64),
        inks: &Inks,
        out: &mut String,
    ) {
        let rows = self.rows.iter().zip(&graph.curves);
        for (n, (row, curve)) in rows.enumerate() {
            let (table, line) = (n / self.lines, n % self.lines);
            let left = left + table as f64 * (self.table() + TABLE_GAP);
            if line == 0 {
                self.head(left, top + LINE - 4.0, inks, out);
            }
            let base = top + (line + 2) as f64 * LINE - 4.0;
            swatch(curve, (left, base), inks, out);
            let at = (left + SWATCH, base);
            put_text(out, at, Anchor::Start, (TEXT, inks.ink), &row.label);
            for (n, (number, unit)) in row.cells.iter().enumerate() {
                let (number_x, unit_x) = self.places(left, n);
                put_text(out, (number_x, base), Anchor::End, (TEXT, inks.ink), number);
                if !unit.is_empty() {
                    put_text(out, (unit_x, base), Anchor::Start, (TEXT, inks.muted), unit);
                }
            }
        }
    }

    fn head(&self, left: f64, base: f64, inks: &Inks, out: &mut String) {
        for (n, statistic) in self.statistic.iter().enumerate() {
            let (x, _) = self.places(left, n);
            put_text(
                out,
                (x, base),
                Anchor::End,
                (TEXT - 1.0, inks.muted),
                statistic.name(),
            );
        }
    }

    /// The x where the numbers of a column end, and the x where its units begin.
    fn places(&self, left: f64, column: usize) -> (f64, f64) {
        let begin = left + SWATCH + self.label + column as f64 * self.column() + GAP;
        (begin + self.number, begin + self.number + BLANK)
    }
}

fn swatch(curve: &Curve, (left, base): (f64, f64), inks: &Inks, out: &mut String) {
    let (colour, opacity) = match curve.shape {
        Shape::Stacked => (inks.line(curve.hue), "0.85"),
        Shape::Peak => (inks.muted, PEAK_OPACITY),
        Shape::Line | Shape::Filled => {
            let mut path = Path::default();
            path.move_to(left, base - 4.0);
            path.line_to(left + 14.0, base - 4.0);
            return put_path(out, &path.text(), &stroke(curve, inks, "2.4"), "");
        }
    };
    let area = Area {
        left,
        top: base - 9.0,
        width: 14.0,
        height: 9.0,
    };
    let fill = format!("fill=\"{colour}\" fill-opacity=\"{opacity}\" rx=\"1.5\"");
    put_rect(out, area, &fill, "");
}

/// Name of the vertical axis, which is its unit.
pub(super) fn axis_name(unit: Unit, shown: &str) -> String {
    match (unit, shown) {
        (Unit::PerSecond, "/s") => "per second".into(),
        (Unit::PerSecond, "k/s") => "thousands per second".into(),
        (Unit::PerSecond, "M/s") => "millions per second".into(),
        (Unit::Count, "k") => "thousands".into(),
        (Unit::Count, "M") => "millions".into(),
        (_, shown) => shown.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_points() {
        let mut points = vec![Point::NONE; 4];
        points[0].add(1.0, 1.0);
        points[1].add(2.0, 1.0);
        points[1].add(9.0, 3.0);
        for (statistic, expect) in [
            (Statistic::Min, 1.0),
            (Statistic::Avg, 6.0),
            (Statistic::Max, 9.0),
            (Statistic::Last, 7.25),
        ] {
            assert_eq!(statistic.of(&points), expect, "{statistic:?}");
            assert!(statistic.of(&points[2..]).is_nan(), "{statistic:?}");
        }
    }
}
