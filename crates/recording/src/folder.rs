//! File names of a recording: DIR/HOST.lock,
//! DIR/HOST-BOOTID8/, and the blocks and tails in that folder.
//!
//! A block's name has its first sequence number and
//! its times, so that a seek needs one readdir.

use crate::error::{Result, Tried};
use crate::record::SEQ_MAX;
use kymo_sys::disk::{Disk, NameKind};
use kymo_sys::known_folders::KnownFolders;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Suffix of a block's name.
pub const BLOCK_SUFFIX: &str = ".blk";
/// Suffix of an unfinished file's name; the recorder removes such files when it starts.
pub const UNFINISHED_SUFFIX: &str = ".tmp";

/// The parts of a block's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockName {
    /// Sequence number of the first record.
    pub first_seq: u64,
    /// Earliest wall-clock second, since 1970.
    pub wall_min_s: u64,
    /// Latest wall-clock second, since 1970.
    pub wall_max_s: u64,
}

impl BlockName {
    /// Formats as `SEQ-WALLMIN-WALLMAX.blk`, the sequence number with at least 12 digits.
    pub fn format(&self) -> String {
        format!(
            "{:012}-{}-{}{BLOCK_SUFFIX}",
            self.first_seq, self.wall_min_s, self.wall_max_s
        )
    }

    /// Parses a block's name; `None` for any other name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(BLOCK_SUFFIX)?.split('-');
        let mut number = || {
            let digits = parts.next()?;
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| plain)
        };
        let (first_seq, wall_min_s, wall_max_s) = (number()?, number()?, number()?);
        let name = BlockName {
            first_seq,
            wall_min_s,
            wall_max_s,
        };
        let fits = first_seq <= SEQ_MAX && parts.next().is_none();
        fits.then_some(name)
    }
}

/// `host` as a part of a file name: any character
/// but a letter, digit, `.`, `_` or `-` becomes `_`.
pub fn safe_host(host: &str) -> String {
    let allowed = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    let safe: String = host
        .chars()
        .take(64)
        .map(|char| if allowed(char) { char } else { '_' })
        .collect();
    match safe.trim_start_matches('.') {
        "" => "localhost".to_string(),
        name => name.to_string(),
    }
}

/// Path of the folder of one boot of a host: HOST-BOOTID8.
pub fn boot_folder(dir: &Path, host: &str, boot_id: &str) -> PathBuf {
    let hex = boot_id.bytes().filter(u8::is_ascii_hexdigit).take(8);
    let mut id: String = hex.map(|byte| byte.to_ascii_lowercase() as char).collect();
    while id.len() < 8 {
        id.push('0');
    }
    dir.join(format!("{}-{id}", safe_host(host)))
}

/// The host in the name of a boot's folder.
pub fn host_of(folder_name: &str) -> Option<&str> {
    let (host, id) = folder_name.rsplit_once('-')?;
    let is_id = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && !host.is_empty()).then_some(host)
}

/// The boot folders of all hosts in `dir`, sorted.
pub fn boot_folders(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    disk.list(dir, &mut |name, kind| {
        if kind == NameKind::Directory && host_of(name).is_some() {
            folders.push(dir.join(name));
        }
    })
    .tried("list", dir)?;
    folders.sort();
    Ok(folders)
}

/// The boot folders of one host, sorted.
pub fn boot_folders_of(disk: &dyn Disk, dir: &Path, host: &str) -> Result<Vec<PathBuf>> {
    let mut folders = boot_folders(disk, dir)?;
    folders.retain(|folder| folder_host(folder) == Some(host));
    Ok(folders)
}

/// The host in the path of a boot's folder.
pub fn folder_host(folder: &Path) -> Option<&str> {
    host_of(folder.file_name()?.to_str()?)
}

/// The blocks in `folder`, oldest first.
pub fn blocks(disk: &dyn Disk, folder: &Path) -> Result<Arc<[BlockName]>> {
    static KNOWN: KnownFolders<BlockName> = KnownFolders::new();
    KNOWN.names(disk.folder_stamp(folder), || {
        let mut names = Vec::new();
        disk.list(folder, &mut |name, kind| {
            if kind == NameKind::File {
                names.extend(BlockName::parse(name));
            }
        })
        .tried("list", folder)?;
        names.sort_unstable();
        Ok(names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_names() {
        let name = BlockName {
            first_seq: 61,
            wall_min_s: 5,
            wall_max_s: 900,
        };
        assert_eq!(name.format(), "000000000061-5-900.blk");
        assert_eq!(BlockName::parse(&name.format()), Some(name));
        for bad in [
            "",
            ".blk",
            "1-2.blk",
            "1-2-3-4.blk",
            "1-+2-3.blk",
            "1-2-3.blk.tmp",
            "99999999999999999999-1-1.blk",
            "18446744073709551615-1-1.blk",
        ] {
            assert_eq!(BlockName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn hosts() {
        for (host, safe) in [
            ("web-1.example", "web-1.example"),
            ("../../etc", "_.._etc"),
            ("", "localhost"),
            ("..", "localhost"),
            ("a\u{1b}[1m/\0", "a__1m__"),
        ] {
            assert_eq!(safe_host(host), safe);
        }
        let folder = boot_folder(Path::new("/d"), "web-1", "A0b1-c2D3-ffff");
        assert_eq!(folder, Path::new("/d/web-1-a0b1c2d3"));
        assert_eq!(folder_host(&folder), Some("web-1"));
        assert_eq!(host_of("web-1"), None);
    }
}
