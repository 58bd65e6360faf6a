//! Events on a graph: gaps are shaded, other events have a flag at the upper edge and a thin line.

use kymo_query::marks::{Kind, Mark};
use kymo_query::series::Grid;

use super::clock;
use super::curves::Canvas;
use super::font::width;
use super::palette::Inks;
use super::pen::{Anchor, Area, Path, put_path, put_rect, put_text};
use super::{Picture, TEXT};
use crate::time::Zone;

/// Distance below which marks of a kind share a flag, in pixels.
const CLOSE: f64 = 5.0;
/// Most flags of a kind that have lines; more lines would hide the curves.
const LINES_MOST: usize = 12;

/// Number and total duration of the marks of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Count {
    kind: Kind,
    count: usize,
    length_ns: i64,
}

/// Name of a kind in the explanation.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Gap => "nothing recorded",
        Kind::Missed => "samples missed",
        Kind::Slow => "slow read",
        Kind::Clock => "clock set",
        Kind::Suspend => "suspended",
        Kind::Boot => "machine started",
        Kind::Start => "recorder started",
        Kind::Note => "note",
        Kind::Failure => "failure",
        Kind::Warning => "warning",
        Kind::Okay => "okay",
    }
}

/// Colour of a kind: the alarm colour for failures, another one for all others.
fn ink(kind: Kind, inks: &Inks) -> &'static str {
    match kind {
        Kind::Gap | Kind::Missed | Kind::Slow | Kind::Failure => inks.alarm,
        _ => inks.mark,
    }
}

/// Counts the marks within a picture by kind.
pub(super) fn counted(picture: &Picture) -> Vec<Count> {
    let count = |kind: Kind| {
        let marks = || within(picture, kind);
        let bound = |mark: &Mark| {
            let from_ns = mark.from_ns.max(picture.grid.from_ns);
            mark.until_ns
                .min(picture.grid.thru_ns())
                .saturating_sub(from_ns)
        };
        Count {
            kind,
            count: marks().count(),
            length_ns: marks().map(bound).fold(0, i64::saturating_add),
        }
    };
    Kind::ALL
        .map(count)
        .into_iter()
        .filter(|each| each.count > 0)
        .collect()
}

fn within<'a>(picture: &'a Picture, kind: Kind) -> impl Iterator<Item = &'a Mark> {
    let Grid { from_ns, .. } = picture.grid;
    let thru_ns = picture.grid.thru_ns();
    picture.marks.iter().filter(move |mark| {
        mark.kind == kind && mark.until_ns >= from_ns && mark.from_ns <= thru_ns
    })
}

/// Shades the gaps.
pub(super) fn shade(
    picture: &Picture,
    canvas: &Canvas,
    zone: &mut Zone,
    inks: &Inks,
    out: &mut String,
) {
    for mark in within(picture, Kind::Gap) {
        let (left, right) = (canvas.x(mark.from_ns), canvas.x(mark.until_ns));
        let area = Area {
            left,
            width: (right - left).max(1.0),
            ..canvas.area
        };
        let fill = format!("fill=\"{}\" fill-opacity=\"0.13\"", inks.muted);
        put_rect(out, area, &fill, &title(mark, zone));
    }
}

fn title(mark: &Mark, zone: &mut Zone) -> String {
    let at = clock::moment(zone, mark.from_ns);
    let long = match mark.until_ns.saturating_sub(mark.from_ns) {
        0 => String::new(),
        ns => format!(", {}", clock::length(ns)),
    };
    format!("{at}{long}: {}", mark.text)
}

/// Marks to draw on a graph.
pub(super) struct Flagged<'a> {
    /// The marks, oldest first.
    pub marks: Vec<&'a Mark>,
    /// The graph's box.
    pub area: Area,
    /// The x of a time in the box.
    pub x: &'a dyn Fn(i64) -> f64,
}

/// Flags all marks of a picture except gaps.
pub(super) fn flag_all(
    picture: &Picture,
    canvas: &Canvas,
    zone: &mut Zone,
    inks: &Inks,
    out: &mut String,
) {
    let all = Kind::ALL.into_iter();
    let flagged = Flagged {
        marks: all.flat_map(|kind| within(picture, kind)).collect(),
        area: canvas.area,
        x: &|at_ns| canvas.x(at_ns),
    };
    flag(&flagged, zone, inks, out);
}

/// Draws flags, one for marks close to each other. Gaps have none.
pub(super) fn flag(flagged: &Flagged, zone: &mut Zone, inks: &Inks, out: &mut String) {
    let area = flagged.area;
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Gap) {
        let mut flags: Vec<(f64, &Mark, usize)> = Vec::new();
        for mark in flagged.marks.iter().filter(|mark| mark.kind == kind) {
            let x = (flagged.x)(mark.from_ns);
            match flags.last_mut() {
                Some((last, _, more)) if (x - *last).abs() < CLOSE => *more += 1,
                _ => flags.push((x, mark, 0)),
            }
        }
        let lines = flags.len() <= LINES_MOST;
        for (x, mark, more) in flags {
            let title = match more {
                0 => title(mark, zone),
                more => format!("{} (and {more} more)", title(mark, zone)),
            };
            if lines {
                draw_line(x, area, ink(kind, inks), out);
            }
            draw_flag((x, area.top - 1.0), ink(kind, inks), &title, out);
        }
    }
}

fn draw_line(x: f64, area: Area, ink: &str, out: &mut String) {
    let mut path = Path::default();
    path.move_to(x, area.top);
    path.line_to(x, area.bottom());
    let stroke =
        format!("stroke=\"{ink}\" stroke-opacity=\"0.6\" stroke-dasharray=\"2 3\" fill=\"none\"");
    put_path(out, &path.text(), &stroke, "");
}

/// Draws a triangle that points down to its place.
fn draw_flag((x, y): (f64, f64), ink: &str, title: &str, out: &mut String) {
    let mut path = Path::default();
    path.move_to(x, y);
    path.line_to(x - 3.5, y - 6.0);
    path.line_to(x + 3.5, y - 6.0);
    path.close();
    put_path(out, &path.text(), &format!("fill=\"{ink}\""), title);
}

/// Explains the flags in one line, as far as there is room.
pub(super) fn explain(counts: &[Count], at: (f64, f64), right: f64, inks: &Inks, out: &mut String) {
    let (mut x, base) = at;
    for each in counts {
        let text = match each.length_ns {
            0 => format!("{} × {}", each.count, word(each.kind)),
            ns => format!(
                "{} × {}, {} in all",
                each.count,
                word(each.kind),
                clock::length(ns)
            ),
        };
        let end = x + 12.0 + width(&text, TEXT);
        if end > right {
            return;
        }
        if each.kind == Kind::Gap {
            let area = Area {
                left: x - 2.0,
                top: base - 9.0,
                width: 9.0,
                height: 10.0,
            };
            let fill = format!("fill=\"{}\" fill-opacity=\"0.25\"", inks.muted);
            put_rect(out, area, &fill, "");
        } else {
            draw_flag((x + 2.0, base - 1.0), ink(each.kind, inks), "", out);
        }
        put_text(
            out,
            (x + 12.0, base),
            Anchor::Start,
            (TEXT, inks.muted),
            &text,
        );
        x = end + 20.0;
    }
}
