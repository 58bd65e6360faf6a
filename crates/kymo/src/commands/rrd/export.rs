//! `export`: writes .rrd files from a store, for rrdtool and for daemons that read only such files.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use kymo_base::label_set::is_set;
use kymo_store::Store;
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};
use kymo_sys::talk;

use kymo_base::name::DisplayName;

use super::client::{Client, Refusal};
use super::store::{self, Stop};
use crate::commands::data::place;
use crate::output::progress::Progress;

/// Files that are written together.
const ROUND: usize = 256;
/// Pause between two syncs.
const SYNC_PAUSE: Duration = Duration::from_millis(20);
/// Pause between two questions to a daemon.
const PAUSE: Duration = Duration::from_millis(200);
/// Time without progress in the daemon's queue after which its files count as unwritable.
const PATIENCE: Duration = Duration::from_secs(60);

/// Write .rrd files of what a store has
#[derive(Parser)]
#[command(name = "kymo rrd export", disable_version_flag = true)]
struct Options {
    /// All files that the store knows
    #[arg(long)]
    all: bool,
    /// These files; names that do not begin with / are below the base
    #[arg(value_name = "FILE", conflicts_with = "all")]
    files: Vec<OsString>,
    /// As the daemon's -j or -b: the store is in DIR/kymo or DIR/.kymo; or its own folder; or the --data of kymo serve.
    /// Without -o no daemon may have it
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The folder of the files, as the daemon's -b; without it, where the store last had them
    #[arg(short = 'b', long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Write them below this folder; without it, in their own places
    #[arg(short = 'o', long, value_name = "TARGET")]
    output: Option<PathBuf>,
    /// Have a running daemon write all files in their own places
    #[arg(short = 'd', long, value_name = "ADDRESS", conflicts_with_all = ["files", "store", "base", "output"])]
    daemon: Option<OsString>,
}

/// Runs `kymo rrd export`.
pub(super) fn run(words: &[&[u8]]) -> Result<ExitCode, Stop> {
    let options: Options = store::read("kymo rrd export", words)?;
    if !options.all && options.files.is_empty() {
        let line = "cannot export: no FILE and no --all; see kymo rrd export --help";
        return Err(Stop::Refuse(line.into()));
    }
    let failed = match &options.daemon {
        Some(address) => from_daemon(address.as_bytes())?,
        None => offline(options)?,
    };
    Ok(ExitCode::from(u8::from(failed)))
}

/// Exports from a store without a daemon. True if something was left out.
fn offline(options: Options) -> Result<bool, Stop> {
    let missing = || "cannot export: --store is missing; see kymo rrd export --help".to_string();
    let folder = options.store.ok_or_else(missing)?;
    let (folder, base) = place(&folder).map_err(|error| format!("{error:#}"))?;
    let base = options.base.as_deref().map_or(Ok(base), store::real)?;
    let store = match options.output {
        Some(_) => look(&folder, &base)?,
        None => store::open(folder, base.clone())?,
    };
    let names = match options.all {
        true => with_files(store.paths()),
        false => options.files.into_iter().map(OsString::into_vec).collect(),
    };
    if let Some(target) = &options.output {
        return to_target(&store, &names, &base, target);
    }
    let failed = in_place(&store, &names, &base)?;
    let ended = store.shutdown(false);
    ended.map_err(|error| format!("cannot end in order: {error}"))?;
    Ok(failed)
}

/// Opens a store for reading only, also while another process writes it.
fn look(folder: &Path, base: &Path) -> Result<Store, String> {
    let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) = (Arc::new(RealDisk), Arc::new(RealClock));
    Store::open_to_look(folder, base, &disk, &clock).map_err(|error| error.to_string())
}

/// Leaves out names of series without files, and reports their number.
fn with_files(mut names: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let count = names.len();
    names.retain(|name| !is_set(name));
    if names.len() < count {
        let others = count - names.len();
        talk::say(format_args!(
            "kymo: {others} series are named by label sets and have no .rrd files: they are left out"
        ));
    }
    names
}

/// Writes files in their own places. True if something was left out. Syncs run while files are still being written,
/// because at the end all exported files must be on the disk.
fn in_place(store: &Store, names: &[Vec<u8>], base: &Path) -> Result<bool, Stop> {
    let ended = AtomicBool::new(false);
    let (mut failed, synced) = std::thread::scope(|scope| {
        let syncing = scope.spawn(|| -> std::io::Result<()> {
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(SYNC_PAUSE);
                match RealDisk.sync_file_system(base) {
                    // The checkpoint syncs each file instead.
                    Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(()),
                    synced => synced?,
                }
            }
            Ok(())
        });
        let failed = write_in_place(store, names);
        ended.store(true, Ordering::Relaxed);
        (failed, syncing.join())
    });
    // Without a checkpoint the next start writes the files again.
    let cannot = |error: String| format!("cannot sync {}: {error}", base.display());
    let synced = synced.unwrap_or_else(|_| Err(std::io::Error::other("it ended early")));
    synced.map_err(|error| cannot(error.to_string()))?;
    store.checkpoint();
    for notice in store.take_notices() {
        talk::say(format_args!("kymo: {}", DisplayName(notice.as_bytes())));
        failed = true;
    }
    Ok(failed)
}

fn write_in_place(store: &Store, names: &[Vec<u8>]) -> bool {
    let (mut progress, mut failed) = (Progress::new(), false);
    for (round, names) in names.chunks(ROUND).enumerate() {
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let outcomes = store.export_in_place(&names);
        for (name, error) in names.iter().zip(outcomes) {
            if let Some(error) = error {
                progress.clear();
                store::complain("export", name, &error.to_string());
                failed = true;
            }
        }
        progress.show(|| format!("{} files exported", round * ROUND + names.len()));
    }
    progress.clear();
    failed
}

fn to_target(store: &Store, names: &[Vec<u8>], base: &Path, target: &Path) -> Result<bool, Stop> {
    let cannot = |verb: &str, error| format!("cannot {verb} {}: {error}", target.display());
    std::fs::create_dir_all(target).map_err(|error| cannot("make", error))?;
    let target = store::real(target)?;
    let (mut progress, mut failed) = (Progress::new(), false);
    let mut taken = HashSet::new();
    for (done, name) in names.iter().enumerate() {
        let path = below(&target, base, &store.spelled(name));
        let outcome = match taken.insert(path.clone()) {
            true => copy(store, name, &path),
            false => Err(format!("{} is another file's already", path.display())),
        };
        if let Err(cause) = outcome {
            progress.clear();
            store::complain("export", name, &cause);
            failed = true;
        }
        progress.show(|| format!("{} of {} files exported", done + 1, names.len()));
    }
    progress.clear();
    let synced = match RealDisk.sync_file_system(&target) {
        Err(error) if error.kind() == ErrorKind::Unsupported => sync_each(&taken),
        synced => synced,
    };
    synced.map_err(|error| cannot("sync", error))?;
    Ok(failed)
}

/// Syncs the written files, and the folders above them.
fn sync_each(files: &HashSet<PathBuf>) -> std::io::Result<()> {
    let mut folders = BTreeSet::new();
    for file in files.iter().filter(|file| file.exists()) {
        File::open(file)?.sync_all()?;
        folders.extend(file.ancestors().skip(1));
    }
    for folder in folders {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Writes one file. A file with unreadable rows is written, and is an error all the same.
fn copy(store: &Store, name: &[u8], path: &Path) -> Result<(), String> {
    let exported = store.export(name).map_err(|error| error.to_string())?;
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let put = made.and_then(|()| std::fs::write(path, &exported.bytes));
    put.map_err(|error| error.to_string())?;
    match exported.damaged {
        0 => Ok(()),
        count => Err(format!(
            "{count} frames of it are damaged: some rows are unknown"
        )),
    }
}

/// Path of a file below the target: as below the base, or else with the whole path. No part of it leads up.
fn below(target: &Path, base: &Path, path: &[u8]) -> PathBuf {
    use std::path::Component;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let inside = path.strip_prefix(base).unwrap_or(path);
    let mut place = target.to_path_buf();
    let mut depth = 0;
    for part in inside.components() {
        match part {
            Component::Normal(name) => {
                place.push(name);
                depth += 1;
            }
            Component::ParentDir if depth > 0 => {
                place.pop();
                depth -= 1;
            }
            _ => {}
        }
    }
    place
}

/// Lets a daemon write all files, and waits for it.
fn from_daemon(address: &[u8]) -> Result<bool, Stop> {
    let mut client = Client::from_environment();
    let ask = |client: &mut Client, words: &[&[u8]]| {
        let reply = client.request(words).map_err(|refusal| match refusal {
            Refusal::TooLong => "the request is too long".to_string(),
            Refusal::Failed(message) => String::from_utf8_lossy(&message.0).into_owned(),
        });
        reply.map_err(|cause| format!("cannot export: {}", DisplayName(cause.as_bytes())))
    };
    let connected = client.connect(Some(address));
    connected.map_err(|message| String::from_utf8_lossy(&message.0).into_owned())?;
    let help = ask(&mut client, &[b"HELP", b"FLUSHALL"])?;
    let mut lines = help.lines.iter().map(|line| String::from_utf8_lossy(line));
    if lines.any(|line| line.contains("keeps no .rrd files")) {
        let line = "cannot export: the daemon keeps no .rrd files (--files never); end it, and give --store and -b";
        return Err(Stop::Refuse(line.into()));
    }
    ask(&mut client, &[b"FLUSHALL"])?;
    let mut progress = Progress::new();
    let (mut least, mut since) = (usize::MAX, Instant::now());
    loop {
        // QUEUE does not show files that are being written now.
        let stats = ask(&mut client, &[b"STATS"])?;
        let mut lines = stats.lines.iter().map(|line| String::from_utf8_lossy(line));
        let left = lines.find_map(|line| line.strip_prefix("QueueLength: ")?.trim().parse().ok());
        let left: usize = left.ok_or_else(|| {
            "cannot export: the daemon does not say how many files are due".to_string()
        })?;
        if left == 0 {
            progress.clear();
            return Ok(false);
        }
        if left < least {
            (least, since) = (left, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            progress.clear();
            talk::say(format_args!(
                "cannot export {left} files: the daemon does not write them; see its log"
            ));
            return Ok(true);
        }
        progress.show(|| format!("{left} files to be written"));
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_below_the_target() {
        for (path, expected) in [
            ("/db/a/b.rrd", "/t/a/b.rrd"),
            ("/db/./a//b.rrd", "/t/a/b.rrd"),
            ("/var/x.rrd", "/t/var/x.rrd"),
            ("/db/../../etc/x.rrd", "/t/etc/x.rrd"),
            ("/dbx/y.rrd", "/t/dbx/y.rrd"),
        ] {
            let place = below(Path::new("/t"), Path::new("/db"), path.as_bytes());
            assert_eq!(place, Path::new(expected), "{path}");
        }
    }
}
