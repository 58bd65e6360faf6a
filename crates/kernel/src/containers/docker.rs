//! Containers of docker: `containers/ID/config.v2.json` in the folder of the daemon, or of a rootless daemon.

use kymo_sys::kernel_file::Root;
use serde::Deserialize;

use super::files::{self, CONTAINER_FILE_MAX, Users};
use super::group_path::Owner;
use super::identity::GroupIdentity;

/// Folders of containers: of the system, and below the home of a user.
const FOLDERS: [(&str, &str); 2] = [
    (
        "var/lib/docker/containers",
        ".local/share/docker/containers",
    ),
    ("var/snap/docker/common/var-lib-docker/containers", ""),
];

/// The parts of `config.v2.json` in use.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Container {
    name: Option<String>,
    config: Option<Settings>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Settings {
    image: Option<String>,
    labels: Option<Labels>,
}

/// Labels that Kubernetes sets where it runs docker.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Labels {
    #[serde(rename = "io.kubernetes.container.name")]
    container: Option<String>,
    #[serde(rename = "io.kubernetes.pod.name")]
    pod: Option<String>,
    #[serde(rename = "io.kubernetes.pod.namespace")]
    namespace: Option<String>,
}

/// Finds a container by its id.
pub(super) fn find(
    root: &Root,
    users: &mut Users,
    owner: Owner,
    id: &str,
) -> Option<GroupIdentity> {
    let moved = data_root(root).filter(|_| owner == Owner::System);
    let moved = moved.iter().map(|folder| (folder.as_str(), ""));
    let mut folders = moved.chain(FOLDERS);
    folders.find_map(|place| {
        let folder = files::folder(root, users, owner, place)?;
        parse(&files::read(
            &folder,
            id,
            "config.v2.json",
            CONTAINER_FILE_MAX,
        )?)
    })
}

/// The folder that `data-root` in the daemon's settings names.
fn data_root(root: &Root) -> Option<String> {
    #[derive(Deserialize)]
    struct Daemon {
        #[serde(rename = "data-root")]
        data_root: String,
    }
    let mut text = Vec::new();
    let file = root.file("etc/docker/daemon.json").ok()?;
    file.read_on(&mut text, CONTAINER_FILE_MAX).ok()?;
    let daemon: Daemon = serde_json::from_slice(&text).ok()?;
    let folder = daemon.data_root.trim_matches('/');
    (!folder.is_empty()).then(|| format!("{folder}/containers"))
}

/// Reads the text of `config.v2.json`.
pub(super) fn parse(text: &[u8]) -> Option<GroupIdentity> {
    let container: Container = serde_json::from_slice(text).ok()?;
    let settings = container.config.unwrap_or_default();
    let labels = settings.labels.unwrap_or_default();
    let name = container.name.unwrap_or_default();
    Some(GroupIdentity {
        runtime: "docker",
        name: labels
            .container
            .unwrap_or_else(|| name.trim_start_matches('/').into()),
        image: settings.image.unwrap_or_default(),
        pod: labels.pod.unwrap_or_default(),
        namespace: labels.namespace.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_docker() {
        for (text, expect) in [
            (
                r#"{"ID":"a","Name":"/web","Config":{"Image":"nginx:1.25","Labels":{"a":"b"}},"State":{"Pid":7}}"#,
                Some(["web", "nginx:1.25", "", ""]),
            ),
            (
                r#"{"Name":"/k8s_x","Config":{"Image":"i","Labels":{"io.kubernetes.pod.name":"p","io.kubernetes.pod.namespace":"n","io.kubernetes.container.name":"c"}}}"#,
                Some(["c", "i", "p", "n"]),
            ),
            (r#"{"Name":null,"Config":null}"#, Some(["", "", "", ""])),
            (
                r#"{"Name":"/a","Config":{"Labels":null}}"#,
                Some(["a", "", "", ""]),
            ),
            (r#"{"Name":7}"#, None),
            (r#"{"Name":"/a""#, None),
            ("7", None),
            ("", None),
        ] {
            let found = parse(text.as_bytes());
            let found = found.map(|one| [one.name, one.image, one.pod, one.namespace]);
            let expect = expect.map(|facts| facts.map(String::from));
            assert_eq!(found, expect, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(format!("{{\"Config\":{deep}").as_bytes()), None);
    }
}
