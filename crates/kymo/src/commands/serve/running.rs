//! Finds a running `kymo serve`. At its start serve makes a link to its data folder in the runtime folder. Commands without
//! `--data` follow the link if no serve runs in the default folder, and then look into the folder of the system's service.

use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use kymo_base::name::DisplayName;
use kymo_sys::machine;
use kymo_sys::sure_folder::SureFolder;

use super::sockets;

/// Name of the link in the runtime folder.
const LINK: &str = "serve";
/// Permissions of a runtime folder that kymo makes.
const FOLDER_MODE: u32 = 0o755;
/// Runtime folder of a system-wide kymo.
const SYSTEM: &str = "/run/kymo";
/// Data folder of a system-wide kymo.
pub(super) const SYSTEM_DATA: &str = "/var/lib/kymo";

/// Makes the link. If that fails, serve runs all the same, and commands need `--data`.
pub(super) fn announce(data: &Path) {
    let system = machine::is_root().then(|| PathBuf::from(SYSTEM));
    let folder = named("RUNTIME_DIRECTORY").or(system).or_else(users);
    let _unannounced = folder.map(|folder| link(&folder, data));
}

fn link(folder: &Path, data: &Path) -> io::Result<()> {
    let folder = SureFolder::make(folder, FOLDER_MODE, &[])?;
    // A link of another user could lead this user's commands to another user's program.
    folder.trust(&[machine::user()])?;
    // The umask may be narrow, but other users' programs publish in a folder below this one.
    if folder.is_new() {
        folder.set_mode(FOLDER_MODE)?;
    }
    let new = folder
        .own_path()
        .join(format!(".{LINK}.{}", std::process::id()));
    symlink(data, &new)?;
    std::fs::rename(&new, folder.own_path().join(LINK))
}

/// A place that was looked at, and the reason why no serve was found there.
pub(super) struct SearchedPlace {
    place: PathBuf,
    cause: &'static str,
}

/// Data folder of a serve that answers: the default one, one with a link, or the system's. The error has all places.
pub(super) fn find(default: Option<PathBuf>) -> Result<PathBuf, Vec<SearchedPlace>> {
    let runtime = match named("RUNTIME_DIRECTORY") {
        Some(folder) => vec![folder],
        None => [Some(SYSTEM.into()), users()]
            .into_iter()
            .flatten()
            .collect(),
    };
    let mut looked = Vec::new();
    let links = runtime.into_iter().map(|folder| folder.join(LINK));
    let system = PathBuf::from(SYSTEM_DATA);
    let system = Some(system).filter(|system| default.as_ref() != Some(system));
    let folders = default.into_iter().map(Ok);
    for place in folders.chain(links.map(Err)).chain(system.map(Ok)) {
        let found = match place {
            Ok(data) => look(&data)
                .map(|()| data.clone())
                .map_err(|cause| (data, cause)),
            Err(link) => match std::fs::read_link(&link) {
                Ok(data) => look(&data)
                    .map(|()| data.clone())
                    .map_err(|cause| (data, cause)),
                Err(_) => Err((link, "there is no such link")),
            },
        };
        match found {
            Ok(data) => return Ok(data),
            Err((place, cause)) => looked.push(SearchedPlace { place, cause }),
        }
    }
    Err(looked)
}

/// Asks for the keeper of a data folder; the error is the reason why there is none.
fn look(data: &Path) -> Result<(), &'static str> {
    let socket = data.join(sockets::KEEPER_SOCKET);
    let Err(error) = UnixStream::connect(&socket) else {
        return Ok(());
    };
    match (error.kind(), data.try_exists(), socket.try_exists()) {
        (io::ErrorKind::ConnectionRefused, ..) => Err("the kymo serve there has ended"),
        (_, Ok(false), _) => Err("there is no such folder"),
        // A socket of another user's serve: the command says why that does not answer.
        (_, _, Ok(true)) => Ok(()),
        (_, Ok(true), Ok(false)) => Err("no kymo serve runs with this folder"),
        (_, Err(_), _) | (_, _, Err(_)) => Err("this user may not look into it"),
    }
}

/// The places in words: `PLACE: CAUSE; PLACE: CAUSE`.
pub(super) fn words(looked: &[SearchedPlace]) -> String {
    let each = looked.iter().map(|SearchedPlace { place, cause }| {
        format!(
            "{}: {cause}",
            DisplayName(place.as_os_str().as_encoded_bytes())
        )
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The user's runtime folder of kymo.
fn users() -> Option<PathBuf> {
    Some(named("XDG_RUNTIME_DIR")?.join("kymo"))
}

fn named(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable)?;
    (!value.is_empty()).then(|| value.into())
}
