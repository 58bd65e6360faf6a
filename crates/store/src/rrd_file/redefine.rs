//! Changes the definitions of series, for example when values arrive less often. Each series keeps its rows and its identity: rows of
//! the same step as they are, others converted as by `rrdtool create --source`.

use crate::consolidation::apply::Applier;
use crate::consolidation::schema;
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::memtable::buffer::Pending;
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::memtable::writer::Writer;
use crate::names;
use crate::read::snapshot::Snapshot;
use crate::rrd_file::adopt::Whole;
use crate::rrd_file::adopt::{Beginning, Cause};
use crate::rrd_file::create::seasons_of;
use crate::rrd_file::diff::NO_READING;
use crate::rrd_file::header::{identity, open_error, require_modest};
use crate::rrd_file::lock::Reserved;
use crate::settings::Files;
use crate::wal::value::stamp_of;
use kymo_rrd::create::{Create, create};
use kymo_rrd::header::DsDef;
use kymo_rrd::{Header, Rrd, take_rows};
use kymo_sys::disk::RecordLock;
use kymo_sys::tree::{Existing, Safe};
use std::sync::Arc;

/// Row number at which the rows of an archive begin, as in CREATE.
const ROWS_BEGIN: u64 = 1;
/// Limit of the cells of a series, before and after, all of which are in memory.
const CELLS_MAX: u64 = 1 << 22;
/// Number of cells of new series in memory at which these are begun.
const CELLS_AT_ONCE: usize = 1 << 20;

/// A change of a series' definitions.
#[derive(Clone, Debug)]
pub struct Redefinition<'a> {
    /// Name of the series, as a client would spell it.
    pub name: &'a [u8],
    /// The present definitions; a series with any others stays unchanged.
    pub from: &'a Header,
    /// The new definitions.
    pub to: &'a Header,
    /// Stamp from which on values, as far as no block has them, are applied to the new definitions only.
    pub since: f64,
}

/// A series whose definitions are being changed.
struct Changing<'a> {
    /// Index of the request.
    at: usize,
    reserved: Reserved<'a>,
    whole: Whole,
    /// True if a file is to be made again.
    had_view: bool,
}

impl Store {
    /// Changes the definitions of series; returns true for each series
    /// that now has the new ones. Reads and writes all their rows.
    pub fn redefine(&self, wanted: &[Redefinition<'_>]) -> Vec<Result<bool, FileError>> {
        let inner = &*self.inner;
        let (mut outcomes, mut changing, mut cells) = (Vec::new(), Vec::new(), 0);
        for (at, wanted) in wanted.iter().enumerate() {
            let outcome = inner.redefine_one(at, wanted, &mut changing);
            outcomes.push(outcome);
            let newest = changing.last().filter(|newest| newest.at == at);
            cells += newest.map_or(0, |newest| newest.whole.rrd.cells.len());
            if cells > CELLS_AT_ONCE {
                inner.begin_changed(std::mem::take(&mut changing), &mut outcomes);
                cells = 0;
            }
        }
        inner.begin_changed(changing, &mut outcomes);
        outcomes
    }

    /// Step of a series, in seconds; `None` if there is no series of this name.
    pub fn step(&self, name: &[u8]) -> Option<u64> {
        self.defined(name, |template| template.pdp_step)
    }

    /// The definitions of a series, without its state; `None` if there is no series of this name.
    pub fn definition(&self, name: &[u8]) -> Option<Header> {
        self.defined(name, Header::clone)
    }

    /// Returns true if a writer may send values for a series. Changes nothing.
    pub fn may_write(&self, name: &[u8], writer: Writer) -> bool {
        let inner = &*self.inner;
        let state = inner.lock();
        let spelled = || names::spelled(&inner.settings, name);
        let id = state.series.find(name, spelled);
        let Some(series) = id.and_then(|id| state.series.get(id)) else {
            return true;
        };
        let chunk = state.chunks.get(series.chunk);
        let interval_s = chunk.map_or(0, |chunk| chunk.schema.definitions().pdp_step);
        series
            .hold
            .allows(writer, inner.clock.mono_ns(), interval_s)
    }

    fn defined<T>(&self, name: &[u8], of: impl Fn(&Header) -> T) -> Option<T> {
        let inner = &*self.inner;
        let state = inner.lock();
        let spelled = || names::spelled(&inner.settings, name);
        let series = state.series.get(state.series.find(name, spelled)?)?;
        let chunk = state.chunks.get(series.chunk)?;
        Some(of(&chunk.schema.template))
    }
}

impl Inner {
    /// Builds the new series for one that is as expected. A series with
    /// a file gets its new file here; others are added to `changing`.
    fn redefine_one<'a>(
        &'a self,
        at: usize,
        wanted: &Redefinition<'_>,
        changing: &mut Vec<Changing<'a>>,
    ) -> Result<bool, FileError> {
        let spelled = self.checked(wanted.name)?;
        require_modest(wanted.to)?;
        let Some(id) = self.any(wanted.name, &spelled) else {
            return Ok(false);
        };
        let id = self.verified_soon(id)?;
        let Some(reserved) = self.reserve(id)? else {
            return Ok(false);
        };
        let Some(before) = self.before(id, wanted)? else {
            return Ok(false);
        };
        let file = before.file;
        let whole = self.joined(before, wanted.to)?;
        match file {
            FileRole::Home => return self.put_file(whole, reserved),
            FileRole::View if !self.remove_view(&whole.path)? => return Ok(false),
            FileRole::View | FileRole::None => {}
        }
        changing.push(Changing {
            at,
            reserved,
            whole,
            had_view: file == FileRole::View,
        });
        Ok(false)
    }

    /// Replaces the reserved series by the new ones.
    fn begin_changed(&self, changing: Vec<Changing<'_>>, outcomes: &mut [Result<bool, FileError>]) {
        let (mut reserved, mut new) = (Vec::new(), Vec::new());
        for one in changing {
            reserved.push((one.at, one.reserved, one.had_view));
            new.push(one.whole);
        }
        if new.is_empty() {
            return;
        }
        match self.import_all(new) {
            Ok(imported) => {
                for ((at, _, had_view), imported) in reserved.iter().zip(imported) {
                    outcomes[*at] = imported.map(|id| {
                        let is_free = self.is_free(id);
                        if *had_view {
                            // After an error the next request makes it.
                            let _view = self.flush_id(id);
                        }
                        is_free
                    });
                }
            }
            Err(error) => {
                for (at, ..) in &reserved {
                    outcomes[*at] = Err(FileError::Rrd(error.to_string()));
                }
            }
        }
    }

    /// The series before the change; `None` if it is not as expected.
    fn before(&self, id: u32, wanted: &Redefinition<'_>) -> Result<Option<Before>, FileError> {
        let state = self.lock();
        let Some(series) = state.series.get(id) else {
            return Ok(None);
        };
        if series.forgotten || series.suspended || !is_of(&state, series, wanted.from) {
            return Ok(None);
        }
        let file = match (self.needs_no_file(series), series.base) {
            (true, _) => FileRole::None,
            (false, None) if self.settings.files == Files::OnDemand => FileRole::View,
            (false, _) => FileRole::Home,
        };
        if file == FileRole::Home && series.file.must_redo() {
            // A crash may have torn the file, which must be written again first.
            return Err(FileError::Locked);
        }
        let until = wanted.since.next_down();
        let snapshot = self.snapshot(&state, series, until);
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let texts = snapshot.texts();
        let stamps = texts.iter().filter_map(stamp_of);
        Ok(Some(Before {
            path: series.path.clone(),
            has: stamps.fold(series.values.applied, f64::max),
            file,
            snapshot,
        }))
    }

    /// Builds a series with the new definitions from the rows and the state of the old one.
    fn joined(&self, before: Before, to: &Header) -> Result<Whole, FileError> {
        let base = self.base_of(&before.snapshot)?;
        let count = before.snapshot.cell_count().max(to.cell_count());
        if count > CELLS_MAX {
            return Err(FileError::Large(count));
        }
        let mut view = before
            .snapshot
            .view(&mut Applier::default(), self.rrd_now(), base)?;
        let mut source = view.whole()?;
        rename_sources(&mut source.header, to);
        let made = create(
            &Create::default(),
            source.header.last_up,
            &mut { ROWS_BEGIN },
            Some(to),
            &[&source],
        );
        let mut rrd: Rrd = made.map_err(|error| FileError::Rrd(error.text))?;
        take_rows(&mut rrd, &source);
        forget_readings(&mut rrd.header, &source.header);
        Ok(Whole {
            path: before.path,
            rrd,
            beginning: Beginning {
                has: before.has,
                ..Beginning::of(Cause::Redefined)
            },
            points: Pending::default(),
        })
    }

    /// Removes a view: whatever happens next, the series outlives it. Returns false if it has to stay.
    fn remove_view(&self, path: &[u8]) -> Result<bool, FileError> {
        let file = self.locked(path, RecordLock::Exclusive)?;
        if file.metadata().map_err(FileError::Io)?.links > 1 {
            // The file has further names, which must stay names of the same file.
            return Ok(false);
        }
        self.tree.unlink(names::path(path)).map_err(open_error)?;
        Ok(true)
    }

    /// Replaces a series' file. A start after a crash in between adopts the new file.
    fn put_file(&self, whole: Whole, reserved: Reserved<'_>) -> Result<bool, FileError> {
        let place = names::path(&whole.path);
        let file = self.locked(&whole.path, RecordLock::Exclusive)?;
        if file.metadata().map_err(FileError::Io)?.links > 1 {
            // The file has further names, which must stay names of the same file.
            return Ok(false);
        }
        let bytes = whole.rrd.to_bytes();
        let put = self
            .tree
            .put(place, &bytes, Existing::Replace, Safe::Synced);
        let seen = put.map_err(open_error)?;
        let beginning = Beginning {
            base: Some(whole.rrd.header.last_up),
            seen: Some(identity(&seen)),
            ..whole.beginning
        };
        let (header, seasons) = (&whole.rrd.header, seasons_of(&whole.rrd));
        let id = self.adopt_as(&whole.path, header, seasons, beginning)?;
        drop(reserved);
        Ok(self.is_free(id))
    }

    /// Releases the file of the new series that replaced a reserved one.
    fn is_free(&self, id: u32) -> bool {
        let mut state = self.lock();
        let series = state.series.get_mut(id);
        series.map(|series| series.file.release()).is_some()
    }
}

/// Renames the old sources by their order, if no name is the same, so that their rows are kept.
fn rename_sources(before: &mut Header, to: &Header) {
    let is_kept = |ds: &DsDef| to.ds.iter().any(|other| other.ds_nam == ds.ds_nam);
    if before.ds.iter().any(is_kept) {
        return;
    }
    for (ds, other) in before.ds.iter_mut().zip(&to.ds) {
        ds.ds_nam = other.ds_nam;
    }
}

/// Resets the last readings of sources whose type has changed, since differences to them would be wrong.
fn forget_readings(header: &mut Header, before: &Header) {
    for (ds, prep) in header.ds.iter().zip(&mut header.pdp_prep) {
        let same = |other: &&DsDef| other.ds_nam == ds.ds_nam && other.dst == ds.dst;
        if before.ds.iter().find(same).is_none() {
            prep.last_ds[..NO_READING.len()].copy_from_slice(NO_READING);
        }
    }
}

/// Relation of a series to its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileRole {
    None,
    /// The store has all rows of the file.
    View,
    /// The file has rows that the store has not, or has to be there at any moment.
    Home,
}

/// A series before the change, up to the first value for the new definitions.
struct Before {
    path: Arc<[u8]>,
    /// Stamp of its newest value.
    has: f64,
    file: FileRole,
    snapshot: Snapshot,
}

/// Returns true if a series has these definitions.
fn is_of(state: &State, series: &Series, header: &Header) -> bool {
    let chunk = state.chunks.get(series.chunk);
    chunk.is_some_and(|chunk| chunk.schema.front == schema::front(header))
}
