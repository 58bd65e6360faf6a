//! Files of runtimes. Users can write some of them, so each has a limit, no link below a runtime's folder is followed, and a
//! pipe in the place of a file is not waited for.

use std::collections::HashMap;

use kymo_base::scan;
use kymo_sys::kernel_file::{Folder, Root};

use super::group_path::Owner;

/// Longest file of one container.
pub(super) const CONTAINER_FILE_MAX: usize = 1 << 20;
/// Longest file about all containers of a runtime.
pub(super) const LIST_FILE_MAX: usize = 8 << 20;
/// Longest list of users.
const USERS_FILE_MAX: usize = 4 << 20;
/// Most names that are read of a folder.
pub(super) const NAMES_MAX: usize = 65_536;

/// Users of the machine, by uid: name and home folder.
#[derive(Default)]
pub(super) struct Users(Option<HashMap<u32, (String, String)>>);

impl Users {
    /// The name of a user.
    pub(super) fn name(&mut self, root: &Root, uid: u32) -> Option<&str> {
        let (name, _) = self.known(root).get(&uid)?;
        Some(name)
    }

    /// The home folder of a user, as a path below the root.
    fn home(&mut self, root: &Root, uid: u32) -> Option<&str> {
        let (_, home) = self.known(root).get(&uid)?;
        Some(home.trim_start_matches('/')).filter(|home| !home.is_empty())
    }

    fn known(&mut self, root: &Root) -> &HashMap<u32, (String, String)> {
        self.0.get_or_insert_with(|| {
            let mut text = Vec::new();
            // A machine whose users are not in the file has containers all the same.
            let read = root
                .file("etc/passwd")
                .and_then(|file| file.read_on(&mut text, USERS_FILE_MAX));
            match read {
                Ok(()) => scan::lines(&text).filter_map(user).collect(),
                Err(_) => HashMap::new(),
            }
        })
    }
}

/// Reads a line such as `alice:x:1000:1000::/home/alice:/bin/sh`.
fn user(line: &[u8]) -> Option<(u32, (String, String))> {
    let line = std::str::from_utf8(line).ok()?;
    let mut parts = line.split(':');
    let name = parts.next()?;
    let uid = parts.nth(1)?.parse().ok()?;
    let home = parts.nth(2)?;
    Some((uid, (name.into(), home.into())))
}

/// Opens the folder of a runtime: `system` below the root, or `user` below the home of the owner. An administrator may
/// have replaced a folder of the system by a link; a link of a user is not followed.
pub(super) fn folder(
    root: &Root,
    users: &mut Users,
    owner: Owner,
    (system, user): (&str, &str),
) -> Option<Folder> {
    match owner {
        Owner::System => root.folder(system).ok(),
        Owner::User(uid) => {
            let home = root.folder(users.home(root, uid)?).ok()?;
            home.below(user.as_bytes()).ok()
        }
    }
}

/// Reads `path/name` below a folder; `None` if the file is missing, unreadable or longer than `max`.
pub(super) fn read(folder: &Folder, path: &str, name: &str, max: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = folder
        .below(path.as_bytes())
        .and_then(|folder| folder.file(name));
    file.ok()?.read_on(&mut text, max).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MadeRoot;

    #[test]
    fn a_file_is_read_within_its_limit_and_behind_no_link() {
        let made = MadeRoot::new();
        made.write(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nalice:x:1000:7::/home/alice:/bin/sh\nodd:x:y\n",
        );
        made.write("home/alice/store/a/file", "12345");
        made.write("secret/file", "secret");
        made.link("home/alice/store/link", "../../../secret");
        made.link("home/alice/store/a/linked", "../../../../secret/file");
        let mut users = Users::default();
        let found = folder(&made.root, &mut users, Owner::User(1000), ("", "store"));
        let store = found.expect("the folder");
        assert_eq!(read(&store, "a", "file", 5).as_deref(), Some(&b"12345"[..]));
        for (path, name, max) in [
            ("a", "file", 4),
            ("a", "missing", 9),
            ("a", "linked", 9),
            ("link", "file", 9),
            ("..", "x", 9),
            ("a", "../a/file", 9),
            ("", "a", 9),
        ] {
            assert_eq!(read(&store, path, name, max), None, "{path} {name} {max}");
        }
        for uid in [0, 7, 4_000_000_000] {
            let found = folder(&made.root, &mut users, Owner::User(uid), ("", "store"));
            assert!(found.is_none(), "{uid}");
        }
        assert_eq!(users.name(&made.root, 1000), Some("alice"));
    }
}
