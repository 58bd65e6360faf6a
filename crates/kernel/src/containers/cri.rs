//! Containers and pods of Kubernetes, and those of containerd: the OCI configuration of a running container has annotations
//! of the runtime. Only root can read it; the names of log files, which kubelet makes for any runtime, are open to all.

use std::collections::HashMap;

use kymo_sys::kernel_file::{Folder, Root};
use serde::Deserialize;

use super::files::{self, CONTAINER_FILE_MAX, NAMES_MAX};
use super::identity::GroupIdentity;

/// Folders of running containers of containerd; below each is one for each of its namespaces.
const CONTAINERD: [&str; 2] = [
    "run/containerd/io.containerd.runtime.v2.task",
    "run/k3s/containerd/io.containerd.runtime.v2.task",
];
/// Namespaces of containerd: of Kubernetes, of nerdctl and ctr, of docker.
const NAMESPACES: [&str; 2] = ["k8s.io", "default"];
/// Folder of running containers of CRI-O.
const CRIO: &str = "run/containers/storage/overlay-containers";
/// Links to the logs of containers: `POD_NAMESPACE_CONTAINER-ID.log`.
const CONTAINER_LOGS: &str = "var/log/containers";
/// Folders of the logs of pods: `NAMESPACE_POD_UID`.
const POD_LOGS: &str = "var/log/pods";
/// Name of the container that holds a pod together, as cAdvisor has it.
const SANDBOX: &str = "POD";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Configuration {
    annotations: Option<Annotations>,
}

/// Annotations of containerd, CRI-O and nerdctl.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "io.kubernetes.cri.container-name")]
    container: Option<String>,
    #[serde(rename = "io.kubernetes.cri.container-type")]
    kind: Option<String>,
    #[serde(rename = "io.kubernetes.cri.image-name")]
    image: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-name")]
    pod: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-namespace")]
    namespace: Option<String>,
    #[serde(rename = "io.kubernetes.container.name")]
    crio_container: Option<String>,
    #[serde(rename = "io.kubernetes.cri-o.ContainerType")]
    crio_kind: Option<String>,
    #[serde(rename = "io.kubernetes.cri-o.ImageName")]
    crio_image: Option<String>,
    #[serde(rename = "io.kubernetes.pod.name")]
    crio_pod: Option<String>,
    #[serde(rename = "io.kubernetes.pod.namespace")]
    crio_namespace: Option<String>,
    #[serde(rename = "nerdctl/name")]
    nerdctl_name: Option<String>,
}

/// Finds a container of containerd by its id.
pub(super) fn of_containerd(root: &Root, logs: &mut PodLogs, id: &str) -> Option<GroupIdentity> {
    let found = CONTAINERD.iter().find_map(|place| {
        let folder = root.folder(place).ok()?;
        NAMESPACES
            .iter()
            .find_map(|namespace| configured(&folder, &format!("{namespace}/{id}")))
    });
    found.or_else(|| logs.container(root, id))
}

/// Finds a container of CRI-O by its id.
pub(super) fn of_crio(root: &Root, logs: &mut PodLogs, id: &str) -> Option<GroupIdentity> {
    let folder = root.folder(CRIO).ok();
    let found = folder.and_then(|folder| configured(&folder, &format!("{id}/userdata")));
    found.or_else(|| logs.container(root, id))
}

/// The container whose OCI configuration is in this folder.
fn configured(folder: &Folder, path: &str) -> Option<GroupIdentity> {
    parse(&files::read(
        folder,
        path,
        "config.json",
        CONTAINER_FILE_MAX,
    )?)
}

/// Reads the text of an OCI configuration; `None` if no annotation names the container.
pub(super) fn parse(text: &[u8]) -> Option<GroupIdentity> {
    let configuration: Configuration = serde_json::from_slice(text).ok()?;
    let found = configuration.annotations?;
    let kind = found.kind.or(found.crio_kind);
    let name = match kind.as_deref() {
        Some("sandbox") => Some(SANDBOX.to_string()),
        _ => found
            .container
            .or(found.crio_container)
            .or(found.nerdctl_name),
    };
    Some(GroupIdentity {
        runtime: "containerd",
        name: name?,
        image: found.image.or(found.crio_image).unwrap_or_default(),
        pod: found.pod.or(found.crio_pod).unwrap_or_default(),
        namespace: found.namespace.or(found.crio_namespace).unwrap_or_default(),
    })
}

/// Names of the logs of pods and containers that were listed in this batch.
#[derive(Default)]
pub(super) struct PodLogs {
    /// Containers by id.
    containers: Option<HashMap<String, GroupIdentity>>,
    /// Pods by uid.
    pods: Option<HashMap<String, GroupIdentity>>,
}

impl PodLogs {
    fn container(&mut self, root: &Root, id: &str) -> Option<GroupIdentity> {
        let listed = || names(root, CONTAINER_LOGS, of_container_log);
        self.containers.get_or_insert_with(listed).get(id).cloned()
    }

    /// The pod with this uid.
    pub(super) fn pod(&mut self, root: &Root, uid: &str) -> Option<GroupIdentity> {
        let listed = || names(root, POD_LOGS, of_pod_log);
        self.pods.get_or_insert_with(listed).get(uid).cloned()
    }
}

/// A name of a log, and the identity that it tells.
type Named = (String, GroupIdentity);

fn names(
    root: &Root,
    folder: &str,
    read: fn(&str) -> Option<Named>,
) -> HashMap<String, GroupIdentity> {
    let mut found = HashMap::new();
    if let Ok(folder) = root.folder(folder) {
        // After an error the map has the names that came before it.
        let _ = folder.list(|name| {
            let named = name.to_str().ok().and_then(read);
            found.extend(named.filter(|_| found.len() < NAMES_MAX));
        });
    }
    found
}

/// Reads `POD_NAMESPACE_CONTAINER-ID.log`.
fn of_container_log(name: &str) -> Option<Named> {
    let (rest, id) = name.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = rest.splitn(3, '_');
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    let identity = GroupIdentity {
        runtime: "kubernetes",
        name: container.into(),
        pod: pod.into(),
        namespace: namespace.into(),
        ..GroupIdentity::default()
    };
    Some((id.into(), identity))
}

/// Reads `NAMESPACE_POD_UID`.
fn of_pod_log(name: &str) -> Option<Named> {
    let mut parts = name.splitn(3, '_');
    let (namespace, pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let identity = GroupIdentity {
        runtime: "kubernetes",
        pod: pod.into(),
        namespace: namespace.into(),
        ..GroupIdentity::default()
    };
    Some((uid.into(), identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(identity: GroupIdentity) -> [String; 4] {
        [
            identity.name,
            identity.image,
            identity.pod,
            identity.namespace,
        ]
    }

    #[test]
    fn annotations_of_each_runtime() {
        for (text, expect) in [
            (
                r#"{"annotations":{"io.kubernetes.cri.container-type":"container","io.kubernetes.cri.container-name":"c","io.kubernetes.cri.image-name":"i","io.kubernetes.cri.sandbox-name":"p","io.kubernetes.cri.sandbox-namespace":"n"}}"#,
                Some(["c", "i", "p", "n"]),
            ),
            (
                r#"{"annotations":{"io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-name":"p","io.kubernetes.cri.sandbox-namespace":"n"}}"#,
                Some(["POD", "", "p", "n"]),
            ),
            (
                r#"{"annotations":{"io.kubernetes.container.name":"c","io.kubernetes.cri-o.ImageName":"i","io.kubernetes.pod.name":"p","io.kubernetes.pod.namespace":"n"}}"#,
                Some(["c", "i", "p", "n"]),
            ),
            (
                r#"{"annotations":{"nerdctl/name":"web"}}"#,
                Some(["web", "", "", ""]),
            ),
            (r#"{"annotations":{"a":"b"}}"#, None),
            (r#"{"annotations":{"nerdctl/name":7}}"#, None),
            ("{}", None),
            ("", None),
        ] {
            let expect = expect.map(|facts| facts.map(String::from));
            assert_eq!(parse(text.as_bytes()).map(facts), expect, "{text}");
        }
    }

    #[test]
    fn names_of_logs() {
        for (name, expect) in [
            (
                "web-7d_shop_nginx-abc.log",
                Some(["nginx", "", "web-7d", "shop"]),
            ),
            (
                "web_shop_side-car-abc.log",
                Some(["side-car", "", "web", "shop"]),
            ),
            ("web_shop.log", None),
            ("web_shop_nginx-abc", None),
            ("", None),
        ] {
            let found = of_container_log(name);
            let id = found.as_ref().map(|(id, _)| id.clone());
            let expect = expect.map(|facts| facts.map(String::from));
            assert_eq!(found.map(|(_, identity)| facts(identity)), expect, "{name}");
            assert!(id.is_none_or(|id| id == "abc"), "{name}");
        }
        let (uid, identity) = of_pod_log("shop_web-7d_0f3e-4d21").expect("a pod");
        assert_eq!(
            (uid.as_str(), identity.pod.as_str()),
            ("0f3e-4d21", "web-7d")
        );
        assert_eq!(of_pod_log("shop_web"), None);
    }
}
