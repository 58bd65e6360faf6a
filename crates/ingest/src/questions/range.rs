//! Rows of a series, no more than were asked for: finer ones are put together.

use kymo_base::label_set::{LabelSet, is_set};
use kymo_rrd::fetch::Fetched;
use kymo_store::{FetchError, SeriesName, Store};
use kymo_wire::keeper::{Range, Rows};

/// Cells that are read for one series at most: 8 MiB, for each archive that is asked.
const CELLS_MAX: u64 = 1 << 20;
/// Rows that are answered at most.
const ROWS_MAX: u32 = 100_000;
/// Which archives tell what a series was like, best first.
const MEANS: [&[u8]; 4] = [b"AVERAGE", b"LAST", b"MAX", b"MIN"];

/// Rows of a series over a range; why there are none, for people.
pub(super) fn rows(store: &Store, name: &[u8], range: &Range) -> Result<Rows, String> {
    let Range { from, thru, .. } = *range;
    let rows_max = range.rows_max.clamp(1, ROWS_MAX);
    if from >= thru {
        return Err("the range is empty".into());
    }
    let step = thru.abs_diff(from).div_ceil(rows_max.into()).max(1);
    let labels = is_set(name).then(|| LabelSet::parse(name)).transpose();
    let labels = labels.map_err(|error| error.to_string())?;
    let name = labels
        .as_ref()
        .map_or(SeriesName::File(name), SeriesName::Labels);
    let look = |cf: &[u8]| store.look(name, cf, (from, thru), step, CELLS_MAX);
    let mean = first_of(MEANS.iter().map(|cf| look(cf)))?;
    // Peaks of rows that are means are in archives of their own, if those have rows of the same length.
    let beside = |cf| {
        let found = look(cf).ok();
        found.filter(|found| {
            (found.start, found.end, found.step) == (mean.start, mean.end, mean.step)
        })
    };
    let (min, max) = (beside(b"MIN"), beside(b"MAX"));
    Ok(reduce(&mean, min.as_ref(), max.as_ref(), rows_max as usize))
}

/// The first that is there; else why the first is not.
fn first_of(
    mut found: impl Iterator<Item = Result<Fetched, FetchError>>,
) -> Result<Fetched, String> {
    let error = match found.next() {
        Some(Ok(fetched)) => return Ok(fetched),
        Some(Err(FetchError::Rrd(text))) => text,
        Some(Err(FetchError::Large)) => {
            return Err("it has too many rows in this range; ask for a shorter one".into());
        }
        Some(Err(FetchError::File(error))) => return Err(error.to_string()),
        None => return Err("it has no rows".into()),
    };
    found.find_map(Result::ok).ok_or(error)
}

/// Puts rows together until they are few enough. What begins a row is a multiple of its length, so that rows stay the
/// same when the range moves on.
fn reduce(mean: &Fetched, min: Option<&Fetched>, max: Option<&Fetched>, rows_max: usize) -> Rows {
    let width = mean.names.len().max(1);
    let count = mean.rows.len() / width;
    let factor = match count > rows_max {
        // One more: the first and the last are parts.
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
    let differs = |found: Option<&Fetched>| found.is_some_and(|found| !is_same(found, mean));
    let spread = factor > 1 || differs(min) || differs(max);
    let of = |found: Option<&Fetched>, fold: &dyn Fn(f64, f64) -> f64| match spread {
        true => gather(&found.unwrap_or(mean).rows, width, rows, &place, fold),
        false => Vec::new(),
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
    // Of no value that is 0 / 0: unknown.
    let means = sums
        .iter()
        .zip(&counts)
        .map(|(sum, &count)| sum / f64::from(count));
    Rows {
        start,
        step: u32::try_from(step).unwrap_or(u32::MAX),
        columns: mean.names.clone(),
        mean: means.collect(),
        min: of(min, &f64::min),
        max: of(max, &f64::max),
    }
}

/// Whether the cells are the same, to the bit: rows of one value each have no peaks.
fn is_same(one: &Fetched, other: &Fetched) -> bool {
    let mut pairs = one.rows.iter().zip(&other.rows);
    one.rows.len() == other.rows.len() && pairs.all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The least or largest known cells of rows that are put together.
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
        let rows = reduce(&mean, None, None, 3);
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
        let rows = reduce(&mean, None, Some(&max), 5);
        assert_eq!((rows.start, rows.step, rows.mean.len()), (1000, 20, 4));
        assert_eq!((rows.mean[0], rows.min[0], rows.max[0]), (2.0, 1.0, 4.0));
        assert!(rows.mean[1].is_nan() && rows.min[1].is_nan() && rows.max[1].is_nan());
        assert_eq!((rows.mean[2], rows.min[2], rows.max[2]), (5.0, 5.0, 5.0));
        assert_eq!((rows.mean[3], rows.min[3], rows.max[3]), (8.5, 8.0, 80.0));
        // A range that begins elsewhere has the same rows.
        let later = fetched(1010, 10, &[3.0, nan, nan, 5.0, nan, 8.0, 9.0]);
        let rows = reduce(&later, None, None, 5);
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
                    let rows = reduce(&mean, None, None, rows_max);
                    assert!(rows.mean.len() <= rows_max, "{count} {rows_max} {start}");
                    assert!(rows.mean.iter().all(|&mean| mean == 1.0));
                }
            }
        }
    }
}
