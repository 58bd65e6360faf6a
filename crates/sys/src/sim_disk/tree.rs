//! The simulated twin of a [`Tree`]: a [`SimDisk`] seen through names from outside.

use super::SimDisk;
use crate::disk::{Disk, DiskFile, Metadata, NameKind, OpenMode};
use crate::tree::{Access, Existing, Reach, Safe, Tree};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Links that are followed before it is a loop, as Linux does.
const LINKS_MAX: usize = 40;

pub(crate) struct SimTree {
    pub(crate) disk: SimDisk,
    pub(crate) base: PathBuf,
    pub(crate) reach: Reach,
}

impl SimTree {
    /// The path without links and dots; its last name may be missing.
    fn walk(&self, path: &Path) -> io::Result<PathBuf> {
        let mut left: Vec<PathBuf> = path.iter().rev().map(PathBuf::from).collect();
        let mut at = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = left.pop() {
            match name.to_str() {
                Some("/") => at = PathBuf::from("/"),
                Some(".") => {}
                Some("..") => {
                    at.pop();
                }
                _ => {
                    let next = at.join(&name);
                    match self.disk.link_target(&next) {
                        Some(_) if links == LINKS_MAX => {
                            return Err(io::Error::from_raw_os_error(libc::ELOOP));
                        }
                        Some(target) => {
                            links += 1;
                            left.extend(target.iter().rev().map(PathBuf::from));
                        }
                        None => at = next,
                    }
                }
            }
        }
        match self.reach == Reach::Beneath && !at.starts_with(&self.base) {
            true => Err(io::Error::from_raw_os_error(libc::EXDEV)),
            false => Ok(at),
        }
    }
}

/// Writes behind the bytes written before.
struct Appended<'a>(&'a dyn DiskFile, u64);

impl Write for Appended<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, self.1)?;
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tree for SimTree {
    fn stat(&self, path: &Path) -> io::Result<Metadata> {
        let path = self.walk(path)?;
        self.disk.stat(&path)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mode = match access {
            Access::Read => OpenMode::Read,
            Access::Write | Access::Update => OpenMode::Write,
        };
        self.disk.open(&self.walk(path)?, mode)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let path = self.walk(path)?;
        self.disk.stat(&path)?;
        Ok(path)
    }

    fn put_pieces(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        existing: Existing,
        safe: Safe,
    ) -> io::Result<Metadata> {
        let folder = self.walk(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.file_name().unwrap_or_default();
        let path = folder.join(name);
        if existing == Existing::Keep && self.disk.name_kind(&path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut unfinished = name.to_os_string();
        unfinished.push(format!(".{:08x}", self.disk.counts().operations));
        let unfinished = folder.join(unfinished);
        let file = self.disk.open(&unfinished, OpenMode::CreateNew)?;
        let written = write(&mut Appended(&*file, 0))
            .and_then(|()| match safe {
                Safe::Synced => file.sync_data(),
                Safe::Unsynced => Ok(()),
            })
            .and_then(|()| self.disk.rename(&unfinished, &path))
            .and_then(|()| match safe {
                Safe::Synced => self.disk.sync_dir(&folder),
                Safe::Unsynced => Ok(()),
            });
        if written.is_err() {
            let _nothing_more_to_do = self.disk.unlink(&unfinished);
        }
        written.and_then(|()| self.disk.stat(&path))
    }

    /// As on a file system that cannot exchange two names.
    fn roll(&self, path: &Path, before: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = self.walk(path.parent().unwrap_or(Path::new("/")))?;
        let path = folder.join(path.file_name().unwrap_or_default());
        let before = folder.join(before.file_name().unwrap_or_default());
        let is_there = match self.disk.name_kind(&path) {
            Ok(NameKind::File) => true,
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
            Err(_) => false,
        };
        let unfinished = folder.join(format!(".{:08x}", self.disk.counts().operations));
        let file = self.disk.open(&unfinished, OpenMode::CreateNew)?;
        let rolled = file
            .write_at(bytes, 0)
            .and_then(|()| match is_there {
                true => self.disk.rename(&path, &before),
                false => Ok(()),
            })
            .and_then(|()| self.disk.rename(&unfinished, &path));
        if rolled.is_err() {
            let _nothing_more_to_do = self.disk.unlink(&unfinished);
        }
        rolled
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let folder = self.walk(path.parent().unwrap_or(Path::new("/")))?;
        let path = folder.join(path.file_name().unwrap_or_default());
        match self.disk.name_kind(&path) {
            Ok(NameKind::Directory) => return Err(io::Error::from_raw_os_error(libc::EISDIR)),
            Err(_) => return Err(io::Error::from_raw_os_error(libc::ENOENT)),
            Ok(_) => {}
        }
        self.disk.unlink(&path)?;
        self.disk.sync_dir(&folder)
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(&self.walk(path)?)
    }

    fn list(&self, path: &Path, each: &mut dyn FnMut(&[u8], NameKind)) -> io::Result<()> {
        let path = self.walk(path)?;
        let mut names = Vec::new();
        self.disk
            .list(&path, &mut |name, _| names.push(name.to_string()))?;
        for name in names {
            if let Ok(stat) = self.stat(&path.join(&name)) {
                each(Path::new(&name).as_os_str().as_bytes(), stat.kind);
            }
        }
        Ok(())
    }
}
