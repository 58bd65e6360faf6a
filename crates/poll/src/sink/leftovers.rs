//! Removes files that a killed process has left unfinished: `NAME.` and eight hexadecimal digits, beside a log, a page or a graph.

use kymo_sys::tree::Tree;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Digits at the end of an unfinished file's name.
const DIGITS: usize = 8;

/// Removes unfinished files of these paths. Their owner is this process: no other one writes them.
pub(super) fn sweep<'a>(tree: &dyn Tree, paths: impl Iterator<Item = &'a Path> + Clone) {
    let folders: BTreeSet<&Path> = paths.clone().filter_map(Path::parent).collect();
    for folder in folders {
        let mut unfinished: Vec<Vec<u8>> = Vec::new();
        let listed = tree.list(folder, &mut |name, _| {
            if finished(name).is_some() {
                unfinished.push(name.to_vec());
            }
        });
        // A folder that is not there yet has nothing to be removed.
        if listed.is_err() || unfinished.is_empty() {
            continue;
        }
        let names = paths.clone().filter(|path| path.parent() == Some(folder));
        let names: HashSet<&[u8]> = names
            .filter_map(|path| Some(path.file_name()?.as_bytes()))
            .collect();
        for name in unfinished {
            if finished(&name).is_some_and(|finished| names.contains(finished)) {
                // A file that cannot be removed takes room, and does no harm.
                let _ = tree.unlink(&folder.join(OsStr::from_bytes(&name)));
            }
        }
    }
}

/// The name that an unfinished file was to have.
fn finished(name: &[u8]) -> Option<&[u8]> {
    let (name, digits) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    digits
        .iter()
        .all(is_digit)
        .then(|| name.strip_suffix(b"."))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::disk::Disk;
    use kymo_sys::sim_disk::SimDisk;
    use kymo_sys::tree::Reach;

    #[test]
    fn names_of_others_stay() {
        for (name, expected) in [
            ("t.log.00ff00aa", Some("t.log")),
            ("t.html.00ff00a", None),
            ("t.html.00FF00AA", None),
            ("t-00ff00aa", None),
            ("12345678", None),
            ("", None),
        ] {
            let found = finished(name.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{name}");
        }
        let disk = SimDisk::new(1);
        let folder = Path::new("/log");
        disk.create_dir_all(folder).unwrap();
        for name in ["t.log", "t.log.00ff00aa", "u.log.00ff00aa", "t.log.new"] {
            disk.set_bytes(&folder.join(name), b"x".to_vec());
        }
        let tree = disk.tree(Path::new("/"), Reach::Anywhere).unwrap();
        let paths = [folder.join("t.log"), Path::new("/none/t.log").into()];
        sweep(&*tree, paths.iter().map(AsRef::as_ref));
        let mut names = Vec::new();
        tree.list(folder, &mut |name, _| {
            names.push(String::from_utf8_lossy(name).into_owned());
        })
        .unwrap();
        names.sort();
        assert_eq!(names, ["t.log", "t.log.new", "u.log.00ff00aa"]);
    }
}
