//! Files without content: placeholders of series that have no file yet,
//! and leftovers of new files after a power cut. None is ever adopted.
//!
//! rrdtool requests a file from the daemon by a unix socket only if a file of that name exists, because it resolves the
//! name itself. So in a store that creates files on request, a series without a file has an empty one in its place.

use crate::engine::Inner;
use crate::memtable::series::Series;
use crate::names;
use crate::settings::Files;
use kymo_sys::disk::{DiskFile, NameKind};
use kymo_sys::tree::{Access, Existing};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Smallest part of a file that a power cut loses.
const SECTOR: usize = 512;

/// Returns true if a file has no content: it is empty, or begins with a sector that was never written.
pub(crate) fn is_hollow(file: &dyn DiskFile, size_bytes: u64) -> bool {
    // An unreadable file counts as one with content.
    let mut front = [1; SECTOR];
    let count = file.read_at(&mut front, 0).unwrap_or(SECTOR);
    size_bytes == 0 || count > 0 && front[..count].iter().all(|&byte| byte == 0)
}

impl Inner {
    /// Returns true if a path has an empty file.
    pub(crate) fn has_placeholder(&self, path: &[u8]) -> bool {
        let stat = self.tree.stat(names::path(path));
        stat.is_ok_and(|stat| stat.kind == NameKind::File && stat.size_bytes == 0)
    }

    /// Decides if a new file may replace an existing one; a file without content is always replaced.
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

    /// Creates empty files in place of series without a file. Errors are ignored, since only rrdtool needs these files.
    pub(crate) fn put_placeholders<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) {
        if self.settings.files != Files::OnDemand {
            return;
        }
        let mut folders = HashSet::new();
        for path in paths.filter(|path| names::is_file(path)) {
            let folder = names::folder_of(path);
            if folders.insert(folder) && self.tree.stat(names::path(folder)).is_err() {
                let _no_room = self.tree.make_folders(names::path(folder));
            }
            let _there = self.tree.put_empty(names::path(path));
        }
    }

    /// Creates missing placeholders: for series of earlier versions, and after their removal.
    pub(crate) fn put_missing_placeholders(&self) {
        if self.settings.files != Files::OnDemand {
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

    /// Removes the placeholder of a removed series.
    pub(crate) fn remove_placeholder(&self, path: &[u8]) {
        if names::is_file(path) && self.has_placeholder(path) {
            let _gone = self.tree.unlink(names::path(path));
        }
    }
}
