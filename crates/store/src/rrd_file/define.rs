//! Series that a listener has values for, many at once: one write of the journal tells of all of them.

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

/// What a series is to be.
#[derive(Clone, Debug)]
pub struct Definition<'a> {
    /// Of a file, as a client would say it.
    pub name: SeriesName<'a>,
    /// Of a file in which nothing is known yet.
    pub header: Header,
}

/// A series that is to begin.
struct New<'a> {
    /// In the order of the definitions.
    at: usize,
    name: SeriesName<'a>,
    path: Vec<u8>,
    series: SeriesState,
    /// Its file, where it has one from the beginning.
    seen: Option<Identity>,
    /// The series that had its name, whose file was removed.
    gone: Option<u32>,
}

/// Where a series is to begin.
struct Site {
    path: Vec<u8>,
    /// The file that was made for it.
    seen: Option<Identity>,
    gone: Option<u32>,
}

/// What one call knows already.
#[derive(Default)]
struct Looks {
    /// Folders that were looked at, and whether they are there.
    folders: HashMap<Vec<u8>, bool>,
    /// Paths of those that are to begin.
    new: HashSet<Vec<u8>>,
}

impl Store {
    /// Makes series known, as [`Store::touch`] does, and those that are nowhere begin; for each whether it began. They have a file
    /// at once where files are kept up to date.
    pub fn define(&self, definitions: Vec<Definition<'_>>) -> Vec<Result<bool, FileError>> {
        let mut outcomes: Vec<Result<bool, FileError>> = Vec::new();
        let (mut new, mut looks) = (Vec::new(), Looks::default());
        for (at, definition) in definitions.into_iter().enumerate() {
            let looked = self.look_for(&definition, &mut looks);
            outcomes.push(looked.map(|place| {
                let Some(Site { path, seen, gone }) = place else {
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
                    gone,
                });
                true
            }));
        }
        self.inner.begin_all(&new, &mut outcomes);
        let began = new
            .iter()
            .filter(|new| matches!(outcomes[new.at], Ok(true)));
        self.inner.put_placeholders(began.map(|new| &new.path[..]));
        outcomes
    }

    /// Where a series is to begin; `None`: it is known, or was found.
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
        if known.is_some() || inner.may_have_file(&path, looks)? {
            match self.touch(name) {
                Err(FileError::NoSuchFile) => {}
                touched => return touched.map(|()| None),
            }
        }
        let mut place = Site {
            path,
            seen: None,
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

    /// A file in which nothing is known, and its path; `None`: there is one already.
    fn make_blank(
        &self,
        name: &[u8],
        header: &Header,
        spelled: &[u8],
        looks: &mut Looks,
    ) -> Result<Option<(Vec<u8>, Metadata)>, FileError> {
        let tree = &*self.inner.tree;
        let folder = names::folder_of(spelled);
        if !looks.folders.get(folder).is_some_and(|&there| there) {
            self.make_folder(name, true)?;
            looks.folders.insert(folder.to_vec(), true);
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
    /// Where a series without a file is to begin; `None`: it is known.
    fn look_for_labels(&self, labels: &Labels, looks: &mut Looks) -> Option<Site> {
        let path = labels.text().to_vec();
        let is_known = self.lock().series.by_path(&path).is_some();
        (!is_known && looks.new.insert(path.clone())).then_some(Site {
            path,
            seen: None,
            gone: None,
        })
    }

    /// Whether there may be a file: of many series whose folder is missing, the first alone costs a look.
    fn may_have_file(&self, path: &[u8], looks: &mut Looks) -> Result<bool, FileError> {
        let folder = names::folder_of(path);
        if self.is_without_files() {
            return Ok(false);
        }
        if let Some(&there) = looks.folders.get(folder) {
            return Ok(there);
        }
        let there = match self.tree.stat(names::path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) if error.raw_os_error() == Some(fence::OUTSIDE) => {
                return Err(FileError::Outside);
            }
            _ => true,
        };
        looks.folders.insert(folder.to_vec(), there);
        Ok(there)
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

    /// As many as one write of the journal takes.
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

/// A series on its way; `None`: somebody else was quicker.
type Began = (Result<Option<Newcomer>, FileError>, Beginning);

fn put_new(
    state: &mut State,
    id: u32,
    new: &New<'_>,
    beginning: &Beginning,
) -> Result<Option<Newcomer>, FileError> {
    if let Some(id) = state.series.by_path(&new.path) {
        let series = state.series.get(id).filter(|_| new.gone == Some(id));
        // The one that is gone makes room, unless somebody is just looking for its file.
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
