//! Files in which nothing is: placeholders of series that have no file yet, and what a power cut left of a new one. None is
//! ever taken over.
//!
//! rrdtool asks the daemon for a file by a unix socket only if something has its name: it resolves the name itself. So
//! where files are made when somebody asks for them, a series without one has a file of 0 bytes in its place.

use crate::engine::Inner;
use crate::memtable::series::Series;
use crate::names;
use crate::settings::Files;
use kymo_sys::disk::{DiskFile, NameKind};
use kymo_sys::tree::{Access, Existing, Safe};
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A power cut that takes the front of a file takes so much of it at least.
const SECTOR: usize = 512;

/// True if nothing is in a file: it is empty, or begins with a sector that was never written.
pub(crate) fn is_hollow(file: &dyn DiskFile, size_bytes: u64) -> bool {
    // A file that cannot be read has something.
    let mut front = [1; SECTOR];
    let count = file.read_at(&mut front, 0).unwrap_or(SECTOR);
    size_bytes == 0 || count > 0 && front[..count].iter().all(|&byte| byte == 0)
}

impl Inner {
    /// True if a path has a file of 0 bytes.
    pub(crate) fn has_placeholder(&self, path: &[u8]) -> bool {
        let stat = self.tree.stat(names::path(path));
        stat.is_ok_and(|stat| stat.kind == NameKind::File && stat.size_bytes == 0)
    }

    /// Decides about a file that is at a path already: one in which nothing is gives way.
    pub(crate) fn existing_at(&self, path: &Path, existing: Existing) -> Existing {
        let is_hollow = || {
            let file = self.tree.open(path, Access::Read).ok()?;
            let size_bytes = file.metadata().ok()?.size_bytes;
            Some(is_hollow(&*file, size_bytes))
        };
        match existing == Existing::Keep && is_hollow() == Some(true) {
            true => Existing::Replace,
            false => existing,
        }
    }

    /// Puts files of 0 bytes in the places of series that have none. Errors do not matter: without
    /// them rrdtool alone misses something.
    pub(crate) fn put_placeholders<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) {
        if self.settings.files != Files::Asked {
            return;
        }
        let mut folders = HashSet::new();
        for path in paths.filter(|path| names::is_file(path)) {
            let folder = names::folder_of(path);
            if folders.insert(folder) && self.tree.stat(names::path(folder)).is_err() {
                let _no_room = self.tree.make_folders(names::path(folder));
            }
            let put = &mut |_: &mut dyn io::Write| Ok(());
            let (keep, safe) = (Existing::Keep, Safe::Unsynced);
            let _there = self.tree.put_pieces(names::path(path), put, keep, safe);
        }
    }

    /// Puts those that are missing: of series of an earlier version, and where somebody removed them.
    pub(crate) fn put_missing_placeholders(&self) {
        if self.settings.files != Files::Asked {
            return;
        }
        let needs_one = |(_, series): &(u32, &Series)| {
            !series.forgotten && series.may_have_file() && self.needs_no_file(series)
        };
        let paths: Vec<Arc<[u8]>> = {
            let state = self.lock();
            let all = state.series.iter().filter(needs_one);
            all.map(|(_, series)| series.path.clone()).collect()
        };
        self.put_placeholders(paths.iter().map(|path| &path[..]));
    }

    /// Removes the placeholder of a series that is gone.
    pub(crate) fn remove_placeholder(&self, path: &[u8]) {
        if names::is_file(path) && self.has_placeholder(path) {
            let _gone = self.tree.unlink(names::path(path));
        }
    }
}
