//! FETCH: from what an earlier one left if that is enough, else from blocks and files.

mod point_rows;

use crate::consolidation::apply::Applier;
use crate::engine::{Inner, Store};
use crate::error::{FetchError, FileError};
use crate::fetch::point_rows::{Use, known_from};
use crate::memtable::series::Series;
use crate::names::SeriesName;
use crate::read::rows::Opened;
use crate::read::series_cache::{CachedSeries, Wanted};
use crate::read::view::View;
use crate::rrd_file::open::{Fresh, opening};
use kymo_rrd::Kind;
use kymo_rrd::fetch::Fetched;

/// What was read of a series, or why it has none of that.
type Found<T> = Result<T, kymo_rrd::Error>;

/// How many names are looked for while the store is locked.
const SLICE: usize = 1024;

impl Store {
    /// FETCH: rows of the finest archive between two times; all values of the series are in them.
    pub fn fetch(&self, name: &[u8], cf: &[u8], range: (i64, i64)) -> Result<Fetched, FetchError> {
        self.fetch_at_most(name, cf, range, u64::MAX)
    }

    /// The same if they have at most so many cells.
    pub fn fetch_at_most(
        &self,
        name: &[u8],
        cf: &[u8],
        (start, end): (i64, i64),
        cells_max: u64,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let wanted = Wanted {
            cf,
            start,
            end,
            step: u64::MAX,
            cells_max,
        };
        self.fetch_wanted(name, &spelled, &wanted)
    }

    /// Rows of a series and their peaks, without a trace: what counts as written stays what it was. Where archives of a series
    /// without a file are coarser, they are made of its points, and so are those of a file whose points are kept for long.
    pub fn look(&self, name: SeriesName<'_>, range: &LookRange) -> Result<Looked, FetchError> {
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
                let mut ask = |wanted: &Wanted| Some(wanted.of(&header, &mut rows));
                Ok(range.of(header.pdp_step, &mut ask).unwrap_or_else(unread)?)
            }
        };
        found.map_err(|error| unopened(&spelled, error))
    }

    /// Numbers of these names in an order in which reading them is quick: what lies in the same blocks follows each other.
    pub fn near_each_other(&self, names: &[Vec<u8>]) -> Vec<usize> {
        let mut places = Vec::with_capacity(names.len());
        for slice in names.chunks(SLICE) {
            let spelled: Vec<Vec<u8>> = slice.iter().map(|name| self.spelled(name)).collect();
            let state = self.inner.lock();
            places.extend(slice.iter().zip(spelled).map(|(name, spelled)| {
                // A label set is a path of its own.
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
        wanted: &Wanted,
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

/// What somebody looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookRange {
    /// From this moment on, seconds since 1970.
    pub from: i64,
    /// Up to this one.
    pub thru: i64,
    /// Seconds of a row, about.
    pub step: u64,
    /// More cells of an archive are an error.
    pub cells_max: u64,
}

/// What is seen: rows, and their peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked {
    /// Of the archive AVERAGE, else LAST, MAX, MIN.
    pub mean: Fetched,
    /// Of the archive MIN, where it has the same rows; none: they are the means.
    pub min: Option<Fetched>,
    /// Of the archive MAX, likewise.
    pub max: Option<Fetched>,
}

impl Looked {
    /// Rows without peaks.
    pub(crate) fn plain(mean: Fetched) -> Looked {
        let (min, max) = (None, None);
        Looked { mean, min, max }
    }
}

/// Which archives tell what a series was like, best first.
const MEANS: [&[u8]; 4] = [b"AVERAGE", b"LAST", b"MAX", b"MIN"];

impl LookRange {
    fn wanted<'a>(&self, cf: &'a [u8]) -> Wanted<'a> {
        Wanted {
            cf,
            start: self.from,
            end: self.thru,
            step: self.step,
            cells_max: self.cells_max,
        }
    }

    /// What `ask` has of it, of a series with this step; `None`: it has not all.
    fn of(
        &self,
        pdp_step: u64,
        ask: &mut dyn FnMut(&Wanted) -> Option<Found<Fetched>>,
    ) -> Option<Found<Looked>> {
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
        // A row of one primary data point has no peaks.
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
        Some(Ok(Looked { mean, min, max }))
    }
}

/// What reading does to values that do not count as written yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    /// They do from then on, as with a FETCH of rrdcached's.
    Publishes,
    /// They are read, and still do not.
    Looks,
}

impl ReadMode {
    /// Up to which stamp a series is read. Of a suspended one not all values count.
    fn until(self, series: &Series) -> f64 {
        match self {
            ReadMode::Looks if !series.suspended => series.values.last,
            _ => series.values.published,
        }
    }

    /// Whether all its values are read.
    fn is_whole(self, series: &Series) -> bool {
        self.until(series) >= series.values.last
    }
}

/// What is read of a series: all of it that is kept, and the view that has the rest. `None`: without a view that is not enough.
type Read<'a, T> = &'a mut dyn FnMut(&mut CachedSeries, Option<&mut View>) -> Option<Found<T>>;

impl Inner {
    /// Looks at a series.
    fn look_at(&self, id: u32, range: &LookRange, points: Use) -> Result<Looked, FetchError> {
        let made = self.rows_of_points(id, &range.wanted(MEANS[0]), points)?;
        let is_whole = |mean: &Fetched| known_from(mean) <= mean.start;
        let made = match made {
            Some(mean) if is_whole(&mean) => return Ok(Looked::plain(mean)),
            made => made,
        };
        let rows = self.fetch_id(id, ReadMode::Looks, &mut |series, mut view| {
            let step = series.state.header.pdp_step;
            range.of(step, &mut |wanted| {
                series.fetch(wanted, view.as_deref_mut())
            })
        });
        // What was before the first point, as when definitions changed since, archives alone may know.
        let knows_more = |points: &Fetched| {
            let rows = rows.as_ref().ok().map(|rows| &rows.mean);
            rows.is_some_and(|rows| {
                known_from(rows).saturating_add_unsigned(rows.step) <= known_from(points)
            })
        };
        match made {
            Some(points) if !knows_more(&points) => Ok(Looked::plain(points)),
            _ => rows,
        }
    }

    /// Reads a series.
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

    /// From what an earlier fetch left, if that is enough.
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

    /// From blocks, and from the file it was taken over from.
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

/// A view has all there is.
fn unread<T>() -> Found<T> {
    Err(kymo_rrd::Error::new("cannot be read"))
}

/// An error of a file in rrd_open's words.
fn unopened(spelled: &[u8], error: FetchError) -> FetchError {
    match error {
        FetchError::File(error) => FetchError::File(opening(spelled, error)),
        error => error,
    }
}
