//! The picture of several hosts: a title, a meter around the moment, the slider of the day, and a row for each host.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::header::length;
use super::slider::{self, Slider, curve};
use super::{cut_above, cut_below, footer, is_too_small, put, put_until, scrolled};
use crate::areas::Drawn;
use crate::fleet::Fleet;
use crate::help;
use crate::hosts::{head, line, name_width};
use crate::lines::Identity;

/// Width of all columns but the name's.
const COLUMNS_WIDTH: u16 = 62;
/// Least width of names.
const NAME_LEAST: u16 = 8;
const USUAL: &str =
    "Enter: open  ?: keys  Left Right: time  b: go to  L: live  < >: order  /: filter  q: quit";

/// Draws the picture.
pub(super) fn picture(fleet: &Fleet, buffer: &mut Buffer) -> Drawn {
    let (mut area, screen) = (buffer.area, &fleet.screen);
    let mut drawn = Drawn {
        scroll: screen.scroll,
        ..Drawn::default()
    };
    if is_too_small(buffer) {
        return drawn;
    }
    let last = cut_below(&mut area, 1);
    footer(screen, &fleet.palette, buffer, last, USUAL);
    if fleet.shows_help() {
        let lines = help::lines(help::HOST_KEYS);
        drawn.page = usize::from(area.height);
        drawn.scroll = scrolled(screen, &fleet.palette, buffer, area, &lines);
        return drawn;
    }
    title(fleet, buffer, cut_above(&mut area, 1));
    around(fleet, buffer, cut_above(&mut area, 1));
    let strip = cut_above(&mut area, slider::HEIGHT);
    drawn.areas.slider = day(fleet, buffer, strip);
    table(fleet, buffer, area, &mut drawn);
    drawn
}

fn title(fleet: &Fleet, buffer: &mut Buffer, area: Rect) {
    let (palette, end) = (&fleet.palette, area.x + area.width);
    let at_ns = fleet.shown_ns();
    let (day, time) = fleet.local(at_ns);
    let (up, all) = fleet.counts();
    let hosts = format!("{up} of {all} hosts");
    let x = put_until(buffer, (area.x, area.y), end, &hosts, palette.name());
    let moment = format!("  {day} {time}  ");
    let x = put_until(buffer, (x, area.y), end, &moment, palette.bold());
    let age = match (fleet.at_ns(), fleet.screen.paused) {
        (None, true) => "standing still".into(),
        (None, false) => "live".into(),
        (Some(_), _) => format!("{} ago", length(fleet.now_ns.saturating_sub(at_ns))),
    };
    let x = put_until(buffer, (x, area.y), end, &age, palette.high());
    let turned = if fleet.screen.order().turned {
        ", turned"
    } else {
        ""
    };
    let mut rest = format!("  by {}{turned}", fleet.order_name());
    if let Some((held_ns, _)) = &fleet.held {
        let (_, then) = fleet.local(*held_ns);
        rest += &format!("  against {then}");
    }
    put_until(buffer, (x, area.y), end, &rest, palette.quiet());
}

/// The meter around the moment, of each time the greatest of all hosts.
fn around(fleet: &Fleet, buffer: &mut Buffer, area: Rect) {
    let (palette, end) = (&fleet.palette, area.x + area.width);
    let span = length(fleet.screen.span_s().saturating_mul(1_000_000_000));
    let name = format!("{} over {span} ", fleet.meter().name);
    let x = put_until(buffer, (area.x, area.y), end, &name, palette.name());
    let strip = Rect::new(x, area.y, end.saturating_sub(x), 1);
    let window = fleet.around().and_then(|range| fleet.strip(1, range));
    let Some(window) = window else {
        put_until(buffer, (x, area.y), end, "reading", palette.quiet());
        return;
    };
    let values = window.lines.first().map_or(&[][..], Vec::as_slice);
    curve(palette, fleet.meter(), buffer, strip, values);
    if let Some(point) = fleet.at_ns().and_then(|at_ns| window.point(at_ns)) {
        let cell = point * usize::from(strip.width) / values.len().max(1);
        let x = strip.x.saturating_add(u16::try_from(cell).unwrap_or(0));
        if x < end {
            let style = palette.high().patch(palette.turned());
            buffer[(x, area.y)].set_style(style);
        }
    }
}

fn day(fleet: &Fleet, buffer: &mut Buffer, area: Rect) -> Option<(Rect, i64, i64)> {
    let range = fleet.day();
    let Some(window) = fleet.strip(0, range) else {
        slider::unread(&fleet.palette, fleet.meter(), buffer, area);
        return None;
    };
    let slider = Slider {
        palette: &fleet.palette,
        meter: fleet.meter(),
        day: (
            range,
            window.lines.first().map_or(&[][..], Vec::as_slice),
            &window.marks,
        ),
        moments: [
            Some(fleet.shown_ns()),
            fleet.held.as_ref().map(|(held_ns, _)| *held_ns),
        ],
        first_hour: 0,
    };
    Some(slider.draw(buffer, area))
}

fn table(fleet: &Fleet, buffer: &mut Buffer, mut area: Rect, drawn: &mut Drawn) {
    let (screen, palette) = (&fleet.screen, &fleet.palette);
    let top = cut_above(&mut area, 1);
    let lines = fleet.lines();
    let room = area.width.saturating_sub(COLUMNS_WIDTH).max(NAME_LEAST);
    let name = name_width(lines.iter().map(|(row, _)| *row)).min(usize::from(room));
    let width = usize::from(area.width);
    let whole = format!("{:<width$}", head(name));
    put(buffer, top.x, top.y, top.width, &whole, palette.turned());
    let last = lines.len().saturating_sub(1);
    let selected = screen.selected.as_ref();
    let known = selected.and_then(|one| {
        let mut names = lines.iter().map(|(row, _)| row.name.as_bytes());
        names.position(|name| name == one.name)
    });
    let page = usize::from(area.height);
    drawn.cursor = known.unwrap_or(screen.cursor).min(last);
    let highest = (drawn.cursor + 1).saturating_sub(page);
    drawn.top = screen.top.clamp(highest, drawn.cursor.max(highest));
    drawn.page = page;
    let now_ns = fleet.shown_ns();
    let heights = area.y..area.y + area.height;
    let shown = lines.iter().enumerate().skip(drawn.top).zip(heights);
    for ((at, (row, _)), y) in shown {
        let held = fleet.held.as_ref();
        let then = held.and_then(|(_, then)| then.get(&row.name));
        let text = palette.fit(&line(row, name, now_ns, then));
        let style = match () {
            () if selected.is_some() && at == drawn.cursor => palette.turned(),
            // Numbers of the moment before, until those of this one come.
            () if row.at_ns != fleet.at_ns() => palette.quiet(),
            () => Style::new(),
        };
        put(
            buffer,
            area.x,
            y,
            area.width,
            &format!("{text:<width$}"),
            style,
        );
    }
    if let Some((row, _)) = lines.get(drawn.cursor) {
        drawn.selected = Identity {
            name: row.name.clone().into_bytes(),
            key: 0,
        };
    }
    drawn.areas.lines = lines.len();
    drawn.areas.head = Some((top, whole));
    drawn.areas.table = Some(area);
}
