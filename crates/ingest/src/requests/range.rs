//! Rows of series, at most as many as the request allows: finer rows are merged. Several threads read, each of them series
//! that lie near each other in the store; answers keep the order of the request.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use kymo_base::label_set::{Labels, is_set};
use kymo_base::name::DisplayName;
use kymo_rrd::fetch::Fetched;
use kymo_store::{FetchError, LookRange, RowsWithExtremes, SeriesName, Store};
use kymo_wire::keeper::{Answer, Range, Rows};

/// Most cells that are read of each archive of one series: 8 MiB.
const CELLS_MAX: u64 = 1 << 20;
/// Most rows of an answer.
const ROWS_MAX: u32 = 100_000;
/// Most bytes of answers that wait for earlier ones.
const AHEAD_MAX: usize = 32 << 20;
/// Series that a thread reads in a row.
const RUN: usize = 64;
/// Most threads of one answer.
const THREADS_MAX: usize = 4;

/// Answers a request for a range, name by name; `send` gets the frames.
pub(super) fn answer<E>(
    store: &Store,
    range: &Range,
    mut send: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let ahead = read_ahead(store, range);
    for (name, frame) in range.names.iter().zip(ahead) {
        let frame = frame.into_inner();
        send(&frame.unwrap_or_else(|| self::frame(store, name, range)))?;
    }
    Ok(())
}

/// Frames by index of the name, as many as there is room for.
fn read_ahead(store: &Store, range: &Range) -> Vec<OnceLock<Vec<u8>>> {
    let frames: Vec<OnceLock<Vec<u8>>> = range.names.iter().map(|_| OnceLock::new()).collect();
    let order = store.near_each_other(&range.names);
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let runs: Vec<&[usize]> = order.chunks(RUN).collect();
    let read = || {
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            for &at in *run {
                if bytes.load(Ordering::Relaxed) > AHEAD_MAX {
                    return;
                }
                let frame = frame(store, &range.names[at], range);
                bytes.fetch_add(frame.len(), Ordering::Relaxed);
                let _first = frames[at].set(frame);
            }
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = cpus.min(THREADS_MAX).min(runs.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // If the thread cannot start, this one reads all.
            let _fewer = thread::Builder::new()
                .name("rows".into())
                .spawn_scoped(scope, read);
        }
        read();
    });
    frames
}

/// The answer about one series.
fn frame(store: &Store, name: &[u8], range: &Range) -> Vec<u8> {
    let refused = |why| Answer::Refused(format!("cannot read {}: {why}", DisplayName(name)));
    rows(store, name, range)
        .map_or_else(refused, Answer::Rows)
        .frame()
}

/// Rows of a series over a range, or a message why there are none.
fn rows(store: &Store, name: &[u8], range: &Range) -> Result<Rows, String> {
    let Range { from, thru, .. } = *range;
    let rows_max = range.rows_max.clamp(1, ROWS_MAX);
    if from >= thru {
        return Err("the range is empty".into());
    }
    let labels = is_set(name).then(|| Labels::parse(name)).transpose();
    let labels = labels.map_err(|error| error.to_string())?;
    let name = labels
        .as_ref()
        .map_or(SeriesName::File(name), SeriesName::Labels);
    let looked = store.look(
        name,
        &LookRange {
            from,
            thru,
            step: thru.abs_diff(from).div_ceil(rows_max.into()).max(1),
            cells_max: CELLS_MAX,
        },
    );
    match looked {
        Ok(looked) => Ok(reduce(looked, rows_max as usize)),
        Err(FetchError::Rrd(text)) => Err(text),
        Err(FetchError::Large) => {
            Err("it has too many rows in this range; ask for a shorter one".into())
        }
        Err(FetchError::File(error)) => Err(error.to_string()),
    }
}

/// Merges rows until they are few enough. Rows begin at multiples of their length, so they stay the same when the range
/// moves on.
fn reduce(looked: RowsWithExtremes, rows_max: usize) -> Rows {
    let RowsWithExtremes { mean, min, max } = &looked;
    let width = mean.names.len().max(1);
    let count = mean.rows.len() / width;
    let factor = match count > rows_max {
        // Room for one more row, because the first and the last row may be incomplete.
        true => count.div_ceil(rows_max.saturating_sub(1).max(1)) as i64,
        false => 1,
    };
    let old_step = mean.step.max(1) as i64;
    let step = old_step.saturating_mul(factor);
    let start = mean.start.div_euclid(step).saturating_mul(step);
    let place = |row: usize| {
        let begin = mean
            .start
            .saturating_add(old_step.saturating_mul(row as i64));
        (begin.saturating_sub(start) / step) as usize
    };
    let rows = count.checked_sub(1).map_or(0, |last| place(last) + 1);
    let differs =
        |found: &Option<Fetched>| found.as_ref().is_some_and(|found| !is_same(found, mean));
    let step_s = u32::try_from(step).unwrap_or(u32::MAX);
    if factor == 1 && !differs(min) && !differs(max) {
        return Rows {
            start,
            step: step_s,
            columns: looked.mean.names,
            mean: looked.mean.rows,
            ..Rows::default()
        };
    }
    let of = |found: &Option<Fetched>, fold: &dyn Fn(f64, f64) -> f64| {
        let cells = &found.as_ref().unwrap_or(mean).rows;
        gather(cells, width, rows, &place, fold)
    };
    let mut sums = vec![0.0; rows * width];
    let mut counts = vec![0u32; rows * width];
    for (row, cells) in mean.rows.chunks_exact(width).enumerate() {
        for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_nan()) {
            let at = place(row) * width + column;
            sums[at] += cell;
            counts[at] += 1;
        }
    }
    // A row without a value has 0 / 0, NaN: unknown.
    let means = sums
        .iter()
        .zip(&counts)
        .map(|(sum, &count)| sum / f64::from(count));
    Rows {
        start,
        step: step_s,
        columns: mean.names.clone(),
        mean: means.collect(),
        min: of(min, &f64::min),
        max: of(max, &f64::max),
    }
}

/// True if the cells are equal bit by bit: rows of one value each have no peaks.
fn is_same(one: &Fetched, other: &Fetched) -> bool {
    let mut pairs = one.rows.iter().zip(&other.rows);
    one.rows.len() == other.rows.len() && pairs.all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Least or largest known cells of merged rows.
fn gather(
    cells: &[f64],
    width: usize,
    rows: usize,
    place: &dyn Fn(usize) -> usize,
    fold: &dyn Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let mut out = vec![f64::NAN; rows * width];
    for (row, cells) in cells.chunks_exact(width).enumerate() {
        let at = place(row) * width;
        for (to, &cell) in out[at..at + width].iter_mut().zip(cells) {
            // The least of NaN and a number is the number.
            *to = fold(*to, cell);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(mean: &Fetched, max: Option<&Fetched>, rows_max: usize) -> Rows {
        let (mean, max) = (mean.clone(), max.cloned());
        reduce(
            RowsWithExtremes {
                mean,
                min: None,
                max,
            },
            rows_max,
        )
    }

    fn fetched(start: i64, step: u64, rows: &[f64]) -> Fetched {
        Fetched {
            start,
            end: start + rows.len() as i64 * step as i64,
            step,
            names: vec![b"a".to_vec()],
            rows: rows.to_vec(),
        }
    }

    #[test]
    fn few_rows_stay_as_they_are() {
        let mean = fetched(990, 10, &[1.0, f64::NAN, 3.0]);
        let rows = reduced(&mean, None, 3);
        assert_eq!((rows.start, rows.step), (990, 10));
        assert_eq!(rows.mean[0], 1.0);
        assert!(rows.mean[1].is_nan());
        assert_eq!((rows.min.len(), rows.max.len()), (0, 0));
    }

    #[test]
    fn many_rows_are_put_together() {
        let nan = f64::NAN;
        let mean = fetched(1000, 10, &[1.0, 3.0, nan, nan, 5.0, nan, 8.0, 9.0]);
        let max = fetched(1000, 10, &[2.0, 4.0, nan, nan, 5.0, nan, 80.0, 9.0]);
        let rows = reduced(&mean, Some(&max), 5);
        assert_eq!((rows.start, rows.step, rows.mean.len()), (1000, 20, 4));
        assert_eq!((rows.mean[0], rows.min[0], rows.max[0]), (2.0, 1.0, 4.0));
        assert!(rows.mean[1].is_nan() && rows.min[1].is_nan() && rows.max[1].is_nan());
        assert_eq!((rows.mean[2], rows.min[2], rows.max[2]), (5.0, 5.0, 5.0));
        assert_eq!((rows.mean[3], rows.min[3], rows.max[3]), (8.5, 8.0, 80.0));
        // A range that begins elsewhere has the same rows.
        let later = fetched(1010, 10, &[3.0, nan, nan, 5.0, nan, 8.0, 9.0]);
        let rows = reduced(&later, None, 5);
        assert_eq!(
            (rows.start, rows.step, rows.mean[0], rows.mean[3]),
            (1000, 20, 3.0, 8.5)
        );
    }

    #[test]
    fn never_more_than_was_wanted() {
        for count in 1..60 {
            for rows_max in 2..20 {
                for start in 0..7 {
                    let mean = fetched(start * 5, 5, &vec![1.0; count]);
                    let rows = reduced(&mean, None, rows_max);
                    assert!(rows.mean.len() <= rows_max, "{count} {rows_max} {start}");
                    assert!(rows.mean.iter().all(|&mean| mean == 1.0));
                }
            }
        }
    }
}
