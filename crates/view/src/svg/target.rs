//! MRTG's graphs of a target: incoming traffic as an area, outgoing as a line, darker peaks behind them, a line at MaxBytes, red
//! lines at the start of each day, week, month or year, and a table of numbers. Time runs to the left unless the target has
//! `growright`.

mod frame;
mod table;

use std::fmt::Write as _;

use kymo_query::marks::Mark;
use kymo_query::targets::{
    DescribedTarget, Direction, Percentile, Period, TargetGraph, TargetUnit, colours, legends,
};

use super::marks::{self, Flagged};
use super::palette::{self, Inks};
use super::pen::{self, Anchor, Area, Path, put_path, put_rect, put_text};
use super::{FAMILY, HEADING, MARGIN, SMALL, Style, TEXT, TIMES, TITLE, TITLE_GAP, clock, font};
use crate::time::Zone;
use frame::{Ends, Frame};

/// Space left of the graphs, for the axes' labels.
const LEFT: f64 = 64.0;
const GAP: f64 = 22.0;
const LINE: f64 = 16.0;
const SECOND_NS: i64 = 1_000_000_000;
/// Colour of MaxBytes, and of the starts of days and the like.
const RED: &str = "#d5280a";

/// Content of a picture of a target.
pub struct TargetPicture<'a> {
    /// The target.
    pub target: &'a DescribedTarget,
    /// The graphs, from top to bottom.
    pub graphs: &'a [TargetGraph],
    /// The 95th percentile of its rates, for a graph of a month.
    pub percentile: &'a Percentile,
    /// Events of its device, oldest first.
    pub marks: &'a [Mark],
}

/// Appends the picture as an SVG document.
pub fn draw_target(picture: &TargetPicture, zone: &mut Zone, style: &Style, out: &mut String) {
    let style = style.bounded();
    let mut sheet = TargetSheet {
        target: picture.target,
        percentile: picture.percentile,
        marks: picture.marks,
        unit: TargetUnit::of(picture.target),
        zone,
        inks: style.theme.inks(),
        width: f64::from(style.width),
        height: f64::from(style.height),
        out,
    };
    let heights = picture.graphs.iter().map(|graph| sheet.height_of(graph));
    let height = 2.0 * MARGIN + HEADING + 2.0 * LINE + heights.sum::<f64>() + LINE;
    sheet.begin(height);
    let mut top = sheet.heading();
    for graph in picture.graphs {
        sheet.graph(graph, top);
        top += sheet.height_of(graph);
    }
    sheet.legend(picture.graphs, top);
    sheet.out.push_str("</svg>\n");
}

struct TargetSheet<'a> {
    target: &'a DescribedTarget,
    percentile: &'a Percentile,
    marks: &'a [Mark],
    unit: TargetUnit,
    zone: &'a mut Zone,
    inks: &'static Inks,
    width: f64,
    height: f64,
    out: &'a mut String,
}

impl TargetSheet<'_> {
    fn begin(&mut self, height: f64) {
        let (width, height) = (self.width.ceil(), height.ceil());
        let _ = write!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FAMILY}\" aria-label=\""
        );
        pen::put_escaped(self.out, title(self.target));
        let paper = self.inks.paper;
        let _ = writeln!(
            self.out,
            "\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"{paper}\"/>"
        );
    }

    fn text(&mut self, at: (f64, f64), anchor: Anchor, ink: (f64, &str), text: &str) {
        put_text(self.out, at, anchor, ink, text);
    }

    /// Draws title, device and name; returns the y below them.
    fn heading(&mut self) -> f64 {
        let (base, room) = (MARGIN + HEADING, self.width - 2.0 * MARGIN);
        let title = font::fit(title(self.target), HEADING, room).into_owned();
        self.text(
            (MARGIN, base),
            Anchor::Start,
            (HEADING, self.inks.ink),
            &title,
        );
        let names = [&self.target.device, &self.target.name];
        let names: Vec<&str> = names
            .into_iter()
            .map(String::as_str)
            .filter(|name| !name.is_empty())
            .collect();
        let names = font::fit(&names.join("  ·  "), TEXT, room).into_owned();
        self.text(
            (MARGIN, base + LINE),
            Anchor::Start,
            (TEXT, self.inks.muted),
            &names,
        );
        base + 2.0 * LINE + MARGIN / 2.0
    }

    fn height_of(&self, graph: &TargetGraph) -> f64 {
        TITLE + TITLE_GAP + self.height + TIMES + table::lines(self.target, graph) * LINE + GAP
    }

    fn graph(&mut self, graph: &TargetGraph, top: f64) {
        let note = format!(
            "averages of {}",
            clock::length(i64::from(graph.step) * SECOND_NS)
        );
        let name = match graph.period {
            Period::Day => "Day",
            Period::Week => "Week",
            Period::Month => "Month",
            Period::Year => "Year",
        };
        let base = top + TITLE;
        self.text((LEFT, base), Anchor::Start, (TITLE, self.inks.ink), name);
        let at = (LEFT + font::width(name, TITLE) + 8.0, base);
        self.text(at, Anchor::Start, (TEXT, self.inks.muted), &note);
        let axis = font::fit(&self.unit.axis, SMALL, self.width / 2.0).into_owned();
        let right = (self.width - MARGIN, base);
        self.text(right, Anchor::End, (SMALL, self.inks.muted), &axis);
        let frame = Frame {
            area: Area {
                left: LEFT,
                top: base + TITLE_GAP,
                width: self.width - LEFT - MARGIN,
                height: self.height,
            },
            range: graph.range,
            leftward: !self.target.has("growright"),
            ends: self.ends(graph),
        };
        self.value_axis(&frame);
        self.curves(graph, &frame);
        self.time_axis(graph, &frame);
        self.limits(graph, &frame);
        self.flags(graph, &frame);
        table::draw(self, graph, frame.area.bottom() + TIMES + LINE);
    }

    /// Ends of the vertical axis, in display units.
    fn ends(&self, graph: &TargetGraph) -> Ends {
        let top = graph.top(self.target) * self.unit.scale;
        if !self.target.has("logscale") {
            let air = if graph.period.is_unscaled(self.target) {
                1.0
            } else {
                1.05
            };
            return Ends::linear(top * air);
        }
        let shown = Direction::ALL.into_iter().zip(&graph.lines);
        let shown = shown.filter(|(direction, _)| direction.is_shown(self.target));
        let rates = shown.flat_map(|(_, line)| &line.averages);
        let least = rates
            .copied()
            .filter(|rate| *rate > 0.0)
            .fold(f64::NAN, f64::min);
        Ends::decades(least * self.unit.scale, top)
    }

    fn value_axis(&mut self, frame: &Frame) {
        let area = frame.area;
        let mut lines = Path::default();
        for (value, label) in frame.ends.ticks(&self.unit, area.height) {
            let y = frame.y(value).floor() + 0.5;
            lines.move_to(area.left, y);
            lines.line_to(area.right(), y);
            self.text(
                (area.left - 6.0, y + 3.5),
                Anchor::End,
                (TEXT, self.inks.muted),
                &label,
            );
        }
        let stroke = format!("stroke=\"{}\" fill=\"none\"", self.inks.grid);
        put_path(self.out, &lines.text(), &stroke, "");
    }

    /// Draws incoming rates as areas, then outgoing rates as lines, each with its peaks behind it.
    fn curves(&mut self, graph: &TargetGraph, frame: &Frame) {
        let [area_in, line_out, peak_in, peak_out, _] = colours(self.target);
        let [in_, out] = &graph.lines;
        if Direction::In.is_shown(self.target) {
            for (values, colour) in [(&in_.peaks, peak_in), (&in_.averages, area_in)] {
                let path = frame.filled(graph, values, self.unit.scale);
                put_path(self.out, &path, &format!("fill=\"{colour}\""), "");
            }
        }
        if Direction::Out.is_shown(self.target) {
            for (values, colour) in [(&out.peaks, peak_out), (&out.averages, line_out)] {
                let path = frame.line(graph, values, self.unit.scale);
                let colour = palette::seen(colour, self.inks.paper);
                let stroke = format!(
                    "stroke=\"{colour}\" stroke-width=\"1.4\" stroke-linejoin=\"round\" fill=\"none\""
                );
                put_path(self.out, &path, &stroke, "");
            }
        }
    }

    fn time_axis(&mut self, graph: &TargetGraph, frame: &Frame) {
        let (area, (from, thru)) = (frame.area, graph.range);
        let (from_ns, thru_ns) = (from * SECOND_NS, thru * SECOND_NS);
        let most = super::time_ticks(area);
        let mut steps = Path::default();
        for tick in clock::ticks(self.zone, from_ns, thru_ns, most) {
            let x = frame.x(tick.at_ns / SECOND_NS).floor() + 0.5;
            steps.move_to(x, area.bottom());
            steps.line_to(x, area.bottom() + 4.0);
            let labels = [(&tick.label, 15.0), (&tick.day, 27.0)];
            for (label, down) in labels.into_iter().filter(|(label, _)| !label.is_empty()) {
                let half = font::width(label, TEXT) / 2.0;
                let x = x.clamp(half + 2.0, (self.width - half - 4.0).max(half + 2.0));
                self.text(
                    (x, area.bottom() + down),
                    Anchor::Middle,
                    (TEXT, self.inks.muted),
                    label,
                );
            }
        }
        steps.move_to(area.left, area.bottom().floor() + 0.5);
        steps.line_to(area.right(), area.bottom().floor() + 0.5);
        let stroke = format!("stroke=\"{}\" fill=\"none\"", self.inks.frame);
        put_path(self.out, &steps.text(), &stroke, "");
        let every = match graph.period {
            Period::Day => clock::Turn::Day,
            Period::Week => clock::Turn::Week,
            Period::Month => clock::Turn::Month,
            Period::Year => clock::Turn::Year,
        };
        let mut turns = Path::default();
        for at_ns in clock::turns(self.zone, every, from_ns, thru_ns) {
            let x = frame.x(at_ns / SECOND_NS).floor() + 0.5;
            turns.move_to(x, area.top);
            turns.line_to(x, area.bottom());
        }
        let stroke = format!("stroke=\"{RED}\" stroke-opacity=\"0.6\" fill=\"none\"");
        put_path(self.out, &turns.text(), &stroke, "");
    }

    /// Draws lines at MaxBytes, and in a month at the 95th percentile.
    fn limits(&mut self, graph: &TargetGraph, frame: &Frame) {
        let [area_in, line_out, ..] = colours(self.target);
        let shown = |direction: &Direction| direction.is_shown(self.target);
        let mut limits: Vec<(f64, String, &str)> = Vec::new();
        for direction in Direction::ALL.into_iter().filter(shown) {
            let most = *direction.of(&self.target.max_bytes) as f64;
            if most > 0.0 && !limits.iter().any(|(rate, _, _)| *rate == most) {
                limits.push((most, RED.into(), "4 3"));
            }
        }
        if graph.period == Period::Month {
            limits.extend(Direction::ALL.into_iter().filter(shown).map(|direction| {
                let own = match direction {
                    Direction::In => area_in,
                    Direction::Out => line_out,
                };
                let colour = palette::seen(own, self.inks.paper);
                (*direction.of(&self.percentile.rates), colour, "8 3 2 3")
            }));
        }
        for (rate, colour, dashes) in limits {
            let value = rate * self.unit.scale;
            if !value.is_finite() || !frame.ends.holds(value) {
                continue;
            }
            let (y, mut path) = (frame.y(value).floor() + 0.5, Path::default());
            path.move_to(frame.area.left, y);
            path.line_to(frame.area.right(), y);
            let stroke = format!("stroke=\"{colour}\" stroke-dasharray=\"{dashes}\" fill=\"none\"");
            put_path(self.out, &path.text(), &stroke, "");
        }
    }

    /// Draws flags for events of the device.
    fn flags(&mut self, graph: &TargetGraph, frame: &Frame) {
        let (from, thru) = graph.range;
        let (from_ns, thru_ns) = (from * SECOND_NS, thru * SECOND_NS);
        let marks = self.marks.iter();
        let flagged = Flagged {
            marks: marks
                .filter(|mark| (from_ns..=thru_ns).contains(&mark.from_ns))
                .collect(),
            area: frame.area,
            x: &|at_ns| frame.x(at_ns / SECOND_NS),
        };
        marks::flag(&flagged, self.zone, self.inks, self.out);
    }

    /// Draws the explanation of the colours.
    fn legend(&mut self, graphs: &[TargetGraph], top: f64) {
        if self.target.has("nolegend") {
            return;
        }
        let has_peaks = graphs
            .iter()
            .any(|graph| graph.period.has_peaks(self.target));
        let (legends, colours) = (legends(self.target), colours(self.target));
        let mut left = MARGIN;
        for n in [0, 1, 2, 3] {
            let direction = Direction::ALL[n % 2];
            if !direction.is_shown(self.target) || (n > 1 && !has_peaks) {
                continue;
            }
            let room = self.width - MARGIN - left - 14.0;
            if room < 40.0 {
                return;
            }
            let area = Area {
                left,
                top: top - 9.0,
                width: 10.0,
                height: 10.0,
            };
            put_rect(self.out, area, &format!("fill=\"{}\"", colours[n]), "");
            let text = font::fit(&legends[n], TEXT, room).into_owned();
            self.text(
                (left + 14.0, top),
                Anchor::Start,
                (TEXT, self.inks.muted),
                &text,
            );
            left += 14.0 + font::width(&text, TEXT) + 18.0;
        }
    }
}

fn title(target: &DescribedTarget) -> &str {
    match target.title.as_str() {
        "" => &target.name,
        title => title,
    }
}

#[cfg(test)]
mod tests;
