//! Keeps names from outside away from the store's own folder with all below it, and from the owner files of bases. These
//! count as outside of the base (`EXDEV`), whatever links lead to them.
//!
//! [`Fenced`] is the [`Tree`] through which the store opens files by name, so that the checks are in one place. The
//! store's own files are opened by its `Disk`.

use crate::error::{Error, Tried};
use crate::folder::owner;
use crate::folder::read_only::is_missing;
use crate::names;
use crate::settings::Settings;
use kymo_sys::disk::{Disk, DiskFile, Metadata, NameKind};
use kymo_sys::tree::{Access, Existing, Reach, Safe, Tree};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// EXDEV, "Cross-device link": the error of a [`Tree`] for paths outside.
pub(crate) const OUTSIDE: i32 = 18;

/// Opens the tree of files by name, without the store's own. Sets the folder in the settings to its real path.
pub(crate) fn tree(disk: &dyn Disk, settings: &mut Settings) -> Result<Box<dyn Tree>, Error> {
    let (base, folder) = (&settings.base, &settings.folder);
    let open = |reach| disk.tree(base, reach).tried("open", base);
    let anywhere = open(Reach::Anywhere)?;
    let tree = open(match settings.beneath {
        true => Reach::Beneath,
        false => Reach::Anywhere,
    })?;
    let real = anywhere.resolve(folder).tried("open", folder)?;
    let device = anywhere.stat(&real).tried("open", folder)?.device;
    settings.folder = real;
    Ok(Box::new(Fenced {
        tree,
        anywhere,
        settings: settings.clone(),
        device,
    }))
}

/// Returns true if a path without links belongs to the store itself. A base below the store's folder does not.
pub(crate) fn keeps(settings: &Settings, path: &[u8]) -> bool {
    let Settings { folder, base, .. } = settings;
    let is_below = |path: &[u8], folder: &Path| {
        let rest = path.strip_prefix(folder.as_os_str().as_bytes());
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    };
    let has_base = || base != folder && is_below(base.as_os_str().as_bytes(), folder);
    let is_owner = path.rsplit(|&byte| byte == b'/').next() == Some(owner::NAME.as_bytes());
    is_owner || is_below(path, folder) && !(has_base() && is_below(path, base))
}

fn outside() -> io::Error {
    io::Error::from_raw_os_error(OUTSIDE)
}

struct Fenced {
    tree: Box<dyn Tree>,
    /// The tree without limits, for the store's own files and the targets of links.
    anywhere: Box<dyn Tree>,
    settings: Settings,
    /// The device of the store's folder; hard links to its files are on the same one.
    device: u64,
}

impl Fenced {
    /// The real path of the existing part of a path; leaves errors to the kernel. The last `missing` names do not exist,
    /// or are not to be followed.
    fn enter(&self, path: &Path, missing: usize) -> io::Result<Option<PathBuf>> {
        for above in path.ancestors().skip(missing) {
            match self.anywhere.resolve(above) {
                Ok(real) => {
                    let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                    let whole = names::normal(real.join(rest).as_os_str().as_bytes());
                    return match keeps(&self.settings, &whole) {
                        true => Err(outside()),
                        false => Ok(Some(real.join(rest))),
                    };
                }
                Err(error) if is_missing(&error) => {}
                Err(_) => break,
            }
        }
        Ok(None)
    }

    fn look(&self, path: &Path) -> io::Result<()> {
        match keeps(&self.settings, path.as_os_str().as_bytes()) {
            true => Err(outside()),
            false => Ok(()),
        }
    }

    /// Returns true if a file with several names is also one of the store's own.
    fn is_own(&self, stat: &Metadata) -> bool {
        let same = |path: &Path| {
            let own = self.anywhere.stat(path);
            own.is_ok_and(|own| (own.device, own.inode) == (stat.device, stat.inode))
        };
        let mut found = same(&self.settings.base.join(owner::NAME));
        if !found && stat.device == self.device {
            let _unreadable = self.anywhere.list(&self.settings.folder, &mut |name, _| {
                found |= same(&self.settings.folder.join(names::path(name)));
            });
        }
        found
    }
}

impl Tree for Fenced {
    /// Checks the path as text: paths of series are resolved already, and stat changes nothing.
    fn stat(&self, path: &Path) -> io::Result<Metadata> {
        self.look(path)?;
        self.tree.stat(path)
    }

    /// Checks the path as text: a file is only changed after it is known to belong to a series.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        self.look(path)?;
        self.tree.open(path, access)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let real = match self.tree.resolve(path) {
            Ok(real) => real,
            // A missing file may still have a name of the store's own.
            Err(error) => {
                let missing = usize::from(error.kind() == io::ErrorKind::NotFound);
                return self.enter(path, missing).and(Err(error));
            }
        };
        self.look(&real)?;
        let stat = self.tree.stat(path)?;
        match stat.links > 1 && stat.kind == NameKind::File && self.is_own(&stat) {
            true => Err(outside()),
            false => Ok(real),
        }
    }

    fn place(&self, path: &Path) -> io::Result<PathBuf> {
        let place = self.tree.place(path)?;
        self.look(&place)?;
        Ok(place)
    }

    /// Checks the path as text: it has no links or is a [`Tree::place`]. A link of this name is replaced, not followed.
    fn put_pieces(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        existing: Existing,
        safe: Safe,
    ) -> io::Result<Metadata> {
        self.look(path)?;
        self.tree.put_pieces(path, write, existing, safe)
    }

    /// Checks the path as text.
    fn put_empty(&self, path: &Path) -> io::Result<()> {
        self.look(path)?;
        self.tree.put_empty(path)
    }

    /// Checks both paths as text.
    fn roll(&self, path: &Path, before: &Path, bytes: &[u8]) -> io::Result<()> {
        self.look(path)?;
        self.look(before)?;
        self.tree.roll(path, before, bytes)
    }

    /// Checks the path as text.
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.look(path)?;
        self.tree.unlink(path)
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        self.enter(path, 0)?;
        self.tree.make_folders(path)
    }

    /// Leaves out the store's own names.
    fn list(&self, path: &Path, each: &mut dyn FnMut(&[u8], NameKind)) -> io::Result<()> {
        let real = self.enter(path, 0)?.unwrap_or_else(|| path.into());
        self.tree.list(path, &mut |name, kind| {
            let whole = real.join(names::path(name));
            if !keeps(&self.settings, whole.as_os_str().as_bytes()) {
                each(name, kind);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_store_s_own() {
        for (base, path, own) in [
            ("/db", "/db/.kymo", true),
            ("/db", "/db/.kymo/lock", true),
            ("/db", "/db/.kymo2/lock", false),
            ("/db", "/db/a.rrd", false),
            ("/db", "/db/.kymo-owner", true),
            ("/db", "/elsewhere/.kymo-owner", true),
            ("/db/.kymo/base", "/db/.kymo/base/a.rrd", false),
            ("/db/.kymo/base", "/db/.kymo/base/.kymo-owner", true),
            ("/db/.kymo/base", "/db/.kymo/lock", true),
            ("/db/.kymo", "/db/.kymo/lock", true),
        ] {
            let settings = Settings::new("/db/.kymo", base);
            assert_eq!(keeps(&settings, path.as_bytes()), own, "{path} in {base}");
        }
    }
}
