//! Finds control groups: the hierarchies in the mount table (version 2, version 1 with a hierarchy for each controller, or
//! both), and the groups in them. The name of a group is its path below the mount point of its hierarchy; groups with the
//! same path in several hierarchies are one group. The search stays inside the mounts.

use std::collections::{BTreeMap, HashMap, VecDeque};

use kymo_base::limits;
use kymo_base::scan;
use kymo_sys::kernel_file::{Folder, FolderNode, Root};

use crate::mounts::unescaped;

/// Controller of a hierarchy, or all of version 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Controller {
    /// All controllers of version 2.
    Unified,
    /// `cpu` of version 1.
    Cpu,
    /// `cpuacct` of version 1.
    Cpuacct,
    /// `memory` of version 1.
    Memory,
    /// `blkio` of version 1.
    Blkio,
    /// `pids` of version 1.
    Pids,
}

/// Controllers of version 1, by their names.
const VERSION_1: [(&str, Controller); 5] = [
    ("cpu", Controller::Cpu),
    ("cpuacct", Controller::Cpuacct),
    ("memory", Controller::Memory),
    ("blkio", Controller::Blkio),
    ("pids", Controller::Pids),
];

/// A mounted hierarchy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountPoint {
    /// The mount point.
    pub point: String,
    /// Controllers of the hierarchy.
    pub controllers: Vec<Controller>,
}

/// A mount of /proc/PID/mountinfo that is a hierarchy.
struct Mounted {
    /// True: the mount shows all of the hierarchy, not a part of it.
    is_whole: bool,
    controllers: Vec<Controller>,
}

/// The hierarchies in /proc/PID/mountinfo. Each controller appears
/// once: at the mount of its whole hierarchy with the shortest path.
pub fn read_mountinfo(text: &[u8]) -> Vec<MountPoint> {
    let mut mounted: BTreeMap<String, Option<Mounted>> = BTreeMap::new();
    for line in scan::lines(text) {
        let line = String::from_utf8_lossy(line);
        if let Some((point, mount)) = read_mount(&line) {
            // The last mount on a mount point hides the others.
            mounted.insert(point, mount);
        }
    }
    let mut places: Vec<MountPoint> = Vec::new();
    let versions = VERSION_1.iter().map(|&(_, controller)| controller);
    for controller in std::iter::once(Controller::Unified).chain(versions) {
        let having = mounted.iter().filter_map(|(point, mount)| {
            let mount = mount.as_ref()?;
            let has = mount.controllers.contains(&controller);
            has.then_some((!mount.is_whole, point.len(), point))
        });
        let Some((_, _, point)) = having.min() else {
            continue;
        };
        match places.iter_mut().find(|place| place.point == *point) {
            Some(place) => place.controllers.push(controller),
            None => places.push(MountPoint {
                point: point.clone(),
                controllers: vec![controller],
            }),
        }
    }
    places
}

/// Parses a line such as `31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct`: the
/// mount point, and the mount if it is a hierarchy.
fn read_mount(line: &str) -> Option<(String, Option<Mounted>)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (top, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1)?);
    let controllers = match kind {
        "cgroup2" => vec![Controller::Unified],
        "cgroup" => {
            let known = |option| VERSION_1.iter().find(|(name, _)| *name == option);
            let known = options.split(',').filter_map(known);
            known.map(|&(_, controller)| controller).collect()
        }
        _ => Vec::new(),
    };
    let mounted = (!controllers.is_empty()).then_some(Mounted {
        is_whole: top == "/",
        controllers,
    });
    let point = unescaped(point.as_bytes());
    Some((String::from_utf8_lossy(&point).into_owned(), mounted))
}

/// The hierarchies in the mount table.
pub fn places(root: &Root) -> Vec<MountPoint> {
    let mut text = Vec::new();
    let read = root
        .read("proc/1/mountinfo", &mut text)
        .or_else(|_| root.read("proc/self/mountinfo", &mut text));
    match read {
        Ok(()) => read_mountinfo(&text),
        Err(_) => Vec::new(),
    }
}

/// An open hierarchy.
pub struct Hierarchy {
    /// Controllers of the hierarchy.
    pub controllers: Vec<Controller>,
    /// The folder at the mount point.
    pub top: Folder,
}

impl Hierarchy {
    /// Opens a hierarchy; `None` if that fails.
    pub fn open(root: &Root, place: &MountPoint) -> Option<Hierarchy> {
        let path = match place.point.trim_start_matches('/') {
            "" => ".",
            path => path,
        };
        Some(Hierarchy {
            controllers: place.controllers.clone(),
            top: root.folder(path).ok()?,
        })
    }
}

/// A group as found by a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Path of the group: `/` for the root.
    pub path: Vec<u8>,
    /// Inode number in the first hierarchy that has the group.
    pub inode: u64,
    /// Hierarchies that have the group: bit n for the n-th.
    pub hierarchies: u32,
    /// Number of groups it stands for: itself and all groups below.
    pub groups: u64,
    /// Index of the parent group; the root is its own parent.
    parent: usize,
}

/// All groups found by a walk.
#[derive(Debug, Default)]
pub struct Found {
    /// The groups, each after its parent.
    pub groups: Vec<Seen>,
    /// True: there were more groups than the walk may find.
    pub is_cut: bool,
}

/// Finds the groups of all hierarchies, those nearest to the root first.
pub fn walk(hierarchies: &[Hierarchy], max: usize) -> Found {
    let mut found = Found::default();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    for (at, hierarchy) in hierarchies.iter().enumerate().take(32) {
        let bit = 1u32 << at;
        let Ok(node) = hierarchy.top.node() else {
            continue;
        };
        let root = found.note(&mut known, b"/".to_vec(), node, (0, bit), max);
        let mut queue: VecDeque<usize> = root.into_iter().collect();
        while let Some(parent) = queue.pop_front() {
            let path = found.groups[parent].path.clone();
            // A group that ends meanwhile has no groups below.
            let Ok(folder) = hierarchy.top.below(&path) else {
                continue;
            };
            let _ = folder.folders(|name, node| {
                let mut below = path.strip_suffix(b"/").unwrap_or(&path).to_vec();
                below.push(b'/');
                below.extend_from_slice(name);
                let noted = found.note(&mut known, below, node, (parent, bit), max);
                queue.extend(noted.filter(|_| node.may_have_folders));
            });
        }
    }
    for at in (1..found.groups.len()).rev() {
        let (parent, groups) = (found.groups[at].parent, found.groups[at].groups);
        found.groups[parent].groups += groups;
    }
    found
}

impl Found {
    /// Adds a group; returns its index, or `None` if the limit is reached.
    fn note(
        &mut self,
        known: &mut HashMap<Vec<u8>, usize>,
        path: Vec<u8>,
        node: FolderNode,
        (parent, bit): (usize, u32),
        max: usize,
    ) -> Option<usize> {
        if let Some(&at) = known.get(&path) {
            self.groups[at].hierarchies |= bit;
            return Some(at);
        }
        if self.groups.len() >= max || path.len() > limits::NAME_MAX {
            self.is_cut = true;
            return None;
        }
        let at = self.groups.len();
        known.insert(path.clone(), at);
        self.groups.push(Seen {
            path,
            inode: node.inode,
            hierarchies: bit,
            groups: 1,
            parent,
        });
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Controller::*;

    use crate::tests::MadeRoot;

    /// Lines of a mount table, and the resulting hierarchies.
    #[test]
    fn hierarchies_of_the_mount_table() {
        let two =
            "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let cpu = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let memory = "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let named =
            "34 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
        let unified = "35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let part = "36 31 0:30 /docker/a /c rw - cgroup cgroup rw,memory\n";
        let again = "36 31 0:30 / /var/lib/box/memory rw - cgroup cgroup rw,memory\n";
        let hidden = "37 31 0:99 / /sys/fs/cgroup/memory rw - tmpfs tmpfs rw\n";
        let blank = "38 31 0:28 / /a\\040b rw - cgroup2 cgroup2 rw\n";
        let place = |point: &str, controllers: &[Controller]| MountPoint {
            point: point.into(),
            controllers: controllers.into(),
        };
        let cpu_place = place("/sys/fs/cgroup/cpu,cpuacct", &[Cpu, Cpuacct]);
        for (mounts, expect) in [
            (vec![two], vec![place("/sys/fs/cgroup", &[Unified])]),
            (
                vec![cpu, memory, named],
                vec![cpu_place.clone(), place("/sys/fs/cgroup/memory", &[Memory])],
            ),
            (
                vec![cpu, named, unified],
                vec![place("/sys/fs/cgroup/unified", &[Unified]), cpu_place],
            ),
            (
                vec![part, memory],
                vec![place("/sys/fs/cgroup/memory", &[Memory])],
            ),
            (
                vec![again, memory],
                vec![place("/var/lib/box/memory", &[Memory])],
            ),
            (vec![part], vec![place("/c", &[Memory])]),
            (vec![memory, hidden], vec![]),
            (vec![blank], vec![place("/a b", &[Unified])]),
            (vec!["", "x", " - ", "1 2 3 4 5 - cgroup2"], vec![]),
        ] {
            assert_eq!(
                read_mountinfo(mounts.concat().as_bytes()),
                expect,
                "{mounts:?}"
            );
        }
    }

    #[test]
    fn groups_of_several_hierarchies_are_one_tree_within_the_limit() {
        let made = MadeRoot::new();
        for file in [
            "a/x/cpu.stat",
            "a/x/y/f",
            "a/z/f",
            "b/x/f",
            "b/w/v/f",
            "outside/o/f",
        ] {
            made.write(file, "");
        }
        made.link("a/link", "../outside");
        let open = |point: &str| {
            let place = MountPoint {
                point: point.into(),
                controllers: vec![Unified],
            };
            Hierarchy::open(&made.root, &place).expect("a hierarchy")
        };
        let hierarchies = [open("/a"), open("/b")];
        let Found { mut groups, is_cut } = walk(&hierarchies, 100);
        groups.sort_by(|a, b| a.path.cmp(&b.path));
        let found: Vec<String> = groups
            .iter()
            .map(|group| {
                let path = String::from_utf8_lossy(&group.path);
                format!("{path} {} {}", group.hierarchies, group.groups)
            })
            .collect();
        assert_eq!(
            found,
            [
                "/ 3 6", "/w 2 2", "/w/v 2 1", "/x 3 2", "/x/y 1 1", "/z 1 1"
            ]
        );
        assert!(!is_cut);
        let few = walk(&hierarchies, 3);
        assert!(few.is_cut);
        let deepest = few.groups.iter().map(|group| group.path.len()).max();
        assert_eq!(
            (few.groups.len(), deepest),
            (3, Some(2)),
            "those nearest to the root"
        );
        for path in ["../outside", "link", "link/o", "x/../../outside"] {
            assert!(hierarchies[0].top.below(path.as_bytes()).is_err(), "{path}");
        }
    }
}
