//! The .rpm: its files, and its scripts from install to removal, alone and under a systemd. They run on a copy of this
//! machine, by rpm with a database of its own.

use std::fs;
use std::path::PathBuf;

use kymo_tests::package_root::{in_private_root, pack, static_program, under_private_systemd};
use kymo_tests::{Scratch, machine};

use super::{VERSION, only_file, output_of, tool_output};

/// From the first install to the removal, with no systemd running.
const LIFE: &str = r#"
rm -rf /etc/kymo /var/lib/kymo /usr/bin/collectl
userdel kymo 2>/dev/null || :
wants=/etc/systemd/system/multi-user.target.wants
# rpm of Debian wants dependencies that packages of Debian have.
rpm() {
  command rpm --dbpath /var/lib/kymo-rpm "$@"
}
rpm --initdb
rpm --install --nodeps /mnt/old/*.rpm
rpm --verify --nodeps kymo
test -L $wants/kymo.service
test ! -e $wants/kymo-rrdcached.service
user=$(getent passwd kymo)
kymo --version
kymo serve --check --data /var/lib/kymo >/dev/null
systemd-analyze verify kymo.service kymo-rrdcached.service run-kymo-pub.mount
sed -i 's/^#\[record\]/[record]/; s/^#cap = .*/cap = "777M"/' /etc/kymo/kymo.toml
install -d -o kymo -g kymo -m 750 /var/lib/kymo
setpriv --reuid kymo --regid kymo --clear-groups kymo record -s cm -i .05 -c 3 -f /var/lib/kymo 2>/dev/null
kymo-names take collectl
systemctl disable kymo.service
rpm --upgrade --nodeps /mnt/new/*.rpm
rpm --query kymo
test "$(rpm --verify --nodeps kymo | grep -vc ' c /etc/kymo/kymo.toml$')" = 0
test ! -e $wants/kymo.service
grep -x 'cap = "777M"' /etc/kymo/kymo.toml
test "$(readlink -f /usr/bin/collectl)" = /usr/bin/kymo
test "$user" = "$(getent passwd kymo)"
# Back takes a word.
if rpm --upgrade --nodeps /mnt/old/*.rpm; then exit 1; fi
rpm --upgrade --oldpackage --nodeps /mnt/old/*.rpm
rpm --query kymo
systemctl enable kymo.service
files=$(rpm --query --list kymo)
rpm --erase kymo
for file in $files; do
  case $file in
    /etc/kymo) ;;
    *) test ! -e "$file" ;;
  esac
done
test ! -L $wants/kymo.service
test ! -e /usr/bin/collectl
# A changed file of settings stays under another name.
grep -x 'cap = "777M"' /etc/kymo/kymo.toml.rpmsave
test "$user" = "$(getent passwd kymo)"
echo "left: $(find /usr/share -name '*kymo*')"
find /var/lib/kymo -name '*.blk' | wc -l
"#;

/// The service under a systemd: after the first install, after an upgrade, switched off, and after the removal.
const SERVICE: &str = r#"
stopped() {
  test "$(systemctl is-active "$1")" != active
}
guardian() {
  systemctl show --property MainPID --value kymo.service
}
rpm() {
  command rpm --dbpath /var/lib/kymo-rpm "$@"
}
rm -rf /etc/kymo /var/lib/kymo
rpm --initdb
rpm --install --nodeps /mnt/old/*.rpm
systemctl is-active kymo.service run-kymo-pub.mount
first=$(guardian)
test -s /var/lib/kymo/token
systemctl start kymo-rrdcached.service
rpm --upgrade --nodeps /mnt/new/*.rpm
systemctl is-active kymo.service kymo-rrdcached.service
test "$first" != "$(guardian)"
test "$(systemctl show --property NeedDaemonReload --value kymo.service)" = no
test "$(pgrep --count --full '^/usr/bin/kymo serve')" = 1
systemctl disable --now kymo.service
rpm --upgrade --nodeps --replacepkgs /mnt/new/*.rpm
stopped kymo.service
systemctl enable --now kymo.service
rpm --erase kymo
stopped kymo.service
stopped kymo-rrdcached.service
test -z "$(pgrep --exact kymo)"
test -s /var/lib/kymo/token
getent passwd kymo
echo all is well
"#;

/// Packs two versions into a folder that the scripts see as /mnt. `None`: the test must be skipped.
fn two_versions(scratch: &Scratch, tools: &[&str]) -> Option<PathBuf> {
    let program = static_program()?;
    if machine::must_skip(tools) {
        return None;
    }
    let folder = scratch.path("mnt");
    pack(&program, "0.0.9", &folder.join("old"), &["rpm"]);
    pack(&program, VERSION, &folder.join("new"), &["rpm"]);
    Some(folder)
}

#[test]
fn the_rpm_is_installed_upgraded_and_removed() {
    let scratch = Scratch::new("packages-rpm-life");
    let tools = [
        "rpmbuild",
        "rpm",
        "unshare",
        "setpriv",
        "systemd-analyze",
        "update-alternatives",
    ];
    let Some(folder) = two_versions(&scratch, &tools) else {
        return;
    };
    let Some(stdout) = in_private_root(&scratch.path("mounts"), &folder, LIFE) else {
        return;
    };
    let lines: Vec<&str> = stdout.lines().collect();
    for line in ["kymo-0.1.0-1.x86_64", "kymo-0.0.9-1.x86_64", "left: ", "1"] {
        let line = line.replace("x86_64", std::env::consts::ARCH);
        assert!(lines.contains(&line.as_str()), "no {line:?}: {stdout}");
    }
}

#[test]
fn the_rpm_starts_restarts_and_stops_the_service() {
    let scratch = Scratch::new("packages-rpm-service");
    let tools = ["rpmbuild", "rpm", "unshare", "systemctl", "pgrep"];
    let Some(folder) = two_versions(&scratch, &tools) else {
        return;
    };
    let Some(log) = under_private_systemd(&scratch.path("mounts"), &folder, SERVICE) else {
        return;
    };
    assert!(log.contains("\nall is well\n"), "{log}");
}

/// Words of the .rpm's scripts and files, as rpm reads them.
#[test]
fn the_rpm_has_the_files_and_scripts() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["rpmbuild", "rpm"]) {
        return;
    }
    let scratch = Scratch::new("packages-rpm");
    pack(&program, VERSION, &scratch.path("out"), &["rpm"]);
    let rpm = only_file(&scratch.path("out"), "rpm").display().to_string();
    let files = tool_output("rpm", &["-qlp", &rpm]);
    for file in [
        "/usr/bin/kymo",
        "/etc/kymo/kymo.toml",
        "/usr/lib/systemd/system/kymo.service",
        "/usr/share/man/man1/kymo.1.gz",
        "/usr/share/zsh/site-functions/_kymo",
    ] {
        assert!(files.lines().any(|line| line == file), "{file}: {files}");
    }
    assert_eq!(
        tool_output("rpm", &["-qcp", &rpm]).trim(),
        "/etc/kymo/kymo.toml"
    );
    assert!(
        tool_output("rpm", &["-qp", "--scripts", &rpm]).contains("systemctl start kymo.service")
    );
    // Another root, without the scripts, which are for a system that runs.
    let root = scratch.text("root");
    fs::create_dir_all(&root).expect("a folder");
    let options = [
        "-i",
        "--root",
        &root,
        "--nodeps",
        "--noscripts",
        "--nosignature",
        &rpm,
    ];
    tool_output("rpm", &options);
    let installed = output_of(format!("{root}/usr/bin/kymo"), &["--version"]);
    assert!(installed.status.success());
}
