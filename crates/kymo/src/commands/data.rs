//! The data folder of a `kymo serve`, read by others: its recording, and its store.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use kymo_query::archive::{Archive, What, own};
use kymo_query::fields::Fields;
use kymo_query::open::Recordings;
use kymo_query::readers::{RecordedReader, Union};
use kymo_query::stored::{Keeper, KeeperReader, SharedKeeper};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_series::Reader;

use super::series::{keeper_of, place};
use super::serve::KEEPER_SOCKET;

/// The reader of all series of a folder whose store is read by `keeper`.
pub(crate) fn reader(dir: &Path, keeper: Keeper) -> Union<'static> {
    let mut readers: Vec<Box<dyn Reader>> = Vec::new();
    if let Some(recordings) = recordings(dir) {
        readers.push(Box::new(RecordedReader::new(recordings)));
    }
    readers.push(Box::new(KeeperReader::new(keeper)));
    Union::new(readers)
}

/// The fields of the machine whose data lies in a folder. `None`: the folder has no store.
pub(crate) fn fields(dir: &Path) -> Result<Option<Fields>> {
    let keeper = match UnixStream::connect(dir.join(KEEPER_SOCKET)) {
        Ok(_) => Keeper::at(dir.join(KEEPER_SOCKET)),
        Err(_) if place(dir).is_ok() => keeper_of(dir)?,
        Err(_) => return Ok(None),
    };
    let archive = Archive::new(What::Files(vec![dir.into()]), None);
    Ok(Some(Fields::new(
        Arc::new(archive),
        Some(SharedKeeper::alone(keeper)),
    )))
}

/// The recording of this machine in a folder, or else the only one. `None`: nothing is recorded there.
fn recordings(dir: &Path) -> Option<Recordings> {
    let can_be_read =
        |recordings: &Recordings| recordings.open(TimeRange::ALL, Kinds::NONE).is_ok();
    let of_this_machine = Some(Recordings::ring(&own(dir))).filter(can_be_read);
    of_this_machine.or_else(|| {
        let found = Recordings::find(&[dir.into()]).ok()?;
        can_be_read(&found).then_some(found)
    })
}
