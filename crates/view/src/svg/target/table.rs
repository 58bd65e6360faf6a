//! The table below a target's graph: maximum, average and current rate, for a month the 95th percentile.

use kymo_query::targets::{
    DescribedTarget, Direction, PERCENT, Period, TargetGraph, direction_name, percent,
};

use super::{LEFT, LINE, SECOND_NS, TargetSheet};
use crate::svg::pen::{Anchor, Area, put_rect};
use crate::svg::{MARGIN, TEXT, clock, font};
use kymo_query::targets::colours;

/// Largest width of a column.
const COLUMN: f64 = 150.0;
/// Width of the directions' names.
const NAMES: f64 = 110.0;

/// Directions in the table, with their names.
fn listed(target: &DescribedTarget) -> impl Iterator<Item = (Direction, &str)> {
    let names = Direction::ALL.into_iter();
    names.filter_map(|direction| Some((direction, direction_name(target, direction)?)))
}

/// Number of lines of the table.
pub(super) fn lines(target: &DescribedTarget, graph: &TargetGraph) -> f64 {
    let peaks = usize::from(target.has("avgpeak"));
    let percentile = usize::from(graph.period == Period::Month);
    (1 + listed(target).count() + peaks + percentile) as f64
}

/// Draws the table; `base` is the baseline of its first line.
pub(super) fn draw(sheet: &mut TargetSheet, graph: &TargetGraph, mut base: f64) {
    let target = sheet.target;
    let is_month = graph.period == Period::Month;
    let percentile = format!("{PERCENT} %");
    let heads = ["Max", "Average", "Current", &percentile];
    let count = if is_month { 4 } else { 3 };
    let room = sheet.width - LEFT - NAMES - MARGIN;
    let width = (room / f64::from(count)).min(COLUMN);
    let right = |n: i32| LEFT + NAMES + width * f64::from(n + 1);
    let (ink, muted) = ((TEXT, sheet.inks.ink), (TEXT, sheet.inks.muted));
    for (n, head) in (0..count).zip(heads) {
        sheet.text((right(n), base), Anchor::End, muted, head);
    }
    let [area_in, line_out, ..] = colours(target);
    for (direction, name) in listed(target) {
        base += LINE;
        let line = direction.of(&graph.lines);
        let swatch = Area {
            left: LEFT,
            top: base - 9.0,
            width: 10.0,
            height: 10.0,
        };
        let fill = format!("fill=\"{}\"", direction.of(&[area_in, line_out]));
        put_rect(sheet.out, swatch, &fill, "");
        let name = font::fit(name, TEXT, NAMES - 16.0).into_owned();
        sheet.text((LEFT + 16.0, base), Anchor::Start, ink, &name);
        let rates = [
            line.max,
            line.average,
            line.current,
            *direction.of(&sheet.percentile.rates),
        ];
        for (n, rate) in (0..count).zip(rates) {
            let number = font::fit(&number(sheet, rate, direction), TEXT, width - 4.0).into_owned();
            sheet.text((right(n), base), Anchor::End, ink, &number);
        }
    }
    for note in notes(sheet, graph, is_month) {
        base += LINE;
        let note = font::fit(&note, TEXT, sheet.width - LEFT - MARGIN).into_owned();
        sheet.text((LEFT, base), Anchor::Start, muted, &note);
    }
}

/// A rate with its percentage of MaxBytes, unless the target has `nopercent`.
fn number(sheet: &TargetSheet, rate: f64, direction: Direction) -> String {
    let text = sheet.unit.text(rate);
    let part = percent(rate, *direction.of(&sheet.target.max_bytes));
    match part.is_finite() && !sheet.target.has("nopercent") {
        true => format!("{text} ({part:.1} %)"),
        false => text,
    }
}

/// Notes below the table: averages of peaks, and the data of the percentile.
fn notes(sheet: &mut TargetSheet, graph: &TargetGraph, is_month: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if sheet.target.has("avgpeak") {
        let rates = listed(sheet.target).map(|(direction, name)| {
            format!(
                "{name} {}",
                number(sheet, direction.of(&graph.lines).average_peak, direction)
            )
        });
        let rates: Vec<String> = rates.collect();
        notes.push(format!(
            "Average of the largest 5-minute rates: {}",
            rates.join(", ")
        ));
    }
    if is_month {
        let percentile = sheet.percentile;
        let [one, other] = percentile.values;
        notes.push(format!(
            "{PERCENT}th percentile of {} averages of {} since {}",
            one.max(other),
            clock::length(i64::from(percentile.step) * SECOND_NS),
            clock::moment(sheet.zone, percentile.from * SECOND_NS)
        ));
    }
    notes
}
