//! Where files go, and what stands in the way: a full file system, a folder of somebody else, a link. In a namespace of mounts, where
//! `/dev/shm` and `/run` are this test's own; both writers behave alike.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_shm::{Kind, Publisher, Schema};

use crate::c::compile;

/// The writer in Rust, in a separate process: prints the path of its file, or why there is none.
#[test]
#[ignore = "the others start it"]
fn writer() {
    let mut schema = Schema::new("writer", 2);
    let commands = schema.counter(kymo_shm::Description::new("commands_total", ""));
    let (publisher, why) = Publisher::create_or_disabled(&schema);
    let mut slot = publisher.take();
    slot.begin(Kind::Plain, b"before", 0, 0);
    slot.add(commands, 1);
    let outcome = match (publisher.path(), why) {
        (Some(path), _) => path.display().to_string(),
        (None, why) => why.expect("a cause").to_string(),
    };
    writeln!(std::io::stdout(), "\n{outcome}").expect("standard output");
    std::process::exit(0);
}

/// True if separate mount namespaces can be made; prints the reason if not.
fn has_namespaces() -> bool {
    let has = Command::new("unshare")
        .args(["-m", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !has {
        kymo_sys::skipped::skipped("needs root and unshare");
    }
    has
}

/// Writers, each as a command line of the shell.
fn writers(folder: &Path) -> [String; 2] {
    let by_c = compile("tests/all/programs/writer.c", folder, &[]);
    let by_rust = std::env::current_exe().expect("this program");
    [
        format!("{} usual", by_c.display()),
        format!(
            "{} --exact places::writer --ignored --nocapture",
            by_rust.display()
        ),
    ]
}

/// The lines of a script that say something of files or causes, in a namespace where `/dev/shm` has `size` and `/run` is empty.
fn run(writer: &str, size: &str, script: &str) -> Vec<String> {
    let script = format!(
        "set -e; unset KYMO_DIR; mount -t tmpfs -o size={size},mode=1777 none /dev/shm; mount -t tmpfs none /run; \
         publish() {{ {writer}; }}; {script}"
    );
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output()
        .expect("unshare");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let is_outcome = |line: &&str| {
        line.starts_with('/') || line.starts_with("cannot ") || line.starts_with("- ")
    };
    text.lines()
        .filter(is_outcome)
        .map(str::to_string)
        .collect()
}

/// A folder on the disk that is gone at the end.
struct OnDisk(PathBuf);

impl OnDisk {
    fn new(name: &str) -> OnDisk {
        let path = std::env::temp_dir().join(format!("kymo-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder");
        OnDisk(path)
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_goes_where_it_may() {
    if !has_namespaces() {
        return;
    }
    let folder = OnDisk::new("places");
    for writer in writers(&folder.0) {
        let lines = run(
            &writer,
            "1m",
            "publish; stat -c '- %a %u' /dev/shm/kymo-$(id -u) /dev/shm/kymo-$(id -u)/*",
        );
        let own = format!("/dev/shm/kymo-{}", rustix::process::geteuid().as_raw());
        assert!(lines[0].starts_with(&format!("{own}/kymo.")), "{lines:?}");
        assert_eq!(lines[1..], ["- 700 0", "- 640 0"]);
        let lines = run(
            &writer,
            "1m",
            "umask 077; mkdir -p /run/kymo/pub; publish; stat -c '- %a' /run/kymo/pub/*; ls /dev/shm",
        );
        assert!(lines[0].starts_with("/run/kymo/pub/kymo."), "{lines:?}");
        assert_eq!(lines[1..], ["- 640"], "{lines:?}");
        let lines = run(
            &writer,
            "1m",
            "mkdir /run/chosen; export KYMO_DIR=/run/chosen; publish",
        );
        assert!(lines[0].starts_with("/run/chosen/kymo."), "{lines:?}");
    }
}

#[test]
fn a_program_goes_on_where_no_file_can_be() {
    if !has_namespaces() {
        return;
    }
    let folder = OnDisk::new("refusals");
    let cases = [
        (
            "ln -s /run /dev/shm/kymo-0",
            "it is no folder of this user alone",
        ),
        (
            "touch /dev/shm/kymo-0",
            "it is no folder of this user alone",
        ),
        (
            "mkdir -m 755 /dev/shm/kymo-0",
            "it is no folder of this user alone",
        ),
        (
            "mkdir -m 700 /dev/shm/kymo-0; chown 1 /dev/shm/kymo-0",
            "it is no folder of this user alone",
        ),
        ("export KYMO_DIR=/run/missing", "No such file or directory"),
        (
            "ln -s /dev/shm /run/link; export KYMO_DIR=/run/link",
            "cannot open folder /run/link",
        ),
        ("export KYMO_DIR=/", "it is not in memory (tmpfs)"),
        (
            "head -c 1048576 /dev/zero >/dev/shm/full || true",
            "cannot allocate a file in /dev/shm/kymo-0: No space left on device",
        ),
        (
            "mkdir -p /run/kymo/pub; mount -t tmpfs -o ro none /run/kymo/pub",
            "cannot publish in /run/kymo/pub: it is read-only here; mount it read-write",
        ),
        (
            "mount -o remount,ro /dev/shm",
            "cannot make folder /dev/shm/kymo-0: it is read-only here",
        ),
        (
            "mkdir /run/chosen; mount -t tmpfs -o ro none /run/chosen; export KYMO_DIR=/run/chosen",
            "cannot make a file in /run/chosen: it is read-only here",
        ),
        (
            "mount -o remount,nr_inodes=2 /dev/shm",
            "cannot make a file in /dev/shm/kymo-0: No space left on device",
        ),
    ];
    for writer in writers(&folder.0) {
        for (script, cause) in cases {
            let lines = run(
                &writer,
                "1m",
                &format!(
                    "{script}; publish; find /dev/shm /run -name 'kymo.*' -printf '- left %p\\n'"
                ),
            );
            assert!(
                lines.len() == 1 && lines[0].contains(cause),
                "{script}: {lines:?}, not {cause}"
            );
        }
    }
}
