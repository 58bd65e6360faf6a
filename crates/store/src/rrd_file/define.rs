//! Defines many series of a listener at once, with one write of the journal.

use crate::consolidation::schema::SeriesState;
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::folder::fence;
use crate::memtable::state::{EIO, FRAME_BYTES, State};
use crate::names::{self, SeriesName};
use crate::read::raw_points::Sent;
use crate::rrd_file::adopt::{Beginning, Cause, Newcomer, put_newcomer};
use crate::rrd_file::create::seasons_in;
use crate::rrd_file::header::{identity, require_modest};
use crate::rrd_file::pieces::write_blank;
use crate::settings::Files;
use crate::wal::record::Identity;
use kymo_base::label_set::Labels;
use kymo_rrd::Header;
use kymo_sys::disk::Metadata;
use kymo_sys::tree::{Existing, Safe};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Definition of a series.
#[derive(Clone, Debug)]
pub struct Definition<'a> {
    /// Name of the series; for a file, as a client would spell it.
    pub name: SeriesName<'a>,
    /// Header of a file whose cells are all unknown.
    pub header: Header,
}

/// A series that is about to begin.
struct New<'a> {
    /// Index of its definition.
    at: usize,
    name: SeriesName<'a>,
    path: Vec<u8>,
    series: SeriesState,
    /// Identity of its file, if it has one from the beginning.
    seen: Option<Identity>,
    /// True if its placeholder was created. A failed definition leaves it, and it is never adopted.
    has_placeholder: bool,
    /// The series of the same name whose file was removed.
    gone: Option<u32>,
}

/// Place of a series that is about to begin.
struct Site {
    path: Vec<u8>,
    /// Identity of the file that was created for it.
    seen: Option<Identity>,
    /// True if a placeholder was created for it.
    has_placeholder: bool,
    gone: Option<u32>,
}

/// State of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FolderLook {
    Missing,
    /// A folder whose path has no links: a name in it is no file if it can be created.
    Plain,
    Linked,
}

/// Results of checks that one call remembers.
#[derive(Default)]
struct Looks {
    folders: HashMap<Vec<u8>, FolderLook>,
    /// Paths of the series that are about to begin.
    new: HashSet<Vec<u8>>,
}

impl Store {
    /// Makes series known, as [`Store::touch`] does, and begins those that do not exist. Returns true for each series that began.
    /// In a store that keeps files up to date, a new series has a file at once.
    pub fn define(&self, definitions: Vec<Definition<'_>>) -> Vec<Result<bool, FileError>> {
        let mut outcomes: Vec<Result<bool, FileError>> = Vec::new();
        let (mut new, mut looks) = (Vec::new(), Looks::default());
        for (at, definition) in definitions.into_iter().enumerate() {
            let looked = self.look_for(&definition, &mut looks);
            outcomes.push(looked.map(|place| {
                let Some(Site {
                    path,
                    seen,
                    has_placeholder,
                    gone,
                }) = place
                else {
                    return false;
                };
                new.push(New {
                    at,
                    name: definition.name,
                    path,
                    series: SeriesState {
                        seasons: seasons_in(&definition.header, None),
                        header: definition.header,
                    },
                    seen,
                    has_placeholder,
                    gone,
                });
                true
            }));
        }
        self.inner.begin_all(&new, &mut outcomes);
        let began = new
            .iter()
            .filter(|new| matches!(outcomes[new.at], Ok(true)) && !new.has_placeholder);
        self.inner.put_placeholders(began.map(|new| &new.path[..]));
        outcomes
    }

    /// Place for a new series; `None` if the series is known or its file was found.
    fn look_for(
        &self,
        definition: &Definition<'_>,
        looks: &mut Looks,
    ) -> Result<Option<Site>, FileError> {
        let inner = &*self.inner;
        require_modest(&definition.header)?;
        let name = match definition.name {
            SeriesName::File(name) => name,
            SeriesName::Labels(labels) => {
                let site = inner.look_for_labels(labels, looks);
                if site.is_some() {
                    self.admit_labels(labels)?;
                }
                return Ok(site);
            }
        };
        if !names::allowed(&inner.settings, name) {
            return Err(FileError::Outside);
        }
        let spelled = names::spelled(&inner.settings, name);
        if let Some(number) = names::refused(&spelled) {
            return Err(FileError::Name(number));
        }
        let path = names::normal(&spelled);
        if fence::keeps(&inner.settings, &path) {
            return Err(FileError::Outside);
        }
        if !looks.new.insert(path.clone()) {
            return Ok(None);
        }
        let known = inner.lock().series.find(name, || spelled.clone());
        let folder = inner.look_at_folder(&path, looks)?;
        // Creating the placeholder also shows that there is no file, for a third of the cost of looking for one.
        let has_placeholder = known.is_none()
            && folder == FolderLook::Plain
            && inner.settings.files == Files::OnDemand
            && inner.tree.put_empty(names::path(&path)).is_ok();
        if known.is_some() || folder != FolderLook::Missing && !has_placeholder {
            match self.touch(name) {
                Err(FileError::NoSuchFile) => {}
                touched => return touched.map(|()| None),
            }
        }
        let mut place = Site {
            path,
            seen: None,
            has_placeholder,
            gone: known,
        };
        if let Files::After(_) = inner.settings.files {
            let made = self.make_blank(name, &definition.header, &spelled, looks)?;
            let Some((path, seen)) = made else {
                return Ok(None);
            };
            (place.path, place.seen) = (path, Some(identity(&seen)));
        }
        Ok(Some(place))
    }

    /// Creates a file with unknown cells; returns its path and metadata, or `None` if there is a file already.
    fn make_blank(
        &self,
        name: &[u8],
        header: &Header,
        spelled: &[u8],
        looks: &mut Looks,
    ) -> Result<Option<(Vec<u8>, Metadata)>, FileError> {
        let tree = &*self.inner.tree;
        let folder = names::folder_of(spelled);
        if looks
            .folders
            .get(folder)
            .is_none_or(|&look| look == FolderLook::Missing)
        {
            self.make_folder(name, true)?;
            looks.folders.insert(folder.to_vec(), FolderLook::Linked);
        }
        let place = tree.place(names::path(spelled)).map_err(FileError::Io)?;
        let mut write = |out: &mut dyn io::Write| write_blank(header, out);
        let existing = self.inner.existing_at(&place, Existing::Keep);
        match tree.put_pieces(&place, &mut write, existing, Safe::Unsynced) {
            Ok(seen) => Ok(Some((place.as_os_str().as_bytes().to_vec(), seen))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.touch(name).map(|()| None)
            }
            Err(error) => Err(FileError::Io(error)),
        }
    }
}

impl Inner {
    /// Place for a new series without a file; `None` if it is known.
    fn look_for_labels(&self, labels: &Labels, looks: &mut Looks) -> Option<Site> {
        let path = labels.text().to_vec();
        let is_known = self.lock().series.by_path(&path).is_some();
        (!is_known && looks.new.insert(path.clone())).then_some(Site {
            path,
            seen: None,
            has_placeholder: false,
            gone: None,
        })
    }

    /// Looks at the folder of a path, once for all of its series.
    fn look_at_folder(&self, path: &[u8], looks: &mut Looks) -> Result<FolderLook, FileError> {
        let folder = names::folder_of(path);
        if self.is_without_files() {
            return Ok(FolderLook::Missing);
        }
        if let Some(&look) = looks.folders.get(folder) {
            return Ok(look);
        }
        let look = match self.tree.resolve(names::path(folder)) {
            Ok(real) if real.as_os_str().as_bytes() == folder => FolderLook::Plain,
            Err(error) if error.kind() == io::ErrorKind::NotFound => FolderLook::Missing,
            Err(error) if error.raw_os_error() == Some(fence::OUTSIDE) => {
                return Err(FileError::Outside);
            }
            _ => FolderLook::Linked,
        };
        looks.folders.insert(folder.to_vec(), look);
        Ok(look)
    }

    fn begin_all(&self, mut new: &[New<'_>], outcomes: &mut [Result<bool, FileError>]) {
        while !new.is_empty() {
            let mut state = self.lock();
            let (done, began) = self.begin_some(&mut state, new);
            for (new, began) in new[..done].iter().zip(began) {
                outcomes[new.at] = began;
            }
            new = &new[done..];
        }
    }

    /// Begins as many series as one write of the journal takes; returns their number and results.
    fn begin_some(
        &self,
        state: &mut State,
        new: &[New<'_>],
    ) -> (usize, Vec<Result<bool, FileError>>) {
        let fail = |state: &mut State, began: Vec<Began>, error: &io::Error| {
            let newcomers = began.into_iter().filter_map(|(began, _)| began.ok()?);
            newcomers.for_each(|newcomer| newcomer.withdraw(state));
            let number = error.raw_os_error().unwrap_or(EIO);
            let failed = || FileError::Journal(io::Error::from_raw_os_error(number));
            (new.len(), new.iter().map(|_| Err(failed())).collect())
        };
        if let Err(error) = state.prepare(&*self.clock) {
            return fail(state, Vec::new(), &error);
        }
        let mut id = state.series.next_id();
        let mut began: Vec<Began> = Vec::new();
        for new in new {
            if !began.is_empty() && state.journal.records().len() > FRAME_BYTES {
                break;
            }
            let beginning = Beginning {
                seen: new.seen,
                ..Beginning::of(Cause::Defined)
            };
            let newcomer = put_new(state, id, new, &beginning);
            id += u32::from(matches!(newcomer, Ok(Some(_))));
            began.push((newcomer, beginning));
        }
        if let Err(error) = state.journal.commit() {
            return fail(state, began, &error);
        }
        let done = began.len();
        let begin = |(new, (newcomer, beginning)): (&New, Began)| {
            let Some(newcomer) = newcomer? else {
                return Ok(false);
            };
            let id = newcomer.id();
            self.begin_series(state, &new.path, &beginning, newcomer);
            if let SeriesName::File(name) = new.name {
                state.series.spell(id, name);
            }
            Ok(true)
        };
        (done, new.iter().zip(began).map(begin).collect())
    }
}

/// A series that is being begun; `None` if another thread began it first.
type Began = (Result<Option<Newcomer>, FileError>, Beginning);

fn put_new(
    state: &mut State,
    id: u32,
    new: &New<'_>,
    beginning: &Beginning,
) -> Result<Option<Newcomer>, FileError> {
    if let Some(id) = state.series.by_path(&new.path) {
        let series = state.series.get(id).filter(|_| new.gone == Some(id));
        // Replaces the series whose file was removed, unless another thread is checking for its file.
        if series.is_none_or(|series| series.file.is_busy()) {
            return Ok(None);
        }
    }
    put_newcomer(
        state,
        (id, &new.path),
        &new.series,
        &Sent::default(),
        beginning,
    )
    .map(Some)
}
