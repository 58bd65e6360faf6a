//! FETCH: from what an earlier one left if that is enough, else from blocks and files.

use crate::consolidation::apply::Applier;
use crate::engine::{Inner, Store};
use crate::error::{FetchError, FileError};
use crate::memtable::series::Series;
use crate::names::SeriesName;
use crate::read::rows::Opened;
use crate::read::series_cache::{CachedSeries, Wanted};
use crate::rrd_file::open::{Fresh, opening};
use kymo_rrd::fetch::Fetched;

/// Rows, or why a file has none.
type Found = Result<Fetched, kymo_rrd::Error>;

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
        self.fetch_wanted(name, &spelled, &wanted, ReadMode::Publishes)
    }

    /// Rows with a step near `step`, without a trace: what counts as written stays what it was. Where archives of a series without
    /// a file are coarser, they are made of its points.
    pub fn look(
        &self,
        name: SeriesName<'_>,
        cf: &[u8],
        (start, end): (i64, i64),
        step: u64,
        cells_max: u64,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        let wanted = Wanted {
            cf,
            start,
            end,
            step,
            cells_max,
        };
        let labels = match name {
            SeriesName::Labels(labels) => labels,
            SeriesName::File(name) => {
                let spelled = inner.checked(name)?;
                return self.fetch_wanted(name, &spelled, &wanted, ReadMode::Looks);
            }
        };
        let id = inner.lock().series.by_path(labels.text());
        let id = id.ok_or(FileError::NoSuchFile)?;
        match inner.rows_of_points(id, &wanted)? {
            Some(rows) => Ok(rows),
            None => inner.fetch_id(id, &wanted, ReadMode::Looks),
        }
    }

    fn fetch_wanted(
        &self,
        name: &[u8],
        spelled: &[u8],
        wanted: &Wanted,
        reading: ReadMode,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        if let Some(id) = inner.any(name, spelled) {
            let found = inner.fetch_id(id, wanted, reading);
            return found.map_err(|error| match error {
                FetchError::File(error) => FetchError::File(opening(spelled, error)),
                error => error,
            });
        }
        let fresh = match reading {
            ReadMode::Publishes => Fresh::Flushed,
            ReadMode::Looks => Fresh::AsIs,
        };
        let Opened { header, mut rows } = self.read(name, fresh)?;
        Ok(wanted.of(&header, &mut rows)?)
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

impl Inner {
    /// Rows of a series.
    fn fetch_id(&self, id: u32, wanted: &Wanted, reading: ReadMode) -> Result<Fetched, FetchError> {
        let id = self.verified_for_reading(id)?;
        let mut applier = self.recent.applier();
        let found = match self.fetch_recent(id, wanted, reading, &mut applier)? {
            Some(found) => found,
            None => self.fetch_anew(id, wanted, reading, &mut applier)?,
        };
        self.recent.put_applier(applier);
        Ok(found?)
    }

    /// From what an earlier fetch left, if that is enough.
    fn fetch_recent(
        &self,
        id: u32,
        wanted: &Wanted,
        reading: ReadMode,
        applier: &mut Applier,
    ) -> Result<Option<Found>, FileError> {
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
        let found = recent.fetch(wanted, None);
        self.recent.put(id, recent);
        Ok(found)
    }

    /// From blocks, and from the file it was taken over from.
    fn fetch_anew(
        &self,
        id: u32,
        wanted: &Wanted,
        reading: ReadMode,
        applier: &mut Applier,
    ) -> Result<Found, FileError> {
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
        let found = series.fetch(wanted, Some(&mut view));
        if version.is_some() && view.damaged == 0 {
            self.recent.put(id, series);
        }
        Ok(found.unwrap_or_else(|| Err(kymo_rrd::Error::new("cannot be read"))))
    }
}
