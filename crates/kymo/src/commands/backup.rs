//! `kymo backup`: copies what `kymo serve` keeps into a folder or a bucket of backups, while it runs or not. The first backup copies all,
//! each later one the changes since.

mod pinned;
mod recorded;
mod repeated;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kymo_backup::{
    Error, InMemory, Keep, Removed, Sender, Sent, Source, Trust, Version, Writing, prune,
};
use kymo_base::name::DisplayName;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::{Disk, NameKind, OpenMode, RealDisk};
use kymo_sys::{machine, talk};
use kymo_wire::targets::FOLDER as POLL_FOLDER;

use super::serve::{BOARDS_FOLDER, BackupsPlace, S3Options, files_folder};
use crate::options::size_words as size;
use crate::output::progress::Progress;
use pinned::StoreFolder;
pub(crate) use repeated::{backup_state, run as run_repeated};

/// Exit code where a file could not be backed up.
const INCOMPLETE: u8 = 1;
/// Attempts to read a file that others write.
const TRIES: usize = 5;
/// Most bytes of a small file, which is read at once.
const SMALL: u64 = 256 << 20;

/// Options of `kymo backup`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BackupOptions {
    /// The folder of backups, which is made if it is missing, or s3://BUCKET/PREFIX. It takes the backups of one machine
    #[arg(value_name = "TO")]
    pub to: PathBuf,
    /// Data folder of kymo serve; default: that of the kymo serve that runs
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Then remove old backups: keep the newest of each of the last 24 hours, 7 days and 8 weeks that have one
    #[arg(long, value_name = "24h,7d,8w", value_parser = keep)]
    pub keep: Option<Keep>,
    /// Also read the contents that the place has of this backup, and send those again that have changed there
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub s3: S3Options,
}

fn keep(text: &str) -> Result<Keep, String> {
    Keep::parse(text).ok_or_else(|| "give numbers of hours, days, weeks, such as 24h,7d,8w".into())
}

/// Runs the command.
pub(crate) fn run(options: &BackupOptions) -> Result<ExitCode> {
    let place = BackupsPlace::find(&options.to, &options.s3)?;
    let dir = files_folder(options.data.as_deref())?;
    let dir =
        std::fs::canonicalize(&dir).with_context(|| format!("cannot open {}", dir.display()))?;
    let store = StoreFolder::find(&dir);
    let trust = match options.check {
        true => Trust::Hash,
        false => Trust::Length,
    };
    let way = Way {
        keep: options.keep,
        trust,
        names_left_out: true,
    };
    let (sent, left_out) = back_up(&dir, store.as_ref(), &place, way)?;
    let words = words(&sent);
    talk::say(format_args!("kymo: {words}"));
    Ok(ExitCode::from(match left_out {
        0 => 0,
        _ => INCOMPLETE,
    }))
}

/// Way in which a backup is made.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Old backups that stay; `None`: all.
    keep: Option<Keep>,
    trust: Trust,
    /// True if each file that is left out is named.
    names_left_out: bool,
}

/// Makes a backup, and removes old ones. Returns its numbers, and the number of files that were left out.
fn back_up(
    dir: &Path,
    store: Option<&StoreFolder>,
    place: &BackupsPlace,
    way: Way,
) -> Result<(Sent, u64)> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let folders = recorded::folders(&*disk, dir)?;
    if store.is_none() && folders.is_empty() {
        bail!(
            "cannot back up {}: kymo serve has kept nothing in it",
            dir.display()
        );
    }
    let _alone = alone(dir)?;
    let mut target = place.begin()?;
    let mut backup = Backup {
        disk,
        dir: dir.into(),
        sender: Sender::begin(&mut target, now_ms(), &machine::host(), way.trust)?,
        progress: Progress::new(),
        names_left_out: way.names_left_out,
        left_out: 0,
    };
    backup.all(store, &folders)?;
    backup.progress.clear();
    let left_out = backup.left_out;
    let sent = backup.sender.finish()?;
    if let Some(keep) = way.keep {
        say_removed(prune(&mut target, keep)?);
    }
    Ok((sent, left_out))
}

/// Refuses a second backup of a folder at the same time: a bucket has no locks.
fn alone(dir: &Path) -> Result<File> {
    let cannot = || format!("cannot lock {}", dir.display());
    let folder = File::open(dir).with_context(cannot)?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => bail!(
            "cannot back up {}: another backup of it runs; wait until it has ended",
            dir.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

fn now_ms() -> i64 {
    RealClock.now().real_ns.div_euclid(1_000_000)
}

fn words(sent: &Sent) -> String {
    let linked = match sent.linked_bytes {
        0 => String::new(),
        bytes => format!(", {} linked", size(bytes)),
    };
    let mended = match sent.mended {
        0 => String::new(),
        1 => ", 1 content had changed".into(),
        many => format!(", {many} contents had changed"),
    };
    format!(
        "backed up {} files of {}: {} copied{linked}{mended}",
        sent.files,
        size(sent.bytes),
        size(sent.sent_bytes)
    )
}

fn say_removed(removed: Removed) {
    let Removed { backups, bytes } = removed;
    let backups = match backups {
        0 => return,
        1 => "1 old backup".to_string(),
        many => format!("{many} old backups"),
    };
    talk::say(format_args!("kymo: removed {backups}, {}", size(bytes)));
}

/// A backup under way.
struct Backup<'a> {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    sender: Sender<'a>,
    progress: Progress,
    names_left_out: bool,
    /// Files that could not be backed up.
    left_out: u64,
}

impl Backup<'_> {
    /// Backs up all there is.
    fn all(&mut self, store: Option<&StoreFolder>, folders: &[PathBuf]) -> Result<()> {
        // Tails go before blocks: a tail may become a block meanwhile, and a record in both counts once.
        recorded::tails(self, folders)?;
        if let Some(store) = store {
            pinned::back_up(self, store)?;
        }
        recorded::blocks(self, folders)?;
        self.whole_files(BOARDS_FOLDER, ".json")?;
        self.whole_files(POLL_FOLDER, ".targets")
    }

    /// Backs up the files of a folder below the data folder, if it is there, whose names end so.
    fn whole_files(&mut self, folder: &str, suffix: &str) -> Result<()> {
        for name in names(&*self.disk, &self.dir.join(folder), NameKind::File)? {
            if name.ends_with(suffix) {
                self.small(&format!("{folder}/{name}"))?;
            }
        }
        Ok(())
    }

    /// Backs up a small file, if it is there, as it is at this moment.
    fn small(&mut self, path: &str) -> Result<()> {
        let place = self.dir.join(path);
        for _ in 0..TRIES {
            let Some(file) = found(self.disk.open(&place, OpenMode::Read), &place)? else {
                return Ok(());
            };
            let read = InMemory::read(&*file, SMALL);
            let read = read.with_context(|| format!("cannot read {}", place.display()))?;
            if let Some(read) = read {
                return self.in_memory(path, place, read);
            }
        }
        bail!(
            "cannot read {}: it is too long, or changes too fast",
            place.display()
        )
    }

    /// Backs up bytes that were read.
    fn in_memory(&mut self, path: &str, place: PathBuf, read: InMemory) -> Result<()> {
        self.add(&Source {
            path: path.into(),
            place,
            bytes: read.bytes(),
            file: Box::new(read),
            version: Version::default(),
            writing: Writing::Appended,
        })
    }

    fn add(&mut self, source: &Source) -> Result<()> {
        let sent = self.sender.sent();
        let path = &source.path;
        self.progress.show(|| {
            format!(
                "{} read, {} copied: {path}",
                size(sent.bytes),
                size(sent.sent_bytes)
            )
        });
        Ok(self.sender.add(source)?)
    }

    /// Leaves a file out, with the reason.
    fn leave_out(&mut self, name: &[u8], why: &str) {
        self.left_out += 1;
        if !self.names_left_out {
            return;
        }
        self.progress.clear();
        talk::say(format_args!(
            "kymo: cannot back up {}: {why}",
            DisplayName(name)
        ));
    }
}

/// An opened file; `None`: there is none.
fn found<T>(opened: std::io::Result<T>, place: &Path) -> Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(opened) => Ok(Some(opened)),
        Err(cause) => Err(Error::Io {
            verb: "open",
            path: place.into(),
            cause,
        }
        .into()),
    }
}

/// Names in a folder, sorted; none if there is no such folder.
fn names(disk: &dyn Disk, folder: &Path, kind: NameKind) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let listed = disk.list(folder, &mut |name, found| {
        if found == kind {
            names.push(name.to_string());
        }
    });
    found(listed, folder)?;
    names.sort_unstable();
    Ok(names)
}
