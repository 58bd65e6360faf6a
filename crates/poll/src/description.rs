//! Descriptions of targets for the page: one file for each configuration, written when it is loaded (docs/formats/targets.md).
//! The file contains no secrets.

mod of_config;
pub mod plain_text;

pub use of_config::described;

use std::io;
use std::path::Path;

use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use kymo_wire::targets::{
    DescribedTarget, REASONS_SUFFIX, Reason, ReasonsHead, SUFFIX, TargetsHead,
};

/// Bytes of one write.
const PIECE: usize = 256 << 10;

/// Writes the file of a configuration into a folder. Afterwards the folder has all of it, or still the old file.
pub fn write(
    disk: &dyn Disk,
    folder: &Path,
    stem: &str,
    head: &TargetsHead,
    targets: &mut dyn Iterator<Item = DescribedTarget>,
) -> io::Result<()> {
    let lines = targets.map(|target| target.line());
    let mut all = std::iter::once(head.line()).chain(lines);
    replace(disk, folder, &format!("{stem}{SUFFIX}"), &mut all)
}

/// Writes the file with the reasons why targets have no value, likewise.
pub fn write_reasons(
    disk: &dyn Disk,
    folder: &Path,
    stem: &str,
    reasons: &[Reason],
) -> io::Result<()> {
    let lines = reasons.iter().map(Reason::lines);
    let mut all = std::iter::once(ReasonsHead::line()).chain(lines);
    replace(disk, folder, &format!("{stem}{REASONS_SUFFIX}"), &mut all)
}

fn replace(
    disk: &dyn Disk,
    folder: &Path,
    name: &str,
    lines: &mut dyn Iterator<Item = String>,
) -> io::Result<()> {
    disk.create_dir_all(folder)?;
    let beside = folder.join(format!("{name}.tmp"));
    let written = write_beside(disk, &beside, lines);
    let renamed = written.and_then(|()| {
        disk.rename(&beside, &folder.join(name))?;
        disk.sync_dir(folder)
    });
    if renamed.is_err() {
        // The caller needs the error of the write, not of this clean-up.
        let _ = disk.unlink(&beside);
    }
    renamed
}

fn write_beside(
    disk: &dyn Disk,
    path: &Path,
    lines: &mut dyn Iterator<Item = String>,
) -> io::Result<()> {
    // A poller that was killed may have left this file.
    let _ = disk.unlink(path);
    let file = disk.open(path, OpenMode::CreateNew)?;
    let (mut piece, mut at) = (String::new(), 0);
    for line in lines {
        piece.push_str(&line);
        if piece.len() >= PIECE {
            at = put(&*file, &mut piece, at)?;
        }
    }
    put(&*file, &mut piece, at)?;
    file.sync_data()
}

fn put(file: &dyn DiskFile, piece: &mut String, at: u64) -> io::Result<u64> {
    file.write_at(piece.as_bytes(), at)?;
    let end = at + piece.len() as u64;
    piece.clear();
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_disk::{Faults, SimDisk};

    fn target(name: &str) -> DescribedTarget {
        DescribedTarget {
            name: name.into(),
            series: format!("mrtg/a/{name}.rrd"),
            ..DescribedTarget::default()
        }
    }

    fn read(disk: &SimDisk, name: &str) -> Option<String> {
        let bytes = disk.bytes(&Path::new("poll").join(name))?;
        String::from_utf8(bytes).ok()
    }

    fn written(disk: &SimDisk, names: &[&str]) -> io::Result<()> {
        let head = TargetsHead::new("a.cfg".into(), 300, names.len() as u32);
        let mut targets = names.iter().map(|name| target(name));
        write(disk, Path::new("poll"), "a", &head, &mut targets)
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let disk = SimDisk::new(1);
        written(&disk, &["x", "y"]).unwrap();
        let first = read(&disk, "a.targets").unwrap();
        assert_eq!(first.lines().count(), 3, "{first}");
        assert!(first.ends_with("{\"name\":\"y\",\"series\":\"mrtg/a/y.rrd\"}\n"));
        disk.set_faults(Faults {
            broken_sync: Some(disk.counts().syncs + 1),
            ..Faults::default()
        });
        assert!(written(&disk, &["z"]).is_err());
        assert_eq!(read(&disk, "a.targets"), Some(first));
        assert_eq!(read(&disk, "a.targets.tmp"), None);
        disk.set_faults(Faults::default());
        written(&disk, &["z"]).unwrap();
        assert_eq!(read(&disk, "a.targets").unwrap().lines().count(), 2);
    }
}
