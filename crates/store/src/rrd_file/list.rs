//! LIST: the .rrd files in a folder, as rrd_list_r lists them.

use crate::engine::{Inner, Store};
use crate::folder::listings::Folder;
use crate::memtable::series::Series;
use crate::names;
use kymo_base::pattern;
use kymo_sys::disk::NameKind;
use kymo_sys::tree::Tree;
use std::io;
use std::sync::Arc;

impl Store {
    /// LIST: the result of rrd_list_r for a path that is already joined to the base.
    pub fn list(&self, path: &[u8], recursive: bool) -> io::Result<Vec<Vec<u8>>> {
        if !self.admits(path) {
            return Err(io::Error::from_raw_os_error(13));
        }
        let without = self.inner.below_without_files(path, recursive);
        if self.is_without_files() {
            return Ok(without);
        }
        match list(&*self.inner.tree, path, recursive) {
            // The folder does not exist yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !without.is_empty() => {
                Ok(without)
            }
            Ok(mut found) if !without.is_empty() => {
                found.extend(without);
                found.sort_unstable();
                found.dedup();
                Ok(found)
            }
            found => found,
        }
    }

    /// Returns true if a path is that of a series without a file, or of a folder with such series.
    pub fn leads_to_no_file(&self, path: &[u8]) -> bool {
        !self.inner.below_without_files(path, true).is_empty()
    }

    /// Returns true if a name has an empty file: a placeholder of a series without a file, or a leftover.
    pub fn has_placeholder(&self, name: &[u8]) -> bool {
        let spelled = names::spelled(&self.inner.settings, name);
        self.inner.has_placeholder(&spelled)
    }

    /// The .rrd files below the base.
    pub fn files(&self) -> io::Result<Vec<Vec<u8>>> {
        let base = names::spelled(&self.inner.settings, b"");
        match self.is_without_files() {
            true => Ok(Vec::new()),
            false => self.inner.files_below(&base),
        }
    }
}

impl Inner {
    /// The .rrd files below a folder, relative to it; folders that did not change are not read again.
    fn files_below(&self, root: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let now_ns = self.clock.now().real_ns;
        let mut read = |path: &[u8]| self.listings.folder(&*self.tree, path, now_ns);
        sorted_below(&mut read, root, true)
    }

    /// Names of series that have and need no file.
    fn below_without_files(&self, path: &[u8], recursive: bool) -> Vec<Vec<u8>> {
        let path = names::normal(path);
        let state = self.lock();
        let picks = |series: &Series| self.needs_no_file(series);
        let one = state
            .series
            .by_path(&path)
            .and_then(|id| state.series.get(id));
        match one {
            Some(series) if picks(series) => vec![last_name(&path).to_vec()],
            Some(_) => Vec::new(),
            None => state.series.below(&path, recursive, picks),
        }
    }
}

/// Limit of the depth of folders.
const DEPTH_MAX: usize = 64;

/// Lists the names below `path`, relative to it; for a path with
/// `*` or `?` the last names that match, for a file its last name.
pub(crate) fn list(tree: &dyn Tree, path: &[u8], recursive: bool) -> io::Result<Vec<Vec<u8>>> {
    if path.windows(2).any(|two| two == b"..") {
        return Err(io::Error::from_raw_os_error(13));
    }
    if let Some(number) = names::refused(path) {
        return Err(io::Error::from_raw_os_error(number));
    }
    if path.iter().any(|byte| b"*?".contains(byte)) {
        return match recursive {
            true => Err(io::Error::from_raw_os_error(22)),
            false => matching(tree, path),
        };
    }
    if path.ends_with(b".rrd") {
        return match tree.stat(names::path(path))?.kind {
            NameKind::File => Ok(vec![last_name(path).to_vec()]),
            _ => Err(io::Error::from_raw_os_error(6)),
        };
    }
    if tree.stat(names::path(path))?.kind != NameKind::Directory {
        return Err(io::Error::from_raw_os_error(20));
    }
    let mut read = |path: &[u8]| Folder::read(tree, path).map(Arc::new);
    sorted_below(&mut read, path, recursive)
}

type ReadFolder<'a> = dyn FnMut(&[u8]) -> io::Result<Arc<Folder>> + 'a;

/// The names below a folder, relative to it.
fn sorted_below(
    read: &mut ReadFolder<'_>,
    root: &[u8],
    recursive: bool,
) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    below(read, root, b"", recursive, 0, &mut found)?;
    found.sort_unstable();
    Ok(found)
}

fn below(
    read: &mut ReadFolder<'_>,
    root: &[u8],
    inside: &[u8],
    recursive: bool,
    depth: usize,
    found: &mut Vec<Vec<u8>>,
) -> io::Result<()> {
    let folder = read(&[root, b"/", inside].concat())?;
    let path = |name: &[u8]| match inside {
        b"" => name.to_vec(),
        _ => [inside, b"/", name].concat(),
    };
    found.extend(folder.files().map(path));
    if !recursive {
        found.extend(folder.folders().map(path));
        return Ok(());
    }
    for name in folder.folders().filter(|_| depth < DEPTH_MAX) {
        // An unreadable folder is left out.
        let _unreadable = below(read, root, &path(name), recursive, depth + 1, found);
    }
    Ok(())
}

/// The last names of the paths that match a pattern.
fn matching(tree: &dyn Tree, pattern: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    // Starts at the last folder without wildcards, since those above may be unreadable.
    let wild = pattern.iter().position(|byte| b"*?".contains(byte));
    let named = &pattern[..wild.unwrap_or(pattern.len())];
    let begin = named.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let mut paths: Vec<Vec<u8>> = vec![pattern[..begin].to_vec()];
    for part in pattern[begin..]
        .split(|&byte| byte == b'/')
        .filter(|part| !part.is_empty())
    {
        let mut next = Vec::new();
        for path in &paths {
            let folder: &[u8] = if path.is_empty() { b"/" } else { path };
            if !part.iter().any(|byte| b"*?".contains(byte)) {
                let path = [&path[..], b"/", part].concat();
                next.extend(tree.stat(names::path(&path)).is_ok().then_some(path));
                continue;
            }
            let _not_a_folder = tree.list(names::path(folder), &mut |name, _| {
                if fits(part, name) {
                    next.push([&path[..], b"/", name].concat());
                }
            });
        }
        paths = next;
    }
    if paths.is_empty() {
        return Err(io::Error::from_raw_os_error(2));
    }
    paths.sort_unstable();
    Ok(paths.iter().map(|path| last_name(path).to_vec()).collect())
}

/// Matches with `*` for any text and `?` for any byte; neither matches a leading dot.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    pattern::fits(pattern, name)
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::disk::Disk;
    use kymo_sys::sim_disk::SimDisk;
    use kymo_sys::tree::Reach;
    use std::path::Path;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*.rrd", "a.rrd", true),
            ("*.rrd", ".a.rrd", false),
            ("?.rrd", "ab.rrd", false),
            ("a*b*c", "axxbyybzc", true),
            ("a*b", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn folders_files_and_patterns() {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new("/db/d/e")).unwrap();
        for name in ["/db/a.rrd", "/db/b.txt", "/db/d/c.rrd", "/db/d/e/f.rrd"] {
            disk.set_bytes(Path::new(name), vec![1]);
        }
        let tree = disk.tree(Path::new("/db"), Reach::Anywhere).unwrap();
        for (path, recursive, expected) in [
            ("/db/", false, &["a.rrd", "d"][..]),
            ("/db/", true, &["a.rrd", "d/c.rrd", "d/e/f.rrd"]),
            ("/db/d", false, &["c.rrd", "e"]),
            ("/db/a.rrd", false, &["a.rrd"]),
            ("/db/*.rrd", false, &["a.rrd"]),
            ("/db/*/c.rrd", false, &["c.rrd"]),
        ] {
            let found = list(&*tree, path.as_bytes(), recursive).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|name| String::from_utf8_lossy(name))
                .collect();
            assert_eq!(found, expected, "{path}");
        }
        for (path, recursive, number) in [
            ("/db/..", false, 13),
            ("/db/*", true, 22),
            ("/db/x*", false, 2),
            ("/db/none", false, 2),
            ("/db/b.txt", false, 20),
        ] {
            let error = list(&*tree, path.as_bytes(), recursive).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(number), "{path}");
        }
    }
}
