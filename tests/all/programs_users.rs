//! Programs of several users publish: they are collected with the shipped unit, by a keeper without a capability, and by a
//! `kymo serve` of an ordinary user. Also `kymo programs` on a terminal.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kymo_tests::machine::copy_program;
use kymo_tests::served::{Served, eventually, status_of};
use kymo_tests::{Scratch, is_root, kymo};
use serde_json::Value;

const DAEMON: u32 = 1;
const NOBODY: u32 = 65_534;
/// User ids that this machine does not use: of the service, and of an ordinary user.
const SERVICE: u32 = 61_233;
const ORDINARY: u32 = 61_234;
/// Mode of the folder where programs of all users publish, as `kymo serve` of root and the mount unit set it.
const SHARED_MODE: u32 = 0o3777;

/// Runs a program as an ordinary user.
fn as_user(uid: u32, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        format!("--reuid={uid}"),
        format!("--regid={uid}"),
        "--clear-groups".to_string(),
        program.to_string(),
    ]);
    command
}

/// A folder that other users can reach, with programs and a data folder.
struct Place(Scratch);

impl Place {
    fn new(name: &str) -> Place {
        let scratch = Scratch::new(name);
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scratch.path(""), all).expect("chmod");
        copy_program(&kymo(), &scratch.path("kymo"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let compiled = Command::new("cc")
            .args(["-std=c11", "-O2", "-I"])
            .arg(root.join("include"))
            .arg(root.join("crates/shm/examples/publish.c"))
            .arg("-o")
            .arg(scratch.path("publish"))
            .status();
        assert!(compiled.expect("a C compiler").success());
        Place(scratch)
    }

    /// Makes a data folder that belongs to that user.
    fn data(&self, uid: u32) -> String {
        let data = self.0.path("data");
        fs::create_dir(&data).expect("a folder");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o750)).expect("chmod");
        chown(&data, Some(uid), Some(uid)).expect("chown");
        data.display().to_string()
    }

    /// Starts the example in C as that user, after this many commands.
    fn publish(&self, uid: u32, commands: u32, folder: &Path) -> Example {
        let mut command = as_user(uid, &self.0.text("publish"));
        command.arg(commands.to_string()).env("KYMO_DIR", folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example");
        let mut path = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut path).expect("a path");
        Example {
            child,
            path: path.trim().into(),
        }
    }
}

/// A running example and its file; the path is empty if it cannot publish.
struct Example {
    child: Child,
    path: PathBuf,
}

impl Drop for Example {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// User, life and count of reading commands of each publisher.
fn published(data: &str) -> Vec<(String, String, f64)> {
    let output = Command::new(kymo())
        .args(["programs", "--json", "--data", data])
        .output();
    let output = output.expect("kymo runs").stdout;
    let asked: Value = serde_json::from_slice(&output).unwrap_or_default();
    let publishers = asked["publishers"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<(String, String, f64)> = publishers
        .iter()
        .map(|each| {
            let text = |key: &str| each[key].as_str().unwrap_or("?").to_string();
            let metrics = each["metrics"].as_array().into_iter().flatten();
            let read = |metric: &&Value| {
                metric["name"] == "commands_total" && metric["labels"]["kind"] == "read"
            };
            let value = metrics
                .filter(read)
                .find_map(|metric| metric["value"].as_f64());
            (text("user"), text("life"), value.unwrap_or(-1.0))
        })
        .collect();
    found.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    found
}

fn wait(data: &str, wanted: &[(&str, &str, f64)]) {
    let owned =
        |(user, life, value): &(&str, &str, f64)| (user.to_string(), life.to_string(), *value);
    let wanted: Vec<_> = wanted.iter().map(owned).collect();
    let found = eventually(|| (published(data) == wanted).then_some(()));
    assert!(found.is_some(), "{wanted:?}: {:?}", published(data));
}

/// Two ways: as the unit does, an ordinary user with two capabilities, which the recorder uses, in a folder that exists
/// already; and from root, where `kymo serve` makes the folder and changes to that user itself.
#[test]
fn a_keeper_without_a_capability_collects_of_all_users_and_removes_what_is_left() {
    if !is_root() {
        kymo_tests::machine::skipped("only root can become other users");
        return;
    }
    for way in ["unit", "root"] {
        let place = Place::new(&format!("programs-users-{way}"));
        let data = place.data(SERVICE);
        let program = place.0.text("kymo");
        let folder = PathBuf::from(format!("/dev/shm/kymo-users-{way}-{}", std::process::id()));
        let served_by = |words: &[&str]| {
            let named = format!("KYMO_DIR={}", folder.display());
            Served::start_as("env", &[&[&named[..]], words].concat())
        };
        let words = [
            &program[..],
            "serve",
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
        ];
        let mut served = match way {
            "unit" => {
                fs::create_dir(&folder).expect("a folder");
                chown(&folder, Some(SERVICE), Some(SERVICE)).expect("chown");
                fs::set_permissions(&folder, fs::Permissions::from_mode(SHARED_MODE))
                    .expect("chmod");
                let caps = "-all,+dac_read_search,+sys_ptrace";
                let user = [format!("--reuid={SERVICE}"), format!("--regid={SERVICE}")];
                let caps = ["inh-caps", "ambient-caps", "bounding-set"]
                    .map(|set| format!("--{set}={caps}"));
                let setpriv = [
                    "setpriv",
                    "--clear-groups",
                    "--no-new-privs",
                    &user[0],
                    &user[1],
                ];
                let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
                served_by(&[&setpriv[..], &caps, &words].concat())
            }
            _ => served_by(&words),
        };
        served.has_said("keeper: user");
        let keeper = served.child("keeper").expect("a keeper");
        assert_eq!(status_of(keeper, "Uid")[1], SERVICE.to_string());
        for set in ["CapEff", "CapPrm", "CapAmb"] {
            assert_eq!(status_of(keeper, set), ["0000000000000000"], "{way}");
        }
        let made = fs::metadata(&folder).expect("the folder");
        assert_eq!((made.mode() & 0o7777, made.uid()), (SHARED_MODE, SERVICE));
        two_users_publish(&place, &data, &folder, made.gid());
        drop(served);
        fs::remove_dir_all(&folder).expect("removed");
    }
}

fn two_users_publish(place: &Place, data: &str, folder: &Path, group: u32) {
    let of_daemon = place.publish(DAEMON, 1000, folder);
    let of_nobody = place.publish(NOBODY, 400, folder);
    wait(
        data,
        &[("daemon", "alive", 750.0), ("nobody", "alive", 300.0)],
    );
    for (example, owner, other) in [(&of_daemon, DAEMON, NOBODY), (&of_nobody, NOBODY, DAEMON)] {
        let path = example.path.display().to_string();
        let file = fs::metadata(&path).expect("a file");
        assert_eq!(
            (file.mode() & 0o7777, file.uid(), file.gid()),
            (0o640, owner, group)
        );
        let may = |user: u32, program: &str| {
            let tried = as_user(user, program).arg(&path).output();
            tried.expect("setpriv runs").status.success()
        };
        assert!(may(owner, "cat"), "its owner reads it");
        assert!(!may(other, "cat"), "another user does not");
        assert!(!may(other, "rm"), "nor does he remove it");
    }
    let paths = [of_daemon.path.clone(), of_nobody.path.clone()];
    drop((of_daemon, of_nobody));
    wait(
        data,
        &[("daemon", "retired", 750.0), ("nobody", "retired", 300.0)],
    );
    let are_gone = eventually(|| (!paths.iter().any(|path| path.exists())).then_some(()));
    assert!(are_gone.is_some(), "the keeper removes them");
}

/// A user filled the folder with many files or one large file, and no other user could publish.
#[test]
fn a_user_who_fills_the_folder_keeps_nobody_from_publishing() {
    if !is_root() {
        kymo_tests::machine::skipped("only root can become other users");
        return;
    }
    let place = Place::new("programs-full");
    let data = place.data(SERVICE);
    let folder = PathBuf::from(format!("/dev/shm/kymo-full-{}", std::process::id()));
    let named = format!("KYMO_DIR={}", folder.display());
    let program = place.0.text("kymo");
    let words = [&named[..], &program, "serve", "--data", &data];
    let mut served = Served::start_as("env", &[&words[..], &["--listen", "127.0.0.1:0"]].concat());
    served.has_said("keeper: user");
    let of_nobody = place.publish(NOBODY, 400, &folder);
    wait(&data, &[("nobody", "alive", 300.0)]);
    let script = "seq 3000 | xargs touch; truncate -s 256M large; mkdir empty; ln -s kymo. link; mkfifo pipe";
    let filled = as_user(DAEMON, "sh")
        .args(["-c", script])
        .current_dir(&folder)
        .status();
    assert!(filled.expect("a shell").success());
    let has_less = || {
        let names = fs::read_dir(&folder).expect("the folder").flatten();
        let found = names.filter_map(|name| name.metadata().ok());
        let sizes = found
            .filter(|file| file.uid() == DAEMON)
            .map(|file| file.len());
        let sizes: Vec<u64> = sizes.collect();
        (sizes.len() <= 1024 && sizes.iter().sum::<u64>() <= 160 << 20).then_some(())
    };
    eventually(has_less).expect("files above the quota go");
    served.has_said("user daemon has more than 1,024 files where programs publish");
    let other = place.publish(ORDINARY, 200, &folder);
    let name = ORDINARY.to_string();
    wait(
        &data,
        &[(&name, "alive", 150.0), ("nobody", "alive", 300.0)],
    );
    drop((of_nobody, other, served));
    fs::remove_dir_all(&folder).expect("removed");
}

/// The folder is the one in which this user's programs publish by default.
#[test]
fn a_kymo_serve_of_an_ordinary_user_collects_his_own_programs() {
    if !is_root() {
        kymo_tests::machine::skipped("only root can become other users");
        return;
    }
    let uid = ORDINARY;
    let folder = PathBuf::from(format!("/dev/shm/kymo-{uid}"));
    let place = Place::new("programs-ordinary");
    let data = place.data(uid);
    let program = place.0.text("kymo");
    let user = format!("--reuid={uid}");
    let group = format!("--regid={uid}");
    let mut words = vec!["-u", "KYMO_DIR", "setpriv", &user, &group, "--clear-groups"];
    words.extend([
        &program[..],
        "serve",
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
    ]);
    let mut served = Served::start_as("env", &words);
    served.has_said("keeper: user");
    let made = fs::metadata(&folder).expect("the folder is made");
    assert_eq!((made.mode() & 0o7777, made.uid()), (0o700, uid));
    let own = place.publish(uid, 400, &folder);
    let other = place.publish(NOBODY, 400, &folder);
    assert!(own.path.starts_with(&folder), "{}", own.path.display());
    assert!(
        !other.path.starts_with(&folder),
        "another user cannot publish there"
    );
    let name = uid.to_string();
    wait(&data, &[(&name, "alive", 300.0)]);
    drop(own);
    wait(&data, &[(&name, "retired", 300.0)]);
    drop(served);
    fs::remove_dir_all(&folder).expect("removed");
}

/// A terminal of 24 lines is redrawn from its first line, until the program ends.
#[test]
fn on_a_terminal_programs_are_followed() {
    let place = crate::programs::Place::start("programs-terminal");
    let example = place.in_c(1000);
    let log = place.scratch("typescript");
    let command = format!(
        "stty rows 24 cols 100; exec {} programs --data {}",
        kymo().display(),
        place.data
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--flush", "--command", &command])
        .arg(&log)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("script runs");
    let written = || {
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        let screens = text.split("\x1b[H").map(str::to_string);
        screens.collect::<Vec<String>>()
    };
    let is_drawn = |screens: &[String], wanted: &str| {
        let whole = screens.iter().filter(|screen| screen.ends_with("\x1b[J"));
        whole.filter(|screen| screen.contains(wanted)).count()
    };
    let alive = eventually(|| (is_drawn(&written(), "alive") >= 2).then_some(()));
    assert!(alive.is_some(), "drawn again: {:?}", written().last());
    drop(example);
    let ended = eventually(|| (is_drawn(&written(), "all that have ended") >= 1).then_some(()));
    assert!(
        ended.is_some(),
        "what changes is seen: {:?}",
        written().last()
    );
    let screens = written();
    let screen = screens
        .iter()
        .rev()
        .find(|screen| screen.ends_with("\x1b[J"));
    let lines: Vec<&str> = screen.expect("a screen").lines().collect();
    assert!(lines.len() <= 24, "{} lines", lines.len());
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("example of ") && line.ends_with("\x1b[K"))
    );
    // Ctrl-C.
    let mut typed = terminal.stdin.take().expect("its input");
    typed.write_all(b"\x03").expect("typed");
    let end = eventually(|| terminal.try_wait().ok().flatten());
    assert!(end.is_some(), "it ends");
}
