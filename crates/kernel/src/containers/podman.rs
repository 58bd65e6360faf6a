//! Containers of podman, and of CRI-O, which uses the same storage: `overlay-containers/containers.json` lists all containers
//! of a user or of the system. A pod is named by the host name of its infra container.

use std::collections::HashMap;

use kymo_sys::kernel_file::{Folder, Root};
use serde::Deserialize;

use super::files::{self, CONTAINER_FILE_MAX, LIST_FILE_MAX, Users};
use super::group_path::Owner;
use super::identity::GroupIdentity;

/// Folders of the storage: of the system, and below the home of a user.
const STORAGE: (&str, &str) = (
    "var/lib/containers/storage",
    ".local/share/containers/storage",
);
/// Folders of containers, one for each driver of the storage.
const DRIVERS: [&str; 4] = [
    "overlay-containers",
    "vfs-containers",
    "btrfs-containers",
    "zfs-containers",
];
/// Lists of containers; the second has those that do not outlive a boot.
const LISTS: [&str; 2] = ["containers.json", "volatile-containers.json"];
/// Digits of a pod's id in the name of its infra container.
const SHORT_ID: usize = 12;

/// Lists of containers that were read in this batch, by the owner's uid; `None` for the system.
#[derive(Default)]
pub(super) struct ContainerLists(HashMap<Option<u32>, HashMap<String, Listed>>);

/// A container of a list.
#[derive(Clone, Default)]
struct Listed {
    name: String,
    image: String,
    pod: String,
    namespace: String,
    /// Folder of the driver that has the container.
    driver: &'static str,
}

/// An entry of `containers.json`.
#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
    #[serde(default)]
    metadata: Option<String>,
}

/// The JSON text in `metadata`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Metadata {
    name: Option<String>,
    image_name: Option<String>,
    /// Name of the container in its pod, of CRI-O.
    metadata_name: Option<String>,
    pod_name: Option<String>,
    namespace: Option<String>,
}

/// The part of the OCI configuration of a container that is in use.
#[derive(Deserialize)]
struct InfraConfiguration {
    hostname: String,
}

type Known<'a> = (&'a mut ContainerLists, &'a mut Users);

/// Finds a container by its id, and the name of the pod with the id `pod`.
pub(super) fn find(
    root: &Root,
    (lists, users): Known,
    (owner, id): (Owner, &str),
    pod: Option<&str>,
) -> Option<GroupIdentity> {
    let found = lists.of(root, users, owner).get(id)?.clone();
    let pod = match pod {
        Some(pod) => pod_name(root, (lists, users), owner, pod),
        None => found.pod,
    };
    Some(GroupIdentity {
        runtime: "podman",
        name: found.name,
        image: found.image,
        pod,
        namespace: found.namespace,
    })
}

/// Finds a pod by its id.
pub(super) fn find_pod(root: &Root, known: Known, owner: Owner, id: &str) -> Option<GroupIdentity> {
    Some(GroupIdentity {
        runtime: "podman",
        pod: pod_name(root, known, owner, id),
        ..GroupIdentity::default()
    })
}

/// The name of a pod, or the begin of its id if the infra container is unknown.
fn pod_name(root: &Root, (lists, users): Known, owner: Owner, id: &str) -> String {
    let short = id.get(..SHORT_ID).unwrap_or(id);
    let infra = format!("{short}-infra");
    let mut containers = lists.of(root, users, owner).iter();
    let infra = containers.find(|(_, listed)| listed.name == infra);
    let named = infra.and_then(|(id, listed)| {
        let storage = files::folder(root, users, owner, STORAGE)?;
        let path = format!("{}/{id}/userdata", listed.driver);
        let text = files::read(&storage, &path, "config.json", CONTAINER_FILE_MAX)?;
        let configuration: InfraConfiguration = serde_json::from_slice(&text).ok()?;
        Some(configuration.hostname).filter(|name| !name.is_empty())
    });
    named.unwrap_or_else(|| short.into())
}

impl ContainerLists {
    fn of(&mut self, root: &Root, users: &mut Users, owner: Owner) -> &HashMap<String, Listed> {
        let uid = match owner {
            Owner::System => None,
            Owner::User(uid) => Some(uid),
        };
        self.0.entry(uid).or_insert_with(|| {
            let storage = files::folder(root, users, owner, STORAGE);
            storage
                .map(|storage| read_lists(&storage))
                .unwrap_or_default()
        })
    }
}

fn read_lists(storage: &Folder) -> HashMap<String, Listed> {
    let mut found = HashMap::new();
    for driver in DRIVERS {
        for name in LISTS {
            let text = files::read(storage, driver, name, LIST_FILE_MAX);
            let listed = text.and_then(|text| parse(&text)).unwrap_or_default();
            let listed = listed.into_iter();
            found.extend(listed.map(|(id, listed)| (id, Listed { driver, ..listed })));
        }
    }
    found
}

/// Reads the text of `containers.json`.
fn parse(text: &[u8]) -> Option<Vec<(String, Listed)>> {
    let entries: Vec<Entry> = serde_json::from_slice(text).ok()?;
    Some(entries.into_iter().map(listed).collect())
}

fn listed(entry: Entry) -> (String, Listed) {
    let text = entry.metadata.unwrap_or_default();
    let metadata: Metadata = serde_json::from_str(&text).unwrap_or_default();
    let first = entry.names.unwrap_or_default().into_iter().next();
    let name = metadata.metadata_name.or(first).or(metadata.name);
    let listed = Listed {
        name: name.unwrap_or_default(),
        image: metadata.image_name.unwrap_or_default(),
        pod: metadata.pod_name.unwrap_or_default(),
        namespace: metadata.namespace.unwrap_or_default(),
        driver: "",
    };
    (entry.id, listed)
}

/// Number of containers in a text of `containers.json`, for the fuzzer.
#[cfg(feature = "testing")]
pub(super) fn count(text: &[u8]) -> usize {
    parse(text).map_or(0, |listed| listed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_podman() {
        for (text, expect) in [
            (
                r#"[{"id":"a","names":["web"],"image":"5","metadata":"{\"image-name\":\"docker.io/library/nginx:1.25\",\"name\":\"web\"}"}]"#,
                Some(vec!["web docker.io/library/nginx:1.25"]),
            ),
            (
                r#"[{"id":"a","names":["k8s_c_p_n_1"],"metadata":"{\"image-name\":\"i\",\"metadata-name\":\"c\",\"pod-name\":\"p\"}"}]"#,
                Some(vec!["c i"]),
            ),
            (
                r#"[{"id":"a","names":["x"],"metadata":"no JSON"}]"#,
                Some(vec!["x "]),
            ),
            (
                r#"[{"id":"a","names":null},{"id":"b"}]"#,
                Some(vec![" ", " "]),
            ),
            ("[]", Some(vec![])),
            (r#"[{"names":["x"]}]"#, None),
            ("{}", None),
            ("", None),
        ] {
            let found = parse(text.as_bytes()).map(|all| {
                let texts = all
                    .into_iter()
                    .map(|(_, one)| format!("{} {}", one.name, one.image));
                texts.collect::<Vec<_>>()
            });
            let expect = expect.map(|all| all.into_iter().map(String::from).collect::<Vec<_>>());
            assert_eq!(found, expect, "{text}");
        }
    }
}
