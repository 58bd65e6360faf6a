//! The answer to IMPORT, by which an administrator moves series from elsewhere into the store.

use std::io::{self, Write};

use kymo_base::labels;
use kymo_base::name::DisplayName;
use kymo_rrd::Rrd;
use kymo_series::names;
use kymo_store::{
    FileError, ForeignPoints, ForeignSeries, JoinMode, Joined, Point, PointsKind, Store, Tier,
    TierRow,
};
use kymo_sys::machine;
use kymo_wire::keeper::{Answer, Import, Imported, ImportedPoints, ImportedRow, PointKind};

use super::Answers;
use crate::name_space;
use crate::pushed::Pushes;

/// Refusal of clients that may not import.
const NOT_FOR_YOU: &str =
    "cannot import series: only an administrator may, on the socket of administrators";
/// Refusal of a store without values.
const NOT_KEPT: &str = "cannot import series: this store keeps no values ([store] keep = \"none\")";
/// Refusal of a label set that is this machine's, from elsewhere than a kymo.
const OWN_NAME: &str = "series of this name are those of this machine";

/// Answers IMPORT.
pub(super) fn answer(
    store: &Store,
    side: &Answers,
    import: &Import,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !side.role.may_remove() {
        return out.write_all(&Answer::Refused(NOT_FOR_YOU.into()).frame());
    }
    if !store.keeps_values() {
        return out.write_all(&Answer::Refused(NOT_KEPT.into()).frame());
    }
    let mode = match import.changes {
        true => JoinMode::Change,
        false => JoinMode::Look,
    };
    let foreign = import.series.iter().map(|series| {
        let rrd = Rrd::parse(&series.file).map_err(|error| error.text)?;
        let name = series.name.clone();
        Ok(ForeignSeries { name, rrd })
    });
    let mut outcomes = joined(foreign, |foreign| store.join(foreign, mode));
    let host = machine::host().into_bytes();
    let foreign = import.points.iter().map(|points| {
        let labels = &points.labels;
        match import.of_kymo || name_space::may_push(labels, &host) {
            true => Ok(foreign_points(points, &side.pushes)),
            false => Err(OWN_NAME.to_string()),
        }
    });
    outcomes.extend(joined(foreign, |foreign| store.join_points(&foreign, mode)));
    out.write_all(&Answer::Imported(outcomes).frame())
}

/// Joins what can be read; the outcome of each, in order.
fn joined<T>(
    foreign: impl Iterator<Item = Result<T, String>>,
    join: impl FnOnce(Vec<T>) -> Vec<Result<Joined, FileError>>,
) -> Vec<Imported> {
    let (mut readable, mut refusals) = (Vec::new(), Vec::new());
    for foreign in foreign {
        match foreign {
            Ok(foreign) => {
                readable.push(foreign);
                refusals.push(None);
            }
            Err(why) => refusals.push(Some(refused(&why))),
        }
    }
    let mut joined = join(readable).into_iter();
    let outcomes = refusals.into_iter().map(|refused| match refused {
        Some(refused) => refused,
        None => joined.next().map(outcome_of).unwrap_or_default(),
    });
    outcomes.collect()
}

fn foreign_points(points: &ImportedPoints, pushes: &Pushes) -> ForeignPoints {
    let metric = labels::value(points.labels.text(), names::METRIC);
    let metric = String::from_utf8_lossy(&metric);
    let samples = points.stamps_ms.iter().zip(&points.values);
    ForeignPoints {
        labels: points.labels.clone(),
        kind: points.kind.map_or_else(|| pushes.kind_of(&metric), kind),
        points: samples.map(|(&t_ms, &v)| Point { t_ms, v }).collect(),
        rows: points.rows.iter().map(row).collect(),
    }
}

fn kind(kind: PointKind) -> PointsKind {
    match kind {
        PointKind::Untyped => PointsKind::Untyped,
        PointKind::Gauge => PointsKind::Gauge,
        PointKind::Counter => PointsKind::Counter,
        PointKind::Histogram => PointsKind::Histogram,
    }
}

fn row(row: &ImportedRow) -> (u32, TierRow) {
    let [min, max, sum, count, last, increase] = row.cells;
    let tier = Tier {
        min,
        max,
        sum,
        count,
        last,
        increase,
    };
    let end_s = row.end_s;
    (row.step_s, TierRow { end_s, tier })
}

fn outcome_of(joined: Result<Joined, FileError>) -> Imported {
    match joined {
        Ok(joined) => Imported {
            is_new: joined.is_new,
            added: joined.added,
            differing: joined.differing,
            why: String::new(),
        },
        Err(error) => refused(&error.to_string()),
    }
}

/// The outcome of a series that is refused; the reason may quote a name from a hostile file.
fn refused(why: &str) -> Imported {
    Imported {
        why: DisplayName(why.as_bytes()).to_string(),
        ..Imported::default()
    }
}
