//! A recording to read: the blocks and tails of one host over all its boots, or one block.
//!
//! Opening one takes no lock and changes no file, because
//! a recorder may be writing; `cursor` does the reading.

use crate::error::{Error, Result};
use crate::exported;
use crate::folder::{self, BlockName, folder_host};
use crate::tail;
use kymo_sys::disk::{Disk, NameKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A span of wall time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Start, in nanoseconds since 1970.
    pub from_ns: i64,
    /// End, in nanoseconds since 1970.
    pub thru_ns: i64,
}

impl TimeRange {
    /// All times.
    pub const ALL: TimeRange = TimeRange {
        from_ns: i64::MIN,
        thru_ns: i64::MAX,
    };

    /// True if a moment is within the range.
    pub fn holds(&self, real_ns: i64) -> bool {
        self.from_ns <= real_ns && real_ns <= self.thru_ns
    }
}

/// A set of kinds of sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds([u64; 4]);

impl Kinds {
    /// Every kind.
    pub const ALL: Kinds = Kinds([u64::MAX; 4]);
    /// No kinds, so that a read gives heads, events and contexts only.
    pub const NONE: Kinds = Kinds([0; 4]);

    /// Adds a kind.
    pub fn insert(&mut self, kind: u8) {
        self.0[usize::from(kind >> 6)] |= 1 << (kind & 63);
    }

    /// Returns true if the set contains `kind`.
    pub fn contains(&self, kind: u8) -> bool {
        self.0[usize::from(kind >> 6)] & 1 << (kind & 63) != 0
    }
}

impl FromIterator<u8> for Kinds {
    fn from_iter<I: IntoIterator<Item = u8>>(kinds: I) -> Self {
        let mut set = Kinds::NONE;
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

/// A block in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The parts of the block's name.
    pub name: BlockName,
    /// Index into [`Recording::folders`] of the block's folder.
    pub folder: usize,
}

/// One host's recording.
#[derive(Clone)]
pub struct Recording {
    pub(crate) disk: Arc<dyn Disk>,
    what: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    Block(PathBuf),
    Folder(PathBuf),
    Host(PathBuf, String),
}

impl Recording {
    /// Opens `path`: the recorder's folder if it holds one host, DIR/HOST, the folder DIR/HOST-BOOTID8
    /// of one boot, one block, or a recording in one file, which is read as a folder of its blocks.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self> {
        let whole = Origin::Folder(path.into());
        if let Some(recording) = Recording::exported(&disk, path, whole)? {
            return Ok(recording);
        }
        if let Some(file) = path.parent()
            && let Some(block) = Recording::exported(&disk, file, Origin::Block(path.into()))?
        {
            find(&*block.disk, path)?;
            return Ok(block);
        }
        let what = find(&*disk, path)?;
        Ok(Recording { disk, what })
    }

    /// Opens `file` as a recording in one file; `None` if it is none.
    fn exported(disk: &Arc<dyn Disk>, file: &Path, what: Origin) -> Result<Option<Self>> {
        match exported::disk(disk, file) {
            None => Ok(None),
            Some(Ok(disk)) => Ok(Some(Recording {
                disk: Arc::new(disk),
                what,
            })),
            Some(Err(cause)) => Err(Error::Damaged {
                path: file.into(),
                cause,
            }),
        }
    }

    /// The host's name as it stands in the names of the folders.
    pub fn host(&self) -> Option<&str> {
        match &self.what {
            Origin::Block(path) => folder_host(path.parent()?),
            Origin::Folder(folder) => folder_host(folder),
            Origin::Host(_, host) => Some(host),
        }
    }

    /// The folders of all boots of the host, or the one folder that the path names.
    pub fn folders(&self) -> Result<Vec<PathBuf>> {
        match &self.what {
            Origin::Block(path) => Ok(path.parent().map(Path::to_path_buf).into_iter().collect()),
            Origin::Folder(folder) => Ok(vec![folder.clone()]),
            Origin::Host(dir, host) => folder::boot_folders_of(&*self.disk, dir, host),
        }
    }

    /// The blocks of `folders`, oldest first.
    pub fn blocks(&self, folders: &[PathBuf]) -> Result<Vec<Listed>> {
        let mut listed = Vec::new();
        if let Origin::Block(path) = &self.what {
            let name = file_name(path).and_then(BlockName::parse);
            let name = name.ok_or_else(|| Error::NotFound { path: path.clone() })?;
            return Ok(vec![Listed { name, folder: 0 }]);
        }
        for (number, folder) in folders.iter().enumerate() {
            let names = folder::blocks(&*self.disk, folder)?;
            listed.extend(names.iter().map(|&name| Listed {
                name,
                folder: number,
            }));
        }
        listed.sort_by_key(|block| block.name);
        Ok(listed)
    }

    /// The paths of the tails of `folders`, including tails that do not exist.
    pub(crate) fn tails(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        if let Origin::Block(_) = self.what {
            return Vec::new();
        }
        let both = |folder: &PathBuf| tail::NAMES.map(|name| folder.join(name));
        folders.iter().flat_map(both).collect()
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn find(disk: &dyn Disk, path: &Path) -> Result<Origin> {
    let not_found = || Error::NotFound { path: path.into() };
    match disk.name_kind(path) {
        Ok(NameKind::File) => {
            let name = file_name(path).and_then(BlockName::parse);
            name.map(|_| Origin::Block(path.into()))
                .ok_or_else(not_found)
        }
        Ok(_) if is_boot_folder(disk, path) => Ok(Origin::Folder(path.into())),
        Ok(_) => one_host(disk, path),
        Err(_) => {
            let (dir, host) = (path.parent(), file_name(path));
            let (Some(dir), Some(host)) = (dir, host) else {
                return Err(not_found());
            };
            match folder::boot_folders_of(disk, dir, host) {
                Ok(folders) if !folders.is_empty() => Ok(Origin::Host(dir.into(), host.into())),
                _ => Err(not_found()),
            }
        }
    }
}

fn is_boot_folder(disk: &dyn Disk, path: &Path) -> bool {
    let mut tails = tail::NAMES.iter().map(|name| path.join(name));
    let has_blocks = |blocks: Arc<[BlockName]>| !blocks.is_empty();
    folder::blocks(disk, path).is_ok_and(has_blocks)
        || tails.any(|tail| disk.name_kind(&tail).is_ok())
}

fn one_host(disk: &dyn Disk, dir: &Path) -> Result<Origin> {
    let folders = folder::boot_folders(disk, dir)?;
    let hosts: BTreeSet<&str> = folders
        .iter()
        .filter_map(|path| folder_host(path))
        .collect();
    let mut names = hosts.iter();
    match (names.next(), names.next()) {
        (None, _) => Err(Error::NotFound { path: dir.into() }),
        (Some(host), None) => Ok(Origin::Host(dir.into(), host.to_string())),
        _ => Err(Error::SeveralHosts {
            path: dir.into(),
            hosts: Vec::from_iter(hosts).join(", "),
        }),
    }
}
