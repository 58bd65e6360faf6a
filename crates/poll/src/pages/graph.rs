//! The graph of a period: MRTG's to the pixel, except for the letters.

use super::calendar::{Line, Mark};
use super::canvas::{Backdrop, Canvas, Colour, Point, Stroke};
use super::font;
use super::scale::{Axis, exponential, logarithmic};
use super::style::{Bend, Corner, GraphStyle, Period};
use crate::mrtg_log::{Log, Span, whole};
use jiff::Timestamp;
use kymo_wire::mrtg_cfg::Choice;

const BACKGROUND: [u8; 3] = [245; 3];
const LIGHT: [u8; 3] = [194; 3];
const DARK: [u8; 3] = [100; 3];
const RED: [u8; 3] = [255, 0, 0];
const BLACK: [u8; 3] = [0; 3];
/// Pixels left of the curves, above them, on both sides, above and below, and for percentages.
const LEFT: f64 = 81.0;
const ABOVE: f64 = 14.0;
const SIDES: f64 = 100.0;
const ABOVE_AND_BELOW: f64 = 35.0;
const PERCENTAGES: i64 = 30;
/// Pixels left of the numbers of the vertical axis, and of the text along it.
const NUMBERS_LEFT: i64 = 23;
const LEGEND_LEFT: i64 = 8;
/// Pixels between a stamp and the border.
const STAMP_GAP: i64 = 3;

/// Rates of a period: in and out, bytes a second unless the target says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Largest rates.
    pub max: [i64; 2],
    /// Means of the time in which there was something.
    pub mean: [i64; 2],
    /// The newest ones.
    pub newest: [i64; 2],
    /// Means of the largest rates within five minutes.
    pub mean_max: [i64; 2],
    /// Largest, mean and newest of in as percentages of out.
    pub percent: [i64; 3],
}

/// Values of one step of the time axis, which become heights.
#[derive(Clone, Copy, Default)]
struct Bar {
    rates: [f64; 2],
    maxima: [f64; 2],
    percent: f64,
}

impl Figures {
    /// All figures, as a page's comments have them: [`super::comments::NAMES`].
    pub fn in_order(&self) -> [i64; 11] {
        let ([max_in, max_out], [mean_in, mean_out]) = (self.max, self.mean);
        let ([new_in, new_out], [top_in, top_out]) = (self.newest, self.mean_max);
        let [max, mean, newest] = self.percent;
        [
            max_in, max_out, max, mean_in, mean_out, mean, new_in, new_out, newest, top_in, top_out,
        ]
    }
}

/// Draws the graph of a period until the log's last update, which was at `now_s`, as a PNG. `Err`: why not.
pub fn draw(
    log: &Log,
    now_s: i64,
    period: Period,
    style: &GraphStyle,
) -> Result<(Vec<u8>, Figures), String> {
    let spans = log.spans(now_s, period.step_s()).take(steps(style));
    draw_spans(&spans.collect::<Vec<_>>(), now_s, period, style)
}

/// Steps of a graph.
pub(super) fn steps(style: &GraphStyle) -> usize {
    usize::try_from(style.x_size).unwrap_or(0)
}

/// Draws the graph of these steps, newest first.
pub(super) fn draw_spans(
    spans: &[Span],
    now_s: i64,
    period: Period,
    style: &GraphStyle,
) -> Result<(Vec<u8>, Figures), String> {
    let summary = Summary::of(spans, period, style);
    let axis = Axis::new(summary.top, style);
    let mut bars = bars(spans, &axis, style);
    let height = style.y_size as f64;
    let limits = style.max_bytes.map(|max| max as f64);
    let mut limits = limits.map(|max| max * factor(style) / axis.top * height);
    let tic = axis.tic * bend(&mut bars, &mut limits, style);
    let mut graph = Graph::begin(style).ok_or("cannot draw: a side has more than 8,192 pixels")?;
    graph.border();
    graph.curves(&bars, period);
    graph.frame();
    graph.rows(tic, &axis.prefix);
    for (x, span) in spans.iter().enumerate() {
        let mark = Mark::at(span.row_s, period, &style.zone, style.weeks);
        graph.mark(x as f64, &mark);
    }
    limits.into_iter().for_each(|limit| graph.limit(limit));
    graph.arrow();
    graph.stamp(now_s);
    let backdrop = match style.options.has(Choice::Transparent) {
        true => Backdrop::Clear,
        false => Backdrop::Opaque,
    };
    let png = graph.canvas.png(backdrop);
    let png = png.map_err(|error| format!("cannot draw: {error}"))?;
    Ok((png, summary.figures))
}

/// Bits of a unit that rates are shown in: 8 or 1.
fn factor(style: &GraphStyle) -> f64 {
    match style.options.has(Choice::Bits) {
        true => 8.0,
        false => 1.0,
    }
}

/// The larger number; the second one if one of them is none, as in rateup. A step of a log of few rows has no rate.
fn larger(one: f64, two: f64) -> f64 {
    match one > two {
        true => one,
        false => two,
    }
}

/// A figure; 0 in the place of rateup's least number, which stands for NaN.
fn figure(number: i64) -> i64 {
    match number {
        i64::MIN => 0,
        number => number,
    }
}

/// Figures of a period, and the value that its axis has to reach.
struct Summary {
    figures: Figures,
    top: i64,
}

impl Summary {
    fn of(spans: &[Span], period: Period, style: &GraphStyle) -> Summary {
        let factor = factor(style);
        let has = |choice| style.options.has(choice);
        let (mut sums, mut sums_max) = ([0.0; 2], [0.0; 2]);
        let (mut max, mut count, mut percent_max) = ([0; 2], 0_u32, 0_i64);
        for span in spans {
            let rates = span.rates.map(|rate| rate * factor);
            let maxima = span.maxima.map(|max| whole(max as f64 * factor));
            let is_some = rates.iter().any(|&rate| rate > 0.0) || maxima.iter().any(|&max| max > 0);
            count += u32::from(is_some || has(Choice::Withzeroes));
            for at in 0..2 {
                sums[at] += rates[at];
                sums_max[at] += maxima[at] as f64;
                let of_span = match style.has_peak(period) {
                    true => maxima[at] as f64,
                    false => rates[at],
                };
                max[at] = whole(larger(max[at] as f64, of_span));
            }
            if rates[1] != 0.0 {
                percent_max = whole(larger(100.0 * rates[0] / rates[1], percent_max as f64));
            }
        }
        let percent = |[one, two]: [f64; 2]| match two == 0.0 {
            true => 0.0,
            false => one * 100.0 / two,
        };
        let newest = spans.first().map_or([0.0; 2], |span| span.rates);
        let newest = newest.map(|rate| rate * factor);
        let divisor = f64::from(count.max(1));
        let rounded = |rate: f64| figure(whole(rate / factor + 0.5));
        let figures = Figures {
            max: max.map(|max| figure(max / whole(factor))),
            mean: sums.map(|sum| rounded(sum / divisor)),
            newest: newest.map(rounded),
            mean_max: sums_max.map(|sum| rounded(sum / divisor)),
            percent: [
                figure(percent_max),
                figure(whole(percent(sums) + 0.5)),
                figure(whole(percent(newest) + 0.5)),
            ],
        };
        let shown = [Choice::Noi, Choice::Noo].map(|choice| !has(choice));
        let drawn = [0, 1].map(|at| if shown[at] { max[at] } else { 0 });
        let highest = drawn[0].max(drawn[1]);
        let limit = style.max_bytes[0].max(style.max_bytes[1]);
        let limit = i64::try_from(limit)
            .unwrap_or(i64::MAX)
            .saturating_mul(whole(factor));
        let top = match super::style::has_letter(&style.unscaled, period) {
            true => limit.max(highest),
            false => highest,
        };
        Summary {
            figures,
            top: if top <= 0 { 1 } else { top },
        }
    }
}

/// Heights of the curves on an axis that is not bent.
fn bars(spans: &[Span], axis: &Axis, style: &GraphStyle) -> Vec<Bar> {
    let (factor, height) = (factor(style), style.y_size as f64);
    let within = |part: f64, limit: f64| if part >= limit { limit } else { part };
    let place = |value: f64| within(value / axis.top * height, height);
    let bar = |span: &Span| {
        let rates = span.rates.map(|rate| rate * factor);
        let relation = match rates[1] == 0.0 {
            true => 0.0,
            false => within(rates[0] / rates[1], 1.0),
        };
        Bar {
            rates: rates.map(place),
            maxima: span.maxima.map(|max| place((max as f64 * factor).trunc())),
            percent: (relation * height).trunc(),
        }
    };
    spans.iter().map(bar).collect()
}

/// Moves heights as the axis is bent. Returns the factor for the numbers of the axis.
fn bend(bars: &mut [Bar], limits: &mut [f64; 2], style: &GraphStyle) -> f64 {
    let height = style.y_size as f64;
    let all = |bars: &mut [Bar], limits: &mut [f64; 2], place: &dyn Fn(f64) -> f64| {
        let heights = bars.iter_mut();
        let heights = heights.flat_map(|bar| bar.rates.iter_mut().chain(&mut bar.maxima));
        heights.chain(limits).for_each(|h| *h = place(*h));
    };
    match style.bend {
        Bend::Linear => {}
        Bend::Logarithmic => all(bars, limits, &|h| logarithmic(h, height)),
        Bend::Exponential => all(bars, limits, &|h| exponential(h, height)),
        Bend::SecondMean => {
            all(bars, limits, &|h| h.max(1.0));
            let cut = second_mean(bars);
            let highest = |bars: &[Bar]| {
                let heights = bars.iter().flat_map(|bar| [bar.rates, bar.maxima]);
                heights.flatten().fold(0.0, f64::max)
            };
            let before = highest(bars);
            all(bars, &mut [0.0; 2], &|h| if h > cut { cut } else { h });
            let growth = match highest(bars) {
                after if after > 0.0 => before / after,
                after => after,
            };
            all(bars, limits, &|h| h * growth);
            return f64::from(cut as f32 / height as f32);
        }
    }
    1.0
}

/// Mean of the heights that are above the mean; NaN if none is.
fn second_mean(bars: &[Bar]) -> f64 {
    let heights = bars.iter().map(|bar| {
        let ([one, two], [max_one, max_two]) = (bar.rates, bar.maxima);
        (one + two + max_one + max_two) / 4.0
    });
    let mean = heights.clone().sum::<f64>() / bars.len() as f64;
    let above = heights.filter(|&height| height > mean);
    above.clone().sum::<f64>() / above.count() as f64
}

/// A graph while it is drawn.
struct Graph<'a> {
    style: &'a GraphStyle,
    canvas: Canvas,
    width: i64,
    height: i64,
    light: Colour,
    dark: Colour,
    red: Colour,
    black: Colour,
    colours: [Colour; 5],
}

impl Graph<'_> {
    fn begin(style: &GraphStyle) -> Option<Graph<'_>> {
        let percentages = i64::from(style.options.has(Choice::Dorelpercent)) * PERCENTAGES;
        let width = whole(style.x_size as f64 * style.x_scale + SIDES + percentages as f64);
        let height = whole(style.y_size as f64 * style.y_scale + ABOVE_AND_BELOW);
        let mut canvas = Canvas::new(width, height, BACKGROUND)?;
        let [light, dark, red, black] = [LIGHT, DARK, RED, BLACK].map(|rgb| canvas.colour(rgb));
        let colours = style.colours.map(|rgb| canvas.colour(rgb));
        Some(Graph {
            style,
            canvas,
            width,
            height,
            light,
            dark,
            red,
            black,
            colours,
        })
    }

    fn has(&self, choice: Choice) -> bool {
        self.style.options.has(choice)
    }

    /// The column of a step.
    fn x(&self, step: f64) -> i64 {
        let (size, scale) = (self.style.x_size as f64, self.style.x_scale);
        match self.has(Choice::Growright) {
            true => whole(size * scale + LEFT - step * scale),
            false => whole(LEFT + step * scale),
        }
    }

    /// The row of a height.
    fn y(&self, height: f64) -> i64 {
        let (size, scale) = (self.style.y_size as f64, self.style.y_scale);
        figure(whole(size * scale + ABOVE - height * scale))
    }

    fn point(&self, step: f64, height: f64) -> Point {
        (self.x(step), self.y(height))
    }

    /// A line between points of the curves' system.
    fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        let (from, to) = (self.point(from.0, from.1), self.point(to.0, to.1));
        self.canvas.line(from, to, stroke);
    }

    fn border(&mut self) {
        if self.has(Choice::Noborder) {
            return;
        }
        let (light, dark) = (Stroke::Thin(self.light), Stroke::Thin(self.dark));
        let (right, bottom) = (self.width - 1, self.height - 1);
        for (from, to, stroke) in [
            ((0, 0), (right, 0), light),
            ((1, 1), (right - 1, 1), light),
            ((0, 0), (0, bottom), light),
            ((1, 1), (1, bottom - 1), light),
            ((right, 0), (right, bottom), dark),
            ((0, bottom), (right, bottom), dark),
            ((right - 1, 1), (right - 1, bottom - 1), dark),
            ((1, bottom - 1), (right - 1, bottom - 1), dark),
        ] {
            self.canvas.line(from, to, stroke);
        }
    }

    fn curves(&mut self, bars: &[Bar], period: Period) {
        let [inward, outward, in_peak, out_peak, relation] = self.colours;
        let has_peak = self.style.has_peak(period);
        if !self.has(Choice::Noi) {
            for (x, bar) in bars.iter().enumerate() {
                let (x, height) = (x as f64, bar.rates[0]);
                if has_peak {
                    self.line((x, height), (x, bar.maxima[0]), Stroke::Thin(in_peak));
                }
                // With a scale a step is wider than a pixel.
                for x in [x, x + 0.5] {
                    self.line((x, 0.0), (x, height), Stroke::Thin(inward));
                }
            }
        }
        if self.has(Choice::Dorelpercent) {
            self.curve(bars, |bar| bar.percent, relation);
        }
        if !self.has(Choice::Noo) {
            if has_peak {
                self.curve(bars, |bar| bar.maxima[1], out_peak);
            }
            self.curve(bars, |bar| bar.rates[1], outward);
        }
    }

    fn curve(&mut self, bars: &[Bar], height: impl Fn(&Bar) -> f64, colour: Colour) {
        for (x, pair) in bars.windows(2).enumerate() {
            let (x, [from, to]) = (x as f64, [height(&pair[0]), height(&pair[1])]);
            self.line((x, from), (x + 1.0, to), Stroke::Thick(colour));
        }
    }

    /// The title, the frame around the curves, and the text along the axis.
    fn frame(&mut self) {
        let style = self.style;
        if let Some(title) = &style.title {
            self.canvas.text((whole(LEFT), 1), title, self.black);
        }
        let (width, height) = (style.x_size as f64, style.y_size as f64);
        let (from, to) = (self.point(0.0, 0.0), self.point(width, height));
        self.canvas.rectangle(from, to, self.black);
        let legend = match (&style.y_legend, self.has(Choice::Bits)) {
            (Some(legend), _) => legend,
            (None, true) => "Bits per Second",
            (None, false) => "Bytes per Second",
        };
        let is_low = style.y_size < font::WIDTH * 16 && style.y_legend.is_none();
        let legend = match is_low {
            true => legend.replace(" per Second", "/s"),
            false => legend.to_string(),
        };
        let length = font::width(&legend);
        let bottom = self.y(((style.y_size - length) / 2) as f64);
        self.canvas
            .text_up((LEGEND_LEFT, bottom), &legend, self.black);
    }

    /// The horizontal grid with its numbers, which differ by `tic`.
    fn rows(&mut self, tic: f64, prefix: &str) {
        let style = self.style;
        let (size, tics, width) = (style.y_size, style.tics, style.x_size as f64);
        let black = Stroke::Thin(self.black);
        self.canvas.dot(self.black);
        for number in 0..=tics {
            let height = (number * size / tics) as f64;
            self.line((-2.0, height), (1.0, height), black);
            self.line((width + 2.0, height), (width - 1.0, height), black);
            self.line((0.0, height), (width, height), Stroke::Dotted);
            let (top, tics) = (size as f64, tics as f64);
            let value = match style.bend {
                Bend::Logarithmic => exponential(height, top) * tics * tic / top,
                Bend::Exponential => logarithmic(height, top) * tics * tic / top,
                Bend::Linear | Bend::SecondMean => tic * number as f64,
            };
            let row = self.y(height + (font::HEIGHT / 2) as f64);
            let text = format!("{value:6.1} {prefix}");
            self.canvas.text((NUMBERS_LEFT, row), &text, self.black);
            if self.has(Choice::Dorelpercent) {
                let text = format!("{:6.1}%", value / (tic * tics) * 100.0);
                let left = whole(78.0 + width * style.x_scale);
                self.canvas.text((left, row), &text, self.colours[4]);
            }
        }
    }

    fn mark(&mut self, x: f64, mark: &Mark) {
        let top = self.style.y_size as f64;
        if mark.line != Line::None {
            self.line((x, -2.0), (x, 1.0), Stroke::Thin(self.black));
            self.line((x, 0.0), (x, top), Stroke::Dotted);
        }
        if let Some(label) = &mark.label {
            let half = font::width(label) / 2;
            let (column, row) = self.point(x, -4.0);
            self.canvas.text((column - half, row), label, self.black);
        }
        if mark.line == Line::Major {
            self.line((x, 0.0), (x, top), Stroke::Thin(self.red));
        }
    }

    /// The line of a largest rate, where it is within the graph.
    fn limit(&mut self, height: f64) {
        if self.y(self.style.y_size as f64) < self.y(height) {
            self.canvas.dot(self.red);
            let width = self.style.x_size as f64;
            self.line((0.0, height), (width, height), Stroke::Dotted);
        }
    }

    /// The arrow at the newest value.
    fn arrow(&mut self) {
        if self.has(Choice::Noarrow) {
            return;
        }
        for (x, half) in [(2, 3), (1, 3), (0, 2), (-1, 1), (-2, 1), (-3, 0)] {
            let (x, half) = (f64::from(x), f64::from(half));
            self.line((x, half), (x, -half), Stroke::Thin(self.red));
        }
    }

    fn stamp(&mut self, now_s: i64) {
        let Some((corner, format)) = &self.style.stamp else {
            return;
        };
        let Ok(time) = Timestamp::from_second(now_s) else {
            return;
        };
        let time = time.to_zoned(self.style.zone.clone());
        let Ok(text) = jiff::fmt::strtime::format(format, &time) else {
            return;
        };
        let right = self.width - font::width(&text) - STAMP_GAP;
        let bottom = self.height - font::HEIGHT - STAMP_GAP;
        let place = match corner {
            Corner::LeftUpper => (STAMP_GAP, 1),
            Corner::RightUpper => (right, 1),
            Corner::LeftLower => (STAMP_GAP, bottom),
            Corner::RightLower => (right, bottom),
        };
        self.canvas.text(place, &text, self.black);
    }
}
