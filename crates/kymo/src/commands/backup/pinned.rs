//! The store in a backup: the keeper of a `kymo serve` that runs pins it, and files are copied up to the lengths of that moment.
//! Journal files go first, and then the pin ends: segments are only appended to, and an open one outlives its name.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, bail};
use kymo_backup::{InMemory, Source, Version, Writing};
use kymo_ingest::kept::BACKED_UP;
use kymo_keeper_client::Keeper;
use kymo_store::Pinned;
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, DiskFile, OpenMode, RealDisk, RecordLock};
use kymo_wire::keeper::{PinnedKind, PinnedPart};

use super::{Backup, SMALL, TRIES, found};
use crate::commands::data::place;
use crate::commands::serve::{ADMIN_SOCKET, STORE_FOLDER};

/// Folder of .rrd files in the data folder, and in a backup.
const RRD: &str = "rrd";
/// Folder of .rrd files outside of that folder, in a backup, by their whole paths.
const ELSEWHERE: &str = "elsewhere";
/// First bytes of an .rrd file.
const RRD_MAGIC: &[u8] = b"RRD\0";
/// Longest wait for the lock of an .rrd file.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The store of a data folder.
pub(super) struct StoreFolder {
    folder: PathBuf,
    /// Folder of .rrd files.
    base: PathBuf,
    socket: PathBuf,
}

/// The store at one moment.
struct Moment {
    /// The keeper and the number of the pin; `None`: no keeper runs.
    pin: Option<(Keeper, u64)>,
    parts: Vec<PinnedPart>,
}

impl StoreFolder {
    /// The store in a data folder, if there is one.
    pub(super) fn find(dir: &Path) -> Option<StoreFolder> {
        let (folder, base) = place(dir).ok()?;
        (folder == dir.join(STORE_FOLDER)).then(|| StoreFolder {
            folder,
            base,
            socket: dir.join(ADMIN_SOCKET),
        })
    }

    /// Has the keeper asked at another socket.
    pub(super) fn asked_at(self, socket: PathBuf) -> StoreFolder {
        StoreFolder { socket, ..self }
    }

    fn moment(&self) -> Result<Moment> {
        match UnixStream::connect(&self.socket) {
            Ok(_) => {
                let keeper = Keeper::of_administrator(self.socket.clone());
                let (pin, parts) = keeper.pin().map_err(Error::msg)?;
                Ok(Moment {
                    pin: Some((keeper, pin)),
                    parts,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!(
                "cannot back up the store that kymo serve writes: you may not open {}; run kymo backup as root, or as \
                 the user of kymo serve",
                self.socket.display()
            ),
            Err(_) => self.at_rest(),
        }
    }

    /// The store without a keeper.
    fn at_rest(&self) -> Result<Moment> {
        let pinned = self.pinned_at_rest()?;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let clock: Arc<dyn Clock> = Arc::new(RealClock);
        let looked = kymo_store::Store::open_to_look(&self.folder, &self.base, &disk, &clock)?;
        let files = pinned.files.into_iter().map(|file| PinnedPart {
            name: file.name.into_bytes(),
            bytes: file.bytes,
            kind: match file.sealed {
                true => PinnedKind::Sealed,
                false => PinnedKind::Open,
            },
        });
        let adopted = looked.adopted().into_iter().map(|name| PinnedPart {
            name,
            bytes: 0,
            kind: PinnedKind::Rrd,
        });
        Ok(Moment {
            pin: None,
            parts: files.chain(adopted).collect(),
        })
    }

    fn pinned_at_rest(&self) -> Result<Pinned> {
        Ok(kymo_store::Store::pin_at_rest(
            Arc::new(RealDisk),
            &self.folder,
        )?)
    }
}

/// Opened files of the store.
struct OpenFiles {
    journal: Vec<Source>,
    segments: Vec<Source>,
    /// Names of .rrd files.
    rrd: Vec<Vec<u8>>,
}

/// Backs up the store, and the files beside it.
pub(super) fn back_up(backup: &mut Backup<'_>, store: &StoreFolder) -> Result<()> {
    let (moment, files) = opened(backup, store)?;
    for source in &files.journal {
        backup.add(source)?;
    }
    moment.end(store, &files.journal)?;
    for source in &files.segments {
        backup.add(source)?;
    }
    for name in BACKED_UP {
        backup.small(&format!("{STORE_FOLDER}/{name}"))?;
    }
    for name in &files.rrd {
        rrd_file(backup, store, name)?;
    }
    Ok(())
}

impl Moment {
    /// Ends the pin once the journal is copied; an error if it did not hold until now.
    fn end(&self, store: &StoreFolder, journal: &[Source]) -> Result<()> {
        match &self.pin {
            Some((keeper, pin)) => keeper.unpin(*pin).map_err(|_| {
                Error::msg(
                    "cannot back up the journal: copying it took more than an hour; run kymo backup again, which \
                     goes on where this one ended",
                )
            }),
            None => {
                let now = store.pinned_at_rest()?;
                let is_same = |source: &Source| {
                    now.files.iter().any(|file| {
                        file.bytes == source.bytes && source.path.ends_with(&file.name)
                    })
                };
                match journal.iter().all(is_same) {
                    true => Ok(()),
                    false => bail!(
                        "cannot back up the journal: a kymo serve has started meanwhile; run kymo backup again"
                    ),
                }
            }
        }
    }
}

/// Pins the store and opens its files. A merge may have removed a segment in between: then all is asked again.
fn opened(backup: &Backup<'_>, store: &StoreFolder) -> Result<(Moment, OpenFiles)> {
    for _ in 0..TRIES {
        let moment = store.moment()?;
        if let Some(files) = open_all(backup, store, &moment.parts)? {
            return Ok((moment, files));
        }
        if let Some((keeper, pin)) = &moment.pin {
            // Otherwise the pin ends by itself.
            let _ended = keeper.unpin(*pin);
        }
    }
    bail!(
        "cannot back up {}: its files change too fast; try again",
        store.folder.display()
    )
}

/// Opens the pinned files; `None`: one is gone.
fn open_all(
    backup: &Backup<'_>,
    store: &StoreFolder,
    parts: &[PinnedPart],
) -> Result<Option<OpenFiles>> {
    let mut files = OpenFiles {
        journal: Vec::new(),
        segments: Vec::new(),
        rrd: Vec::new(),
    };
    for part in parts {
        let name = match (part.kind, std::str::from_utf8(&part.name)) {
            (PinnedKind::Rrd, _) => {
                files.rrd.push(part.name.clone());
                continue;
            }
            (PinnedKind::Open | PinnedKind::Sealed, Ok(name)) if !name.contains('/') => name,
            (PinnedKind::Open | PinnedKind::Sealed, _) => {
                bail!("cannot use the keeper's answer: it names a file elsewhere")
            }
        };
        let place = store.folder.join(name);
        let Some(file) = found(backup.disk.open(&place, OpenMode::Read), &place)? else {
            return Ok(None);
        };
        let stat = file.metadata();
        let stat = stat.with_context(|| format!("cannot read {}", place.display()))?;
        let is_journal = name.starts_with("journal");
        let source = Source {
            path: format!("{STORE_FOLDER}/{name}"),
            place,
            bytes: part.bytes,
            file,
            version: match is_journal {
                // Writes by a mapping change no time of modification for a while.
                true => Version::default(),
                false => Version {
                    inode: stat.inode,
                    mtime_ns: stat.mtime_ns,
                },
            },
            writing: match part.kind {
                PinnedKind::Sealed => Writing::Sealed,
                PinnedKind::Open | PinnedKind::Rrd => Writing::Appended,
            },
        };
        match is_journal {
            true => files.journal.push(source),
            false => files.segments.push(source),
        }
    }
    Ok(Some(files))
}

/// Backs up an .rrd file with rows from before the store.
fn rrd_file(backup: &mut Backup<'_>, store: &StoreFolder, name: &[u8]) -> Result<()> {
    let Ok(named) = std::str::from_utf8(name) else {
        backup.leave_out(name, "its name is no UTF-8");
        return Ok(());
    };
    let (place, path) = match named.strip_prefix('/') {
        Some(rest) => (PathBuf::from(named), format!("{ELSEWHERE}/{rest}")),
        None => (store.base.join(named), format!("{RRD}/{named}")),
    };
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        backup.leave_out(name, "its name is no plain path");
        return Ok(());
    }
    let opened = backup.disk.open(&place, OpenMode::Read);
    if let Err(error) = &opened
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        backup.leave_out(name, "it may not be read");
        return Ok(());
    }
    let Some(file) = found(opened, &place)? else {
        return Ok(());
    };
    // The name is the keeper's word, and whoever runs this may read other files, too.
    let mut begin = [0; RRD_MAGIC.len()];
    let read = file.read_at(&mut begin, 0);
    read.with_context(|| format!("cannot read {}", place.display()))?;
    if begin != RRD_MAGIC {
        backup.leave_out(name, "it is no .rrd file");
        return Ok(());
    }
    if !is_locked(&*file, &place)? {
        backup.leave_out(name, "another program has locked it");
        return Ok(());
    }
    let read = InMemory::read(&*file, SMALL);
    let read = read.with_context(|| format!("cannot read {}", place.display()))?;
    let Some(read) = read else {
        backup.leave_out(name, "it is too long");
        return Ok(());
    };
    let stat = file.metadata();
    let stat = stat.with_context(|| format!("cannot read {}", place.display()))?;
    let source = Source {
        path,
        place,
        bytes: read.bytes(),
        file: Box::new(read),
        version: Version {
            inode: stat.inode,
            mtime_ns: stat.mtime_ns,
        },
        writing: Writing::InPlace,
    };
    // Others may write it from now on.
    drop(file);
    backup.add(&source)
}

/// Locks a file against others that write it.
fn is_locked(file: &dyn DiskFile, place: &Path) -> Result<bool> {
    let begun = Instant::now();
    loop {
        let locked = file.try_record_lock(RecordLock::Shared);
        if locked.with_context(|| format!("cannot lock {}", place.display()))? {
            return Ok(true);
        }
        if begun.elapsed() >= LOCK_WAIT {
            return Ok(false);
        }
        thread::sleep(LOCK_PAUSE);
    }
}
