//! Control groups by name: made-up trees of docker, podman (of the system and rootless), containerd and CRI-O below kubelet,
//! and systemd. Names are recorded with the groups, played, exposed, and processes are chosen by them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kymo_tests::served::{Served, ask, eventually};
use kymo_tests::{Running, Scratch, kymo, put, run, stdout_of};
use serde_json::Value;

const MOUNT: &str = "sys/fs/cgroup";
const POD_UID: &str = "0f3e4d21-9c5b-4a7e-8d10-6b2f3c4d5e6f";

/// An id of 64 digits.
fn id(digit: &str) -> String {
    digit.repeat(64)
}

/// Folder of the groups of kubelet with systemd's names.
fn pod_slice() -> String {
    let uid = POD_UID.replace('-', "_");
    format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice")
}

/// Folder of the rootless groups of a user.
const USER: &str = "/user.slice/user-1000.slice/user@1000.service/user.slice";

fn put_group(root: &Path, path: &str) {
    put(root, &format!("{MOUNT}{path}/cpu.stat"), "usage_usec 5\n");
    put(root, &format!("{MOUNT}{path}/memory.current"), "4096\n");
}

/// A root with a mount of version 2 and a group of each runtime, each with the files that the runtime writes.
fn machine(scratch: &Scratch) -> PathBuf {
    let root = scratch.path("root");
    put(&root, "proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
    let mount = format!("31 23 0:28 / /{MOUNT} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    put(&root, "proc/self/mountinfo", &mount);
    put(
        &root,
        "etc/passwd",
        "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n",
    );
    put_docker(&root);
    put_podman(&root);
    put_kubernetes(&root);
    put_group(&root, r"/system.slice/my\x2dapp.service");
    put_group(&root, "/user.slice/user-1000.slice");
    root
}

/// A container of the daemon of the system, and one of a rootless daemon.
fn put_docker(root: &Path) {
    for (group, folder, id, name) in [
        (
            "/system.slice/docker-ID.scope",
            "var/lib/docker",
            id("a"),
            "web",
        ),
        (
            &format!("{USER}/docker-ID.scope"),
            "home/alice/.local/share/docker",
            id("b"),
            "cache",
        ),
    ] {
        put_group(root, &group.replace("ID", &id));
        let text = format!(
            r#"{{"StreamConfig":{{}},"State":{{"Running":true,"Pid":7}},"ID":"{id}","Created":"2026-11-20T10:00:00Z","Path":"/entry","Args":["a"],"Config":{{"Hostname":"h","Env":["A=b"],"Cmd":["x"],"Image":"nginx:1.25","Labels":{{"maintainer":"m"}}}},"Image":"sha256:77","Name":"/{name}","Driver":"overlay2"}}"#
        );
        put(
            root,
            &format!("{folder}/containers/{id}/config.v2.json"),
            &text,
        );
    }
}

/// A container of the system in a pod, and one of a user.
fn put_podman(root: &Path) {
    let pod = format!("/machine.slice/machine-libpod_pod_{}.slice", id("c"));
    put_group(root, &pod);
    put_group(root, &format!("{pod}/libpod-{}.scope", id("d")));
    put_group(root, &format!("{USER}/libpod-{}.scope", id("f")));
    let entry = |id: &str, name: &str| {
        let metadata = format!(
            r#"{{\"image-name\":\"docker.io/library/redis:7\",\"image-id\":\"88\",\"name\":\"{name}\",\"created-at\":5}}"#
        );
        format!(
            r#"{{"id":"{id}","names":["{name}"],"image":"88","layer":"9","metadata":"{metadata}","created":"2026-11-20T10:00:00Z"}}"#
        )
    };
    let infra = format!("{}-infra", &id("c")[..12]);
    let storage = "var/lib/containers/storage/overlay-containers";
    let list = format!("[{},{}]", entry(&id("d"), "db"), entry(&id("e"), &infra));
    put(root, &format!("{storage}/containers.json"), &list);
    let configuration =
        r#"{"ociVersion":"1.1.0","process":{"args":["/catatonit"]},"hostname":"shop"}"#;
    put(
        root,
        &format!("{storage}/{}/userdata/config.json", id("e")),
        configuration,
    );
    let list = format!("[{}]", entry(&id("f"), "mine"));
    let of_user = "home/alice/.local/share/containers/storage/overlay-containers";
    put(root, &format!("{of_user}/containers.json"), &list);
}

/// A pod with a container of containerd, one of CRI-O, and one whose configuration cannot be read.
fn put_kubernetes(root: &Path) {
    let slice = pod_slice();
    put_group(root, &slice);
    for (group, id) in [
        ("cri-containerd", id("1")),
        ("crio", id("2")),
        ("cri-containerd", id("3")),
    ] {
        put_group(root, &format!("{slice}/{group}-{id}.scope"));
    }
    let containerd = r#"{"ociVersion":"1.1.0","annotations":{"io.kubernetes.cri.container-name":"front","io.kubernetes.cri.container-type":"container","io.kubernetes.cri.image-name":"registry/front:3","io.kubernetes.cri.sandbox-name":"front-7d9","io.kubernetes.cri.sandbox-namespace":"shop"}}"#;
    let folder = "run/containerd/io.containerd.runtime.v2.task/k8s.io";
    put(
        root,
        &format!("{folder}/{}/config.json", id("1")),
        containerd,
    );
    let crio = r#"{"annotations":{"io.kubernetes.container.name":"side","io.kubernetes.cri-o.ImageName":"registry/side:1","io.kubernetes.pod.name":"front-7d9","io.kubernetes.pod.namespace":"shop","io.kubernetes.cri-o.ContainerType":"container"}}"#;
    let folder = "run/containers/storage/overlay-containers";
    put(
        root,
        &format!("{folder}/{}/userdata/config.json", id("2")),
        crio,
    );
    put(
        root,
        &format!("var/log/containers/front-7d9_shop_init-{}.log", id("3")),
        "",
    );
    put(
        root,
        &format!("var/log/pods/shop_front-7d9_{POD_UID}/front/0.log"),
        "",
    );
}

/// Group, and runtime, name, image, pod and namespace that it must have.
fn expected() -> Vec<(String, [&'static str; 5])> {
    let pod = pod_slice();
    let podman_pod = format!("/machine.slice/machine-libpod_pod_{}.slice", id("c"));
    let redis = "docker.io/library/redis:7";
    vec![
        (
            format!("/system.slice/docker-{}.scope", id("a")),
            ["docker", "web", "nginx:1.25", "", ""],
        ),
        (
            format!("{USER}/docker-{}.scope", id("b")),
            ["docker", "cache", "nginx:1.25", "", ""],
        ),
        (podman_pod.clone(), ["podman", "", "", "shop", ""]),
        (
            format!("{podman_pod}/libpod-{}.scope", id("d")),
            ["podman", "db", redis, "shop", ""],
        ),
        (
            format!("{USER}/libpod-{}.scope", id("f")),
            ["podman", "mine", redis, "", ""],
        ),
        (pod.clone(), ["kubernetes", "", "", "front-7d9", "shop"]),
        (
            format!("{pod}/cri-containerd-{}.scope", id("1")),
            [
                "containerd",
                "front",
                "registry/front:3",
                "front-7d9",
                "shop",
            ],
        ),
        (
            format!("{pod}/crio-{}.scope", id("2")),
            ["cri-o", "side", "registry/side:1", "front-7d9", "shop"],
        ),
        (
            format!("{pod}/cri-containerd-{}.scope", id("3")),
            ["containerd", "init", "", "front-7d9", "shop"],
        ),
        (
            r"/system.slice/my\x2dapp.service".into(),
            ["systemd", "my-app.service", "", "", ""],
        ),
        (
            "/user.slice/user-1000.slice".into(),
            ["systemd", "user-alice.slice", "", "", ""],
        ),
    ]
}

fn record(root: &Path, dir: &str, more: &[&str]) {
    let root = root.to_string_lossy();
    let arguments = [
        "record", "-i", ".2:.2", "-c", "6", "--root", &root, "-f", dir,
    ];
    stdout_of(&[&arguments[..], more].concat());
}

#[test]
fn groups_have_the_names_that_their_runtimes_keep() {
    let scratch = Scratch::new("cgroup-names");
    let root = machine(&scratch);
    let dir = scratch.text("ring");
    record(&root, &dir, &["-sG"]);
    let json = stdout_of(&["play", &dir, "-sG", "--json"]);
    let rows: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for (group, facts) in expected() {
        let of_group = |row: &&Value| row["cgroups.group"] == group.as_str();
        // The first samples may come before the slow lane has answered.
        let row = rows
            .iter()
            .rfind(of_group)
            .unwrap_or_else(|| panic!("no row of {group}"));
        let columns = ["runtime", "name", "image", "pod", "namespace"];
        let said = columns.map(|column| {
            row[format!("cgroups.{column}")]
                .as_str()
                .unwrap_or_default()
        });
        assert_eq!(said, facts, "{group}");
    }
    let text = stdout_of(&["play", &dir, "-sG"]);
    for line in ["    web", "      shop/db", "        front-7d9/front"] {
        assert!(
            text.lines().any(|shown| shown.ends_with(line)),
            "{line:?} in {text}"
        );
    }
}

/// A process of a container; its command and its group are in `/proc`.
fn put_process(root: &Path, pid: u32, cgroup: &str) {
    let zeros = "0 ".repeat(40);
    put(
        root,
        &format!("proc/{pid}/stat"),
        &format!("{pid} (p{pid}) S 1 1 1 0 -1 {zeros}\n"),
    );
    put(
        root,
        &format!("proc/{pid}/cgroup"),
        &format!("0::{cgroup}\n"),
    );
    put(root, &format!("proc/{pid}/cmdline"), "x\0");
}

#[test]
fn processes_are_chosen_by_the_name_of_their_container() {
    let scratch = Scratch::new("cgroup-names-procfilt");
    let root = machine(&scratch);
    put(&root, "proc/loadavg", "0.00 0.00 0.00 1/10 99\n");
    put_process(&root, 7, &format!("/system.slice/docker-{}.scope", id("a")));
    put_process(
        &root,
        8,
        &format!("{}/crio-{}.scope/container", pod_slice(), id("2")),
    );
    put_process(&root, 9, r"/system.slice/my\x2dapp.service");
    let dir = scratch.text("ring");
    record(&root, &dir, &["-sZ"]);
    let pids = |dir: &str, filter: &[&str]| -> Vec<String> {
        let json = stdout_of(&[&["play", dir, "-sZ", "--json"], filter].concat());
        let rows = json
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let pid = |row: Value| row["process.pid"].as_f64().map(|pid| pid.to_string());
        let mut pids: Vec<String> = rows.filter_map(pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    };
    for (filter, expect) in [
        ("g^web$", vec!["7"]),
        ("gnginx:1", vec!["7"]),
        ("g^front-7d9$", vec!["8"]),
        ("gregistry/side", vec!["8"]),
        ("gmy.x2dapp", vec!["9"]),
        ("gnothing", vec![]),
    ] {
        assert_eq!(pids(&dir, &["--procfilt", filter]), expect, "{filter}");
    }
    let chosen = scratch.text("chosen");
    record(&root, &chosen, &["-sZ", "--procfilt", "g^web$"]);
    assert_eq!(pids(&chosen, &[]), ["7"], "the recorder chooses, too");
}

/// `/metrics` has cAdvisor's labels, and no name for clients without the token.
#[test]
fn metrics_have_the_labels_of_cadvisor() {
    let scratch = Scratch::new("cgroup-names-metrics");
    let root = machine(&scratch);
    let dir = scratch.text("data");
    let recorder = Command::new(kymo())
        .args(["record", "-scG", "-i", ".2", "-f", &dir, "--root"])
        .arg(&root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let recorder = Running(recorder.expect("a recorder"));
    let records = || (!run(&["dump", &dir]).stdout.is_empty()).then_some(());
    eventually(records).expect("a sample");
    let mut served = Served::start(&["--data", &dir, "--listen", "127.0.0.1:0"]);
    let address = served.address();
    let token = fs::read_to_string(scratch.path("data/token")).expect("the token");
    let pod = pod_slice();
    let expect = format!(
        r#"container_memory_usage_bytes{{id="{pod}/cri-containerd-{}.scope",name="front",image="registry/front:3",pod="front-7d9",namespace="shop"}} 4096"#,
        id("1")
    );
    let asked = |token| {
        ask(&address, "GET", "/metrics", token, "")
            .expect("an answer")
            .1
    };
    let is_there = || {
        let said = asked(token.trim());
        said.lines().any(|line| line == expect).then_some(said)
    };
    let said = eventually(is_there).expect("the labels");
    let of_root = r#"container_memory_usage_bytes{id="/user.slice/user-1000.slice",name="user-alice.slice"} 4096"#;
    assert!(
        said.lines().any(|line| line == of_root),
        "no empty labels: {said}"
    );
    let open = asked("");
    assert!(!open.contains("front-7d9"), "{open}");
    drop(recorder);
}
