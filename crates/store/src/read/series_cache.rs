//! Cache of recently fetched series: the state after the values at that time, and the rows that were requested. Later
//! values are applied to the cached state, so that no blocks and files are read. The cells of seasonal archives
//! (SEASONAL, DEVSEASONAL) are part of the state.

use crate::consolidation::apply::Applier;
use crate::consolidation::row_sink::{NewRows, Part};
use crate::consolidation::schema::{Schema, SeriesState};
use crate::memtable::buffer::Texts;
use crate::read::view::{View, in_numbers};
use kymo_rrd::fetch::{Fetched, Plan, fetch};
use kymo_rrd::update::Now;
use kymo_rrd::{Error, Header, Kind, Rows};
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limit of all cached bytes.
const BYTES_MAX: usize = 32 << 20;
/// Limit of the cached cells of an archive.
const CELLS_MAX: usize = 8192;
/// Approximate bytes of a series besides its header and cells.
const FIXED_BYTES: usize = 1024;
/// Limit of the cached appliers, which are used in parallel.
const APPLIERS_MAX: usize = 8;

/// All cached series. A reader takes a series out and puts it back afterwards.
#[derive(Default)]
pub(crate) struct Recent {
    series: Mutex<Generations>,
    appliers: Mutex<Vec<Applier>>,
}

/// Series requested since the last change of generations, and before.
#[derive(Default)]
struct Generations {
    young: HashMap<u32, Box<CachedSeries>>,
    old: HashMap<u32, Box<CachedSeries>>,
    young_bytes: usize,
}

/// A cached series.
pub(crate) struct CachedSeries {
    schema: Arc<Schema>,
    pub(crate) state: SeriesState,
    /// Version of the series, counting the values in the state.
    pub(crate) version: u64,
    archives: Vec<CachedArchive>,
}

/// The newest rows of an archive, from number `first` on.
struct CachedArchive {
    archive: usize,
    first: u64,
    cells: Vec<f64>,
}

/// A request of FETCH.
pub(crate) struct FetchRequest<'a> {
    pub(crate) cf: &'a [u8],
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Approximate seconds of a row; `u64::MAX` for the finest archive, as in rrdcached.
    pub(crate) step: u64,
    /// Largest number of cells; more are an error.
    pub(crate) cells_max: u64,
}

/// The cached rows of a series, and the source of others.
struct Reading<'a> {
    schema: &'a Schema,
    state: &'a SeriesState,
    archives: &'a mut Vec<CachedArchive>,
    view: Option<&'a mut View>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FetchRequest<'_> {
    pub(crate) fn of(&self, header: &Header, rows: &mut impl Rows) -> Result<Fetched, Error> {
        let FetchRequest {
            cf,
            start,
            end,
            step,
            cells_max,
        } = *self;
        if Plan::of(header, cf, start, end, step)?.cells(header) > cells_max {
            return Err(Error {
                kind: Kind::Large,
                text: "more rows than are wanted at once".into(),
            });
        }
        fetch(header, rows, cf, start, end, step)
    }
}

impl Recent {
    pub(crate) fn take(&self, id: u32) -> Option<Box<CachedSeries>> {
        let mut kept = locked(&self.series);
        let kept = &mut *kept;
        match kept.young.remove(&id) {
            Some(series) => {
                kept.young_bytes -= series.bytes();
                Some(series)
            }
            None => kept.old.remove(&id),
        }
    }

    pub(crate) fn put(&self, id: u32, series: Box<CachedSeries>) {
        let bytes = series.bytes();
        if bytes > BYTES_MAX / 8 {
            return;
        }
        let mut kept = locked(&self.series);
        let mut gone = HashMap::new();
        if kept.young_bytes + bytes > BYTES_MAX / 2 {
            kept.young_bytes = 0;
            let young = mem::take(&mut kept.young);
            gone = mem::replace(&mut kept.old, young);
        }
        kept.young_bytes += bytes;
        if let Some(before) = kept.young.insert(id, series) {
            kept.young_bytes -= before.bytes();
        }
        drop(kept);
        // Freeing many series takes time, so it is done without the lock.
        drop(gone);
    }

    pub(crate) fn applier(&self) -> Applier {
        locked(&self.appliers).pop().unwrap_or_default()
    }

    pub(crate) fn put_applier(&self, applier: Applier) {
        let mut appliers = locked(&self.appliers);
        if appliers.len() < APPLIERS_MAX {
            appliers.push(applier);
        }
    }
}

impl CachedSeries {
    /// Caches a series in its present state.
    pub(crate) fn of(view: &View, version: u64) -> CachedSeries {
        CachedSeries {
            schema: view.schema.clone(),
            state: view.state.clone(),
            version,
            archives: Vec::new(),
        }
    }

    /// Fetches rows; reads missing ones from `view` and caches them. `None` means that a view is needed.
    pub(crate) fn fetch(
        &mut self,
        wanted: &FetchRequest,
        view: Option<&mut View>,
    ) -> Option<Result<Fetched, Error>> {
        let whole = view.is_some();
        let header = &self.state.header;
        let rows = &mut Reading {
            schema: &self.schema,
            state: &self.state,
            archives: &mut self.archives,
            view,
        };
        let found = wanted.of(header, rows);
        // Without a view, any error may be that of a missing row.
        (whole || found.is_ok()).then_some(found)
    }

    /// Adds the rows of another cached copy with the same values.
    pub(crate) fn join(&mut self, other: CachedSeries) {
        if other.version == self.version {
            self.archives.extend(other.archives);
        }
    }

    /// Applies later values; `None` if the copy is unusable then.
    pub(crate) fn go_on(
        mut self: Box<Self>,
        applier: &mut Applier,
        name: &[u8],
        values: &Texts,
        now: Now,
    ) -> Option<Box<Self>> {
        let values: Vec<&[u8]> = values.iter().collect();
        if values.is_empty() {
            return Some(self);
        }
        let CachedSeries {
            schema,
            state,
            archives,
            ..
        } = &mut *self;
        let before = state.header.last_up;
        applier.go_on(schema, state, name, &values, now).ok()?;
        let after = state.header.last_up;
        archives.retain_mut(|kept| {
            let came = schema.newest(kept.archive, after) - schema.newest(kept.archive, before);
            kept.push(&applier.captured.archives[kept.archive], came, schema.width)
        });
        self.version += values.len() as u64;
        Some(self)
    }

    fn bytes(&self) -> usize {
        let kept = self.archives.iter().map(|kept| &kept.cells);
        let cells = kept.chain(&self.state.seasons).map(Vec::capacity);
        let header = self.schema.header_bytes() as usize;
        FIXED_BYTES + header + 8 * cells.sum::<usize>()
    }
}

impl CachedArchive {
    /// Appends new rows; returns `false` if the archive is unusable then.
    fn push(&mut self, rows: &NewRows, came: u64, width: usize) -> bool {
        if rows.len() != came || came as usize * width > CELLS_MAX {
            return false;
        }
        let mut at = 0;
        for part in &rows.parts {
            let stored = part.stored() as usize * width;
            let cells = &rows.cells[at..at + stored];
            match part {
                Part::Rows(_) => self.cells.extend_from_slice(cells),
                Part::Run(count) => (0..*count).for_each(|_| self.cells.extend_from_slice(cells)),
            }
            at += stored;
        }
        if self.cells.len() > 2 * CELLS_MAX {
            let rows = (self.cells.len() - CELLS_MAX) / width;
            self.cells.drain(..rows * width);
            self.first += rows as u64;
        }
        true
    }
}

impl Reading<'_> {
    fn newest(&self, archive: usize) -> u64 {
        self.schema.newest(archive, self.state.header.last_up)
    }

    fn kept(&self, archive: usize, number: u64) -> Option<&CachedArchive> {
        let mut all = self.archives.iter();
        all.find(|kept| kept.archive == archive && kept.first <= number)
    }

    /// Reads the rows `number..` of an archive.
    fn numbered(&mut self, archive: usize, number: u64, out: &mut [f64]) -> Result<(), Error> {
        let width = self.schema.width;
        if self.kept(archive, number).is_none() {
            let count = (self.newest(archive) + 1).saturating_sub(number) as usize;
            let view = self.view.as_mut();
            let view = view.ok_or_else(|| Error::new("is not kept"))?;
            if count.saturating_mul(width) > CELLS_MAX {
                return view.numbered(archive, number, out);
            }
            let mut cells = vec![0.0; count * width];
            view.numbered(archive, number, &mut cells)?;
            self.archives.retain(|kept| kept.archive != archive);
            self.archives.push(CachedArchive {
                archive,
                first: number,
                cells,
            });
        }
        let cells = self.kept(archive, number).and_then(|kept| {
            let from = (number - kept.first) as usize * width;
            kept.cells.get(from..from + out.len())
        });
        out.copy_from_slice(cells.ok_or_else(outside)?);
        Ok(())
    }
}

impl Rows for Reading<'_> {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        let (schema, header) = (self.schema, &self.state.header);
        let (archive, row) = schema.place(first).ok_or_else(outside)?;
        if let Some(season) = schema.season(archive) {
            let from = row as usize * schema.width;
            let season = self.state.seasons.get(season).ok_or_else(outside)?;
            let there = season.get(from..from + cells.len()).ok_or_else(outside)?;
            cells.copy_from_slice(there);
            return Ok(());
        }
        let tip = (header.cur_row[archive], self.newest(archive));
        let each = |number, cells: &mut [f64]| self.numbered(archive, number, cells);
        let read = in_numbers(schema, (archive, row), tip, cells, each)?;
        match read == cells.len() {
            true => Ok(()),
            false => Err(outside()),
        }
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::read_only())
    }
}

fn outside() -> Error {
    Error::new("a row lies outside the file")
}
