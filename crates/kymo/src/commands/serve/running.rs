//! Finds a running `kymo serve`. At its start serve makes a link to its data folder in the runtime folder. Commands without
//! `--data` follow the link if no serve runs in the default folder.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kymo_sys::machine;
use kymo_sys::sure_folder::SureFolder;

use super::sockets;

/// Name of the link in the runtime folder.
const LINK: &str = "serve";
/// Permissions of a runtime folder that kymo makes.
const FOLDER_MODE: u32 = 0o755;
/// Runtime folder of a system-wide kymo.
const SYSTEM: &str = "/run/kymo";

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

/// Data folder of a serve whose sockets exist: the default one, or else one with a link.
pub(super) fn find(default: Option<PathBuf>) -> Option<PathBuf> {
    let folders = match named("RUNTIME_DIRECTORY") {
        Some(folder) => vec![folder],
        None => [Some(SYSTEM.into()), users()]
            .into_iter()
            .flatten()
            .collect(),
    };
    let links = folders.into_iter();
    let links = links.filter_map(|folder| std::fs::read_link(folder.join(LINK)).ok());
    let is_served = |data: &PathBuf| data.join(sockets::QUESTIONS).exists();
    default.iter().cloned().chain(links).find(is_served)
}

/// The user's runtime folder of kymo.
fn users() -> Option<PathBuf> {
    Some(named("XDG_RUNTIME_DIR")?.join("kymo"))
}

fn named(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable)?;
    (!value.is_empty()).then(|| value.into())
}
