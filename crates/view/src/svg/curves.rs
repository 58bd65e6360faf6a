//! Paths of curves: lines, bands from minimum to maximum, areas, stacks. Lines break without data.

use kymo_query::series::{Grid, Point};

use super::pen::{Area, Path, put_path};
use super::{Curve, Shape};
use crate::svg::palette::Inks;

/// Opacity of the shade above a stack.
pub(super) const PEAK_OPACITY: &str = "0.3";

/// Maps points to places.
#[derive(Clone, Copy)]
pub(super) struct Canvas {
    /// The box to draw in.
    pub area: Area,
    /// The grid of the points.
    pub grid: Grid,
    /// The value at the upper edge; 0 is the lower one.
    pub top: f64,
}

impl Canvas {
    /// The x of a time, limited to the box.
    pub(super) fn x(&self, at_ns: i64) -> f64 {
        let span = self.grid.step_ns as f64 * self.grid.count.max(1) as f64;
        let part = at_ns.saturating_sub(self.grid.from_ns) as f64 / span;
        self.area.left + part.clamp(0.0, 1.0) * self.area.width
    }

    /// The x of the edge before point `n`.
    fn edge(&self, n: usize) -> f64 {
        self.area.left + n as f64 / self.grid.count.max(1) as f64 * self.area.width
    }

    /// The y of a value, limited to the box.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.area.bottom() - (value / self.top).clamp(0.0, 1.0) * self.area.height
    }

    /// Appends a run of points: from its first edge through the middles to its last edge, so that a
    /// single point is visible too.
    fn along(&self, path: &mut Path, run: &[f64], first: usize, begin: Begin) {
        let (from, thru) = (self.edge(first), self.edge(first + run.len()));
        let half = self.area.width / self.grid.count.max(1) as f64 / 2.0;
        let middle = |n: usize| self.edge(first + n) + half;
        let (Some(&one), Some(&last)) = (run.first(), run.last()) else {
            return;
        };
        match begin {
            Begin::Left => {
                path.move_to(from, self.y(one));
                for (n, &value) in run.iter().enumerate() {
                    path.line_to(middle(n), self.y(value));
                }
                path.line_to(thru, self.y(last));
            }
            Begin::Right => {
                path.line_to(thru, self.y(last));
                for (n, &value) in run.iter().enumerate().rev() {
                    path.line_to(middle(n), self.y(value));
                }
                path.line_to(from, self.y(one));
            }
        }
    }
}

/// Direction along a run: from the left to begin a line, from the right to come back and end it.
#[derive(Clone, Copy)]
enum Begin {
    Left,
    Right,
}

/// Runs of known values, with the index of the first value of each.
fn runs(values: &[f64]) -> impl Iterator<Item = (usize, &[f64])> {
    let mut first = 0;
    values
        .split(|value| !value.is_finite())
        .filter_map(move |run| {
            let begin = first;
            first += run.len() + 1;
            (!run.is_empty()).then_some((begin, run))
        })
}

/// A line through the values.
fn line(canvas: &Canvas, values: &[f64]) -> String {
    let mut path = Path::default();
    for (first, run) in runs(values) {
        canvas.along(&mut path, run, first, Begin::Left);
    }
    path.text()
}

/// The area between the values and the lower edge.
fn filled(canvas: &Canvas, values: &[f64]) -> String {
    let mut path = Path::default();
    for (first, run) in runs(values) {
        canvas.along(&mut path, run, first, Begin::Left);
        path.line_to(canvas.edge(first + run.len()), canvas.area.bottom());
        path.line_to(canvas.edge(first), canvas.area.bottom());
        path.close();
    }
    path.text()
}

/// The area between minimum and maximum.
fn band(canvas: &Canvas, points: &[Point]) -> String {
    let (lows, highs) = (of(points, |point| point.min), of(points, |point| point.max));
    between(canvas, &lows, &highs)
}

/// The area between two sets of values, without parts that are too thin to see.
fn between(canvas: &Canvas, lows: &[f64], highs: &[f64]) -> String {
    let same = |(low, high): (&f64, &f64)| (canvas.y(*low) - canvas.y(*high)).abs() < 0.3;
    let mut path = Path::default();
    for (first, run) in runs(highs) {
        let lows = &lows[first..first + run.len()];
        if !lows.iter().zip(run).all(same) {
            canvas.along(&mut path, run, first, Begin::Left);
            canvas.along(&mut path, lows, first, Begin::Right);
            path.close();
        }
    }
    path.text()
}

/// The area between the stack and the maxima above it.
fn above_stack(canvas: &Canvas, curves: &[Curve], points: &[Point]) -> String {
    let peaks = of(points, |point| point.max);
    let lows = stack(curves).pop().unwrap_or_default();
    let low = |(n, &peak): (usize, &f64)| match lows.get(n) {
        Some(low) if low.is_finite() => low.min(peak),
        _ => 0.0,
    };
    let lows: Vec<f64> = peaks.iter().enumerate().map(low).collect();
    between(canvas, &lows, &peaks)
}

fn of(points: &[Point], value: fn(&Point) -> f64) -> Vec<f64> {
    points.iter().map(value).collect()
}

/// Upper edges of the stacked curves, from bottom to top. Missing values count as 0, unless all values
/// at a point are missing.
pub(super) fn stack(curves: &[Curve]) -> Vec<Vec<f64>> {
    let mut edges: Vec<Vec<f64>> = Vec::new();
    for curve in curves.iter().filter(|curve| curve.shape == Shape::Stacked) {
        let below = edges.last().cloned();
        let below = below.unwrap_or_else(|| vec![f64::NAN; curve.points.len()]);
        let sum = |(point, &below): (&Point, &f64)| match point.mean() {
            mean if !mean.is_finite() => below,
            mean if below.is_nan() => mean,
            mean => below + mean,
        };
        edges.push(curve.points.iter().zip(&below).map(sum).collect());
    }
    edges
}

/// The largest value to draw.
pub(super) fn most(curves: &[Curve]) -> f64 {
    let stacked = stack(curves).into_iter().flatten();
    let alone = curves
        .iter()
        .filter(|curve| curve.shape != Shape::Stacked)
        .flat_map(|curve| curve.points.iter().map(|point| point.max));
    stacked
        .chain(alone)
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max)
}

/// Draws all curves.
pub(super) fn draw(curves: &[Curve], canvas: &Canvas, inks: &Inks, out: &mut String) {
    let of_shape = |shape: Shape| curves.iter().filter(move |curve| curve.shape == shape);
    let fill =
        |colour: &str, opacity: &str| format!("fill=\"{colour}\" fill-opacity=\"{opacity}\"");
    for curve in of_shape(Shape::Peak) {
        let path = above_stack(canvas, curves, curve.points);
        put_path(out, &path, &fill(inks.muted, PEAK_OPACITY), "");
    }
    draw_stack(curves, canvas, inks, out);
    for curve in of_shape(Shape::Filled) {
        let path = filled(canvas, &of(curve.points, Point::mean));
        put_path(out, &path, &fill(inks.line(curve.hue), "0.14"), "");
    }
    // The first curves are the most important ones, so they are drawn last.
    let alone = |shape| matches!(shape, Shape::Filled | Shape::Line);
    let lines = || curves.iter().rev().filter(|curve| alone(curve.shape));
    for curve in lines() {
        let path = band(canvas, curve.points);
        put_path(out, &path, &fill(inks.line(curve.hue), "0.3"), "");
    }
    for curve in lines() {
        let path = line(canvas, &of(curve.points, Point::mean));
        put_path(out, &path, &stroke(curve, inks, "1.4"), "");
    }
}

/// Attributes of a curve's line.
pub(super) fn stroke(curve: &Curve, inks: &Inks, width: &str) -> String {
    let colour = inks.line(curve.hue);
    let dashes = match inks.dashes(curve.hue) {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    };
    format!(
        "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}"
    )
}

/// Draws the highest area first. Each area reaches down to the lower edge of the box, and lower areas
/// cover it, so that each edge is written once. The areas share one opacity.
fn draw_stack(curves: &[Curve], canvas: &Canvas, inks: &Inks, out: &mut String) {
    let edges = stack(curves);
    let stacked: Vec<&Curve> = curves
        .iter()
        .filter(|curve| curve.shape == Shape::Stacked)
        .collect();
    if stacked.is_empty() {
        return;
    }
    out.push_str("<g opacity=\"0.85\">\n");
    for (n, curve) in stacked.iter().enumerate().rev() {
        // An area without height would shine through the soft edge of the area that covers it.
        if curve.points.iter().any(|point| point.max > 0.0) {
            let fill = format!("fill=\"{}\"", inks.line(curve.hue));
            put_path(out, &filled(canvas, &edges[n]), &fill, "");
        }
    }
    out.push_str("</g>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        let point = |&value: &f64| {
            let mut point = Point::NONE;
            if !value.is_nan() {
                point.add(value, 1.0);
            }
            point
        };
        values.iter().map(point).collect()
    }

    fn canvas(count: usize) -> Canvas {
        Canvas {
            area: Area {
                left: 0.0,
                top: 0.0,
                width: count as f64 * 10.0,
                height: 100.0,
            },
            grid: Grid {
                from_ns: 0,
                step_ns: 1_000_000_000,
                count,
            },
            top: 10.0,
        }
    }

    const NAN: f64 = f64::NAN;

    #[test]
    fn lines_are_broken_where_nothing_is_known() {
        for (values, expect) in [
            (&[1.0, 2.0][..], "M0 90h5l10-10h5"),
            (&[1.0, NAN, 2.0], "M0 90h10M20 80h10"),
            (&[NAN, 1.0, NAN], "M10 90h10"),
            (&[NAN, NAN], ""),
            (&[0.0, 0.0, 0.0, 0.0], "M0 100h40"),
            (&[1e300, -5.0], "M0 0h5l10 100h5"),
        ] {
            assert_eq!(line(&canvas(values.len()), values), expect, "{values:?}");
        }
    }

    #[test]
    fn areas_reach_the_lower_edge() {
        for (values, expect) in [
            (&[1.0, 2.0][..], "M0 90h5l10-10h5l0 20h-20z"),
            (&[1.0, NAN, 2.0], "M0 90h10l0 10h-10zM20 80h10l0 20h-10z"),
        ] {
            assert_eq!(filled(&canvas(values.len()), values), expect, "{values:?}");
        }
    }

    #[test]
    fn bands_are_where_values_differ() {
        let mut points = points(&[1.0, NAN, 2.0]);
        assert_eq!(band(&canvas(3), &points), "");
        points[2].add(4.0, 1.0);
        assert_eq!(band(&canvas(3), &points), "M20 60h10l0 20h-10z");
    }

    #[test]
    fn stacks_take_what_is_known() {
        let (a, b, c) = (
            points(&[1.0, NAN, NAN]),
            points(&[2.0, 3.0, NAN]),
            points(&[4.0, 1.0, NAN]),
        );
        let curve = |points| Curve {
            label: "x".into(),
            hue: 1,
            shape: Shape::Stacked,
            points,
        };
        let edges = stack(&[curve(&a), curve(&b), curve(&c)]);
        let text = |edge: &[f64]| format!("{edge:?}");
        let got: Vec<String> = edges.iter().map(|edge| text(edge)).collect();
        assert_eq!(
            got,
            ["[1.0, NaN, NaN]", "[3.0, 3.0, NaN]", "[7.0, 4.0, NaN]"]
        );
        assert_eq!(most(&[curve(&a), curve(&b), curve(&c)]), 7.0);
    }
}
