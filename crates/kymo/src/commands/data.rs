//! The data folder of a `kymo serve`, for other commands: its recording and its store.

mod opened;

pub(crate) use opened::{keeper_of, place};

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use kymo_keeper_client::Keeper;
use kymo_query::archive::{Archive, ROLLUPS_FOLDER, RecordingSource, Rollups, own};
use kymo_query::fields::Fields;
use kymo_query::open::Recordings;
use kymo_query::readers::{RecordedReader, Union};
use kymo_query::stored::{KeeperReader, SharedKeeper};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_series::Reader;
use kymo_serve::UPSTREAM;

use super::serve::{KEEPER_SOCKET, UPSTREAM_SOCKET};

/// A reader of all series of a folder: of its recording, of its store, and of the upstream that its `kymo serve` asks; `keeper` reads the store. Without a keeper this
/// process reads it.
pub(crate) fn reader(dir: &Path, keeper: Option<Keeper>) -> Result<Union<'static>> {
    let recorded = recordings(dir);
    let keeper = match (keeper, &recorded) {
        // A folder that has a recording alone.
        (None, Some(_)) if place(dir).is_err() => None,
        (None, _) => Some(keeper_of(dir)?),
        (keeper, _) => keeper,
    };
    let mut readers: Vec<Box<dyn Reader>> = Vec::new();
    if let Some(recordings) = recorded {
        readers.push(Box::new(RecordedReader::new(recordings)));
    }
    if let Some(keeper) = keeper {
        readers.push(Box::new(KeeperReader::new(keeper)));
    }
    let upstream = dir.join(UPSTREAM_SOCKET);
    if UnixStream::connect(&upstream).is_ok() {
        let upstream = Keeper::at(upstream).named(UPSTREAM);
        readers.push(Box::new(KeeperReader::new(upstream)));
    }
    Ok(Union::new(readers))
}

/// Fields of the machine that recorded into a folder, from its recording, and from its store if there is one.
pub(crate) fn fields(dir: &Path) -> Result<Fields> {
    let keeper = keeper(dir)?.map(SharedKeeper::alone);
    let archive = match is_recorded(&Recordings::ring(&own(dir))) {
        true => Archive::new(
            RecordingSource::Ring(dir.into()),
            Some(Rollups::new(dir.join(ROLLUPS_FOLDER))),
        ),
        false => Archive::new(RecordingSource::Files(vec![dir.into()]), None),
    };
    Ok(Fields::new(Arc::new(archive), keeper))
}

/// The recording of this machine in a folder, with its roll-ups, or else all recordings there.
pub(crate) fn archive(dir: &Path) -> Archive {
    match own(dir).is_dir() {
        true => Archive::new(
            RecordingSource::Ring(dir.into()),
            Some(Rollups::new(dir.join(ROLLUPS_FOLDER))),
        ),
        false => Archive::new(RecordingSource::Files(vec![dir.into()]), None),
    }
}

/// The keeper that runs with a folder, or this process in its place. `None`: the folder has no store.
pub(crate) fn keeper(dir: &Path) -> Result<Option<Keeper>> {
    let socket = dir.join(KEEPER_SOCKET);
    match UnixStream::connect(&socket) {
        Ok(_) => Ok(Some(Keeper::at(socket))),
        Err(_) if place(dir).is_ok() => keeper_of(dir).map(Some),
        Err(_) => Ok(None),
    }
}

/// The recording of this machine in a folder, or else the only one there. `None`: there is no recording.
fn recordings(dir: &Path) -> Option<Recordings> {
    let of_this_machine = Some(Recordings::ring(&own(dir))).filter(is_recorded);
    of_this_machine.or_else(|| Recordings::find(&[dir.into()]).ok().filter(is_recorded))
}

fn is_recorded(recordings: &Recordings) -> bool {
    recordings.open(TimeRange::ALL, Kinds::NONE).is_ok()
}
