//! The recording that is shown: a ring that is being recorded, or files from anywhere, and how they are opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_recording::folder::safe_host;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::machine;

use super::kept::Kept;
use crate::open::Recordings;
use crate::source::Source;

/// No question may take longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A recording that is shown.
#[derive(Clone, Debug)]
pub enum RecordingSource {
    /// The recording in this folder, which a recorder goes on writing.
    Ring(PathBuf),
    /// Files and folders from anywhere, which do not change.
    Files(Vec<PathBuf>),
    /// Files of collectl's whose samples are in memory.
    Kept(Arc<Kept>),
}

impl RecordingSource {
    /// The folder of a ring that is being recorded.
    pub fn ring(&self) -> Option<&PathBuf> {
        match self {
            RecordingSource::Ring(dir) => Some(dir),
            RecordingSource::Files(_) | RecordingSource::Kept(_) => None,
        }
    }

    /// The paths of its files, or its folder.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            RecordingSource::Ring(dir) => std::slice::from_ref(dir),
            RecordingSource::Files(paths) => paths,
            RecordingSource::Kept(kept) => &kept.paths,
        }
    }

    /// Where it is, for people.
    pub fn name(&self) -> String {
        let names = self.paths().iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    }

    /// The present recordings; reading them ends with an error after `PATIENCE`.
    pub fn recordings(&self) -> Result<Recordings, String> {
        self.recordings_within(PATIENCE)
    }

    /// Opens as [`RecordingSource::recordings`] does, for another time, which may be shorter.
    pub fn recordings_within(&self, time: Duration) -> Result<Recordings, String> {
        let recordings = match self {
            RecordingSource::Ring(dir) => Recordings::ring(&own(dir)),
            RecordingSource::Files(_) | RecordingSource::Kept(_) => Recordings::find(self.paths())?,
        };
        Ok(recordings.until(Instant::now() + time.min(PATIENCE)))
    }

    /// Opens it, as above.
    pub fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        match self {
            RecordingSource::Kept(kept) => Ok(kept.open(range, kinds)),
            RecordingSource::Ring(_) | RecordingSource::Files(_) => {
                self.recordings()?.open(range, kinds)
            }
        }
    }

    /// Reads files of collectl's into memory, if they are all; `report` gets the bytes that were read so far, and all.
    pub fn keep(self, report: &mut dyn FnMut(u64, u64)) -> Result<RecordingSource, String> {
        let kept = match &self {
            RecordingSource::Files(paths) => Kept::read(paths, report)?,
            RecordingSource::Ring(_) | RecordingSource::Kept(_) => None,
        };
        Ok(kept.map_or(self, |kept| RecordingSource::Kept(Arc::new(kept))))
    }

    /// Checks that files can be opened; a ring may come later.
    pub fn check(&self) -> Result<(), String> {
        match self.ring() {
            Some(_) => Ok(()),
            None => self.open(TimeRange::ALL, Kinds::NONE).map(|_| ()),
        }
    }
}

/// The part of a folder that this host's recorder writes: there may be recordings of others beside it.
pub fn own(dir: &Path) -> PathBuf {
    dir.join(safe_host(&machine::host()))
}
