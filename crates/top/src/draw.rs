//! The picture: a header with meters, a slider of the day, a table, and a line for messages. Drawn into cells; a terminal shows
//! those that changed.

mod details;
mod fleet;
mod header;
mod slider;
mod table;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use crate::app::App;
use crate::areas::Drawn;
use crate::fleet::Fleet;
use crate::help;
use crate::palette::Palette;
use crate::screen::{Overlay, Screen, Typing};

/// Least size of a picture.
const LEAST: (u16, u16) = (40, 12);

/// Draws the whole screen.
pub fn draw(app: &mut App, buffer: &mut Buffer) {
    let drawn = picture(app, buffer);
    app.drawn(drawn);
}

/// Draws the screen of several hosts.
pub fn draw_fleet(fleet: &mut Fleet, buffer: &mut Buffer) {
    let drawn = fleet::picture(fleet, buffer);
    fleet.drawn(drawn);
}

/// Draws a remark in the place of the last line.
pub fn draw_remark(palette: &Palette, buffer: &mut Buffer, remark: &str) {
    let mut area = buffer.area;
    let last = cut_below(&mut area, 1);
    let remark = format!("{remark:<width$}", width = usize::from(last.width));
    put(
        buffer,
        last.x,
        last.y,
        last.width,
        &palette.fit(&remark),
        palette.high(),
    );
}

/// The picture as text, a line for each row of cells, without blanks at their ends.
pub fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y: u16| {
        let cells = (0..area.width).map(|x| buffer[(area.x + x, area.y + y)].symbol());
        let line: String = cells.collect();
        line.trim_end().to_string()
    };
    let lines: Vec<String> = (0..area.height).map(line).collect();
    lines.join("\n").trim_end().to_string() + "\n"
}

fn picture(app: &App, buffer: &mut Buffer) -> Drawn {
    let mut area = buffer.area;
    let screen = &app.screen;
    let mut drawn = Drawn {
        scroll: screen.scroll,
        ..Drawn::default()
    };
    if is_too_small(buffer) {
        return drawn;
    }
    let last = cut_below(&mut area, 1);
    let latest = if app.has_live() { "live" } else { "end" };
    let (before, behind) = match screen.nested {
        true => ("Esc: hosts  ", ""),
        false => ("", "  q: quit"),
    };
    let usual = format!(
        "{before}?: keys  w: why  x: worst  b: go to  [ ]: a minute  L: {latest}  /: filter{behind}"
    );
    footer(screen, &app.palette, buffer, last, &usual);
    let palette = &app.palette;
    if screen.overlay == Some(Overlay::Help) {
        let lines = help::lines(help::KEYS);
        drawn.page = usize::from(area.height);
        drawn.scroll = scrolled(screen, palette, buffer, area, &lines);
        return drawn;
    }
    let seen = app.with(|readings| {
        let head = cut_above(&mut area, header::HEIGHT);
        header::draw(app, readings, buffer, head);
        let strip = cut_above(&mut area, slider::HEIGHT);
        drawn.areas.slider = slider::draw(app, &readings.context, buffer, strip);
        match &screen.details {
            _ if screen.overlay == Some(Overlay::Why) => {
                drawn.page = usize::from(area.height);
                drawn.scroll = scrolled(screen, palette, buffer, area, &app.why(area.width));
                (drawn.cursor, drawn.top) = (screen.cursor, screen.top);
            }
            Some(one) => {
                let lines = details::lines(app, readings, one, area.width);
                drawn.page = usize::from(area.height);
                drawn.scroll = scrolled(screen, palette, buffer, area, &lines);
                (drawn.cursor, drawn.top) = (screen.cursor, screen.top);
                drawn.selected = one.clone();
            }
            None => table::draw(app, readings, buffer, area, &mut drawn),
        }
    });
    if seen.is_none() {
        put(
            buffer,
            area.x,
            area.y,
            area.width,
            "no sample yet",
            Style::new(),
        );
    }
    drawn
}

/// Says so where there is no room for a picture.
fn is_too_small(buffer: &mut Buffer) -> bool {
    let area = buffer.area;
    let is_too_small = area.width < LEAST.0 || area.height < LEAST.1;
    if is_too_small {
        put(
            buffer,
            area.x,
            area.y,
            area.width,
            "too small",
            Style::new(),
        );
    }
    is_too_small
}

/// Lines from the one that was scrolled to; where that is, kept within the text.
fn scrolled(
    screen: &Screen,
    palette: &Palette,
    buffer: &mut Buffer,
    area: Rect,
    lines: &[String],
) -> usize {
    let page = usize::from(area.height);
    let first = screen.scroll.min(lines.len().saturating_sub(page));
    for (line, y) in lines.iter().skip(first).zip(area.y..area.y + area.height) {
        let style = match line.starts_with(' ') {
            true => Style::new(),
            false => palette.name(),
        };
        put(buffer, area.x, y, area.width, &palette.fit(line), style);
    }
    first
}

fn footer(screen: &Screen, palette: &Palette, buffer: &mut Buffer, area: Rect, usual: &str) {
    let text = match &screen.typing {
        Some((Typing::Filter, text)) => format!("Filter: {text}_"),
        Some((Typing::Time, text)) => format!("Go to (03:12, -10m, 20261121:14:30): {text}_"),
        None if !screen.message.is_empty() => screen.message.clone(),
        None if screen.overlay.is_some() => "any key: back   Up Down: scroll".into(),
        None if screen.details.is_some() => "Esc: back   Up Down: scroll   Left Right: time".into(),
        None => {
            let filter = match screen.filter.as_str() {
                "" => String::new(),
                filter => format!("filter {filter} (Esc clears it)   "),
            };
            filter + usual
        }
    };
    let style = match screen.typing.is_some() || !screen.message.is_empty() {
        true => palette.high(),
        false => palette.quiet(),
    };
    put(
        buffer,
        area.x,
        area.y,
        area.width,
        &palette.fit(&text),
        style,
    );
}

/// Puts a text, cut to a width; where the next one begins.
fn put(buffer: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
    let (next, _) = buffer.set_stringn(x, y, text, usize::from(width), style);
    next
}

/// Puts a text of a line whose end is `end`; where the next one begins.
fn put_until(buffer: &mut Buffer, at: (u16, u16), end: u16, text: &str, style: Style) -> u16 {
    put(buffer, at.0, at.1, end.saturating_sub(at.0), text, style)
}

fn cut_above(area: &mut Rect, height: u16) -> Rect {
    let height = height.min(area.height);
    let above = Rect { height, ..*area };
    area.y += height;
    area.height -= height;
    above
}

fn cut_below(area: &mut Rect, height: u16) -> Rect {
    let height = height.min(area.height);
    area.height -= height;
    Rect {
        y: area.y + area.height,
        height,
        ..*area
    }
}

/// The greatest of the values that fall into each of `width` cells; with fewer values than cells each fills several.
fn cells(values: &[f64], width: u16) -> Vec<f64> {
    let (count, width) = (values.len(), usize::from(width));
    let cell = |cell: usize| {
        let first = cell * count / width;
        let end = ((cell + 1) * count / width).max(first + 1).min(count);
        let values = values.get(first..end).unwrap_or_default();
        let known = values.iter().copied().filter(|value| !value.is_nan());
        known.reduce(f64::max).unwrap_or(f64::NAN)
    };
    (0..width).map(cell).collect()
}

/// The greatest known value; 0 if there is none.
fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_cells() {
        for (values, width, expect) in [
            (vec![1.0, 3.0, 2.0, 0.0], 2, vec![3.0, 2.0]),
            (vec![1.0, 2.0], 4, vec![1.0, 1.0, 2.0, 2.0]),
            (vec![f64::NAN, 2.0], 1, vec![2.0]),
        ] {
            assert_eq!(cells(&values, width), expect);
        }
        assert!(cells(&[], 3).iter().all(|value| value.is_nan()));
        assert!(cells(&[1.0], 0).is_empty());
    }
}
