//! From the .deb of an older commit to the one of today, and back: settings, recordings, names, units, and processes.

use std::path::PathBuf;

use kymo_tests::package_root::{
    in_private_root, pack, pack_older, static_program, under_private_systemd,
};
use kymo_tests::{Scratch, machine};

use super::{VERSION, only_file, tool_output};

/// The beginning of both scripts: the older package, on a machine that never had one.
const OLDER: &str = r#"
rm -rf /etc/kymo /var/lib/kymo /usr/sbin/policy-rc.d /etc/systemd/system/multi-user.target.wants/kymo*
userdel kymo 2>/dev/null || :
# Installed are the files of a folder.
installed_from() {
  (cd "$1" && find usr/lib usr/sbin usr/share/kymo -type f) | while read -r file; do
    cmp "$1/$file" "/$file"
  done
}
dpkg --no-triggers --install /mnt/older.deb
installed_from /mnt/fixture
sed -i 's/^#\[record\]/[record]/; s/^#cap = .*/cap = "777M"/' /etc/kymo/kymo.toml
"#;

/// An administrator's settings and recordings, with no systemd running, through an upgrade, one that brings other
/// settings, and a downgrade.
const FILES: &str = r#"
user=$(getent passwd kymo)
group=$(getent group kymo)
printf '#!/bin/sh\necho real\n' >/usr/bin/mrtg.new
chmod 755 /usr/bin/mrtg.new
mv /usr/bin/mrtg.new /usr/bin/mrtg
collectl=$(readlink -f /usr/bin/collectl || :)
kymo-names take mrtg
kymo-names take collectl
update-alternatives --set mrtg /usr/bin/mrtg.real >/dev/null
install -d -o kymo -g kymo -m 750 /var/lib/kymo
setpriv --reuid kymo --regid kymo --clear-groups kymo record -s cm -i .05 -c 3 -f /var/lib/kymo 2>/dev/null
sum() {
  find /var/lib/kymo -type f | LC_ALL=C sort | xargs sha256sum
}
before=$(sum)
kept() {
  kymo --version
  grep -x 'cap = "777M"' /etc/kymo/kymo.toml
  kymo serve --check --data /var/lib/kymo >/dev/null
  test "$user" = "$(getent passwd kymo)"
  test "$group" = "$(getent group kymo)"
  test "$before" = "$(sum)"
  kymo verify /var/lib/kymo
  test "$(kymo -P -s c -p /var/lib/kymo | grep -vc '^#')" = 3
  test "$(mrtg)" = real
  test "$(readlink -f /usr/bin/collectl)" = /usr/bin/kymo
}
dpkg --no-triggers --install /mnt/new/*.deb
installed_from /mnt/tree
dpkg --verify kymo | grep -v ' c /etc/kymo/kymo.toml$' && exit 1
test ! -e /etc/kymo/kymo.toml.dpkg-dist
kept
echo UPGRADED

# A version with other settings asks whose file stays. Nothing is typed here, so that dpkg gives up; these words choose.
dpkg-deb --raw-extract /mnt/new/*.deb /tmp/next
echo '# One more line.' | tee -a /tmp/next/etc/kymo/kymo.toml >>/tmp/next/usr/lib/systemd/system/kymo.service
sed -i 's/^Version: .*/&+next/' /tmp/next/DEBIAN/control
dpkg-deb -Znone --build /tmp/next /tmp/next.deb >/dev/null
if dpkg --no-triggers --install /tmp/next.deb; then exit 1; fi
kept
apt-get install --yes -o Dpkg::Options::=--force-confold /tmp/next.deb
tail -n 1 /etc/kymo/kymo.toml.dpkg-dist
grep -x '# One more line.' /usr/lib/systemd/system/kymo.service
kept
dpkg-query --show --showformat '${Status}\n' kymo
echo NEXT

# Back. apt wants a word for it.
if apt-get install --yes /mnt/older.deb; then exit 1; fi
apt-get install --yes --allow-downgrades -o Dpkg::Options::=--force-confold /mnt/older.deb
dpkg-query --show kymo
installed_from /mnt/fixture
kept
echo DOWNGRADED

dpkg --no-triggers --purge kymo
test ! -e /etc/kymo
test "$collectl" = "$(readlink -f /usr/bin/collectl || :)"
test "$(mrtg)" = real
test ! -e /usr/bin/mrtg.real
test "$user" = "$(getent passwd kymo)"
test "$before" = "$(sum)"
echo PURGED
"#;

/// Processes under a systemd: of the older package, after an upgrade, and after a downgrade.
const SERVICE: &str = r#"
systemctl restart kymo.service
systemctl start kymo-rrdcached.service
# One guardian with its children, one rrdcached, and no process of kymo that no unit has.
runs_once() {
  systemctl is-active kymo.service kymo-rrdcached.service run-kymo-pub.mount
  for unit in kymo.service kymo-rrdcached.service; do
    test "$(systemctl show --property NeedDaemonReload --value $unit)" = no
    test "$(systemctl show --property NRestarts --value $unit)" = 0
  done
  test "$(pgrep --count --full '^/usr/bin/kymo serve')" = 1
  test "$(pgrep --count --full '^/usr/bin/kymo rrdcached')" = 1
  for process in $(pgrep --exact kymo); do
    grep -E 'system.slice/kymo(-rrdcached)?.service' /proc/$process/cgroup
    test "$(stat --dereference --format %i /proc/$process/exe)" = "$(stat --format %i /usr/bin/kymo)"
  done
  python3 -c 'from urllib.request import urlopen; urlopen("http://127.0.0.1:4280/", timeout=60)'
}
guardian() {
  systemctl show --property MainPID --value kymo.service
}
runs_once
token=$(cat /var/lib/kymo/token)
first=$(guardian)
dpkg --no-triggers --install /mnt/new/*.deb
runs_once
second=$(guardian)
test "$first" != "$second"
dpkg --no-triggers --install /mnt/older.deb
runs_once
test "$second" != "$(guardian)"
test "$token" = "$(cat /var/lib/kymo/token)"
grep -x 'cap = "777M"' /etc/kymo/kymo.toml
journalctl --no-pager --output cat --unit kymo.service | grep 'cap 777 MiB'
test "$(systemctl --failed --plain --no-legend | grep -c kymo)" = 0
dpkg --no-triggers --purge kymo
test -z "$(pgrep --exact kymo)"
kymo_user=$(stat --format %U /var/lib/kymo)
test "$kymo_user" = kymo
echo all is well
"#;

/// Packs the older package and today's into a folder that the scripts see as /mnt. `None`: the test must be skipped.
fn packages(scratch: &Scratch, tools: &[&str]) -> Option<PathBuf> {
    let program = static_program()?;
    if machine::must_skip(tools) {
        return None;
    }
    let folder = scratch.path("mnt");
    pack(&program, VERSION, &folder.join("new"), &["deb"]);
    pack_older(&program, &folder);
    let deb = only_file(&folder.join("new"), "deb").display().to_string();
    let tree = folder.join("tree").display().to_string();
    tool_output("dpkg-deb", &["--extract", &deb, &tree]);
    Some(folder)
}

#[test]
fn an_upgrade_and_a_downgrade_keep_what_is_the_administrators() {
    let scratch = Scratch::new("packages-upgrade");
    let tools = [
        "dpkg-deb",
        "apt-get",
        "unshare",
        "setpriv",
        "deb-systemd-helper",
    ];
    let Some(folder) = packages(&scratch, &tools) else {
        return;
    };
    let script = format!("{OLDER}{FILES}");
    let Some(stdout) = in_private_root(&scratch.path("mounts"), &folder, &script) else {
        return;
    };
    let lines: Vec<&str> = stdout.lines().collect();
    for line in [
        "UPGRADED",
        "# One more line.",
        "install ok installed",
        "NEXT",
        "kymo\t0.1.0~20261127",
        "DOWNGRADED",
        "PURGED",
    ] {
        assert!(lines.contains(&line), "no {line:?}: {stdout}");
    }
    assert!(
        stdout.contains("recordings are still in /var/lib/kymo"),
        "{stdout}"
    );
}

#[test]
fn an_upgrade_and_a_downgrade_leave_each_service_running_once() {
    let scratch = Scratch::new("packages-upgrade-service");
    let tools = [
        "dpkg-deb",
        "unshare",
        "systemctl",
        "deb-systemd-invoke",
        "pgrep",
        "python3",
    ];
    let Some(folder) = packages(&scratch, &tools) else {
        return;
    };
    let script = format!("{OLDER}{SERVICE}");
    let Some(log) = under_private_systemd(&scratch.path("mounts"), &folder, &script) else {
        return;
    };
    assert!(log.contains("\nall is well\n"), "{log}");
}
