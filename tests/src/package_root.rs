//! Packages made for tests, and a private copy of this machine's root where they are installed: a layer in memory above
//! the real one, so that the machine stays as it is.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::machine;

/// Mounts the layers and runs a script in them. $1: a new folder for the mounts, $2: a folder that the script sees as /mnt,
/// $3: the script. It ends with 77 where the kernel has no such mounts.
const ENTER: &str = r#"
set -e
mount -t tmpfs -o mode=755 kymo-tests "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" kymo-tests "$1/root" || exit 77
mount --bind /proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount --bind "$2" "$1/root/mnt"
exec chroot "$1/root" /bin/sh -euc "$3"
"#;
/// As [`ENTER`], with a systemd of its own, in name spaces of its own. Few units start, among them the script, a file in the
/// folder that is /mnt; it writes to /mnt/log, and ends the system.
const BOOT: &str = r#"
set -e
mount -t tmpfs -o mode=755 kymo-tests "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" kymo-tests "$1/root" || exit 77
root=$1/root
mount --bind "$2" "$root/mnt"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
umount -R "$root/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || exit 77
mount --bind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/run"
units=$root/etc/systemd/system
rm -rf "$units"/*.wants/*
mkdir -p "$units/multi-user.target.wants"
cat >"$units/script.service" <<'END'
[Service]
Type=oneshot
Environment=DEBIAN_FRONTEND=noninteractive LC_ALL=C
ExecStart=/bin/sh -eux /mnt/script
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=append:/mnt/log
StandardError=append:/mnt/log
END
ln -s ../script.service "$units/multi-user.target.wants/"
ln -sf /lib/systemd/system/multi-user.target "$units/default.target"
for unit in systemd-udevd systemd-udev-trigger systemd-logind systemd-networkd systemd-timesyncd systemd-resolved \
  systemd-modules-load systemd-sysctl; do
  ln -sf /dev/null "$units/$unit.service"
done
exec chroot "$root" /usr/bin/env container=lxc /lib/systemd/systemd
"#;
/// Makes a control group for [`BOOT`] and enters it: systemd has the groups below alone.
const GROUP: &str = r#"
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
group=$mount$own/kymo-tests-$$
mkdir "$group" 2>/dev/null || exit 77
(
  echo 0 >"$group/cgroup.procs" || exit 77
  exec timeout --kill-after 10 1200 unshare --mount --propagation private --pid --kill-child --fork --uts --ipc --cgroup \
    --net sh -c "$3" boot "$1" "$2"
)
status=$?
find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
exit $status
"#;
/// $1: the program, $2: the fixture, $3: where the package goes.
const PACK_OLDER: &str = r#"
cp -r "$2" "$3/fixture"
chmod -R u=rwX,go=rX "$3/fixture"
cp -r "$3/fixture" "$3/packed"
install -D -m 755 "$1" "$3/packed/usr/bin/kymo"
sed -i "s/^Architecture: .*/Architecture: $(dpkg --print-architecture)/" "$3/packed/DEBIAN/control"
dpkg-deb --root-owner-group -Znone --build "$3/packed" "$3/older.deb"
"#;
/// Exit code of the scripts where there can be no layers or control groups.
const NO_LAYERS: i32 = 77;

/// The project's folder.
pub fn project() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the project's folder")
}

/// The static program that `make test` has made; `None`: there is none, and the test must be skipped.
pub fn static_program() -> Option<PathBuf> {
    let program = project().join("target/static/kymo");
    if program.is_file() {
        return Some(program);
    }
    machine::skipped("no static program; run dist/pack/program quick target/static");
    None
}

/// Packs `program` in the named formats, into `out`, with the least effort.
pub fn pack(program: &Path, version: &str, out: &Path, formats: &[&str]) {
    let output = Command::new(project().join("dist/packages"))
        .arg("--program")
        .arg(program)
        .arg("--out")
        .arg(out)
        .args(formats)
        .env("KYMO_VERSION", version)
        .env("KYMO_LEVEL", "1")
        // Stands for any commit.
        .env("SOURCE_DATE_EPOCH", "1795000000")
        .stdin(Stdio::null())
        .output()
        .expect("dist/packages");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
}

/// Packs the older package of `tests/fixtures` around `program`, as `out/older.deb`; its files are in `out/fixture`, too.
pub fn pack_older(program: &Path, out: &Path) {
    let fixture = project().join("tests/fixtures/package-0.1.0");
    // Modes are those of a checkout, whatever the umask was then.
    let status = Command::new("sh")
        .args(["-euc", PACK_OLDER, "pack"])
        .args([program, &fixture, out])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("sh").success(), "no older package");
}

/// Runs a script of the shell as root of a private copy of this machine, where `/mnt` is `folder`. Each command of it must
/// succeed. Returns its stdout; `None`: this machine can have no such copy, and the test must be skipped.
pub fn in_private_root(mounts: &Path, folder: &Path, script: &str) -> Option<String> {
    std::fs::create_dir_all(mounts).expect("a folder for mounts");
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            ENTER,
            "enter",
        ])
        .args([mounts, folder])
        .arg(script)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("unshare");
    if status.code() == Some(NO_LAYERS) {
        machine::skipped("this machine can have no second root (overlayfs)");
        return None;
    }
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{status}: {stdout}\n{stderr}");
    Some(stdout)
}

/// Runs a script as [`in_private_root`] does, as the last unit that a systemd of its own starts. Returns all that it says, and
/// the commands with a `+` before them.
pub fn under_private_systemd(mounts: &Path, folder: &Path, script: &str) -> Option<String> {
    for (name, text) in [("script", script), ("log", "")] {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    std::fs::create_dir_all(mounts).expect("a folder for mounts");
    let Output {
        stdout,
        stderr,
        status,
    } = Command::new("sh")
        .args(["-c", GROUP, "group"])
        .args([mounts, folder])
        .arg(BOOT)
        .stdin(Stdio::null())
        .output()
        .expect("sh");
    let log = std::fs::read_to_string(folder.join("log")).expect("its log");
    if status.code() == Some(NO_LAYERS) {
        machine::skipped("this machine can have no second systemd (overlayfs, cgroup2)");
        return None;
    }
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(
        !log.is_empty(),
        "systemd did not start the script: {status}\n{stdout}\n{stderr}"
    );
    Some(log)
}
