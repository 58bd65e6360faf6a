//! Definition and values of series that are named by label sets.

use std::collections::HashMap;

use kymo_base::errno::strerror;
use kymo_base::label_set::Labels;
use kymo_rrd::Header;
use kymo_rrd::create::{self, Create};
use kymo_store::{Definition, PointsKind, PointsSchema, Refusal, SeriesName, Store, keep_points};
use kymo_wire::keeper::{LabelledSeries, LabelledValues};

/// Refuses a name that the client may not write.
pub(crate) type MayWrite<'a> = &'a dyn Fn(SeriesName) -> Result<(), String>;

/// Step in seconds and number of rows of each archive: 60 days and two years.
const ARCHIVES: [(u32, u32); 2] = [(300, 17_280), (3600, 17_520)];
/// Consolidation functions of the archives.
const FUNCTIONS: [&str; 4] = ["AVERAGE", "MIN", "MAX", "LAST"];
/// Retention of samples in series of points: 15 days.
const POINTS_KEPT_S: u32 = 15 * 86_400;
/// Longest step of a series, in seconds.
const STEP_MAX: u32 = 3600;
/// Kinds of columns whose values are raw counters.
const COUNTERS: [&[u8]; 4] = [b"COUNTER", b"DERIVE", b"DCOUNTER", b"DDERIVE"];

/// Defines series; for each, `Err` says why it was not made. A new series of one column is a series of points, of several
/// columns a series of archives. Existing series stay as they are.
pub(crate) fn define(
    store: &Store,
    may_write: MayWrite,
    series: &[LabelledSeries],
) -> Vec<Result<(), String>> {
    let labels: Vec<Labels> = series.iter().map(|series| series.labels.clone()).collect();
    let known = store.has(&labels);
    let mut headers = HashMap::new();
    let wanted: Vec<Result<SeriesForm, String>> = series
        .iter()
        .zip(known)
        .map(|(series, is_known)| {
            may_write(SeriesName::Labels(&series.labels))?;
            let wanted = wanted(series, &mut headers)?;
            Ok(if is_known {
                SeriesForm::Nothing
            } else {
                wanted
            })
        })
        .collect();
    let (mut points, mut archives) = (Vec::new(), Vec::new());
    for (series, wanted) in series.iter().zip(&wanted) {
        match wanted {
            Ok(SeriesForm::Points(schema)) => points.push((series.labels.clone(), schema.clone())),
            Ok(SeriesForm::Archives(header)) => archives.push(Definition {
                name: SeriesName::Labels(&series.labels),
                header: (**header).clone(),
            }),
            Ok(SeriesForm::Nothing) | Err(_) => {}
        }
    }
    let mut points = store.define_points(&points).into_iter();
    let mut archives = store.define(archives).into_iter();
    let outcome = |wanted: Result<SeriesForm, String>| {
        let defined = match wanted? {
            SeriesForm::Points(_) => points.next().map(|defined| defined.map(drop)),
            SeriesForm::Archives(_) => archives.next().map(|defined| defined.map(drop)),
            SeriesForm::Nothing => None,
        };
        defined.unwrap_or(Ok(())).map_err(|error| error.to_string())
    };
    wanted.into_iter().map(outcome).collect()
}

/// The kind of series that a definition asks for.
enum SeriesForm {
    Points(PointsSchema),
    Archives(Box<Header>),
    /// The series exists.
    Nothing,
}

/// Headers by step, heartbeat and columns.
type Headers<'a> = HashMap<(u32, u32, &'a [(Vec<u8>, Vec<u8>)]), Result<Header, String>>;

fn wanted<'a>(series: &'a LabelledSeries, headers: &mut Headers<'a>) -> Result<SeriesForm, String> {
    let LabelledSeries {
        step,
        heartbeat,
        columns,
        ..
    } = series;
    if !(1..=STEP_MAX).contains(step) || heartbeat < step {
        return Err(format!(
            "a step is 1 to {STEP_MAX} seconds, and a heartbeat no less"
        ));
    }
    if let [(_, kind)] = &columns[..] {
        let kind = match &kind[..] {
            b"GAUGE" => PointsKind::Gauge,
            kind if COUNTERS.contains(&kind) => PointsKind::Counter,
            _ => return Err("a column is a GAUGE or a counter".into()),
        };
        return Ok(SeriesForm::Points(PointsSchema::new(
            kind, *step, *heartbeat,
        )));
    }
    let key = (*step, *heartbeat, &columns[..]);
    let plain = headers.entry(key).or_insert_with(|| header(series));
    let plain = plain.as_ref().map_err(Clone::clone)?;
    Ok(SeriesForm::Archives(Box::new(starting_at(
        plain,
        series.start,
    )?)))
}

/// The header of a series of archives.
fn header(series: &LabelledSeries) -> Result<Header, String> {
    let LabelledSeries {
        step,
        heartbeat,
        columns,
        ..
    } = series;
    let is_word = |word: &[u8]| {
        word.iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    if !columns
        .iter()
        .all(|(name, kind)| is_word(name) && is_word(kind))
    {
        return Err("a column's name and its kind are letters, digits and _".into());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let sources = columns
        .iter()
        .map(|(name, kind)| format!("DS:{}:{}:{heartbeat}:U:U", text(name), text(kind)));
    let archives = ARCHIVES.iter().flat_map(|&(seconds, rows)| {
        let points = (seconds / step).max(1);
        FUNCTIONS
            .iter()
            .map(move |function| format!("RRA:{function}:0.5:{points}:{rows}"))
    });
    let words: Vec<String> = sources.chain(archives).collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let request = Create {
        file_name: b"",
        step: u64::from(*step),
        start: Some(1),
        definitions: &words,
    };
    let made = create::define(&request, 1, &mut 1, None, false);
    let (mut header, _) = made.map_err(|error| error.text)?;
    keep_points(&mut header, POINTS_KEPT_S);
    Ok(header)
}

/// Header of a series that begins at this second.
fn starting_at(plain: &Header, start: i64) -> Result<Header, String> {
    let request = Create {
        start: Some(start),
        ..Create::default()
    };
    let made = create::define(&request, start, &mut 1, Some(plain), false);
    let (mut header, _) = made.map_err(|error| error.text)?;
    header.head_par = plain.head_par;
    Ok(header)
}

/// Writes values with one write to the journal; for each series, `Err` says why its values were refused. Values not newer
/// than the series' last one are skipped.
pub(crate) fn write(
    store: &Store,
    may_write: MayWrite,
    series: &[LabelledValues],
) -> Vec<Result<(), String>> {
    let mut batch = store.write_batch();
    let taken = series.iter().map(|series| {
        may_write(SeriesName::Labels(&series.labels))?;
        let width = series.cells.len().checked_div(series.stamps_ms.len());
        let rows = series.cells.chunks_exact(width.unwrap_or(0).max(1));
        for (&stamp_ms, cells) in series.stamps_ms.iter().zip(rows) {
            match batch.append(&series.labels, stamp_ms, cells) {
                Ok(_) | Err(Refusal::Past { .. }) => {}
                Err(Refusal::Untouched) => return Err("there is no such series".to_string()),
                Err(refusal) => return Err(format!("{refusal:?}")),
            }
        }
        Ok(())
    });
    let taken: Vec<Result<(), String>> = taken.collect();
    match batch.commit() {
        Ok(_) => taken,
        Err(error) => {
            let failed = || Err(format!("cannot write journal: {}", strerror(&error)));
            taken.iter().map(|_| failed()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(step: u32, columns: &[(&str, &str)]) -> LabelledSeries {
        let bytes = |text: &str| text.as_bytes().to_vec();
        LabelledSeries {
            labels: Labels::new([("a", &b"b"[..])]).unwrap(),
            step,
            heartbeat: 120,
            start: 1_000_000_000,
            columns: columns
                .iter()
                .map(|(name, kind)| (bytes(name), bytes(kind)))
                .collect(),
        }
    }

    #[test]
    fn archives_have_rows_of_five_minutes_and_an_hour() {
        for (step, points) in [(10, [30, 360]), (1, [300, 3600]), (60, [5, 60])] {
            let header = header(&series(step, &[("value", "GAUGE")])).unwrap();
            let archives: Vec<(u64, u64)> = header
                .rra
                .iter()
                .map(|rra| (rra.pdp_cnt, rra.row_cnt))
                .collect();
            assert_eq!(archives[..4], [(points[0], 17_280); 4]);
            assert_eq!(archives[4..], [(points[1], 17_520); 4]);
            let begun = starting_at(&header, 1_000_000_000).unwrap();
            assert_eq!(
                (begun.last_up, begun.head_par),
                (1_000_000_000, header.head_par)
            );
        }
    }

    #[test]
    fn one_column_is_a_gauge_or_a_counter() {
        for (kind, points) in [
            ("GAUGE", PointsKind::Gauge),
            ("DDERIVE", PointsKind::Counter),
            ("COUNTER", PointsKind::Counter),
        ] {
            let series = series(10, &[("value", kind)]);
            let Ok(SeriesForm::Points(schema)) = wanted(&series, &mut HashMap::new()) else {
                panic!("{kind} is no series of points");
            };
            assert_eq!(schema, PointsSchema::new(points, 10, 120));
        }
    }

    #[test]
    fn what_cannot_be_defined() {
        for series in [
            series(0, &[("value", "GAUGE")]),
            series(121, &[("value", "GAUGE")]),
            series(10, &[]),
            series(10, &[("value", "WHAT")]),
            series(10, &[("value", "ABSOLUTE")]),
            series(10, &[("a b", "GAUGE"), ("b", "GAUGE")]),
            series(10, &[("x:GAUGE:1:U:U", "GAUGE"), ("b", "GAUGE")]),
        ] {
            assert!(wanted(&series, &mut HashMap::new()).is_err(), "{series:?}");
        }
    }
}
