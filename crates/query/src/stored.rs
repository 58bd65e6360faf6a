//! Series of the store, asked of the keeper, in the forms of the page and the terminal.

mod client;
mod field;
#[cfg(feature = "testing")]
pub mod fuzz;
#[cfg(feature = "store")]
mod points;

pub use client::{Listed, SharedKeeper};
pub use field::{Answered, MARK, StoredField, find, unit};
#[cfg(feature = "store")]
pub use points::KeeperReader;

use kymo_base::name::DisplayName;
use kymo_keeper_client::Keeper;
use kymo_wire::collectd::Severity;
use kymo_wire::keeper::{Event, EventRange, Rows};

use crate::marks::{Kind, Mark, Origin};
use crate::series::{Grid, Point};

const SECOND_NS: i64 = 1_000_000_000;

/// A column of rows over a grid. A row counts for the points that it covers.
pub fn points(rows: &Rows, column: usize, grid: &Grid) -> Vec<Point> {
    let mut points = vec![Point::NONE; grid.count];
    let (width, step_ns) = (rows.columns.len(), i64::from(rows.step) * SECOND_NS);
    let cell = |cells: &[f64], at: usize| cells.get(at * width + column).copied();
    for row in 0..rows.mean.len().checked_div(width).unwrap_or(0) {
        let Some(mean) = cell(&rows.mean, row).filter(|mean| !mean.is_nan()) else {
            continue;
        };
        let known = |cells| {
            cell(cells, row)
                .filter(|cell| !cell.is_nan())
                .unwrap_or(mean)
        };
        let thru_ns = rows
            .start
            .saturating_mul(SECOND_NS)
            .saturating_add(step_ns.saturating_mul(row as i64 + 1));
        for (n, seconds) in grid.covered(thru_ns, step_ns as f64 / 1e9) {
            points[n].merge(&Point {
                min: known(&rows.min).min(mean),
                max: known(&rows.max).max(mean),
                sum: mean * seconds,
                seconds,
            });
        }
    }
    points
}

/// Notifications as marks; no hosts: of all hosts.
pub fn marks(keeper: &Keeper, range: (i64, i64), hosts: Vec<Vec<u8>>) -> Result<Vec<Mark>, String> {
    let (from, thru) = range;
    let events = keeper.events(&EventRange {
        from,
        thru,
        events_max: u32::MAX,
        hosts,
    })?;
    Ok(events.iter().map(mark).collect())
}

/// Events of a polled device.
pub fn device_marks(keeper: &Keeper, device: &str, range: (i64, i64)) -> Result<Vec<Mark>, String> {
    let mut marks = marks(keeper, range, vec![device.as_bytes().to_vec()])?;
    marks.retain(|mark| matches!(mark.origin, Origin::Device(_)));
    Ok(marks)
}

/// An event as a mark on the graphs of its host or its device.
pub fn mark(event: &Event) -> Mark {
    let is_of_device = event.is_of_device();
    let name = match is_of_device {
        true => event.host.clone(),
        false => event.name(),
    };
    let message = DisplayName(&event.message);
    let whose = DisplayName(&event.host).to_string();
    Mark {
        from_ns: event.time_ns,
        until_ns: event.time_ns,
        kind: match event.severity {
            Severity::Failure => Kind::Failure,
            Severity::Warning => Kind::Warning,
            Severity::Okay => Kind::Okay,
        },
        text: match name.is_empty() {
            true => message.to_string(),
            false => format!("{}: {message}", DisplayName(&name)),
        },
        origin: match is_of_device {
            true => Origin::Device(whose),
            false => Origin::Host(whose),
        },
    }
}

/// The seconds that a grid covers.
pub fn seconds_of(grid: &Grid) -> (i64, i64) {
    let from = grid.from_ns.div_euclid(SECOND_NS);
    let thru = grid.thru_ns();
    (
        from,
        thru.div_euclid(SECOND_NS) + i64::from(thru.rem_euclid(SECOND_NS) != 0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_cover_points() {
        let nan = f64::NAN;
        let rows = Rows {
            start: 1000,
            step: 10,
            columns: vec![b"a".to_vec(), b"b".to_vec()],
            mean: vec![1.0, 2.0, nan, 3.0, 5.0, nan],
            min: vec![0.0, 2.0, nan, 3.0, 5.0, nan],
            max: vec![9.0, 2.0, nan, 3.0, 5.0, nan],
        };
        let grid = |from: i64, step: i64, count| Grid {
            from_ns: from * SECOND_NS,
            step_ns: step * SECOND_NS,
            count,
        };
        let means = |column, grid: &Grid| {
            let points = points(&rows, column, grid);
            points.iter().map(Point::mean).collect::<Vec<_>>()
        };
        // Finer points: each has the value of its row.
        assert_eq!(means(0, &grid(1000, 5, 2)), [1.0, 1.0]);
        let fine = points(&rows, 0, &grid(1000, 5, 6));
        assert_eq!((fine[0].min, fine[0].max), (0.0, 9.0));
        assert!(fine[2].mean().is_nan() && fine[3].mean().is_nan());
        assert_eq!(fine[5].mean(), 5.0);
        // Coarser rows: the mean over time of the known values.
        assert_eq!(means(1, &grid(1000, 20, 1)), [2.5]);
        assert_eq!(means(0, &grid(1000, 30, 1)), [3.0]);
        assert!(means(0, &grid(2000, 10, 1))[0].is_nan());
    }

    #[test]
    fn events_are_marks_of_their_hosts() {
        let event = Event {
            time_ns: 5,
            severity: Severity::Failure,
            host: b"web1".to_vec(),
            plugin: b"df".to_vec(),
            plugin_instance: b"root".to_vec(),
            type_name: Vec::new(),
            type_instance: Vec::new(),
            message: b"<b>\x1b[2J".to_vec(),
        };
        let made = mark(&event);
        assert_eq!((made.from_ns, made.until_ns), (5, 5));
        assert_eq!(
            (made.kind, made.origin),
            (Kind::Failure, Origin::Host("web1".into()))
        );
        assert_eq!(made.text, "web1/df-root: <b>\\x1b[2J");
        let polled = Event {
            plugin: b"poll".to_vec(),
            plugin_instance: Vec::new(),
            ..event.clone()
        };
        let made = mark(&polled);
        assert_eq!(made.origin, Origin::Device("web1".into()));
        assert_eq!(made.text, "web1: <b>\\x1b[2J");
        let nameless = Event {
            host: Vec::new(),
            plugin: Vec::new(),
            plugin_instance: Vec::new(),
            ..event
        };
        assert_eq!(mark(&nameless).text, "<b>\\x1b[2J");
    }

    #[test]
    fn a_grid_in_seconds() {
        let grid = Grid {
            from_ns: 1_500_000_000,
            step_ns: 100_000_000,
            count: 3,
        };
        assert_eq!(seconds_of(&grid), (1, 2));
    }
}
