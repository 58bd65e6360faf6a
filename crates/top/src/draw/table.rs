//! The table: its name and order, the head, and the lines that fit.

use kymo_base::column::Cells;
use kymo_kernel::subsystem::process::{COMM, pid_of};
use kymo_view::RowText;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::{cut_above, put, put_until};
use crate::app::{App, Held};
use crate::areas::Drawn;
use crate::lines::{self, Line, Lines, Shape};
use crate::meters::short;
use crate::readings::{Part, Readings};
use crate::tables::{Content, GROUPED, TABLES};

/// Levels of a tree that are shown by their depth.
const LEVELS_MAX: usize = 24;
/// Head of a comparison.
const COMPARED: &str = "     Then      Now   Change     PID Name";

/// Draws the table of the screen.
pub(super) fn draw(
    app: &App,
    readings: &Readings,
    buffer: &mut Buffer,
    mut area: Rect,
    drawn: &mut Drawn,
) {
    let screen = &app.screen;
    let tabs = cut_above(&mut area, 1);
    if screen.table.content == Content::Programs {
        return programs(app, buffer, (tabs, area), drawn);
    }
    let head = cut_above(&mut area, 1);
    let Some(part) = readings.part(screen.table.subsystem) else {
        bar(app, buffer, tabs, "");
        let name = screen.table.name.to_lowercase();
        let text = format!("no {name} were recorded here");
        put(buffer, head.x, head.y, head.width, &text, Style::new());
        return;
    };
    let lines = app.lines(readings);
    bar(
        app,
        buffer,
        tabs,
        &about(app, readings, part, lines.all.len()),
    );
    let text = head_of(app, area.width);
    let whole = format!("{text:<width$}", width = usize::from(head.width));
    put(
        buffer,
        head.x,
        head.y,
        head.width,
        &whole,
        app.palette.turned(),
    );
    let page = usize::from(area.height);
    let selected = screen.selected.as_ref();
    let known = selected.and_then(|one| lines.position(one, part));
    choose(app, (known, lines.all.len()), page, drawn);
    if let Some(line) = lines.all.get(drawn.cursor) {
        drawn.selected = lines.identity(line, part);
    }
    let row = Row::of(app, area.width);
    let shown = lines.all.iter().enumerate().skip(drawn.top);
    for ((at, line), y) in shown.zip(area.y..area.y + area.height) {
        let text = row.text(app, part, readings, (&lines, line));
        let is_selected = screen.selected.is_some() && at == drawn.cursor;
        let style = match is_selected {
            true => app.palette.turned(),
            false => Style::new(),
        };
        let width = usize::from(area.width);
        let text = match is_selected {
            true => format!("{text:<width$}"),
            false => text,
        };
        put(buffer, area.x, y, area.width, &text, style);
    }
    drawn.areas.lines = lines.all.len();
    drawn.areas.head = Some((head, whole));
    drawn.areas.table = Some(area);
}

/// Names of the tables, and the state of the present one.
fn bar(app: &App, buffer: &mut Buffer, area: Rect, about: &str) {
    let end = area.x + area.width;
    let mut x = area.x;
    for table in TABLES {
        let style = match table.key == app.screen.table.key {
            true => app.palette.name().patch(app.palette.turned()),
            false => app.palette.quiet(),
        };
        let name = match area.width < 100 && table.key != app.screen.table.key {
            true => format!("{}:{}", table.key, table.short),
            false => format!("{}:{}", table.key, table.name),
        };
        x = put_until(buffer, (x, area.y), end, &name, style) + 1;
    }
    put_until(
        buffer,
        (x, area.y),
        end,
        &app.palette.fit(about),
        app.palette.quiet(),
    );
}

fn about(app: &App, readings: &Readings, part: &Part, count: usize) -> String {
    let screen = &app.screen;
    let order = screen.order();
    let name = screen.table.order_names().get(order.at).copied();
    let turned = if order.turned { ", turned" } else { "" };
    let shape = match screen.shape {
        Shape::Tree if screen.table.key == '1' => "tree, ",
        Shape::By(_) if screen.table.key == '1' => "added up, ",
        Shape::Flat | Shape::Tree | Shape::By(_) => "",
    };
    let over = match part.elapsed() {
        0.0 => "since their start".into(),
        seconds => format!("{seconds:.0} s"),
    };
    // Rare readings are of another moment than the one above.
    let until = match part.at {
        Some(read) if read.real_ns != app.at_ns() => {
            format!(" to {}", app.local(&readings.context, read.real_ns).1)
        }
        _ => String::new(),
    };
    format!(
        " {shape}by {}{turned}, {over}{until}, {count}",
        name.unwrap_or_default()
    )
}

/// The programs of the moment, as text.
fn programs(app: &App, buffer: &mut Buffer, (tabs, area): (Rect, Rect), drawn: &mut Drawn) {
    bar(app, buffer, tabs, "");
    let lines = match app.programs() {
        Ok(lines) => lines,
        Err(why) => vec![why],
    };
    choose(app, (None, lines.len()), usize::from(area.height), drawn);
    let shown = lines.iter().enumerate().skip(drawn.top);
    for ((at, line), y) in shown.zip(area.y..area.y + area.height) {
        let style = match line.starts_with(' ') {
            _ if app.screen.selected.is_some() && at == drawn.cursor => app.palette.turned(),
            true => Style::new(),
            false => app.palette.name(),
        };
        put(buffer, area.x, y, area.width, &app.palette.fit(line), style);
    }
    drawn.areas.lines = lines.len();
    drawn.areas.table = Some(area);
}

/// The position of the selected line, where it is known, else of the cursor; and the first line that is shown.
fn choose(app: &App, (known, count): (Option<usize>, usize), page: usize, drawn: &mut Drawn) {
    let screen = &app.screen;
    drawn.cursor = known.unwrap_or(screen.cursor).min(count.saturating_sub(1));
    let highest = (drawn.cursor + 1).saturating_sub(page);
    let most = count.saturating_sub(page).max(highest);
    drawn.top = screen
        .top
        .clamp(highest, drawn.cursor.max(highest))
        .min(most);
    drawn.page = page;
}

fn head_of(app: &App, width: u16) -> String {
    let screen = &app.screen;
    if app.compared().is_some() {
        return COMPARED.into();
    }
    match screen.shape {
        Shape::By(column) if screen.table.key == '1' => {
            let name = match column {
                "user" => "User",
                "comm" => "Program",
                _ => "Control group",
            };
            format!("{}{name}", GROUPED.head)
        }
        Shape::Flat | Shape::Tree | Shape::By(_) => {
            screen.table.set(screen.set, width).head.to_string()
        }
    }
}

/// Form of the table's lines.
struct Row {
    row: RowText,
}

impl Row {
    fn of(app: &App, width: u16) -> Row {
        let screen = &app.screen;
        let is_grouped = matches!(screen.shape, Shape::By(_)) && screen.table.key == '1';
        let set = match is_grouped {
            true => &GROUPED,
            false => screen.table.set(screen.set, width),
        };
        Row {
            row: RowText::of(set.row, screen.table.subsystem),
        }
    }

    fn text(
        &self,
        app: &App,
        part: &Part,
        readings: &Readings,
        (lines, line): (&Lines, &Line),
    ) -> String {
        let cells = lines.cells(line, part, &readings.context);
        let last = last(app, lines.label(line), &cells);
        let mut text = match app.compared() {
            Some(held) => compared(app, held, part, (lines, line)),
            None => self.row.text(&cells),
        };
        if app.screen.table.content == Content::Waiting && app.compared().is_none() {
            let place = match app.is_live() {
                true => (app.waits_for)(pid_of(cells.name)),
                false => "not recorded".into(),
            };
            text += &format!("{place:<20} ");
        }
        if line.level > 0 {
            let level = line.level.min(LEVELS_MAX);
            text += &"  ".repeat(level - 1);
            text += app.palette.branch();
        }
        text += &last;
        app.palette.fit(&text)
    }
}

/// The open place at the end of a line.
fn last(app: &App, label: Option<&str>, cells: &Cells) -> String {
    let table = app.screen.table;
    if let Some(label) = label {
        return label.to_string();
    }
    if table.subsystem.is_of_processes() && !app.screen.commands {
        let name = cells.labels.get(COMM).map_or(&[][..], Vec::as_slice);
        return kymo_base::name::DisplayName(name).text().into_owned();
    }
    match table.column(table.last).map(|column| column.value) {
        Some(kymo_base::column::Value::Number(value)) => format!("{:.0}", value(cells)),
        Some(value) => lines::text(value, cells),
        None => String::new(),
    }
}

/// The order's value then and now, and the change.
fn compared(app: &App, held: &Held, part: &Part, (lines, line): (&Lines, &Line)) -> String {
    let order = app.screen.order().at;
    let one = lines.identity(line, part);
    let then = held.lines.get(&one).and_then(|values| values.get(order));
    let (then, now) = (then.copied().unwrap_or(f64::NAN), line.value);
    let known = if then.is_nan() { 0.0 } else { then };
    let change = match now - known {
        change if change >= 0.0 => format!("+{}", short(change, 1000.0)),
        change => short(change, 1000.0),
    };
    let pid = match app.screen.table.subsystem.is_of_processes() && lines.label(line).is_none() {
        true => pid_of(&one.name).to_string(),
        false => String::new(),
    };
    format!(
        "{:>9}{:>9}{change:>9}{pid:>8} ",
        short(then, 1000.0),
        short(now, 1000.0)
    )
}
