//! Folders in which a poller writes. Its sandbox knows the folders of the moment when polling began and nothing beyond them, so a
//! `Directory` that is a link out of LogDir is a folder of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kymo_poll::pages::PageFolders;
use kymo_wire::mrtg_cfg::{Config, Keyword, LogFormat};

use super::Draws;

/// Device and inode.
type FolderId = (u64, u64);

/// The folders of a configuration.
pub(super) struct WrittenFolders {
    /// Each with its identity when polling began.
    granted: Vec<(PathBuf, Option<FolderId>)>,
    /// Identities when they were looked at last.
    seen: Vec<Option<FolderId>>,
}

impl WrittenFolders {
    /// `log_dir`: the command line's folder of all files.
    pub(super) fn of(config: &Config, log_dir: Option<&Path>, draws: Draws) -> WrittenFolders {
        let globals = config.globals();
        let own = log_dir.unwrap_or(&globals.log_dir).to_path_buf();
        let mut folders = BTreeSet::from([own]);
        if draws_pages(config, draws) {
            let PageFolders { html, images } = PageFolders::of(globals, log_dir);
            folders.extend([html, images]);
        }
        let named = config
            .targets()
            .filter_map(|target| target.value(Keyword::Directory));
        let named: BTreeSet<Vec<u8>> = named.map(|folder| folder.into_owned()).collect();
        let linked = folders.iter().flat_map(|base| {
            let real_base = base.canonicalize().ok();
            let linked = named.iter().filter_map(move |folder| {
                let real = followed(base, Path::new(OsStr::from_bytes(folder.trim_ascii())))?;
                let is_below = real_base
                    .as_ref()
                    .is_some_and(|base| real.starts_with(base));
                (!is_below).then_some(real)
            });
            linked.collect::<Vec<PathBuf>>()
        });
        let linked: Vec<PathBuf> = linked.collect();
        folders.extend(linked);
        let granted: Vec<_> = folders
            .into_iter()
            .map(|folder| {
                let id = id_of(&folder);
                (folder, id)
            })
            .collect();
        WrittenFolders {
            seen: granted.iter().map(|(_, id)| *id).collect(),
            granted,
        }
    }

    /// The folders.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.granted.iter().map(|(path, _)| path.clone())
    }

    /// True if one of the folders was replaced since the last call. One that is missing is being replaced.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut changed = false;
        for ((path, _), seen) in self.granted.iter().zip(&mut self.seen) {
            let now = id_of(path);
            if now.is_some() && now != *seen {
                *seen = now;
                changed = true;
            }
        }
        changed
    }

    /// True if these folders are among those of when polling began.
    pub(super) fn have(&self, new: &WrittenFolders) -> bool {
        new.granted
            .iter()
            .all(|folder| self.granted.contains(folder))
    }
}

/// True if graphs and pages are drawn.
pub(super) fn draws_pages(config: &Config, draws: Draws) -> bool {
    match draws {
        Draws::Nothing => false,
        Draws::Pages => config.globals().log_format == LogFormat::Rateup,
        Draws::AllPages => true,
    }
}

/// The folder behind the links of a path below a base: links of root and of this user alone are followed. `None`: there is no such
/// folder, or no link in its path.
fn followed(base: &Path, below: &Path) -> Option<PathBuf> {
    let (mut at, mut has_link) = (base.to_path_buf(), false);
    for part in below.strip_prefix("/").unwrap_or(below) {
        at.push(part);
        let found = at.symlink_metadata().ok()?;
        if found.is_symlink() {
            let is_trusted = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
            has_link = true;
            if !is_trusted {
                return None;
            }
        }
    }
    at.canonicalize()
        .ok()
        .filter(|real| has_link && real.is_dir())
}

fn id_of(folder: &Path) -> Option<FolderId> {
    let found = folder.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn links_of_others_are_not_followed() {
        let base = std::env::temp_dir().join(format!("kymo-followed-{}", std::process::id()));
        fs::create_dir_all(base.join("in/own")).unwrap();
        fs::create_dir_all(base.join("out/deep")).unwrap();
        let inside = base.join("in");
        symlink("../out", inside.join("link")).unwrap();
        symlink("../out", inside.join("others")).unwrap();
        let is_root = lchown(inside.join("others"), Some(65_534), None).is_ok();
        let real = base.canonicalize().unwrap();
        let found = |below: &str| followed(&inside, Path::new(below));
        assert_eq!(found("link"), Some(real.join("out")));
        assert_eq!(found("/link/deep"), Some(real.join("out/deep")));
        for below in ["own", "none", "link/none"] {
            assert_eq!(found(below), None, "{below}");
        }
        assert_eq!(found("others").is_none(), is_root);
        fs::remove_dir_all(&base).unwrap();
    }
}
