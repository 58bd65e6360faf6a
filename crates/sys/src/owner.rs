//! Owners of files, and whether files are root's alone: then whoever could have written a command into them is root already.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As the kernel's own limit.
const LINKS_MAX: usize = 40;

/// The user who owns a file.
pub fn owner_of(path: &Path) -> io::Result<u32> {
    std::fs::metadata(path).map(|found| found.uid())
}

/// Checks that each of the files, each folder that leads to it and each link on the way belong to root, and that only root
/// may write them. `Err`: the first one that fails, in words.
pub fn only_roots(files: &[PathBuf]) -> Result<(), String> {
    files.iter().try_for_each(|file| only_roots_file(file, 0))
}

/// `owner` is root's number, but for tests.
fn only_roots_file(file: &Path, owner: u32) -> Result<(), String> {
    let cannot = |path: &Path, error: io::Error| format!("cannot see {}: {error}", path.display());
    let mut rest = std::path::absolute(file).map_err(|error| cannot(file, error))?;
    let mut links = 0;
    'way: loop {
        let mut so_far = PathBuf::new();
        let mut parts = rest.components();
        while let Some(part) = parts.next() {
            match part {
                Component::ParentDir => {
                    so_far.pop();
                    continue;
                }
                _ => so_far.push(part),
            }
            let found =
                std::fs::symlink_metadata(&so_far).map_err(|error| cannot(&so_far, error))?;
            judge(&so_far, &found, owner)?;
            if found.is_symlink() {
                links += 1;
                if links > LINKS_MAX {
                    return Err(format!("{}: too many links", file.display()));
                }
                let target = std::fs::read_link(&so_far).map_err(|error| cannot(&so_far, error))?;
                so_far.pop();
                rest = so_far.join(target).join(parts.as_path());
                continue 'way;
            }
        }
        return Ok(());
    }
}

fn judge(path: &Path, found: &Metadata, owner: u32) -> Result<(), String> {
    if found.uid() != owner {
        return Err(format!("{} belongs to another user", path.display()));
    }
    match !found.is_symlink() && found.mode() & 0o022 != 0 {
        true => Err(format!("others may write {}", path.display())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn every_part_of_the_way_counts() {
        // Below a folder whose way is sure: tests may run where /tmp is everybody's.
        let top = Path::new("/run").join(format!("kymo-owner-{}", std::process::id()));
        if fs::create_dir(&top).is_err() {
            crate::skipped::skipped("not root");
            return;
        }
        let (a, b) = (top.join("a"), top.join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        fs::write(a.join("file"), "").unwrap();
        symlink("../a/file", b.join("link")).unwrap();
        symlink(&b, top.join("folder")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        let refusal = |path: &str| only_roots_file(&top.join(path), 0).err();
        for path in [&a, &b, &top] {
            mode(path, 0o755).unwrap();
        }
        mode(&a.join("file"), 0o644).unwrap();
        for path in ["a/file", "b/link", "folder/link", "a/../b/link"] {
            assert_eq!(refusal(path), None, "{path}");
        }
        assert!(refusal("loop").unwrap().contains("too many links"));
        assert!(refusal("none").unwrap().starts_with("cannot see"));
        for (part, bits) in [
            ("a/file", 0o664),
            ("a/file", 0o646),
            ("a", 0o775),
            ("b", 0o777),
        ] {
            let before = fs::metadata(top.join(part)).unwrap().permissions();
            mode(&top.join(part), bits).unwrap();
            let expected = format!("others may write {}", top.join(part).display());
            assert_eq!(refusal("folder/link"), Some(expected));
            fs::set_permissions(top.join(part), before).unwrap();
        }
        std::os::unix::fs::lchown(top.join("folder"), Some(1), None).unwrap();
        assert!(
            refusal("folder/link")
                .unwrap()
                .ends_with("folder belongs to another user")
        );
        assert_eq!(refusal("b/link"), None);
        fs::remove_dir_all(&top).unwrap();
    }
}
