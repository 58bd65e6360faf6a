//! Removes the values of a time range from a series at an administrator's request: removes its points, and makes each row unknown
//! that overlaps the range, in the store and in its file.
//!
//! The series begins again with the remaining values, as after a change of its definitions (`rrd_file/redefine.rs`), so at any
//! moment the store has either the old series or the complete new one. The file is replaced first: until the journal has the new
//! series, a start sees it as a file that another program changed, and adopts it. Series of points: `erase/points.rs`.

use crate::consolidation::apply::Applier;
use crate::consolidation::schema::Schema;
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::hole;
use crate::memtable::buffer::{Pending, Texts};
use crate::memtable::series::Series;
use crate::names;
use crate::read::raw_points::sent;
use crate::read::snapshot::Snapshot;
use crate::read::view::{View, row_of};
use crate::rrd_file::adopt::Whole;
use crate::rrd_file::adopt::{Beginning, Cause};
use crate::rrd_file::header::{identity, open_error};
use crate::wal::record::Identity;
use crate::wal::value::stamp_of;
use kymo_base::label_set;
use kymo_rrd::create::{Create, create};
use kymo_rrd::update::lose_between;
use kymo_rrd::{Rrd, UNKNOWN};
use kymo_sys::disk::RecordLock;
use kymo_sys::tree::{Existing, Safe};
use std::sync::Arc;

pub(crate) mod points;

/// Limit of the cells of a series, all of which are in memory.
const CELLS_MAX: u64 = 1 << 22;

/// A range of time in seconds since 1970, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct TimeRange {
    /// The first second.
    pub from: i64,
    /// The last second.
    pub thru: i64,
}

impl TimeRange {
    /// A range without moments.
    pub(crate) const NONE: TimeRange = TimeRange {
        from: i64::MAX,
        thru: i64::MIN,
    };

    fn holds(self, stamp: f64) -> bool {
        self.from as f64 <= stamp && stamp < self.thru as f64 + 1.0
    }

    /// Returns true if a row for the time from `begin` to `end` overlaps the range.
    fn overlaps(self, (begin, end): (i64, i64)) -> bool {
        self.from <= end && begin < self.thru
    }
}

/// A series before it begins again with other rows.
pub(crate) struct SeriesBefore {
    pub(crate) path: Arc<[u8]>,
    pub(crate) snapshot: Snapshot,
    pub(crate) has_file: bool,
    /// Stamp of the newest value.
    pub(crate) has: f64,
}

impl Store {
    /// Removes the values of a range from series; returns for each if that succeeded. When this returns, the change is on the
    /// disk. Values with stamps in the future are removed too, so that current values are accepted again.
    pub fn erase(&self, names: &[Vec<u8>], range: TimeRange) -> Vec<Result<(), FileError>> {
        let erase = |name: &Vec<u8>| {
            if !label_set::is_set(name) {
                // Makes a file known that the store does not know yet.
                self.touch(name)?;
            }
            self.inner.erase(name, range)
        };
        let mut outcomes: Vec<_> = names.iter().map(erase).collect();
        if let Err(error) = self.inner.sync_to(u64::MAX) {
            let text = error.to_string();
            outcomes.fill_with(|| Err(FileError::Journal(std::io::Error::other(text.clone()))));
        }
        outcomes
    }
}

impl Inner {
    fn erase(&self, name: &[u8], range: TimeRange) -> Result<(), FileError> {
        let found = match label_set::is_set(name) {
            true => self.lock().series.by_path(name),
            false => self.any(name, &self.checked(name)?),
        };
        let id = self.verified_soon(found.ok_or(FileError::NoSuchFile)?)?;
        let reserved = self.reserve(id)?.ok_or(FileError::NoSuchFile)?;
        let has_points = self.lock().series.get(id).map(Series::has_points);
        if has_points.ok_or(FileError::NoSuchFile)? {
            return self.erase_points(id, range);
        }
        let before = self.before_rewrite(id)?;
        let points = self.points_without(&before, range)?;
        let SeriesBefore {
            path,
            snapshot,
            has_file,
            has,
            ..
        } = before;
        let base = self.base_of(&snapshot)?;
        let mut view = snapshot.view(&mut Applier::default(), self.rrd_now(), base)?;
        let now_s = self.clock.now().real_ns.div_euclid(1_000_000_000);
        let rrd = without(&mut view, range, now_s)?;
        let mut beginning = Beginning {
            has,
            ..Beginning::of(Cause::Erased)
        };
        if has_file {
            beginning.seen = Some(self.replace_file(&path, &rrd)?);
        }
        let whole = Whole {
            path,
            rrd,
            beginning,
            points,
        };
        let begun = self.import_all(vec![whole])?.pop();
        let new = begun.unwrap_or(Err(FileError::NoSuchFile))?;
        drop(self.recent.take(id));
        if let Some(series) = self.lock().series.get_mut(new) {
            series.file.release();
        }
        drop(reserved);
        Ok(())
    }

    /// A series that no thread writes, as it is before it begins again.
    pub(crate) fn before_rewrite(&self, id: u32) -> Result<SeriesBefore, FileError> {
        let state = self.lock();
        let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
        if series.suspended {
            return Err(FileError::Rrd("it is suspended: RESUME it first".into()));
        }
        let has_file = !self.needs_no_file(series);
        if has_file && series.file.must_redo() {
            // A crash may have torn the file, which must be written again first.
            return Err(FileError::Locked);
        }
        let snapshot = self.snapshot(&state, series, f64::INFINITY);
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        if snapshot.cell_count() > CELLS_MAX {
            return Err(FileError::Large(snapshot.cell_count()));
        }
        let texts = snapshot.texts();
        let stamps = texts.iter().filter_map(stamp_of);
        Ok(SeriesBefore {
            path: series.path.clone(),
            has_file,
            has: stamps.fold(series.values.applied, f64::max),
            snapshot,
        })
    }

    /// Replaces a series' file; returns the identity of the new one.
    pub(crate) fn replace_file(&self, path: &[u8], rrd: &Rrd) -> Result<Identity, FileError> {
        let file = self.locked(path, RecordLock::Exclusive)?;
        if file.metadata().map_err(FileError::Io)?.links > 1 {
            return Err(FileError::Rrd("its file has another name, too".into()));
        }
        let (replace, safe) = (Existing::Replace, Safe::Synced);
        let put = self
            .tree
            .put(names::path(path), &rrd.to_bytes(), replace, safe);
        Ok(identity(&put.map_err(open_error)?))
    }

    /// The points of a series without those of the range, with a hole in their place.
    pub(crate) fn points_without(
        &self,
        before: &SeriesBefore,
        range: TimeRange,
    ) -> Result<Pending, FileError> {
        let snapshot = &before.snapshot;
        let kept = (snapshot.schema().points_kept_s, self.segments.points_from());
        let sent = sent(snapshot.blocks(), kept, snapshot.slot(), f64::NEG_INFINITY);
        let sent = sent.map_err(FileError::Io)?;
        let (mut left, mut last, mut is_open) = (Pending::default(), None, false);
        let mut take = |texts: &Texts| {
            for text in texts.iter() {
                let stamp = stamp_of(text).filter(|_| !hole::is_one(text));
                match stamp {
                    Some(stamp) if range.holds(stamp) => is_open = true,
                    Some(stamp) => {
                        if let (true, Some(last)) = (std::mem::take(&mut is_open), last) {
                            left.push_hole(last);
                        }
                        last = Some(stamp);
                        left.push(text);
                    }
                    None => left.push(text),
                }
            }
        };
        take(&sent.texts);
        take(&snapshot.texts());
        Ok(left)
    }
}

/// The series with unknown rows in the range.
fn without(view: &mut View, range: TimeRange, now_s: i64) -> Result<Rrd, FileError> {
    let last = view.state.header.last_up;
    let mut rrd = match last > now_s && range.holds(last as f64) {
        true => as_of(view, now_s.min(range.from - 1).max(1))?,
        false => view.whole()?,
    };
    let schema = view.schema.clone();
    let newest_s = rrd.header.last_up;
    for (archive, about) in schema.archives.iter().enumerate() {
        let newest = schema.newest(archive, newest_s);
        for back in (0..about.row_cnt.min(newest + 1)).filter(|_| !about.seasonal) {
            let number = newest - back;
            let end_of = |number: u64| i64::try_from(number * about.step).unwrap_or(i64::MAX);
            if range.overlaps((end_of(number.saturating_sub(1)), end_of(number))) {
                let cells = cells_of(&schema, &rrd, (archive, number), newest);
                rrd.cells[cells].fill(UNKNOWN);
            }
        }
    }
    lose_between(&mut rrd.header, range.from, range.thru);
    Ok(rrd)
}

/// The series as of a time: its rows as far as they are known, without last readings.
fn as_of(view: &mut View, last: i64) -> Result<Rrd, FileError> {
    let template = view.state.header.clone();
    let request = Create {
        start: Some(last),
        ..Create::default()
    };
    let made = create(&request, last, &mut { 1 }, Some(&template), &[]);
    let mut rrd: Rrd = made.map_err(|error| FileError::Rrd(error.text))?;
    rrd.header.head_par = template.head_par;
    let schema = view.schema.clone();
    for (archive, about) in schema.archives.iter().enumerate() {
        let newest = schema.newest(archive, last);
        for back in (0..about.row_cnt.min(newest + 1)).filter(|_| !about.seasonal) {
            let number = newest - back;
            let cells = cells_of(&schema, &rrd, (archive, number), newest);
            let read = view.numbered(archive, number, &mut rrd.cells[cells]);
            read.map_err(|error| FileError::Rrd(error.text))?;
        }
    }
    Ok(rrd)
}

/// Range of a row's cells.
pub(crate) fn cells_of(
    schema: &Schema,
    rrd: &Rrd,
    (archive, number): (usize, u64),
    newest: u64,
) -> std::ops::Range<usize> {
    let about = &schema.archives[archive];
    let row = row_of(number, newest, rrd.header.cur_row[archive], about.row_cnt);
    let [base, row] = [about.base, row].map(|cells| usize::try_from(cells).unwrap_or(usize::MAX));
    let first = base.saturating_add(row.saturating_mul(schema.width));
    first..first.saturating_add(schema.width)
}
