//! Joins series from elsewhere to the store: an .rrd file of another machine, or a series of another store. A series that the
//! store lacks begins with all rows. One that it has gets the rows that it does not know; the series with the newer values gives
//! the state, and where both know a row, the store's stays.
//!
//! A series that changes begins again, as after the removal of values (`erase.rs`), so at any moment the store has either the old
//! series or the complete new one.

use crate::consolidation::apply::Applier;
use crate::consolidation::schema::Schema;
use crate::engine::{Inner, Store};
use crate::erase::{SeriesBefore, TimeRange, cells_of};
use crate::error::FileError;
use crate::memtable::buffer::Pending;
use crate::memtable::series::Series;
use crate::names;
use crate::read::snapshot::Snapshot;
use crate::rrd_file::adopt::{Beginning, Cause, Whole};
use crate::rrd_file::header::{identity, open_error, require_modest};
use crate::rrd_file::lock::Reserved;
use crate::settings::Files;
use kymo_base::label_set::{Labels, is_set};
use kymo_rrd::header::DsDef;
use kymo_rrd::{Header, Rrd};
use kymo_sys::tree::{Existing, Safe};
use std::collections::HashSet;
use std::iter;
use std::os::unix::ffi::OsStrExt;

mod points;

pub use points::ForeignPoints;

/// Limit of the cells of a series, all of which are in memory.
const CELLS_MAX: u64 = 1 << 22;

/// A series from elsewhere.
#[derive(Clone, Debug)]
pub struct ForeignSeries {
    /// Name: that of a file, as a client would spell it, or a label set.
    pub name: Vec<u8>,
    /// Definitions, state and rows.
    pub rrd: Rrd,
}

/// Permission to change the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinMode {
    /// Only say what would change.
    Look,
    /// Change the store.
    Change,
}

/// Outcome of joining a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// True if the store had no such series.
    pub is_new: bool,
    /// Rows, or samples, that the store did not have.
    pub added: u64,
    /// Rows, or samples, that both have with other values; those of the store stay.
    pub differing: u64,
}

/// A series that is about to begin.
struct Planned<'a> {
    /// Index of its request.
    at: usize,
    whole: Whole,
    /// The series that it replaces.
    reserved: Option<Reserved<'a>>,
}

impl Store {
    /// Joins series to those of the store. What succeeded is on the disk when this returns. A series whose definitions are not
    /// those of the store's series of that name is refused.
    pub fn join(
        &self,
        foreign: Vec<ForeignSeries>,
        mode: JoinMode,
    ) -> Vec<Result<Joined, FileError>> {
        let inner = &*self.inner;
        let (mut outcomes, mut planned) = (Vec::new(), Vec::new());
        let mut names = HashSet::new();
        for (at, series) in foreign.into_iter().enumerate() {
            let outcome = match names.insert(series.name.clone()) {
                true => self.plan(at, series, mode, &mut planned),
                false => Err(FileError::Rrd("it is given twice".into())),
            };
            outcomes.push(outcome);
        }
        if !planned.is_empty() {
            inner.begin_joined(planned, &mut outcomes);
        }
        outcomes
    }

    /// Compares a series with that of the store, and adds it to `planned` if the store is to change.
    fn plan<'a>(
        &'a self,
        at: usize,
        series: ForeignSeries,
        mode: JoinMode,
        planned: &mut Vec<Planned<'a>>,
    ) -> Result<Joined, FileError> {
        let (inner, ForeignSeries { name, rrd }) = (&*self.inner, series);
        require_modest(&rrd.header)?;
        if rrd.header.last_up < 1 {
            return Err(FileError::BadStamp);
        }
        if rrd.header.cell_count() > CELLS_MAX {
            return Err(FileError::Large(rrd.header.cell_count()));
        }
        let Some(id) = self.id_of(&name, mode)? else {
            let added = known_rows(&rrd);
            if mode == JoinMode::Change {
                planned.push(Planned {
                    at,
                    whole: inner.beginning_with(&name, rrd)?,
                    reserved: None,
                });
            }
            return Ok(Joined {
                is_new: true,
                added,
                differing: 0,
            });
        };
        let id = inner.verified_soon(id)?;
        let reserved = inner.reserve(id)?.ok_or(FileError::NoSuchFile)?;
        if inner.lock().series.get(id).is_some_and(Series::has_points) {
            let why = "there is a series of samples of this name";
            return Err(FileError::Rrd(why.into()));
        }
        let before = inner.before_rewrite(id)?;
        let points = inner.points_without(&before, TimeRange::NONE)?;
        let SeriesBefore {
            path,
            snapshot,
            has_file,
            has,
        } = before;
        let (joined, change) = inner.joined_with(snapshot, rrd)?;
        if let (JoinMode::Change, Some(rrd)) = (mode, change) {
            let beginning = Beginning {
                has,
                seen: has_file
                    .then(|| inner.replace_file(&path, &rrd))
                    .transpose()?,
                ..Beginning::of(Cause::Joined)
            };
            planned.push(Planned {
                at,
                whole: Whole {
                    path,
                    rrd,
                    beginning,
                    points,
                },
                reserved: Some(reserved),
            });
        }
        Ok(joined)
    }

    /// The series of a name; `None`: there is none.
    fn id_of(&self, name: &[u8], mode: JoinMode) -> Result<Option<u32>, FileError> {
        let inner = &*self.inner;
        if is_set(name) {
            let labels = Labels::parse(name).map_err(|error| FileError::Rrd(error.to_string()))?;
            let known = inner.lock().series.by_path(labels.text());
            if known.is_none() {
                self.admit_labels(&labels)?;
            }
            return Ok(known);
        }
        let spelled = inner.checked(name)?;
        let known = inner.any(name, &spelled);
        if known.is_some() && mode == JoinMode::Look {
            return Ok(known);
        }
        // A file that the store does not know yet is a series, too.
        match self.touch(name) {
            Ok(()) => Ok(inner.any(name, &spelled)),
            Err(FileError::NoSuchFile) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Inner {
    /// A series that begins with all rows of a foreign one. In a store that keeps files up to date it has a file at once.
    fn beginning_with(&self, name: &[u8], rrd: Rrd) -> Result<Whole, FileError> {
        let mut beginning = Beginning::of(Cause::Defined);
        let mut path = match is_set(name) {
            true => name.to_vec(),
            false => names::normal(&names::spelled(&self.settings, name)),
        };
        if let (Files::After(_), false) = (self.settings.files, is_set(name)) {
            let folder = names::folder_of(&path);
            if self.tree.stat(names::path(folder)).is_err() {
                let made = self.tree.make_folders(names::path(folder));
                made.map_err(|error| FileError::MakeFolder(folder.to_vec(), error))?;
            }
            let place = self.tree.place(names::path(&path)).map_err(FileError::Io)?;
            let existing = self.existing_at(&place, Existing::Keep);
            let put = self
                .tree
                .put(&place, &rrd.to_bytes(), existing, Safe::Synced);
            beginning.seen = Some(identity(&put.map_err(open_error)?));
            path = place.as_os_str().as_bytes().to_vec();
        }
        Ok(Whole {
            path: path.into(),
            rrd,
            beginning,
            points: Pending::default(),
        })
    }

    /// Joins a foreign series to the present one. Returns the new series, unless the store has all of the foreign one.
    fn joined_with(
        &self,
        snapshot: Snapshot,
        mut theirs: Rrd,
    ) -> Result<(Joined, Option<Rrd>), FileError> {
        let base = self.base_of(&snapshot)?;
        let mut view = snapshot.view(&mut Applier::default(), self.rrd_now(), base)?;
        let mut own = view.whole()?;
        if view.damaged > 0 {
            let why = "some of its rows are damaged: kymo verify says which".into();
            return Err(FileError::Rrd(why));
        }
        if let Some(why) = difference(&own.header, &theirs.header) {
            return Err(FileError::Rrd(format!(
                "there is a series of this name, and {why}"
            )));
        }
        let joined = compare(&view.schema, &own, &theirs);
        let is_newer = stamp(&theirs.header) > stamp(&own.header);
        let whole = match is_newer {
            true => {
                theirs.header.head_par = own.header.head_par;
                fill(&view.schema, &mut theirs, &own, Wins::Other);
                theirs
            }
            false => {
                fill(&view.schema, &mut own, &theirs, Wins::This);
                own
            }
        };
        Ok((joined, (is_newer || joined.added > 0).then_some(whole)))
    }

    /// Begins the planned series.
    fn begin_joined(&self, planned: Vec<Planned<'_>>, outcomes: &mut [Result<Joined, FileError>]) {
        let (mut places, mut wholes, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for Planned {
            at,
            whole,
            reserved,
        } in planned
        {
            if reserved.is_none() {
                new.push(whole.path.clone());
            }
            places.push((at, reserved));
            wholes.push(whole);
        }
        let begun = self.import_all(wholes);
        let begun = begun.and_then(|begun| {
            let synced = self.sync_to(u64::MAX);
            synced.map(|()| begun).map_err(FileError::Io)
        });
        match begun {
            Ok(begun) => {
                for ((at, reserved), begun) in places.iter().zip(begun) {
                    match begun {
                        Ok(id) => self.end_join(id, reserved.as_ref()),
                        Err(error) => outcomes[*at] = Err(error),
                    }
                }
            }
            Err(error) => {
                let text = error.to_string();
                for (at, _) in &places {
                    outcomes[*at] = Err(FileError::Rrd(text.clone()));
                }
            }
        }
        self.put_placeholders(new.iter().map(|path| &path[..]));
    }

    fn end_join(&self, id: u32, reserved: Option<&Reserved<'_>>) {
        if let Some(reserved) = reserved {
            drop(self.recent.take(reserved.id));
            if let Some(series) = self.lock().series.get_mut(id) {
                series.file.release();
            }
        }
    }
}

/// The series whose value counts where both know a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wins {
    This,
    Other,
}

/// Counts the foreign rows that the series does not know, up to the newest of both, and those that it knows with other values.
fn compare(schema: &Schema, own: &Rrd, theirs: &Rrd) -> Joined {
    let mut joined = Joined::default();
    let archives = schema.archives.iter().enumerate();
    for (archive, about) in archives.filter(|(_, about)| !about.seasonal) {
        let newest = schema.newest(archive, own.header.last_up);
        let others = schema.newest(archive, theirs.header.last_up);
        let begin = newest.max(others).saturating_sub(about.row_cnt - 1);
        for number in begin..=others {
            let known =
                (number <= newest).then(|| cells_of(schema, own, (archive, number), newest));
            let known = known.map_or(&[][..], |range| &own.cells[range]);
            let known = known.iter().copied().chain(iter::repeat(f64::NAN));
            let given = &theirs.cells[cells_of(schema, theirs, (archive, number), others)];
            let (mut adds, mut differs) = (false, false);
            for (known, given) in known.zip(given).filter(|(_, given)| !given.is_nan()) {
                adds |= known.is_nan();
                differs |= !known.is_nan() && known.to_bits() != given.to_bits();
            }
            joined.added += u64::from(adds);
            joined.differing += u64::from(differs);
        }
    }
    joined
}

/// Adds rows of `other` to `rrd`, by their time.
fn fill(schema: &Schema, rrd: &mut Rrd, other: &Rrd, wins: Wins) {
    let archives = schema.archives.iter().enumerate();
    for (archive, about) in archives.filter(|(_, about)| !about.seasonal) {
        let newest = schema.newest(archive, rrd.header.last_up);
        let others = schema.newest(archive, other.header.last_up);
        let end = newest.min(others);
        let begin = newest.max(others).saturating_sub(about.row_cnt - 1);
        for number in begin..=end {
            let to = cells_of(schema, rrd, (archive, number), newest);
            let from = cells_of(schema, other, (archive, number), others);
            for (cell, other) in rrd.cells[to].iter_mut().zip(&other.cells[from]) {
                if !other.is_nan() && (cell.is_nan() || wins == Wins::Other) {
                    *cell = *other;
                }
            }
        }
    }
}

/// Number of rows with a known cell.
fn known_rows(rrd: &Rrd) -> u64 {
    let rows = rrd.cells.chunks(rrd.header.ds.len().max(1));
    let known = rows.filter(|row| row.iter().any(|cell| !cell.is_nan()));
    known.map(|_| 1).sum()
}

fn stamp(header: &Header) -> (i64, i64) {
    (header.last_up, header.last_up_usec)
}

/// Difference of two definitions in words; `None`: rows of one are rows of the other.
fn difference(own: &Header, theirs: &Header) -> Option<String> {
    if own.pdp_step != theirs.pdp_step {
        return Some(format!(
            "its step is {} s, not {} s",
            own.pdp_step, theirs.pdp_step
        ));
    }
    let about = |ds: &DsDef| (ds.name().to_vec(), ds.dst().to_vec());
    if !own.ds.iter().map(about).eq(theirs.ds.iter().map(about)) {
        return Some("its data sources are others".into());
    }
    let (mut one, mut other) = (own.rra.iter(), theirs.rra.iter());
    let same = |(one, other): (&kymo_rrd::header::RraDef, &kymo_rrd::header::RraDef)| {
        (one.cf(), one.pdp_cnt, one.row_cnt) == (other.cf(), other.pdp_cnt, other.row_cnt)
    };
    let is_same = own.rra.len() == theirs.rra.len() && one.by_ref().zip(other.by_ref()).all(same);
    (!is_same).then(|| "its archives are others".into())
}
