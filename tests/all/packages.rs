//! Packages: the same bytes twice, a program that needs no file of a machine, units, settings.
//! `debian.rs` has the .deb, `upgrade.rs` its way from an older one.

mod archive;
mod debian;
mod image;
mod rpm;
mod upgrade;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kymo_tests::package_root::{pack, project, static_program};
use kymo_tests::served::eventually;
use kymo_tests::{Running, Scratch, kymo, machine};

/// Version of the packages here.
const VERSION: &str = "0.1.0";

fn output_of(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    output.expect("the program")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output of a tool, which must succeed.
fn tool_output(program: &str, arguments: &[&str]) -> String {
    let output = output_of(program, arguments);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    text(&output.stdout)
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

/// The file of a folder that has this extension.
fn only_file(folder: &Path, extension: &str) -> PathBuf {
    let is_it = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let found: Vec<PathBuf> = files_of(folder).into_iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().expect("the file")
}

/// Two runs, the second one with other files in its way, give the same bytes, and SHA256SUMS has all of them.
#[test]
fn packages_are_the_same_bytes_twice() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["dpkg-deb", "rpmbuild", "pg_config"]) {
        return;
    }
    let scratch = Scratch::new("packages-twice");
    let (first, second) = (scratch.path("first"), scratch.path("second"));
    pack(&program, VERSION, &first, &[]);
    // A copy has another time, and a folder of the last run is in the way.
    let copy = scratch.path("kymo");
    fs::copy(&program, &copy).expect("a copy");
    fs::create_dir_all(second.join(".work/root/usr/bin")).expect("a folder");
    fs::write(second.join(".work/root/usr/bin/left"), "left").expect("a file");
    pack(&copy, VERSION, &second, &[]);
    let names: Vec<String> = files_of(&first)
        .iter()
        .map(|path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    for part in [
        "-static.tar.gz",
        ".deb",
        ".rpm",
        "-image.tar",
        "postgresql-",
    ] {
        let found = names.iter().any(|name| name.contains(part));
        assert!(found, "no {part} in {names:?}");
    }
    for name in &names {
        let read = |folder: &Path| fs::read(folder.join(name)).expect("a package");
        assert!(read(&first) == read(&second), "{name} is another one");
    }
    let sums = fs::read_to_string(first.join("SHA256SUMS")).expect("checksums");
    assert_eq!(sums.lines().count() + 1, names.len(), "{sums}");
    let checked = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&first)
        .status();
    assert!(checked.expect("sha256sum").success());
}

/// A folder with the program and nothing else that belongs to a system.
fn empty_root(scratch: &Scratch, program: &Path) -> PathBuf {
    let root = scratch.path("root");
    fs::create_dir_all(root.join("etc")).expect("a folder");
    machine::copy_program(program, &root.join("kymo"));
    root
}

fn in_root(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).arg("/kymo").args(arguments);
    command.stdin(Stdio::null());
    command
}

/// The program of the packages needs no loader, library or other file.
#[test]
fn the_program_runs_in_an_empty_folder() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["chroot"]) {
        return;
    }
    let scratch = Scratch::new("packages-empty");
    let root = empty_root(&scratch, &program);
    let output = in_root(&root, &["--version"]).output().expect("chroot");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).trim(), format!("kymo {VERSION}"));
    let output = in_root(&root, &["config"]).output().expect("chroot");
    assert!(text(&output.stdout).contains("[record]"));
}

/// Story: a static program that asks glibc's modules for names finds nobody, or crashes, where another glibc is. This
/// nsswitch.conf names a module that is nowhere, and neither files nor DNS.
#[test]
fn the_program_finds_users_groups_and_hosts_without_modules() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["chroot"]) {
        return;
    }
    let scratch = Scratch::new("packages-names");
    let root = empty_root(&scratch, &program);
    for (name, lines) in [
        (
            "nsswitch.conf",
            "passwd: nowhere\ngroup: nowhere\ninitgroups: nowhere\nhosts: nowhere\n",
        ),
        ("passwd", "root:x:0:0::/:/\nwalter:x:4711:4711::/:/\n"),
        ("group", "root:x:0:\npeople:x:4712:walter\n"),
        ("hosts", "127.0.0.1 far.example\n"),
    ] {
        fs::write(root.join("etc").join(name), lines).expect("a file");
    }
    // The daemon reads its options in order, and names the first one that is wrong.
    let options = [
        "rrdcached",
        "-U",
        "walter",
        "-s",
        "people",
        "-U",
        "nobody-here",
    ];
    let output = in_root(&root, &options).output().expect("chroot");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("\"nobody-here\" to a user"), "{stderr}");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let daemon = format!("far.example:{port}");
    let mut asks = in_root(&root, &["rrd", "last", "/x.rrd", "--daemon", &daemon]);
    let asks = Running(asks.stderr(Stdio::null()).spawn().expect("chroot"));
    listener.set_nonblocking(true).expect("a flag");
    let came = eventually(|| listener.accept().ok());
    drop(asks);
    assert!(came.is_some(), "nobody came to {daemon}");
}

#[test]
fn units_of_the_service_are_confined() {
    if machine::must_skip(&["systemd-analyze"]) {
        return;
    }
    for unit in ["kymo.service", "kymo-rrdcached.service"] {
        let unit = project().join("dist").join(unit).display().to_string();
        // Tenths: 20 is 2.0.
        let options = [
            "security",
            "--offline=true",
            "--threshold=20",
            "--no-pager",
            &unit,
        ];
        let output = output_of("systemd-analyze", &options);
        let stdout = text(&output.stdout);
        assert!(
            output.status.success(),
            "{}",
            stdout.lines().last().unwrap_or_default()
        );
    }
}

/// The file of settings in the packages is all comments. The settings in its comments are right.
#[test]
fn settings_of_the_packages_are_right_with_and_without_their_comments() {
    let scratch = Scratch::new("packages-settings");
    let shipped = fs::read_to_string(project().join("dist/kymo.toml")).expect("dist/kymo.toml");
    let all = shipped.replace("\n#", "\n").replacen("# Settings", "#", 1);
    let keys =
        |line: &&str| line.starts_with('[') || (line.contains('=') && !line.starts_with(' '));
    let all: Vec<&str> = all.lines().filter(keys).collect();
    assert!(all.len() > 5, "{all:?}");
    for text in [shipped.clone(), all.join("\n")] {
        let file = scratch.text("kymo.toml");
        fs::write(&file, &text).expect("a file");
        let data = scratch.text("data");
        let output = output_of(
            kymo(),
            &["serve", "--check", "--config", &file, "--data", &data],
        );
        let stderr = self::text(&output.stderr);
        assert!(output.status.success(), "{text}\n{stderr}");
    }
}

#[test]
fn scripts_of_a_shell_have_no_known_flaw() {
    if machine::must_skip(&["shellcheck"]) {
        return;
    }
    let folders =
        ["dist", "dist/pack", "dist/debian", "tests", ".ci"].map(|name| project().join(name));
    let mut scripts: Vec<PathBuf> = folders.iter().flat_map(|folder| files_of(folder)).collect();
    scripts.retain(|file| is_script_of_a_shell(file));
    assert!(scripts.len() > 18, "{scripts:?}");
    let checked = Command::new("shellcheck")
        .arg("--external-sources")
        .args(&scripts)
        .current_dir(project())
        .output()
        .expect("shellcheck");
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}

fn is_script_of_a_shell(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    let first = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    first.starts_with(b"#!") && first.ends_with(b"sh")
}
