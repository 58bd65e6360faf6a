//! The .deb: its scripts from install to purge, alone and under a systemd, and the names of other programs.

use kymo_tests::package_root::{in_private_root, pack, static_program, under_private_systemd};
use kymo_tests::{Scratch, machine};

use super::VERSION;

/// From the first install to the purge, on a copy of this machine.
const LIFE: &str = r#"
wants=/etc/systemd/system/multi-user.target.wants/kymo.service
rm -rf /etc/kymo /var/lib/kymo
userdel kymo 2>/dev/null || :
dpkg --no-triggers --install /mnt/old/*.deb
test -L $wants
test ! -e /etc/systemd/system/multi-user.target.wants/kymo-rrdcached.service
getent passwd kymo
getent group kymo
kymo --version
kymo serve --check --data /var/lib/kymo
dpkg --verify kymo
echo '# mine' >>/etc/kymo/kymo.toml
install -d -o kymo -g kymo /var/lib/kymo
echo numbers >/var/lib/kymo/numbers
systemd-analyze verify kymo.service kymo-rrdcached.service run-kymo-pub.mount
dpkg --no-triggers --install /mnt/new/*.deb
dpkg-query --show kymo
grep mine /etc/kymo/kymo.toml
test -L $wants
systemctl disable kymo.service
dpkg --no-triggers --install /mnt/new/*.deb
test ! -e $wants
dpkg --no-triggers --remove kymo
test -e /etc/kymo/kymo.toml
test ! -e /usr/bin/kymo
dpkg --no-triggers --purge kymo
test ! -e /etc/kymo
test ! -e $wants
getent passwd kymo
cat /var/lib/kymo/numbers
"#;

#[test]
fn the_deb_is_installed_upgraded_and_purged() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&[
        "dpkg-deb",
        "unshare",
        "systemd-analyze",
        "deb-systemd-helper",
    ]) {
        return;
    }
    let scratch = Scratch::new("packages-life");
    pack(&program, "0.0.9", &scratch.path("out/old"), &["deb"]);
    pack(&program, VERSION, &scratch.path("out/new"), &["deb"]);
    let mounts = scratch.path("mounts");
    let Some(stdout) = in_private_root(&mounts, &scratch.path("out"), LIFE) else {
        return;
    };
    assert!(stdout.contains("kymo\t0.1.0"), "{stdout}");
    assert!(
        stdout.contains("recordings are still in /var/lib/kymo"),
        "{stdout}"
    );
    assert!(stdout.trim_end().ends_with("numbers"), "{stdout}");
}

/// The service under a systemd: after the first install, after an upgrade, switched off, and after the purge.
const SERVICE: &str = r#"
stopped() {
  test "$(systemctl is-active "$1")" != active
}
# Machines in the cloud and containers have one that says no.
rm -rf /etc/kymo /var/lib/kymo /usr/sbin/policy-rc.d
dpkg --no-triggers --install /mnt/old/*.deb
systemctl is-active kymo.service run-kymo-pub.mount
first=$(systemctl show --property MainPID --value kymo.service)
test -s /var/lib/kymo/token
sed -n 's/^Cap[AE]/&/p' /proc/$first/status
dpkg --no-triggers --install /mnt/new/*.deb
systemctl is-active kymo.service
second=$(systemctl show --property MainPID --value kymo.service)
test "$first" != "$second"
install -D -m 644 /usr/share/kymo/connects-out.conf /etc/systemd/system/kymo.service.d/connects-out.conf
systemctl daemon-reload
systemctl show --property IPAddressAllow kymo.service
systemctl start kymo-rrdcached.service
systemctl is-active kymo-rrdcached.service
systemctl disable --now kymo.service
dpkg --no-triggers --install /mnt/new/*.deb
stopped kymo.service
systemctl enable --now kymo.service
systemctl is-active kymo.service
dpkg --no-triggers --purge kymo
stopped kymo.service
stopped kymo-rrdcached.service
test -z "$(pgrep --exact kymo)"
test -s /var/lib/kymo/token
echo all is well
"#;

#[test]
fn the_deb_starts_restarts_and_stops_the_service() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&[
        "dpkg-deb",
        "unshare",
        "systemctl",
        "deb-systemd-invoke",
        "pgrep",
    ]) {
        return;
    }
    let scratch = Scratch::new("packages-service");
    pack(&program, "0.0.9", &scratch.path("out/old"), &["deb"]);
    pack(&program, VERSION, &scratch.path("out/new"), &["deb"]);
    let mounts = scratch.path("mounts");
    let Some(log) = under_private_systemd(&mounts, &scratch.path("out"), SERVICE) else {
        return;
    };
    assert!(log.contains("\nall is well\n"), "{log}");
    assert!(log.contains("0.0.0.0/0"), "{log}");
}

/// Takes names of programs that another package has, that nobody has, and gives them back.
const NAMES: &str = r#"
printf '#!/bin/sh\necho real\n' >/usr/bin/mrtg.new
chmod 755 /usr/bin/mrtg.new
mv /usr/bin/mrtg.new /usr/bin/mrtg
rm -f /usr/bin/rrdcached
dpkg --no-triggers --install /mnt/*.deb >/dev/null
kymo-names list
kymo-names take mrtg
kymo-names take rrdcached
kymo-names list
/usr/bin/mrtg.real
update-alternatives --set mrtg /usr/bin/mrtg.real >/dev/null
mrtg
kymo-names give-back mrtg
mrtg
kymo-names take mrtg
dpkg --no-triggers --remove kymo >/dev/null
mrtg
test ! -e /usr/bin/rrdcached
test ! -e /usr/bin/mrtg.real
"#;

#[test]
fn names_of_other_programs_are_taken_and_given_back() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["dpkg-deb", "unshare", "update-alternatives"]) {
        return;
    }
    let scratch = Scratch::new("packages-names");
    pack(&program, VERSION, &scratch.path("out"), &["deb"]);
    let mounts = scratch.path("mounts");
    let Some(stdout) = in_private_root(&mounts, &scratch.path("out"), NAMES) else {
        return;
    };
    let lines: Vec<&str> = stdout
        .lines()
        .filter(|line| !line.starts_with("collectl") && !line.starts_with("rrdtool"))
        .collect();
    let expected = [
        "mrtg: /usr/bin/mrtg",
        "rrdcached: not there",
        "mrtg: kymo",
        "rrdcached: kymo",
        "real",
        "real",
        "real",
        "real",
    ];
    assert_eq!(lines, expected, "{stdout}");
}
