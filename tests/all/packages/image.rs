//! The image for containers: its manifest and layers, its program started as a runtime does it, and by podman with the
//! words of the documents.

use std::fs;
use std::path::{Path, PathBuf};

use kymo_tests::container::in_name_spaces;
use kymo_tests::package_root::{pack, project, static_program};
use kymo_tests::{Scratch, machine};
use serde_json::Value;

use super::{VERSION, only_file, tool_output};

/// Asks the page until the machine's numbers are there, a minute at most.
const ASK: &str = r#"
ask() {
  python3 - <<'END'
import time
from urllib.request import urlopen
end = time.time() + 60
text = b""
while b"node_cpu_seconds_total" not in text:
    try:
        text = urlopen("http://127.0.0.1:4280/metrics", timeout=60).read()
    except OSError:
        if time.time() > end:
            raise
    time.sleep(0.1)
assert b"<title>kymo</title>" in urlopen("http://127.0.0.1:4280/", timeout=60).read()
END
}
"#;

/// Unpacks the layers in their order and starts the program as a runtime does. `start` and `layers` are files made from
/// the image's own configuration. SIGTERM ends the program with 0, and all files that it has written are its user's.
const BY_HAND: &str = r#"
folder=$1
root=$folder/root
mkdir "$root"
while read -r layer; do
  tar -xzf "$layer" --numeric-owner --same-owner -C "$root"
done <"$folder/layers"
test -z "$(find "$root" -name '.wh.*')"
mount --rbind / "$root/host"
mount --make-rslave "$root/host"
mount -o remount,bind,ro "$root/host"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
. "$folder/start"
start "$root" 2>"$folder/log" &
process=$!
ask
status=0
kill -TERM $process
wait $process || status=$?
cat "$folder/log"
test $status = 0
find "$root/var/lib/kymo" ! -user 64280
chroot "$root" /usr/bin/kymo verify /var/lib/kymo
"#;

/// Gives podman storage of its own, and limits that a root without CAP_SYS_RESOURCE may set. Ends with 77 where podman
/// starts no container at all: the one that is tried has nothing of the image.
const PODMAN: &str = r#"
folder=$1
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir "$folder/home" "$folder/probe"
export HOME="$folder/home" CONTAINERS_CONF="$folder/containers.conf"
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n' >"$CONTAINERS_CONF"
podman() {
  command podman --root "$folder/storage" --runroot "$folder/run" --storage-driver vfs --cgroup-manager cgroupfs "$@"
}
# Stops the container, which has to end well.
stop() {
  podman stop kymo
  test "$(podman inspect --format '{{.State.ExitCode}}' kymo)" = 0
}
# Stops and removes it, and appends its log, of all its runs, to a file.
end() {
  stop
  podman logs kymo >>"$1" 2>&1
  podman rm kymo
}
cp "$folder/kymo" "$folder/probe/kymo"
podman run --rm --pid=host --network=host --rootfs "$folder/probe" /kymo --version || exit 77
cd "$folder/out"
"#;

/// Runs the image as the documents say; as root with the rights of `compose.yaml` on the same volume, twice; and as
/// `daemonset.yaml` does, on a folder of root's.
const CONTAINERS: &str = r#"
documented
ask
end "$folder/log-user"
privileged() {
  podman run --detach --name kymo --pid=host --network=host --user 0:0 --cap-drop ALL --cap-add "$capabilities" \
    --security-opt no-new-privileges --read-only --tmpfs /tmp --volume "$1:/var/lib/kymo" --volume /:/host:ro,rslave \
    "$image" serve --data /var/lib/kymo --root /host
}
privileged kymo
ask
stop
podman start kymo
ask
end "$folder/log-root"
mkdir "$folder/host-path"
privileged "$folder/host-path"
ask
end "$folder/log-root"
find "$folder/host-path" -name '*.blk' ! -user 64280
"#;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// The image's tar in `out`, unpacked.
fn unpacked(scratch: &Scratch) -> PathBuf {
    let image = only_file(&scratch.path("out"), "tar").display().to_string();
    let layout = scratch.path("layout");
    fs::create_dir_all(&layout).expect("a folder");
    tool_output("tar", &["-xf", &image, "-C", &layout.display().to_string()]);
    layout
}

/// Hash that a descriptor of the image names, and the bytes that it stands for.
fn blob(layout: &Path, digest: &Value) -> Vec<u8> {
    let hash = digest
        .as_str()
        .expect("a digest")
        .trim_start_matches("sha256:");
    let path = layout.join("blobs/sha256").join(hash);
    let sum = tool_output("sha256sum", &[&path.display().to_string()]);
    assert!(sum.starts_with(hash), "{sum}");
    fs::read(path).expect("a blob")
}

/// The image is a layout of the OCI; each digest and size in it is right, and its layer has what the program needs.
#[test]
fn the_image_is_an_oci_layout() {
    let Some(program) = static_program() else {
        return;
    };
    let scratch = Scratch::new("packages-image");
    pack(&program, VERSION, &scratch.path("out"), &["image"]);
    let layout = unpacked(&scratch);
    let index = json(&fs::read(layout.join("index.json")).expect("an index"));
    let entry = &index["manifests"][0];
    let manifest_bytes = blob(&layout, &entry["digest"]);
    assert_eq!(entry["size"], manifest_bytes.len());
    let manifest = json(&manifest_bytes);
    let config_bytes = blob(&layout, &manifest["config"]["digest"]);
    assert_eq!(manifest["config"]["size"], config_bytes.len());
    let config = json(&config_bytes);
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/kymo");
    let user = config["config"]["User"].as_str().expect("a user");
    assert!(!user.starts_with('0'), "{user}");
    let layer = &manifest["layers"][0];
    assert_eq!(layer["size"], blob(&layout, &layer["digest"]).len());
    let hash = layer["digest"]
        .as_str()
        .expect("a digest")
        .trim_start_matches("sha256:");
    // Older versions of docker read this list in place of the index.
    let listed = json(&fs::read(layout.join("manifest.json")).expect("a list"));
    assert_eq!(listed[0]["Layers"][0], format!("blobs/sha256/{hash}"));
    let named = listed[0]["Config"].as_str().expect("a configuration");
    let digest = named.replace("blobs/sha256/", "sha256:");
    assert_eq!(manifest["config"]["digest"], digest);
    let path = layout.join("blobs/sha256").join(hash).display().to_string();
    let plain = tool_output("sh", &["-c", &format!("gzip -dc '{path}' | sha256sum")]);
    let expected = format!("sha256:{}", plain.split(' ').next().unwrap_or_default());
    assert_eq!(config["rootfs"]["diff_ids"][0], expected);
    let listed = tool_output("tar", &["-tvzf", &path, "--numeric-owner"]);
    let owned = user.replace(':', "/");
    for (file, part) in [
        ("./usr/bin/kymo", "0/0"),
        ("./var/lib/kymo/", &owned),
        ("./tmp/", "drwxrwxrwt"),
    ] {
        let line = listed.lines().find(|line| line.ends_with(file));
        assert!(
            line.is_some_and(|line| line.contains(part)),
            "{file}: {listed}"
        );
    }
}

/// A word that the shell takes as it is.
fn quoted(word: &Value) -> String {
    let word = word.as_str().expect("a word");
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn words(list: &Value) -> String {
    let list = list.as_array().expect("a list");
    let quoted: Vec<String> = list.iter().map(quoted).collect();
    quoted.join(" ")
}

/// A function of the shell that becomes the process of the image's configuration, in the folder $1 and with
/// `--root /host`.
fn start_of(config: &Value) -> String {
    let config = &config["config"];
    let user = config["User"].as_str().expect("a user");
    let (uid, gid) = user.split_once(':').expect("a user and a group");
    format!(
        "start() {{\nexec env -i {} setpriv --no-new-privs --inh-caps=-all \
         --bounding-set=-all,+sys_chroot,+setuid,+setgid \
         unshare --root \"$1\" --wd {} --setgid {gid} --setuid {uid} -- {} {} --root /host\n}}\n",
        words(&config["Env"]),
        quoted(&config["WorkingDir"]),
        words(&config["Entrypoint"]),
        words(&config["Cmd"]),
    )
}

/// Lines that name a trouble.
fn troubles(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("cannot")).collect()
}

/// The user of the image may read no I/O of others' processes; nothing else is missing.
fn assert_user_log(log: &str) {
    let known = |line: &&str| line.ends_with("kymo lacks CAP_SYS_PTRACE");
    assert!(troubles(log).iter().all(known), "{log}");
    assert!(
        log.contains("recorder: user kymo, no capabilities"),
        "{log}"
    );
}

#[test]
fn the_image_runs_as_its_configuration_says() {
    let Some(program) = static_program() else {
        return;
    };
    let tools = ["unshare", "setpriv", "chroot", "ip", "python3"];
    if machine::must_skip(&tools) {
        return;
    }
    let scratch = Scratch::new("packages-image-run");
    pack(&program, VERSION, &scratch.path("out"), &["image"]);
    let layout = unpacked(&scratch);
    // As `docker load` of older versions reads it.
    let listed = json(&fs::read(layout.join("manifest.json")).expect("a manifest"));
    let place = |value: &Value| layout.join(value.as_str().expect("a path"));
    let config = json(&fs::read(place(&listed[0]["Config"])).expect("a configuration"));
    fs::write(scratch.path("start"), start_of(&config)).expect("a file");
    let layers = listed[0]["Layers"].as_array().expect("layers");
    let layers: Vec<String> = layers
        .iter()
        .map(|layer| format!("{}\n", place(layer).display()))
        .collect();
    fs::write(scratch.path("layers"), layers.concat()).expect("a file");
    let script = format!("{ASK}{BY_HAND}");
    let stdout = in_name_spaces(&scratch.path(""), &script).expect("no container is asked for");
    let (log, rest) = stdout
        .split_once("no damage: ")
        .expect("a recording without damage");
    assert_user_log(log);
    assert!(!log.contains("/root/"), "files of another user: {log}");
    assert!(rest.contains("recording of"), "{rest}");
}

/// The commands of podman in the documents.
fn documented() -> String {
    let path = project().join("docs/operate/install.md");
    let text = fs::read_to_string(path).expect("a document");
    let (_, from_load) = text.split_once("    podman load").expect("its commands");
    let (commands, _) = from_load.split_once("\n\n").expect("their end");
    let commands = format!("podman load{commands}");
    commands.replace("x86_64", std::env::consts::ARCH)
}

/// The text behind a key in a file of YAML, on the same line.
fn listed_in(name: &str, key: &str) -> String {
    let path = project().join("dist/container").join(name);
    let text = fs::read_to_string(path).expect("a file");
    let (_, value) = text.split_once(key).expect(key);
    let value = value.lines().next().unwrap_or_default().trim();
    value.trim_matches(['[', ']']).replace(' ', "")
}

#[test]
fn the_image_runs_under_podman() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["podman", "crun", "unshare", "ip", "python3"]) {
        return;
    }
    let scratch = Scratch::new("packages-podman");
    pack(&program, VERSION, &scratch.path("out"), &["image"]);
    machine::copy_program(&program, &scratch.path("kymo"));
    let capabilities = listed_in("compose.yaml", "cap_add:");
    let image = listed_in("compose.yaml", "image:");
    assert_eq!(listed_in("daemonset.yaml", " add:"), capabilities);
    assert_eq!(listed_in("daemonset.yaml", "image:"), image);
    let documented = documented();
    let script = format!(
        "{ASK}{PODMAN}\ncapabilities={capabilities}\nimage={image}\n\
         documented() {{\n{documented}\n}}\n{CONTAINERS}"
    );
    let Some(stdout) = in_name_spaces(&scratch.path(""), &script) else {
        return;
    };
    assert!(!stdout.contains(".blk"), "files of another user: {stdout}");
    let log = |name: &str| fs::read_to_string(scratch.path(name)).expect("a log");
    assert_user_log(&log("log-user"));
    let log = log("log-root");
    assert_eq!(troubles(&log), Vec::<&str>::new(), "{log}");
    let recorder = "recorder: user kymo, CAP_DAC_READ_SEARCH CAP_SYS_PTRACE";
    assert_eq!(log.matches(recorder).count(), 3, "{log}");
}
