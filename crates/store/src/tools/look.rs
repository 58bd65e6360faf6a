//! A read-only view of a store at this moment, with or without a running daemon.

use crate::engine::Store;
use crate::error::{Error, Tried};
use crate::folder::claim::Claim;
use crate::folder::read_only::{ReadOnly, TRIES};
use crate::memtable::state::State;
use crate::recovery::moved;
use crate::recovery::open::{read_sources, take};
use crate::recovery::replay::JournalSource;
use crate::segment::file;
use crate::segment::set::SegmentSet;
use crate::settings::{Files, Settings};
use crate::wal::tails::Tails;
use crate::wal::writer::{self, Journal};
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use kymo_sys::tree::Reach;
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Opens the store in `folder`, its own folder, as it is now; names are relative to `base`. Does not write, lock or clean
    /// up, and does not see values that a daemon accepts later.
    pub fn open_to_look(
        folder: &Path,
        base: &Path,
        disk: &Arc<dyn Disk>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Store, Error> {
        beside_a_daemon(|| look(folder, base, disk, clock))
    }
}

/// Repeats a read if a daemon has merged segments or dropped a journal file meanwhile.
pub(super) fn beside_a_daemon<T>(look: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match look() {
            Err(Error::Io { cause, .. })
                if cause.kind() == io::ErrorKind::NotFound && tries < TRIES =>
            {
                tries += 1;
            }
            found => return found,
        }
    }
}

/// Content of a store's files.
pub(super) struct Contents {
    pub(super) sources: Vec<JournalSource>,
    pub(super) segments: SegmentSet,
    pub(super) state: State,
    /// Messages that a start would log.
    pub(super) notices: Vec<String>,
}

impl Contents {
    /// Reads the store in this folder; `disk` must be read-only, and names are relative to `base`.
    pub(super) fn read(
        disk: &Arc<dyn Disk>,
        clock: &dyn Clock,
        (folder, base): (&Path, &Path),
        chunk_values: u64,
    ) -> Result<Contents, Error> {
        let mut notices = Vec::new();
        let listed = writer::list(&**disk, folder)?;
        let mut sequences = listed.clone();
        let sources = read_sources(&**disk, folder, &mut sequences, &mut notices)?;
        let left = writer::list(&**disk, folder)?;
        if let Some(gone) = listed.iter().find(|&sequence| !left.contains(sequence)) {
            // The daemon dropped or reused the file during the read, so its content is invalid.
            let gone = folder.join(writer::name_of(*gone));
            return Err(io::Error::from(io::ErrorKind::NotFound)).tried("read", &gone);
        }
        let opened = SegmentSet::open(disk.clone(), folder, clock).tried("open", folder)?;
        let (segments, found) =
            opened.map_err(|(path, version)| Error::version(path, version, file::VERSION))?;
        notices.extend_from_slice(&found.notices);
        let journal = Journal::new(disk.clone(), (folder, base), 0, sequences, 0);
        let mut state = State::new(journal, clock, chunk_values, None);
        let taken = take(&mut state, &sources, (&segments, &found.gaps), &mut notices);
        notices.extend(taken.ignored);
        Ok(Contents {
            sources,
            segments,
            state,
            notices,
        })
    }
}

fn look(
    folder: &Path,
    base: &Path,
    real: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
) -> Result<Store, Error> {
    let disk: Arc<dyn Disk> = Arc::new(ReadOnly(real.clone()));
    let settings = Settings {
        // This store creates no files, and its disk refuses writes.
        files: Files::Never,
        beneath: folder.ends_with("store"),
        ..Settings::new(folder, base)
    };
    let contents = Contents::read(&disk, &**clock, (folder, base), settings.chunk_values)?;
    let Contents {
        segments,
        mut state,
        ..
    } = contents;
    moved::follow(&mut state, &settings, &mut Vec::new());
    state.series.index_again();
    // The rows of adopted files are in those files.
    let tree = real.tree(base, Reach::Anywhere).tried("open", base)?;
    let claim = Claim::none();
    Ok(Store::new(
        settings,
        disk,
        clock.clone(),
        tree,
        segments,
        (state, Tails::none()),
        claim,
    ))
}
