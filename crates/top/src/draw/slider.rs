//! The slider: the day of the moment as a line over time, with the moment, hours and events on it.

use kymo_base::context::Context;
use kymo_query::marks::{Kind, Mark};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::{cells, greatest, put, put_until};
use crate::app::App;
use crate::meters::{Full, METERS, Meter};
use crate::palette::Palette;
use crate::window::Range;

/// Lines of the slider.
pub(super) const HEIGHT: u16 = 2;
const HOUR_NS: i64 = 3_600_000_000_000;
/// Least distance between hours that are written.
const HOUR_CELLS: i64 = 6;

/// The content of a slider.
pub(super) struct Slider<'a> {
    pub(super) palette: &'a Palette,
    pub(super) meter: &'static Meter,
    /// The day, the meter over it, and its events.
    pub(super) day: (Range, &'a [f64], &'a [Mark]),
    /// The moment, and the one that it is compared with.
    pub(super) moments: [Option<i64>; 2],
    /// Local hour at which the range begins.
    pub(super) first_hour: i64,
}

/// Draws the slider; its place, and the first and last moment.
pub(super) fn draw(
    app: &App,
    context: &Context,
    buffer: &mut Buffer,
    area: Rect,
) -> Option<(Rect, i64, i64)> {
    let (end, quiet) = (area.x + area.width, app.palette.quiet());
    let Some(past) = app.past() else {
        let text = match app.no_past.as_str() {
            "" => "no past",
            why => why,
        };
        let text = app.palette.fit(text);
        put_until(buffer, (area.x, area.y), end, &text, quiet);
        return None;
    };
    let meter = &METERS[app.screen.meter];
    let Some((range, window)) = app.day() else {
        unread(&app.palette, meter, buffer, area);
        return None;
    };
    let line = window.lines.get(app.screen.meter);
    let (_, begin) = app.local(context, range.from_ns);
    let first_hour = begin.get(..2).and_then(|hour| hour.parse().ok());
    let slider = Slider {
        palette: &app.palette,
        meter,
        day: (*range, line.map_or(&[][..], Vec::as_slice), &window.marks),
        moments: [Some(app.at_ns()), app.held.as_ref().map(|held| held.at_ns)],
        first_hour: first_hour.unwrap_or(0),
    };
    let place = slider.draw(buffer, area);
    let (day, time) = app.local(context, past.extent().from_ns);
    let kept = format!("  kept since {day} {time}");
    let width = u16::try_from(kept.len()).unwrap_or(0);
    if app.is_live() && area.width > 120 {
        let x = end.saturating_sub(width);
        put(buffer, x, area.y + 1, width, &kept, quiet);
    }
    Some(place)
}

/// The name of the meter; where the slider begins.
fn name(palette: &Palette, meter: &Meter, buffer: &mut Buffer, area: Rect) -> u16 {
    let name = format!("{} ", meter.name);
    let end = area.x + area.width;
    put_until(buffer, (area.x, area.y), end, &name, palette.name())
}

/// Draws a slider whose day is not known yet.
pub(super) fn unread(palette: &Palette, meter: &Meter, buffer: &mut Buffer, area: Rect) {
    let x = name(palette, meter, buffer, area);
    let end = area.x + area.width;
    put_until(buffer, (x, area.y), end, "reading the day", palette.quiet());
}

impl Slider<'_> {
    /// Draws the slider; its place, and the first and last moment.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect) -> (Rect, i64, i64) {
        let x = name(self.palette, self.meter, buffer, area);
        let strip = Rect::new(x, area.y, (area.x + area.width).saturating_sub(x), 1);
        let (range, line, marks) = self.day;
        curve(self.palette, self.meter, buffer, strip, line);
        let spot = Spot {
            strip,
            from_ns: range.from_ns,
            thru_ns: range.thru_ns,
        };
        hours(self.palette, buffer, &spot, self.first_hour);
        events(self.palette, buffer, &spot, marks);
        for at_ns in self.moments.into_iter().flatten() {
            if let Some(x) = spot.x(at_ns) {
                let cell = &mut buffer[(x, strip.y)];
                let style = self.palette.high().patch(self.palette.turned());
                cell.set_style(style);
                buffer[(x, strip.y + 1)].set_symbol("^").set_style(style);
            }
        }
        (strip, range.from_ns, range.thru_ns)
    }
}

/// A meter over time.
pub(super) fn curve(
    palette: &Palette,
    meter: &Meter,
    buffer: &mut Buffer,
    strip: Rect,
    line: &[f64],
) {
    // Points may reach beyond the day.
    let values = cells(line, strip.width);
    let full = match meter.full {
        Full::Percent => 100.0,
        Full::Field(_) | Full::Most => greatest(&values).max(f64::MIN_POSITIVE),
    };
    for (x, value) in (strip.x..strip.x + strip.width).zip(&values) {
        let bar = palette.bar(value / full);
        buffer[(x, strip.y)]
            .set_symbol(bar)
            .set_style(palette.line());
    }
}

/// Place of a day on the screen.
struct Spot {
    strip: Rect,
    from_ns: i64,
    thru_ns: i64,
}

impl Spot {
    /// The column of a moment.
    fn x(&self, at_ns: i64) -> Option<u16> {
        if !(self.from_ns..self.thru_ns).contains(&at_ns) || self.strip.width == 0 {
            return None;
        }
        let cell_ns = ((self.thru_ns - self.from_ns) / i64::from(self.strip.width)).max(1);
        let cell = (at_ns - self.from_ns).saturating_sub(1).max(0) / cell_ns;
        let cell = u16::try_from(cell).ok()?;
        Some(self.strip.x + cell.min(self.strip.width - 1))
    }
}

/// Writes the hours below the line; `first`: the hour at which it begins.
fn hours(palette: &Palette, buffer: &mut Buffer, spot: &Spot, first: i64) {
    let hours = (spot.thru_ns - spot.from_ns) / HOUR_NS;
    let cells = i64::from(spot.strip.width) / hours.max(1);
    let step = [1, 2, 3, 4, 6, 12, 24]
        .into_iter()
        .find(|step| step * cells >= HOUR_CELLS)
        .unwrap_or(24);
    let mut hour = 0;
    while hour < hours {
        let at_ns = spot.from_ns + hour * HOUR_NS;
        if let Some(x) = spot.x(at_ns + 1) {
            let text = format!("{:02}:00", (first + hour) % 24);
            let end = spot.strip.x + spot.strip.width;
            put_until(buffer, (x, spot.strip.y + 1), end, &text, palette.quiet());
        }
        hour += step;
    }
}

/// The sign of an event.
fn sign(kind: Kind) -> &'static str {
    match kind {
        Kind::Gap => "-",
        Kind::Missed => "m",
        Kind::Slow => "s",
        Kind::Clock => "c",
        Kind::Suspend => "z",
        Kind::Boot => "B",
        Kind::Start => "R",
        Kind::Note | Kind::Failure | Kind::Warning | Kind::Okay => "!",
    }
}

fn events(palette: &Palette, buffer: &mut Buffer, spot: &Spot, marks: &[Mark]) {
    // Gaps first, so that what happened at their ends is seen.
    let gaps = marks.iter().filter(|mark| mark.kind == Kind::Gap);
    let others = marks.iter().filter(|mark| mark.kind != Kind::Gap);
    for mark in gaps.chain(others) {
        let from = spot.x(mark.from_ns.max(spot.from_ns));
        let until = spot.x(mark.until_ns.min(spot.thru_ns - 1));
        let (Some(from), Some(until)) = (from, until) else {
            continue;
        };
        let style: Style = palette.event();
        for x in from..=until {
            let cell = &mut buffer[(x, spot.strip.y + 1)];
            cell.set_symbol(sign(mark.kind)).set_style(style);
        }
    }
}
