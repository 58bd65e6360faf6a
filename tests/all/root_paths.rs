//! Root in folders of other users: kymo follows no link of another user, and changes no file behind one.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use kymo_tests::served::eventually;
use kymo_tests::{Running, Scratch, is_root, kymo, machine};

/// The user `nobody`.
const OTHER: u32 = 65534;

/// A folder of root, and a folder of another user with a link to it.
struct Planted {
    scratch: Scratch,
    before: (u32, u32, u32),
}

fn state(path: &Path) -> (u32, u32, u32) {
    let stat = fs::metadata(path).expect("a folder");
    (stat.uid(), stat.gid(), stat.mode())
}

impl Planted {
    /// Makes `link`, below the other user's folder `data`, a link to `victim`.
    fn new(name: &str, link: &str) -> Option<Planted> {
        if !is_root() {
            machine::skipped("not root");
            return None;
        }
        let scratch = Scratch::new(name);
        for name in ["", "victim", "data"] {
            fs::create_dir_all(scratch.path(name)).expect("a folder");
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(scratch.path(name), open).expect("chmod");
        }
        symlink(scratch.path("victim"), scratch.path("data").join(link)).expect("a link");
        let link = scratch.path("data").join(link);
        lchown(link, Some(OTHER), Some(OTHER)).expect("his link");
        chown(scratch.path("data"), Some(OTHER), Some(OTHER)).expect("his folder");
        let before = state(&scratch.path("victim"));
        Some(Planted { scratch, before })
    }

    fn is_refused(&self, arguments: &[&str], part: &str) {
        let mut command = Command::new(kymo());
        command.args(arguments).stdin(Stdio::null());
        let published = self.scratch.path("published");
        let child = command.env("KYMO_DIR", published).stderr(Stdio::piped());
        let mut child = Running(child.spawn().expect("kymo starts"));
        let mut stderr = child.0.stderr.take().expect("its stderr");
        let end = eventually(|| child.0.try_wait().ok().flatten());
        drop(child);
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("its stderr");
        assert!(end.is_some_and(|end| !end.success()), "{said}");
        assert!(said.contains(part), "{said}");
        let victim = self.scratch.path("victim");
        assert_eq!(state(&victim), self.before);
        assert!(fs::read_dir(&victim).expect("a folder").next().is_none());
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_of_kymo_serve_gives_nothing_away() {
    let Some(planted) = Planted::new("planted-serve", "poll") else {
        return;
    };
    let (mrtg, config) = (
        planted.scratch.text("a.cfg"),
        planted.scratch.text("kymo.toml"),
    );
    fs::write(&mrtg, "LogFormat: rrdtool\n").expect("a file");
    fs::write(
        &config,
        format!("[listen]\ncollectd = []\n[poll]\nmrtg = [\"{mrtg}\"]\n"),
    )
    .expect("a file");
    let data = planted.scratch.text("data");
    let listen = "127.0.0.1:0";
    planted.is_refused(
        &[
            "serve", "--config", &config, "--data", &data, "--listen", listen,
        ],
        "data/poll: it is a link, and another user may have put it there",
    );
}

#[test]
fn a_link_in_the_place_of_a_recording_leads_the_recorder_nowhere() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let folder = format!("{}-{}", host.trim(), &boot[..8]);
    let Some(planted) = Planted::new("planted-record", &folder) else {
        return;
    };
    let data = planted.scratch.text("data");
    planted.is_refused(
        &["record", "-c", "1", "-i", "0.1", "-f", &data],
        "it is a link, and another user may have put it there",
    );
}
