//! Restoring: the files of a backup are put below a folder of their own, each piece compared with its hash, and named when all
//! of them are on the disk.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use kymo_sys::disk::{Disk, NameKind, OpenMode};

use crate::error::{Error, Result, Tried};
use crate::manifest::{BackedUpFile, Manifest};
use crate::target::Target;

/// Folder of files that are not named yet.
const UNFINISHED: &str = ".kymo-restore";

/// The restored files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Moment of the backup, milliseconds since 1970.
    pub time_ms: i64,
    /// Files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Restores the newest backup that is not later than a moment (milliseconds since 1970), or the newest of all, into a folder
/// that is empty or missing. `each` hears of the bytes done and of all.
pub fn restore(
    target: &Target,
    at_ms: Option<i64>,
    disk: &dyn Disk,
    folder: &Path,
    each: &mut dyn FnMut(u64, u64),
) -> Result<Restored> {
    let manifest = newest(target, at_ms)?;
    if !clear(disk, folder).tried("use", folder)? {
        return Err(Error::NotEmpty {
            path: folder.into(),
        });
    }
    disk.create_dir_all(folder).tried("make", folder)?;
    let unfinished = folder.join(UNFINISHED);
    let mut restoring = Restoring {
        target,
        disk,
        folders: BTreeSet::new(),
        done: 0,
        all: manifest.bytes(),
    };
    let done = restoring.all_files(&manifest, &unfinished, each);
    let done = done.and_then(|()| restoring.name_all(&unfinished, folder));
    if done.is_err() {
        // The next attempt removes the rest.
        let _left = remove_tree(disk, &unfinished);
    }
    done.map(|()| Restored {
        time_ms: manifest.time_ms,
        files: u64::try_from(manifest.files.len()).unwrap_or(u64::MAX),
        bytes: manifest.bytes(),
    })
}

/// Refuses a folder that has files, other than those of a restore that was cut short, which are removed.
fn clear(disk: &dyn Disk, folder: &Path) -> io::Result<bool> {
    let mut others = false;
    match disk.list(folder, &mut |name, _| others |= name != UNFINISHED) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        listed => listed?,
    }
    if others {
        return Ok(false);
    }
    remove_tree(disk, &folder.join(UNFINISHED))?;
    Ok(true)
}

/// The newest backup that is not later than a moment.
fn newest(target: &Target, at_ms: Option<i64>) -> Result<Manifest> {
    let times_ms = target.times_ms()?;
    let fits = |time: &&i64| at_ms.is_none_or(|at| **time <= at);
    let Some(newest) = times_ms.iter().rev().find(fits) else {
        let shown = times_ms.first().map(|ms| shown(*ms));
        let hint = shown.map(|oldest| format!(" of that time; the oldest is of {oldest}"));
        return Err(target.none(hint.unwrap_or_default()));
    };
    target.manifest(*newest)
}

/// A time in ISO 8601, UTC.
fn shown(time_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(time_ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A restore under way.
struct Restoring<'a> {
    target: &'a Target,
    disk: &'a dyn Disk,
    /// Folders that were made.
    folders: BTreeSet<PathBuf>,
    done: u64,
    all: u64,
}

impl Restoring<'_> {
    fn all_files(
        &mut self,
        manifest: &Manifest,
        unfinished: &Path,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.make(unfinished)?;
        for file in &manifest.files {
            let path = unfinished.join(&file.path);
            if let Some(above) = path.parent() {
                self.make(above)?;
            }
            self.file(file, &path, each)?;
        }
        for folder in &self.folders {
            self.disk.sync_dir(folder).tried("write", folder)?;
        }
        Ok(())
    }

    /// Makes a folder, and notes those that may be new down from the one of all files.
    fn make(&mut self, folder: &Path) -> Result<()> {
        if self.folders.contains(folder) {
            return Ok(());
        }
        self.disk.create_dir_all(folder).tried("make", folder)?;
        let is_inside = |above: &&Path| above.iter().any(|name| name == UNFINISHED);
        let new = folder.ancestors().take_while(is_inside);
        self.folders.extend(new.map(Path::to_path_buf));
        Ok(())
    }

    fn file(
        &mut self,
        file: &BackedUpFile,
        path: &Path,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let out = self
            .disk
            .open(path, OpenMode::CreateNew)
            .tried("make", path)?;
        let mut offset = 0;
        for piece in &file.pieces {
            let got = self.target.get(*piece, &mut |bytes| {
                out.write_at(bytes, offset).tried("write", path)?;
                let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                offset += count;
                self.done += count;
                each(self.done, self.all);
                Ok(())
            })?;
            got.map_err(|what| Error::Content {
                file: file.path.clone(),
                object: self.target.path_of(piece.hash),
                what,
            })?;
        }
        out.sync_data().tried("write", path)
    }

    /// Moves all that was restored to its place.
    fn name_all(&self, unfinished: &Path, folder: &Path) -> Result<()> {
        let mut names = Vec::new();
        let listed = self
            .disk
            .list(unfinished, &mut |name, _| names.push(name.to_string()));
        listed.tried("list", unfinished)?;
        for name in names {
            let to = folder.join(&name);
            let moved = self.disk.rename(&unfinished.join(name), &to);
            moved.tried("name", &to)?;
        }
        self.disk.rmdir(unfinished).tried("remove", unfinished)?;
        self.disk.sync_dir(folder).tried("write", folder)
    }
}

/// Removes a folder with all that is in it, if it is there.
fn remove_tree(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    match disk.list(folder, &mut |name, kind| {
        names.push((name.to_string(), kind))
    }) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    }
    for (name, kind) in names {
        let path = folder.join(name);
        match kind {
            NameKind::Directory => remove_tree(disk, &path)?,
            NameKind::File | NameKind::Other => disk.unlink(&path)?,
        }
    }
    disk.rmdir(folder)
}
