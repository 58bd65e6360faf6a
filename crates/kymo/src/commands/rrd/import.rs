//! `import`: takes whole trees of .rrd files into a store, with all their rows. Known files are skipped, so that the
//! next run continues one that ended too early.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use clap::Parser;
use kymo_store::{Error as StoreError, FileError, Store, WholeFile};
use kymo_sys::disk::RealDisk;
use kymo_sys::talk;

use kymo_base::name::DisplayName;

use super::store::{self, Stop};
use crate::output;
use crate::output::progress::Progress;

/// Most files, and most cells of them, that are imported together.
const FILES_MAX: usize = 2048;
const CELLS_MAX: u64 = 8 << 20;
/// Default number of threads that read files.
const JOBS: usize = 2;

/// Take .rrd files into a store, with all their rows
#[derive(Parser)]
#[command(name = "kymo rrd import", disable_version_flag = true)]
struct Options {
    /// Folders of .rrd files, and what is below them; or files
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// As the daemon's -j: the store is in DIR/kymo, and is made there; or the folder of one that is there already.
    /// No daemon may have it
    #[arg(long, required = true, value_name = "DIR")]
    store: PathBuf,
    /// The folder of the files, as the daemon's -b
    #[arg(short = 'b', long, required = true, value_name = "DIR")]
    base: PathBuf,
    /// Threads that read files
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// A file that was read: its index, and the outcome; `None`: the store has it already.
type Read = (usize, Result<Option<WholeFile>, FileError>);

/// Number of files by outcome.
#[derive(Default)]
struct Tally {
    imported: usize,
    known: usize,
    failed: usize,
}

/// Runs `kymo rrd import`.
pub(super) fn run(words: &[&[u8]]) -> Result<ExitCode, Stop> {
    let options: Options = store::read("kymo rrd import", words)?;
    let base = store::real(&options.base)?;
    let mut tally = Tally::default();
    let paths = find(&options.folders, &mut tally)?;
    let place = place(&options.store).map_err(|error| error.to_string())?;
    let store = store::open(place, base)?;
    take_all(&store, &paths, options.jobs.unwrap_or(JOBS), &mut tally);
    let ended = store.finish_import().and_then(|()| store.shutdown(false));
    ended.map_err(|error| format!("cannot end in order: {error}"))?;
    for notice in store.take_notices() {
        talk::say(format_args!("kymo: {}", DisplayName(notice.as_bytes())));
        tally.failed += 1;
    }
    let Tally {
        imported,
        known,
        failed,
    } = tally;
    let line = format!("{imported} files imported, {known} were there already, {failed} failed");
    output::put(&format!("{line}\n")).map_err(|error| crate::cannot_print(&error))?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Folder of the store, which may be new.
fn place(dir: &Path) -> Result<PathBuf, StoreError> {
    let found = match dir.exists() {
        true => kymo_store::store_folder(&RealDisk, dir)?,
        false => None,
    };
    match found {
        Some(folder) => Ok(folder),
        None => kymo_store::place_of_store(&RealDisk, dir, "kymo"),
    }
}

/// All .rrd files, in the order of their place on the disk.
fn find(folders: &[PathBuf], tally: &mut Tally) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in folders {
        let folder = store::real(folder)?;
        match folder.is_dir() {
            true => walk(&folder, &mut found, tally),
            false => see(folder, &mut found, tally),
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found.into_iter().map(|(_, _, path)| path).collect())
}

fn see(path: PathBuf, found: &mut Vec<(u64, u64, PathBuf)>, tally: &mut Tally) {
    match fs::metadata(&path) {
        Ok(stat) => found.push((stat.dev(), stat.ino(), path)),
        Err(error) => tally.fail(&path, &error.to_string()),
    }
}

/// Adds the files below a folder. It does not follow links to folders, because they may lead anywhere.
fn walk(folder: &Path, found: &mut Vec<(u64, u64, PathBuf)>, tally: &mut Tally) {
    let names = match fs::read_dir(folder) {
        Ok(names) => names,
        Err(error) => return tally.fail(folder, &error.to_string()),
    };
    for entry in names.flatten() {
        let path = entry.path();
        let is_rrd = path.extension().is_some_and(|end| end == "rrd");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, found, tally),
            Ok(_) if is_rrd && !path.is_dir() && !is_empty(&path) => see(path, found, tally),
            _ => {}
        }
    }
}

/// True for the placeholder of a series without a file.
fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|stat| stat.len() == 0)
}

impl Tally {
    fn fail(&mut self, path: &Path, cause: &str) {
        store::complain("import", path.as_os_str().as_bytes(), cause);
        self.failed += 1;
    }
}

fn take_all(store: &Store, paths: &[PathBuf], jobs: usize, tally: &mut Tally) {
    let next = AtomicUsize::new(0);
    let jobs = jobs.clamp(1, 64);
    let (sender, read) = sync_channel(2 * jobs);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || read_files(store, paths, next, &sender));
        }
        drop(sender);
        gather(store, paths, &read, tally);
    });
}

fn read_files(store: &Store, paths: &[PathBuf], next: &AtomicUsize, to: &SyncSender<Read>) {
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(path) = paths.get(at) else {
            return;
        };
        if to
            .send((at, store.read_whole(path.as_os_str().as_bytes())))
            .is_err()
        {
            return;
        }
    }
}

/// Imports files that the readers have read, many together.
fn gather(store: &Store, paths: &[PathBuf], read: &Receiver<Read>, tally: &mut Tally) {
    let mut progress = Progress::new();
    let (mut numbers, mut files, mut cells) = (Vec::new(), Vec::new(), 0);
    for (done, (at, outcome)) in read.iter().enumerate() {
        match outcome {
            Ok(Some(file)) => {
                cells += file.cell_count();
                numbers.push(at);
                files.push(file);
            }
            Ok(None) => tally.known += 1,
            Err(error) => {
                progress.clear();
                tally.fail(&paths[at], &error.to_string());
            }
        }
        if files.len() == FILES_MAX || cells > CELLS_MAX {
            take(
                store,
                paths,
                (&mut numbers, &mut files),
                &mut progress,
                tally,
            );
            cells = 0;
        }
        progress.show(|| format!("{} of {} files read", done + 1, paths.len()));
    }
    take(
        store,
        paths,
        (&mut numbers, &mut files),
        &mut progress,
        tally,
    );
    progress.clear();
}

fn take(
    store: &Store,
    paths: &[PathBuf],
    (numbers, files): (&mut Vec<usize>, &mut Vec<WholeFile>),
    progress: &mut Progress,
    tally: &mut Tally,
) {
    let outcomes = store.import(files);
    for (at, error) in numbers.drain(..).zip(outcomes) {
        match error {
            None => tally.imported += 1,
            Some(error) => {
                progress.clear();
                tally.fail(&paths[at], &error.to_string());
            }
        }
    }
    files.clear();
}
