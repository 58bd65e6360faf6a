//! Facts in the path of a control group: which runtime made the group, the id of a container or a pod, or the unit of
//! systemd. An id is digits alone, so that it is safe as a part of a path.

/// Digits of a container's id.
const ID_DIGITS: usize = 64;
/// Longest uid of a pod.
const POD_UID_MAX: usize = 64;

/// A runtime, as far as the path tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Runtime {
    Docker,
    Podman,
    Containerd,
    Nerdctl,
    Crio,
    /// The path has an id and no name of a runtime, as of Kubernetes with the driver `cgroupfs`.
    Unknown,
}

impl Runtime {
    /// Word for the runtime.
    pub(super) fn word(self) -> &'static str {
        match self {
            Runtime::Docker => "docker",
            Runtime::Podman => "podman",
            Runtime::Containerd | Runtime::Nerdctl => "containerd",
            Runtime::Crio => "cri-o",
            Runtime::Unknown => "container",
        }
    }
}

/// The user whose runtime it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// The runtime of the system.
    System,
    /// A rootless runtime of this user.
    User(u32),
}

/// A path of interest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum GroupPath {
    /// A container, and the id of the pod of podman around it.
    Container {
        runtime: Runtime,
        id: String,
        owner: Owner,
        pod: Option<String>,
    },
    /// A pod of podman.
    PodmanPod { id: String, owner: Owner },
    /// A pod of Kubernetes.
    KubernetesPod { uid: String },
    /// A unit of systemd.
    Unit { unit: String },
}

impl GroupPath {
    /// Reads the path of a group, by its last part.
    pub(super) fn of_group(path: &[u8]) -> Option<GroupPath> {
        let parts = parts_of(path)?;
        read_part(&parts, parts.len().checked_sub(1)?)
    }

    /// The innermost container on a path.
    pub(super) fn around(path: &[u8]) -> Option<GroupPath> {
        let parts = parts_of(path)?;
        let found = (0..parts.len())
            .rev()
            .filter_map(|at| read_part(&parts, at));
        let mut found = found.filter(|found| matches!(found, GroupPath::Container { .. }));
        found.next()
    }

    /// The user whose runtime it is.
    pub(super) fn owner(&self) -> Owner {
        match self {
            GroupPath::Container { owner, .. } | GroupPath::PodmanPod { owner, .. } => *owner,
            GroupPath::KubernetesPod { .. } | GroupPath::Unit { .. } => Owner::System,
        }
    }
}

/// The parts of a path; runtimes and systemd make ASCII names only.
fn parts_of(path: &[u8]) -> Option<Vec<&str>> {
    let path = std::str::from_utf8(path).ok()?;
    Some(path.split('/').filter(|part| !part.is_empty()).collect())
}

fn read_part(parts: &[&str], at: usize) -> Option<GroupPath> {
    let part = parts.get(at)?;
    let above = at.checked_sub(1).and_then(|above| parts.get(above));
    let owner = owner_of(parts.get(..at)?);
    let in_kubernetes = parts
        .iter()
        .take(at + 1)
        .any(|part| part.starts_with("kubepods"));
    if let Some((runtime, id)) = container(part, above.copied().unwrap_or_default(), in_kubernetes)
    {
        let pod = at.checked_sub(1).and_then(|above| {
            let higher = above.checked_sub(1).and_then(|at| parts.get(at));
            podman_pod(parts.get(above)?, higher.copied().unwrap_or_default())
        });
        return Some(GroupPath::Container {
            runtime,
            id,
            owner,
            pod,
        });
    }
    if let Some(id) = podman_pod(part, above.copied().unwrap_or_default()) {
        return Some(GroupPath::PodmanPod { id, owner });
    }
    if let Some(uid) = kubernetes_pod(part).filter(|_| in_kubernetes) {
        return Some(GroupPath::KubernetesPod { uid });
    }
    let kinds = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];
    let is_unit = kinds.iter().any(|kind| part.ends_with(kind));
    is_unit.then(|| GroupPath::Unit {
        unit: (*part).into(),
    })
}

/// The user of a path below `user@UID.service` or `user-UID.slice`.
fn owner_of(parts: &[&str]) -> Owner {
    let uid = |part: &&str| {
        let inner = part
            .strip_prefix("user@")
            .and_then(|rest| rest.strip_suffix(".service"))
            .or_else(|| part.strip_prefix("user-")?.strip_suffix(".slice"));
        inner?.parse().ok()
    };
    parts
        .iter()
        .find_map(uid)
        .map_or(Owner::System, Owner::User)
}

/// Runtime and id of a container's part of a path.
fn container(part: &str, above: &str, in_kubernetes: bool) -> Option<(Runtime, String)> {
    const PREFIXES: [(&str, Runtime); 5] = [
        ("docker-", Runtime::Docker),
        ("libpod-", Runtime::Podman),
        ("cri-containerd-", Runtime::Containerd),
        ("nerdctl-", Runtime::Nerdctl),
        ("crio-", Runtime::Crio),
    ];
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    for (prefix, runtime) in PREFIXES {
        if let Some(id) = bare.strip_prefix(prefix).filter(|id| is_id(id)) {
            return Some((runtime, id.into()));
        }
    }
    if let Some((_, id)) = part
        .rsplit_once(":cri-containerd:")
        .filter(|(_, id)| is_id(id))
    {
        return Some((Runtime::Containerd, id.into()));
    }
    let runtime = match above {
        _ if in_kubernetes => Runtime::Unknown,
        "docker" => Runtime::Docker,
        "libpod_parent" => return None,
        _ => Runtime::Unknown,
    };
    is_id(part).then(|| (runtime, part.into()))
}

/// Id of a podman pod: `machine-libpod_pod_ID.slice`, or `ID` below `libpod_parent`.
fn podman_pod(part: &str, above: &str) -> Option<String> {
    let in_slice = part
        .strip_suffix(".slice")
        .and_then(|part| part.rsplit_once("libpod_pod_"));
    let id = match in_slice {
        Some((_, id)) => id,
        None if above == "libpod_parent" => part,
        None => return None,
    };
    is_id(id).then(|| id.into())
}

/// Uid of a pod: `kubepods-burstable-podUID.slice`, where the uid has `_` for `-`, or `podUID`.
fn kubernetes_pod(part: &str) -> Option<String> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) => slice.rsplit_once("-pod")?.1.replace('_', "-"),
        None => part.strip_prefix("pod")?.to_string(),
    };
    let is_digit =
        |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) || byte == b'-';
    let is_uid = (8..=POD_UID_MAX).contains(&uid.len()) && uid.bytes().all(is_digit);
    is_uid.then_some(uid)
}

fn is_id(id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    id.len() == ID_DIGITS && id.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> String {
        digit.to_string().repeat(ID_DIGITS)
    }

    /// `A` stands for an id, `P` for the uid of a pod.
    fn spelled(path: &str) -> String {
        path.replace('A', &id('a')).replace("P", "0f3e_4d21_9c")
    }

    fn text_of(found: Option<GroupPath>) -> String {
        match found {
            None => "none".into(),
            Some(GroupPath::Container { runtime, owner, .. }) => format!("{runtime:?} {owner:?}"),
            Some(GroupPath::PodmanPod { owner, .. }) => format!("pod of podman {owner:?}"),
            Some(GroupPath::KubernetesPod { uid }) => format!("pod {uid}"),
            Some(GroupPath::Unit { unit }) => format!("unit {unit}"),
        }
    }

    #[test]
    fn paths_of_all_runtimes() {
        let user = "/user.slice/user-1000.slice/user@1000.service/user.slice";
        for (path, expect) in [
            ("/system.slice/docker-A.scope", "Docker System"),
            ("/docker/A", "Docker System"),
            ("/custom/A", "Unknown System"),
            (&format!("{user}/docker-A.scope"), "Docker User(1000)"),
            ("/machine.slice/libpod-A.scope", "Podman System"),
            ("/libpod_parent/libpod-A", "Podman System"),
            (&format!("{user}/libpod-A.scope"), "Podman User(1000)"),
            (
                "/machine.slice/machine-libpod_pod_A.slice",
                "pod of podman System",
            ),
            ("/libpod_parent/A", "pod of podman System"),
            (
                &format!("{user}/user-libpod_pod_A.slice"),
                "pod of podman User(1000)",
            ),
            (
                "/machine.slice/libpod-conmon-A.scope",
                "unit libpod-conmon-A.scope",
            ),
            (
                "/kubepods.slice/kubepods-podP.slice/cri-containerd-A.scope",
                "Containerd System",
            ),
            (
                "/kubepods.slice/kubepods-podP.slice/crio-A.scope",
                "Crio System",
            ),
            ("/kubepods/burstable/pod0f3e-4d21-9c/A", "Unknown System"),
            (
                "/system.slice/kubepods-podP.slice:cri-containerd:A",
                "Containerd System",
            ),
            (
                "/kubepods.slice/kubepods-burstable-podP.slice",
                "pod 0f3e-4d21-9c",
            ),
            ("/kubepods/burstable/pod0f3e-4d21-9c", "pod 0f3e-4d21-9c"),
            ("/system.slice/nerdctl-A.scope", "Nerdctl System"),
            ("/system.slice/nginx.service", "unit nginx.service"),
            ("/system.slice/docker-12.scope", "unit docker-12.scope"),
            ("/podcast", "none"),
            ("/", "none"),
            ("", "none"),
        ] {
            let found = text_of(GroupPath::of_group(spelled(path).as_bytes()));
            assert_eq!(found.replace(&id('a'), "A"), expect, "{path}");
        }
        assert_eq!(GroupPath::of_group(b"/\xff.service"), None);
    }

    #[test]
    fn a_group_in_a_container_has_the_container_around_it_alone() {
        let path = spelled("/docker/A/system.slice/cron.service");
        let inner = text_of(GroupPath::of_group(path.as_bytes()));
        assert_eq!(inner, "unit cron.service");
        assert_eq!(text_of(GroupPath::around(path.as_bytes())), "Docker System");
        assert_eq!(
            text_of(GroupPath::around(b"/system.slice/cron.service")),
            "none"
        );
    }
}
