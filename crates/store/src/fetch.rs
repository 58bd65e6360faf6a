//! FETCH: from what an earlier one left if that is enough, else from blocks and files.

use crate::consolidation::apply::Applier;
use crate::engine::{Inner, Store};
use crate::error::{FetchError, FileError};
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
            cells_max,
        };
        if let Some(id) = inner.any(name, &spelled) {
            return inner.fetch_id(id, &wanted).map_err(|error| match error {
                FetchError::File(error) => FetchError::File(opening(&spelled, error)),
                error => error,
            });
        }
        let Opened { header, mut rows } = self.read(name, Fresh::Flushed)?;
        Ok(wanted.of(&header, &mut rows)?)
    }
}

impl Inner {
    /// Rows of a series; all its values count as written.
    fn fetch_id(&self, id: u32, wanted: &Wanted) -> Result<Fetched, FetchError> {
        let id = self.verified_for_reading(id)?;
        let mut applier = self.recent.applier();
        let found = match self.fetch_recent(id, wanted, &mut applier)? {
            Some(found) => found,
            None => self.fetch_anew(id, wanted, &mut applier)?,
        };
        self.recent.put_applier(applier);
        Ok(found?)
    }

    /// From what an earlier fetch left, if that is enough.
    fn fetch_recent(
        &self,
        id: u32,
        wanted: &Wanted,
        applier: &mut Applier,
    ) -> Result<Option<Found>, FileError> {
        let recent = self.recent.take(id);
        let mut state = self.lock();
        let _full = self.show_with(&mut state, id);
        let Some((recent, series)) = recent.zip(state.series.get(id)) else {
            return Ok(None);
        };
        // Of a suspended one not all values count.
        let values = series.values.since(recent.version);
        let Some(values) = values.filter(|_| series.values.is_published()) else {
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
        applier: &mut Applier,
    ) -> Result<Found, FileError> {
        let (snapshot, version) = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            let values = &series.values;
            let version = values.is_published().then_some(values.version);
            (self.snapshot(&state, series, values.published), version)
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
