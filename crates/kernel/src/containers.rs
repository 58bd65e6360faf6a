//! Names of control groups: the name, image, pod and namespace that docker, podman, containerd, CRI-O or systemd keep for a
//! group. They are in files of the runtimes, some of which users can write, so each has a limit and no link in them is
//! followed. No client of a runtime runs. The thread of the slow lane calls this, since a disk may be slow.

#[cfg(feature = "containers")]
mod cri;
#[cfg(feature = "containers")]
mod docker;
#[cfg_attr(not(feature = "containers"), allow(dead_code))]
mod files;
#[cfg(all(feature = "testing", feature = "containers"))]
pub mod fuzz;
#[cfg_attr(not(feature = "containers"), allow(dead_code))]
mod group_path;
#[cfg_attr(not(feature = "containers"), allow(dead_code))]
mod identity;
#[cfg(feature = "containers")]
mod podman;
mod systemd;

use kymo_base::scan;
use kymo_sys::kernel_file::Root;

use group_path::GroupPath;
#[cfg(feature = "containers")]
use group_path::{Owner, Runtime};
pub use identity::GroupIdentity;

/// Finds the identities of control groups. Files that have many containers are read once for a batch of groups.
#[derive(Default)]
pub struct Containers {
    #[cfg(feature = "containers")]
    lists: podman::ContainerLists,
    #[cfg(feature = "containers")]
    logs: cri::PodLogs,
    users: files::Users,
}

impl Containers {
    /// The identity of the group with this path below its hierarchy.
    pub fn of_group(&mut self, root: &Root, path: &[u8]) -> GroupIdentity {
        match GroupPath::of_group(path) {
            Some(found) => self.find(root, &found),
            None => GroupIdentity::default(),
        }
    }

    /// The identity of the container around a process, by the text of /proc/PID/cgroup.
    pub fn around(&mut self, root: &Root, cgroup: &[u8]) -> GroupIdentity {
        around(cgroup).map_or_else(GroupIdentity::default, |found| self.find(root, &found))
    }

    fn find(&mut self, root: &Root, path: &GroupPath) -> GroupIdentity {
        let found = match path {
            #[cfg(feature = "containers")]
            GroupPath::Container {
                runtime, id, pod, ..
            } => {
                let owner = path.owner();
                let found = self.container(root, *runtime, (owner, id), pod.as_deref());
                found.map(|identity| identity.with_runtime(runtime.word()))
            }
            #[cfg(feature = "containers")]
            GroupPath::PodmanPod { id, .. } => {
                let owner = path.owner();
                podman::find_pod(root, (&mut self.lists, &mut self.users), owner, id)
            }
            #[cfg(feature = "containers")]
            GroupPath::KubernetesPod { uid } => self.logs.pod(root, uid),
            #[cfg(not(feature = "containers"))]
            GroupPath::Container { .. }
            | GroupPath::PodmanPod { .. }
            | GroupPath::KubernetesPod { .. } => None,
            GroupPath::Unit { unit } => systemd::identity(root, &mut self.users, unit),
        };
        found.unwrap_or_default()
    }

    #[cfg(feature = "containers")]
    fn container(
        &mut self,
        root: &Root,
        runtime: Runtime,
        (owner, id): (Owner, &str),
        pod: Option<&str>,
    ) -> Option<GroupIdentity> {
        let Containers { lists, logs, users } = self;
        match runtime {
            Runtime::Docker => docker::find(root, users, owner, id),
            Runtime::Podman => podman::find(root, (lists, users), (owner, id), pod),
            Runtime::Containerd | Runtime::Nerdctl => cri::of_containerd(root, logs, id),
            Runtime::Crio => cri::of_crio(root, logs, id)
                .or_else(|| podman::find(root, (lists, users), (Owner::System, id), None)),
            Runtime::Unknown => cri::of_containerd(root, logs, id)
                .or_else(|| cri::of_crio(root, logs, id))
                .or_else(|| docker::find(root, users, owner, id)),
        }
    }
}

/// True if a process with this text of /proc/PID/cgroup is in a container.
pub fn has_container_around(cgroup: &[u8]) -> bool {
    around(cgroup).is_some()
}

/// The container in a text of /proc/PID/cgroup, by the first hierarchy that has one.
fn around(cgroup: &[u8]) -> Option<GroupPath> {
    let paths = scan::lines(cgroup).filter_map(|line| line.splitn(3, |&b| b == b':').nth(2));
    paths.filter_map(GroupPath::around).next()
}
