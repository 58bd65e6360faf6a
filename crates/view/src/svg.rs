//! Draws graphs as SVG: curves over time with axes, marks, and a table of minimum, average, maximum
//! and last values. Points go in, text comes out; [`crate::graphs`] assigns curves to graphs.

mod clock;
mod curves;
mod font;
mod legend;
mod marks;
mod outlines;
mod palette;
mod pen;
mod scale;
mod target;

use std::fmt::Write as _;

use kymo_base::context::Context;
use kymo_base::field::Unit;
use kymo_query::marks::Mark;
use kymo_query::series::{Grid, Point};

use crate::time::Zone;
use curves::Canvas;
use legend::Legend;
use palette::Inks;
use pen::{Anchor, Area, Path, put_path, put_text};
use scale::Axis;

pub use font::FAMILY;
pub use outlines::outlined;
pub use palette::Theme;
pub use pen::put_escaped;
pub use target::{TargetPicture, draw_target};

pub(crate) use scale::shown;

/// Font sizes.
const TEXT: f64 = 11.0;
const TITLE: f64 = 13.0;
const HEADING: f64 = 15.0;
const SMALL: f64 = 10.0;

const MARGIN: f64 = 16.0;
/// Space between a title's baseline and the graph; flags are drawn in it.
const TITLE_GAP: f64 = 14.0;
/// Height of the two lines below the time axis.
const TIMES: f64 = 34.0;
const GRAPH_GAP: f64 = 20.0;
const TICK_GAP: f64 = 6.0;
/// Space per tick of the time axis, and of the vertical axis.
const TIME_ROOM: f64 = 78.0;
const VALUE_ROOM: f64 = 24.0;

/// Size and colours of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Width of the whole picture in pixels.
    pub width: u32,
    /// Height of each graph between its axes, in pixels.
    pub height: u32,
    /// Colour theme.
    pub theme: Theme,
}

impl Style {
    /// Allowed widths.
    pub const WIDTHS: std::ops::RangeInclusive<u32> = 300..=8000;
    /// Allowed heights.
    pub const HEIGHTS: std::ops::RangeInclusive<u32> = 40..=2000;

    /// The style limited to the allowed sizes.
    fn bounded(self) -> Style {
        let within = |value: u32, bounds: std::ops::RangeInclusive<u32>| {
            value.clamp(*bounds.start(), *bounds.end())
        };
        Style {
            width: within(self.width, Style::WIDTHS),
            height: within(self.height, Style::HEIGHTS),
            ..self
        }
    }

    /// Number of points that a graph can resolve: one per pixel.
    pub fn points(self) -> usize {
        self.bounded().width as usize - 80
    }
}

impl Default for Style {
    fn default() -> Style {
        Style {
            width: 900,
            height: 160,
            theme: Theme::Light,
        }
    }
}

/// Form of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A line of the means, and a band from minimum to maximum.
    Line,
    /// A line with a band, and a tint down to 0.
    Filled,
    /// An area on top of the previous ones.
    Stacked,
    /// A shade from the stack up to the maxima, because the stack shows only means.
    Peak,
}

/// A curve of a graph.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// Label in the legend.
    pub label: String,
    /// Number of its colour, from 1.
    pub hue: usize,
    /// Form of the curve.
    pub shape: Shape,
    /// Points, one per point of the grid.
    pub points: &'a [Point],
}

/// Upper end of the vertical axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Top {
    /// This value exactly.
    Fixed(f64),
    /// The largest value of the curves, but at least this.
    Least(f64),
}

/// A graph: curves of one unit.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    /// Title above the graph.
    pub title: String,
    /// Unit of the curves.
    pub unit: Unit,
    /// Upper end of the axis.
    pub top: Top,
    /// The curves.
    pub curves: Vec<Curve<'a>>,
    /// A note in small print; empty for none.
    pub note: String,
}

/// Content of a picture.
pub struct Picture<'a> {
    /// Name of the machine.
    pub host: &'a str,
    /// The grid that all points share.
    pub grid: Grid,
    /// Gaps and events.
    pub marks: &'a [Mark],
    /// The graphs, from top to bottom.
    pub graphs: Vec<Graph<'a>>,
}

/// A graph with the sizes of its parts.
struct Laid<'a> {
    graph: &'a Graph<'a>,
    axis: Axis,
    legend: Legend,
    top: f64,
}

/// Appends the picture as an SVG document.
pub fn draw(picture: &Picture, zone: &mut Zone, style: &Style, out: &mut String) {
    let style = style.bounded();
    let mut sheet = Sheet {
        picture,
        zone,
        inks: style.theme.inks(),
        width: f64::from(style.width),
        height: f64::from(style.height),
        left: 0.0,
        out,
    };
    sheet.draw();
}

/// A range of time in words, in the zone of the recorded machine.
pub fn range(context: &Context, from_ns: i64, thru_ns: i64) -> String {
    clock::range(&mut Zone::of(context), from_ns, thru_ns)
}

/// A picture being drawn.
struct Sheet<'a> {
    picture: &'a Picture<'a>,
    zone: &'a mut Zone,
    inks: &'static Inks,
    width: f64,
    height: f64,
    /// Left edge of the graphs; the vertical axes' labels are left of it.
    left: f64,
    out: &'a mut String,
}

impl Sheet<'_> {
    fn draw(&mut self) {
        let picture = self.picture;
        let want = (self.height / VALUE_ROOM) as usize;
        let axes: Vec<Axis> = picture
            .graphs
            .iter()
            .map(|graph| axis(graph, want))
            .collect();
        let labels = axes.iter().flat_map(|axis| &axis.ticks);
        let widest = labels
            .map(|(_, label)| font::width(label, TEXT))
            .fold(0.0, f64::max);
        self.left = MARGIN + widest.max(24.0) + TICK_GAP;
        let range = clock::range(self.zone, picture.grid.from_ns, picture.grid.thru_ns());
        let range = format!(
            "{range}  ·  a point is {}",
            clock::length(picture.grid.step_ns)
        );
        let heading = self.heading_height(&range);
        let marks = marks::counted(picture);
        let mut top = MARGIN + heading;
        let mut laid = Vec::new();
        for (graph, axis) in picture.graphs.iter().zip(axes) {
            let legend = Legend::new(graph, self.width - self.left - MARGIN);
            let height = TITLE + TITLE_GAP + self.height + TIMES + legend.height() + GRAPH_GAP;
            laid.push(Laid {
                graph,
                axis,
                legend,
                top,
            });
            top += height;
        }
        let foot = top;
        let height = foot - GRAPH_GAP + MARGIN + if marks.is_empty() { 0.0 } else { GRAPH_GAP };
        self.begin(height);
        self.heading(&range);
        for each in &laid {
            self.graph(each);
        }
        let at = (self.left, foot + 2.0);
        marks::explain(&marks, at, self.width - MARGIN, self.inks, self.out);
        self.out.push_str("</svg>\n");
    }

    fn begin(&mut self, height: f64) {
        let (width, height) = (self.width as u64, height.ceil() as u64);
        let _ = write!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FAMILY}\" aria-label=\""
        );
        let titles: Vec<&str> = self
            .picture
            .graphs
            .iter()
            .map(|graph| &graph.title[..])
            .collect();
        let label = format!("{}: {}", self.picture.host, titles.join(", "));
        pen::put_escaped(self.out, &label);
        self.out.push_str("\">\n");
        let _ = writeln!(
            self.out,
            "<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
            self.inks.paper
        );
    }

    /// Height of the heading: one line, or two if host and range do not fit side by side.
    fn heading_height(&self, range: &str) -> f64 {
        let room = self.width - self.left - 2.0 * MARGIN;
        let both = font::width(self.picture.host, HEADING) + font::width(range, TEXT);
        match both <= room {
            true => HEADING + 12.0,
            false => HEADING + TEXT + 18.0,
        }
    }

    fn heading(&mut self, range: &str) {
        let (left, base) = (self.left, MARGIN + HEADING - 3.0);
        let room = self.width - left - MARGIN;
        let host = font::fit(self.picture.host, HEADING, room);
        put_text(
            self.out,
            (left, base),
            Anchor::Start,
            (HEADING, self.inks.ink),
            &host,
        );
        let (place, anchor) = match self.heading_height(range) > HEADING + 12.0 {
            true => ((left, base + TEXT + 6.0), Anchor::Start),
            false => ((self.width - MARGIN, base), Anchor::End),
        };
        let range = font::fit(range, TEXT, room);
        put_text(self.out, place, anchor, (TEXT, self.inks.muted), &range);
    }

    fn graph(&mut self, laid: &Laid) {
        let Laid {
            graph,
            axis,
            legend,
            top,
        } = laid;
        self.title(graph, axis, top + TITLE - 1.0);
        let area = Area {
            left: self.left,
            top: top + TITLE + TITLE_GAP,
            width: self.width - self.left - MARGIN,
            height: self.height,
        };
        let canvas = Canvas {
            area,
            grid: self.picture.grid,
            top: axis.top,
        };
        marks::shade(self.picture, &canvas, self.zone, self.inks, self.out);
        self.value_axis(axis, &canvas);
        self.time_axis(&canvas);
        curves::draw(&graph.curves, &canvas, self.inks, self.out);
        marks::flag_all(self.picture, &canvas, self.zone, self.inks, self.out);
        if curves::most(&graph.curves) <= 0.0 && unknown(graph) {
            let middle = (
                area.left + area.width / 2.0,
                area.top + area.height / 2.0 + 4.0,
            );
            let ink = (TEXT, self.inks.muted);
            put_text(self.out, middle, Anchor::Middle, ink, "nothing is known");
        }
        let below = (self.left, area.bottom() + TIMES);
        legend.draw(graph, below, self.inks, self.out);
    }

    /// Draws title and unit, and the note at the right.
    fn title(&mut self, graph: &Graph, axis: &Axis, base: f64) {
        let room = self.width - self.left - MARGIN;
        let title = font::fit(&graph.title, TITLE, room);
        put_text(
            self.out,
            (self.left, base),
            Anchor::Start,
            (TITLE, self.inks.ink),
            &title,
        );
        let mut taken = font::width(&title, TITLE) + 8.0;
        let unit = legend::axis_name(graph.unit, axis.name);
        if taken + font::width(&unit, TEXT) <= room {
            let ink = (TEXT, self.inks.muted);
            put_text(
                self.out,
                (self.left + taken, base),
                Anchor::Start,
                ink,
                &unit,
            );
            taken += font::width(&unit, TEXT) + 16.0;
        }
        if !graph.note.is_empty() && room - taken > 60.0 {
            let note = font::fit(&graph.note, SMALL, room - taken);
            let right = (self.width - MARGIN, base);
            put_text(
                self.out,
                right,
                Anchor::End,
                (SMALL, self.inks.muted),
                &note,
            );
        }
    }

    fn value_axis(&mut self, axis: &Axis, canvas: &Canvas) {
        let area = canvas.area;
        let mut lines = Path::default();
        for (value, label) in &axis.ticks {
            // Lines on whole pixels are sharp.
            let y = canvas.y(*value).floor() + 0.5;
            lines.move_to(area.left, y);
            lines.line_to(area.right(), y);
            let at = (area.left - TICK_GAP, y + 3.5);
            put_text(self.out, at, Anchor::End, (TEXT, self.inks.muted), label);
        }
        let stroke = format!("stroke=\"{}\" fill=\"none\"", self.inks.grid);
        put_path(self.out, &lines.text(), &stroke, "");
    }

    fn time_axis(&mut self, canvas: &Canvas) {
        let (area, grid) = (canvas.area, canvas.grid);
        let most = time_ticks(area);
        let ticks = clock::ticks(self.zone, grid.from_ns, grid.thru_ns(), most);
        let (mut lines, mut steps) = (Path::default(), Path::default());
        for tick in &ticks {
            let x = canvas.x(tick.at_ns).floor() + 0.5;
            lines.move_to(x, area.top);
            lines.line_to(x, area.bottom());
            steps.move_to(x, area.bottom());
            steps.line_to(x, area.bottom() + 4.0);
            self.time_label((x, area.bottom() + 15.0), &tick.label);
            self.time_label((x, area.bottom() + 27.0), &tick.day);
        }
        let stroke = |colour: &str| format!("stroke=\"{colour}\" fill=\"none\"");
        put_path(self.out, &lines.text(), &stroke(self.inks.grid), "");
        steps.move_to(area.left, area.bottom().floor() + 0.5);
        steps.line_to(area.right(), area.bottom().floor() + 0.5);
        put_path(self.out, &steps.text(), &stroke(self.inks.frame), "");
    }

    /// Centres a label, but keeps it inside the picture.
    fn time_label(&mut self, (x, base): (f64, f64), label: &str) {
        if label.is_empty() {
            return;
        }
        let half = font::width(label, TEXT) / 2.0;
        let x = x.clamp(half + 2.0, (self.width - half - 4.0).max(half + 2.0));
        put_text(
            self.out,
            (x, base),
            Anchor::Middle,
            (TEXT, self.inks.muted),
            label,
        );
    }
}

/// Number of time ticks that fit into an area.
fn time_ticks(area: Area) -> usize {
    (area.width / TIME_ROOM) as usize
}

fn unknown(graph: &Graph) -> bool {
    let mut points = graph.curves.iter().flat_map(|curve| curve.points);
    points.all(|point| point.seconds <= 0.0)
}

/// The vertical axis of a graph.
fn axis(graph: &Graph, want: usize) -> Axis {
    match graph.top {
        Top::Fixed(top) if top > 0.0 => Axis::fixed(graph.unit, top, want),
        Top::Fixed(_) => Axis::new(graph.unit, curves::most(&graph.curves), want),
        Top::Least(least) => {
            // Leaves some space above the highest value.
            let most = curves::most(&graph.curves).max(least);
            match graph.unit {
                // Clock differences make shares slightly exceed 100 %.
                Unit::Percent if (50.0..=105.0).contains(&most) => {
                    Axis::fixed(graph.unit, 100.0, want)
                }
                _ => Axis::new(graph.unit, most * 1.02, want),
            }
        }
    }
}
