//! Name spaces as a container has them: mounts, processes and a network of its own, with the files of this machine.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::machine;

/// $1: a folder, $2: the script. crun works with either version of control groups, not with both at once.
const ENTER: &str = r#"
mount -t proc proc /proc
ip link set lo up
if [ -e /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi
exec sh -euc "$2" script "$1"
"#;
/// Exit code of a script that finds no runtime which starts anything here.
const NO_CONTAINERS: i32 = 77;

/// Runs a script of the shell, with `folder` as $1; each command of it must succeed. All that it has started ends with
/// it. Returns its stdout; `None`: it ended with 77, as this machine starts no containers: the test must be skipped.
pub fn in_name_spaces(folder: &Path, script: &str) -> Option<String> {
    let own = ["--mount", "--net", "--pid", "--fork", "--kill-child"];
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("timeout")
        .args(["--kill-after", "10", "600", "unshare"])
        .args(own)
        .args(["--propagation", "private", "sh", "-euc", ENTER, "enter"])
        .arg(folder)
        .arg(script)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("unshare");
    remove_groups();
    let stderr = String::from_utf8_lossy(&stderr);
    if status.code() == Some(NO_CONTAINERS) {
        machine::skipped(&format!(
            "podman starts no container here: {}",
            stderr.lines().last().unwrap_or_default()
        ));
        return None;
    }
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{status}: {stdout}\n{stderr}");
    Some(stdout)
}

/// Removes empty control groups of podman, which it leaves behind. Groups in use stay.
fn remove_groups() {
    let find = "find /sys/fs/cgroup -depth -type d -path '*/libpod_parent*' -exec rmdir {} +";
    let _none = Command::new("sh")
        .args(["-c", find])
        .stderr(Stdio::null())
        .status();
}
