//! FETCH: answers from the cache of an earlier fetch if that is enough, else from blocks and files.

mod point_rows;

use crate::consolidation::apply::Applier;
use crate::engine::{Inner, Store};
use crate::error::{FetchError, FileError};
use crate::fetch::point_rows::{Use, known_from};
use crate::memtable::series::Series;
use crate::names::SeriesName;
use crate::read::rows::Opened;
use crate::read::series_cache::{CachedSeries, FetchRequest};
use crate::read::view::View;
use crate::rrd_file::open::{Fresh, opening};
use kymo_rrd::Kind;
use kymo_rrd::fetch::Fetched;

/// The rows of a series, or the reason why there are none.
type Found<T> = Result<T, kymo_rrd::Error>;

/// Number of names that are looked up under one lock.
const SLICE: usize = 1024;

impl Store {
    /// FETCH: rows of the finest archive between two times, with all values of the series.
    pub fn fetch(&self, name: &[u8], cf: &[u8], range: (i64, i64)) -> Result<Fetched, FetchError> {
        self.fetch_at_most(name, cf, range, u64::MAX)
    }

    /// Does the same if the rows have at most `cells_max` cells.
    pub fn fetch_at_most(
        &self,
        name: &[u8],
        cf: &[u8],
        (start, end): (i64, i64),
        cells_max: u64,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let wanted = FetchRequest {
            cf,
            start,
            end,
            step: u64::MAX,
            cells_max,
        };
        self.fetch_wanted(name, &spelled, &wanted)
    }

    /// Rows of a series and their peaks, without publishing pending values. If the archives of a series without a file are too
    /// coarse, the rows are made of its points; the same applies to a file with a long retention of points.
    pub fn look(
        &self,
        name: SeriesName<'_>,
        range: &LookRange,
    ) -> Result<RowsWithExtremes, FetchError> {
        let inner = &*self.inner;
        let name = match name {
            SeriesName::File(name) => name,
            SeriesName::Labels(labels) => {
                let id = inner.lock().series.by_path(labels.text());
                if let Some(looked) = self.look_at_points(labels, range)? {
                    return Ok(looked);
                }
                return inner.look_at(id.ok_or(FileError::NoSuchFile)?, range, Use::WhereFiner);
            }
        };
        let spelled = inner.checked(name)?;
        let found = match inner.any(name, &spelled) {
            Some(id) => inner.look_at(id, range, Use::WhereNearer),
            None => {
                let Opened { header, mut rows } = self.read(name, Fresh::AsIs)?;
                let mut ask = |wanted: &FetchRequest| Some(wanted.of(&header, &mut rows));
                Ok(range.of(header.pdp_step, &mut ask).unwrap_or_else(unread)?)
            }
        };
        found.map_err(|error| unopened(&spelled, error))
    }

    /// The indices of these names in an order that is quick to read: series in the same blocks are adjacent.
    pub fn near_each_other(&self, names: &[Vec<u8>]) -> Vec<usize> {
        let mut places = Vec::with_capacity(names.len());
        for slice in names.chunks(SLICE) {
            let spelled: Vec<Vec<u8>> = slice.iter().map(|name| self.spelled(name)).collect();
            let state = self.inner.lock();
            places.extend(slice.iter().zip(spelled).map(|(name, spelled)| {
                // The path of a series with a label set is that label set.
                let series = state.series.by_path(name);
                let series = series.or_else(|| state.series.find(name, || spelled));
                let series = series.and_then(|id| state.series.get(id));
                series.map(|series| (series.chunk, series.slot))
            }));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&at| places[at]);
        order
    }

    fn fetch_wanted(
        &self,
        name: &[u8],
        spelled: &[u8],
        wanted: &FetchRequest,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        if let Some(id) = inner.any(name, spelled) {
            let fetch = &mut |series: &mut CachedSeries, view: Option<&mut View>| {
                series.fetch(wanted, view)
            };
            let found = inner.fetch_id(id, ReadMode::Publishes, fetch);
            return found.map_err(|error| unopened(spelled, error));
        }
        let Opened { header, mut rows } = self.read(name, Fresh::Flushed)?;
        Ok(wanted.of(&header, &mut rows)?)
    }
}

/// Range and resolution of a look at a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookRange {
    /// Start, in seconds since 1970.
    pub from: i64,
    /// End, in seconds since 1970.
    pub thru: i64,
    /// Approximate seconds of a row.
    pub step: u64,
    /// Largest number of cells of an archive; more are an error.
    pub cells_max: u64,
}

/// Result of a look: rows and their peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsWithExtremes {
    /// Rows of the archive AVERAGE, else LAST, MAX, MIN.
    pub mean: Fetched,
    /// Rows of the archive MIN, if it has the same ones as `mean`; `None` if the means are also the minima.
    pub min: Option<Fetched>,
    /// Rows of the archive MAX, as `min`.
    pub max: Option<Fetched>,
}

impl RowsWithExtremes {
    /// Rows without peaks.
    pub(crate) fn plain(mean: Fetched) -> RowsWithExtremes {
        let (min, max) = (None, None);
        RowsWithExtremes { mean, min, max }
    }
}

/// Archives that show the values of a series, the best first.
const MEANS: [&[u8]; 4] = [b"AVERAGE", b"LAST", b"MAX", b"MIN"];

impl LookRange {
    fn wanted<'a>(&self, cf: &'a [u8]) -> FetchRequest<'a> {
        FetchRequest {
            cf,
            start: self.from,
            end: self.thru,
            step: self.step,
            cells_max: self.cells_max,
        }
    }

    /// The result for a series with this step, from what `ask` returns; `None` if that is not enough.
    fn of(
        &self,
        pdp_step: u64,
        ask: &mut dyn FnMut(&FetchRequest) -> Option<Found<Fetched>>,
    ) -> Option<Found<RowsWithExtremes>> {
        let mut ask = |cf| ask(&self.wanted(cf));
        let mut mean = ask(MEANS[0])?;
        for cf in &MEANS[1..] {
            match &mean {
                Err(error) if error.kind != Kind::Large => {
                    let other = ask(cf)?;
                    mean = other.or(mean);
                }
                _ => break,
            }
        }
        let mean = match mean {
            Ok(mean) => mean,
            Err(error) => return Some(Err(error)),
        };
        // A row of one step has no peaks.
        let mut beside = |cf| match mean.step == pdp_step {
            true => Some(None),
            false => {
                let same = |found: &Fetched| {
                    (found.start, found.end, found.step) == (mean.start, mean.end, mean.step)
                };
                Some(ask(cf)?.ok().filter(same))
            }
        };
        let (min, max) = (beside(b"MIN")?, beside(b"MAX")?);
        Some(Ok(RowsWithExtremes { mean, min, max }))
    }
}

/// Effect of a read on pending values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    /// The values are published, as by rrdcached's FETCH.
    Publishes,
    /// The values are read but not published.
    Looks,
}

impl ReadMode {
    /// Stamp up to which a series is read; of a suspended series only published values are.
    fn until(self, series: &Series) -> f64 {
        match self {
            ReadMode::Looks if !series.suspended => series.values.last,
            _ => series.values.published,
        }
    }

    /// Returns true if all values of the series are read.
    fn is_whole(self, series: &Series) -> bool {
        self.until(series) >= series.values.last
    }
}

/// Reads from the cached part of a series, or from a view of all of it. `None` means that the cached part is not enough.
type Read<'a, T> = &'a mut dyn FnMut(&mut CachedSeries, Option<&mut View>) -> Option<Found<T>>;

impl Inner {
    /// Reads rows of a series without publishing values.
    fn look_at(
        &self,
        id: u32,
        range: &LookRange,
        points: Use,
    ) -> Result<RowsWithExtremes, FetchError> {
        let made = self.rows_of_points(id, &range.wanted(MEANS[0]), points)?;
        let is_whole = |mean: &Fetched| known_from(mean) <= mean.start;
        let made = match made {
            Some(mean) if is_whole(&mean) => return Ok(RowsWithExtremes::plain(mean)),
            made => made,
        };
        let rows = self.fetch_id(id, ReadMode::Looks, &mut |series, mut view| {
            let step = series.state.header.pdp_step;
            range.of(step, &mut |wanted| {
                series.fetch(wanted, view.as_deref_mut())
            })
        });
        // Only archives may have data from before the first point, as after a change of definitions.
        let knows_more = |points: &Fetched| {
            let rows = rows.as_ref().ok().map(|rows| &rows.mean);
            rows.is_some_and(|rows| {
                known_from(rows).saturating_add_unsigned(rows.step) <= known_from(points)
            })
        };
        match made {
            Some(points) if !knows_more(&points) => Ok(RowsWithExtremes::plain(points)),
            _ => rows,
        }
    }

    /// Reads a series, from the cache if possible.
    fn fetch_id<T>(&self, id: u32, reading: ReadMode, read: Read<'_, T>) -> Result<T, FetchError> {
        let id = self.verified_for_reading(id)?;
        let mut applier = self.recent.applier();
        let found = match self.fetch_recent(id, reading, &mut applier, read)? {
            Some(found) => found,
            None => self.fetch_anew(id, reading, &mut applier, read)?,
        };
        self.recent.put_applier(applier);
        Ok(found?)
    }

    /// Reads from the cache of an earlier fetch, if that is enough.
    fn fetch_recent<T>(
        &self,
        id: u32,
        reading: ReadMode,
        applier: &mut Applier,
        read: Read<'_, T>,
    ) -> Result<Option<Found<T>>, FileError> {
        let recent = self.recent.take(id);
        let mut state = self.lock();
        if reading == ReadMode::Publishes {
            let _full = self.show_with(&mut state, id);
        }
        let Some((recent, series)) = recent.zip(state.series.get(id)) else {
            return Ok(None);
        };
        let values = series.values.since(recent.version);
        let Some(values) = values.filter(|_| reading.is_whole(series)) else {
            return Ok(None);
        };
        let path = series.path.clone();
        drop(state);
        let Some(mut recent) = recent.go_on(applier, &path, &values, self.rrd_now()) else {
            return Ok(None);
        };
        let found = read(&mut recent, None);
        self.recent.put(id, recent);
        Ok(found)
    }

    /// Reads from blocks, and from the file that the series was adopted from.
    fn fetch_anew<T>(
        &self,
        id: u32,
        reading: ReadMode,
        applier: &mut Applier,
        read: Read<'_, T>,
    ) -> Result<Found<T>, FileError> {
        let (snapshot, version) = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            let version = reading.is_whole(series).then_some(series.values.version);
            (
                self.snapshot(&state, series, reading.until(series)),
                version,
            )
        };
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let base = self.base_of(&snapshot)?;
        let mut view = snapshot.view(applier, self.rrd_now(), base)?;
        let mut series = Box::new(CachedSeries::of(&view, version.unwrap_or_default()));
        if let Some(recent) = self.recent.take(id) {
            series.join(*recent);
        }
        let found = read(&mut series, Some(&mut view));
        if version.is_some() && view.damaged == 0 {
            self.recent.put(id, series);
        }
        Ok(found.unwrap_or_else(unread))
    }
}

/// The error for a view that lacks data, which does not happen.
fn unread<T>() -> Found<T> {
    Err(kymo_rrd::Error::new("cannot be read"))
}

/// An error of a file in the words of rrd_open.
fn unopened(spelled: &[u8], error: FetchError) -> FetchError {
    match error {
        FetchError::File(error) => FetchError::File(opening(spelled, error)),
        error => error,
    }
}
