//! An expression of PromQL as a picture: a curve a series, over the range and with the step of `kymo query`.

use std::path::Path;

use anyhow::{Context as _, Error, Result, bail};
use kymo_base::field::Unit;
use kymo_kernel::facts;
use kymo_promql::{Answer, Expr, LabelSet, Track, Value, parse};
use kymo_query::series::{Grid, Point};
use kymo_series::Reader as _;
use kymo_series::names::METRIC;
use kymo_sys::kernel_file::Root;
use kymo_view::graphs::{self, LINES_MAX};
use kymo_view::svg::{self, Curve, Graph, Picture, Shape, Style, Top};

use super::super::query::{self, Moments};
use super::super::series::{self, Times, WhichStore};
use super::GraphOptions;
use crate::times;

/// Label of the machine that a series is of.
const INSTANCE: &str = "instance";
const MS_NS: i64 = 1_000_000;
const SECOND_MS: i64 = 1000;
const SECOND_NS: i64 = SECOND_MS * MS_NS;

/// The range of an expression without `--from`.
const LAST_HOUR: &str = "-1h";

/// An expression on the command line.
pub(super) struct Expression {
    text: String,
    expr: Expr,
    /// True for a name that may also be a mistyped file.
    is_doubtful: bool,
}

/// Curves of an answer, and the grid of their points.
struct Curves {
    grid: Grid,
    labels: Vec<String>,
    points: Vec<Vec<Point>>,
    /// Labels that all series share.
    shared: LabelSet,
    /// Values below the axis.
    negative: usize,
}

impl Expression {
    /// The expression in the place of a path: a single word that names no file. `None`: there are paths.
    pub(super) fn of(options: &GraphOptions) -> Result<Option<Expression>> {
        let word = match &options.paths[..] {
            [path] if !path.exists() && options.subsys.is_empty() && options.series.is_empty() => {
                path.to_str()
            }
            _ => None,
        };
        let Some(text) = word else {
            return Ok(None);
        };
        match parse(text) {
            Ok(expr) => Ok(Some(Expression {
                text: text.into(),
                expr,
                is_doubtful: is_doubtful(options, text),
            })),
            // No path has these, and each of them is a part of most expressions.
            Err(error) if text.contains(['(', '{', '[']) => {
                bail!("cannot use {text:?}: {error}")
            }
            Err(_) => Ok(None),
        }
    }

    /// The picture. `None`: nothing fits in this range.
    pub(super) fn svg(&self, options: &GraphOptions, style: &Style) -> Result<Option<String>> {
        let points = super::points(options, style)?;
        let times = Times {
            from: options.from.clone().unwrap_or_else(|| LAST_HOUR.into()),
            thru: options.thru.clone(),
        };
        let range = series::range(&times)?;
        let step_ms = options.step.as_deref().map(query::step_ms).transpose()?;
        let grid = grid(range, step_ms, points)?;
        let place = WhichStore::new(options.data.clone(), options.open.clone());
        let reader = series::union(&place).map_err(|error| self.or_no_file(&error))?;
        let first_ms = (grid.from_ns + grid.step_ns) / MS_NS;
        let moments = Moments::Range {
            from_ms: first_ms,
            thru_ms: grid.thru_ns() / MS_NS,
            step_ms: grid.step_ns / MS_NS,
        };
        let answer = query::evaluate(&self.text, &self.expr, moments, &reader)?;
        let curves = Curves::of(&answer, grid)?;
        if curves.points.is_empty() && self.is_doubtful {
            return Err(self.or_no_file(&Error::msg("no series fits")));
        }
        query::say_notes(&self.text, &answer, &reader.missing());
        if curves.points.is_empty() {
            return Ok(None);
        }
        curves
            .svg(&self.text, options.open.as_deref(), style)
            .map(Some)
    }

    /// Why there is no answer: for a doubtful name also that there is no such file.
    fn or_no_file(&self, error: &Error) -> Error {
        match self.is_doubtful {
            true => Error::msg(format!(
                "cannot open {}: there is no such file; as an expression: {error:#}",
                self.text
            )),
            false => Error::msg(format!("{error:#}")),
        }
    }
}

/// True for a plain name without a switch that only expressions have.
fn is_doubtful(options: &GraphOptions, text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c);
    let is_of_an_expression =
        options.data.is_some() || options.open.is_some() || options.step.is_some();
    !is_of_an_expression && text.chars().all(plain)
}

/// Steps of a round length that cover a range of seconds; a point is of the step that ends at its moment.
fn grid((from, thru): (i64, i64), step_ms: Option<i64>, points: usize) -> Result<Grid> {
    let in_ns = |seconds: i64| {
        let ns = seconds.checked_mul(SECOND_NS);
        ns.with_context(|| format!("cannot draw {seconds}: there is no such time"))
    };
    let (from_ns, thru_ns) = (in_ns(from)?, in_ns(thru)?);
    let step_ns = match step_ms {
        Some(step_ms) => step_ms.saturating_mul(MS_NS),
        None => Grid::new(from_ns, thru_ns, points, SECOND_NS).step_ns,
    };
    // A point that has not ended has no value yet.
    let end = thru_ns.div_euclid(step_ns);
    let begin = from_ns.div_euclid(step_ns).min(end - 1);
    if end - begin > query::POINTS_MAX {
        let most = query::POINTS_MAX;
        bail!("cannot use --step: more than {most} points of a curve");
    }
    Ok(Grid {
        from_ns: begin * step_ns,
        step_ns,
        count: usize::try_from(end - begin)?,
    })
}

impl Curves {
    fn of(answer: &Answer, grid: Grid) -> Result<Curves> {
        let tracks: &[Track] = match &answer.value {
            Value::Matrix(tracks) => tracks,
            // A range has series with samples, or fails.
            Value::Scalar(_) | Value::Text(_) | Value::Vector(_) => &[],
        };
        if tracks.len() > LINES_MAX {
            let count = tracks.len();
            bail!("cannot draw {count} series: at most {LINES_MAX}; topk(9, EXPR) has the largest");
        }
        let shared = shared(tracks);
        let mut curves = Curves {
            grid,
            labels: tracks.iter().map(|track| label(track, &shared)).collect(),
            points: Vec::new(),
            shared,
            negative: 0,
        };
        let seconds = seconds_of(grid.step_ns);
        for track in tracks {
            let mut points = vec![Point::NONE; grid.count];
            for sample in track.samples.iter().filter(|sample| sample.v.is_finite()) {
                let passed_ns = sample.t_ms * MS_NS - grid.from_ns;
                let at = usize::try_from(passed_ns / grid.step_ns - 1);
                if let Some(point) = at.ok().and_then(|at| points.get_mut(at)) {
                    point.add(sample.v, seconds);
                    curves.negative += usize::from(sample.v < 0.0);
                }
            }
            curves.points.push(points);
        }
        Ok(curves)
    }

    fn svg(&self, text: &str, open: Option<&Path>, style: &Style) -> Result<String> {
        let root = Root::open(Path::new("/")).context("cannot open /")?;
        let context = facts::gather(&root);
        let host = match (self.shared.get(INSTANCE), open) {
            ("", Some(dir)) => dir.display().to_string(),
            ("", None) => context.get("host").unwrap_or("?").to_string(),
            (instance, _) => instance.to_string(),
        };
        let named = self.labels.iter().zip(&self.points).enumerate();
        let mut curves: Vec<Curve> = named
            .map(|(n, (label, points))| Curve {
                label: label.clone(),
                hue: n + 1,
                shape: Shape::Line,
                points,
            })
            .collect();
        let mut notes: Vec<String> = graphs::leave_out_small(&mut curves).into_iter().collect();
        if self.negative > 0 {
            notes.push("values below 0 are drawn at 0".into());
        }
        let unit = match self.shared.metric().ends_with("_bytes") {
            true => Unit::Bytes,
            false => Unit::Count,
        };
        let graph = Graph {
            title: text.split_whitespace().collect::<Vec<_>>().join(" "),
            unit,
            top: Top::Least(0.0),
            curves,
            note: notes.join("; "),
        };
        let picture = Picture {
            host: &host,
            grid: self.grid,
            marks: &[],
            graphs: vec![graph],
        };
        let mut out = String::new();
        svg::draw(&picture, &mut times::zone_of(&context), style, &mut out);
        Ok(out)
    }
}

/// Labels that all series have with one value.
fn shared(tracks: &[Track]) -> LabelSet {
    let Some((first, others)) = tracks.split_first() else {
        return LabelSet::empty();
    };
    let same =
        |(name, value): &(&str, &str)| others.iter().all(|each| each.labels.get(name) == *value);
    let pairs: Vec<(&str, &str)> = first.labels.iter().filter(same).collect();
    LabelSet::new(&pairs)
}

/// The labels that tell a series from the others: the value alone of a single one; all labels of a series that is alone.
fn label(track: &Track, shared: &LabelSet) -> String {
    let own = track.labels.iter();
    let own: Vec<(&str, &str)> = own
        .filter(|(name, _)| shared.get(name).is_empty())
        .collect();
    match &own[..] {
        [] => query::promql(&track.labels),
        [(name, value)] if *name != METRIC => value.escape_debug().to_string(),
        own => query::promql(&LabelSet::new(own)),
    }
}

fn seconds_of(ns: i64) -> f64 {
    std::time::Duration::from_nanos(ns.unsigned_abs()).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use kymo_series::Sample;

    use super::*;

    fn track(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> Track {
        let samples = samples.iter().map(|&(t_ms, v)| Sample { t_ms, v });
        Track {
            labels: LabelSet::new(labels),
            samples: samples.collect(),
        }
    }

    #[test]
    fn a_point_is_of_the_step_that_ends_at_its_moment() {
        for (range, step_ms, expect) in [
            ((100, 130), Some(10_000), (100, 10, 3)),
            ((95, 134), Some(10_000), (90, 10, 4)),
            // A step that is longer than the range: one point.
            ((100, 130), Some(3_600_000), (-3600, 3600, 1)),
            ((0, 3600), None, (0, 5, 720)),
        ] {
            let grid = grid(range, step_ms, 800).unwrap();
            let found = (
                grid.from_ns / SECOND_NS,
                grid.step_ns / SECOND_NS,
                grid.count,
            );
            assert_eq!(found, expect, "{range:?} {step_ms:?}");
        }
        assert!(grid((0, 86_400), Some(1000), 800).is_err());
        assert!(grid((0, i64::MAX / 1000), None, 800).is_err());
    }

    #[test]
    fn curves_have_what_tells_them_apart() {
        let answer = |tracks: Vec<Track>| Answer {
            value: Value::Matrix(tracks),
            notes: Vec::new(),
        };
        let grid = grid((0, 30), Some(10_000), 10).unwrap();
        let of = |tracks| Curves::of(&answer(tracks), grid).unwrap();
        let two = of(vec![
            track(
                &[("__name__", "x"), ("a", "1"), ("b", "<b>")],
                &[(10_000, 5.0), (30_000, f64::NAN)],
            ),
            track(
                &[("__name__", "x"), ("a", "2"), ("b", "<b>")],
                &[(20_000, -1.0), (40_000, 1.0)],
            ),
        ]);
        assert_eq!(two.labels, ["1", "2"]);
        assert_eq!(two.shared.get("b"), "<b>");
        assert_eq!(two.negative, 1);
        let means = |n: usize| two.points[n].iter().map(Point::mean).collect::<Vec<f64>>();
        assert_eq!(means(0)[0], 5.0);
        assert!(means(0)[1].is_nan() && means(0)[2].is_nan());
        assert_eq!(means(1)[1], -1.0);
        let one = of(vec![track(&[("__name__", "x"), ("a", "1")], &[])]);
        assert_eq!(one.labels, ["x{a=\"1\"}"]);
        let names = of(vec![
            track(&[("__name__", "x")], &[]),
            track(&[("__name__", "y")], &[]),
        ]);
        assert_eq!(names.labels, ["x", "y"]);
    }
}
