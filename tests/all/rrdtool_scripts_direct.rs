//! rrdtool's own test scripts in direct style, with `kymo rrd` in the place of src/rrdtool: each script that passes with
//! stock passes. Graphs stay stock's: scripts that draw get a `src/rrdtool` that passes drawing on to it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kymo_tests::source_package::source_package;
use kymo_tests::{Scratch, kymo};

/// Scripts that draw.
const DRAWING: [&str; 7] = [
    "create-with-source-4",
    "graph1",
    "graph2",
    "rpn1",
    "rpn2",
    "vformatter1",
    "xport1",
];
/// Files that are not scripts, or do not test rrdtool.
const NO_SCRIPTS: [&str; 3] = ["functions", "Makefile", "compat-cloexec"];

/// Makes a copy of the tests, and lets `place` make src/rrdtool.
fn arrange(scratch: &Scratch, name: &str, place: impl Fn(&Path)) -> PathBuf {
    let root = scratch.path(name);
    fs::create_dir_all(root.join("src")).expect("a folder");
    let tests = source_package("rrdtool").join("tests");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(&tests)
        .arg(root.join("tests"))
        .status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "cannot copy {}",
        tests.display()
    );
    place(&root.join("src/rrdtool"));
    root.join("tests")
}

/// Runs a script; the error is its log. Some failures show only in the output.
fn run(tests: &Path, script: &str) -> Result<(), String> {
    let mut command = Command::new("bash");
    command
        .arg(format!("./{script}"))
        .current_dir(tests)
        .stdin(Stdio::null());
    command
        .env("BASEDIR", tests)
        .env("BUILDDIR", tests)
        .env("TOP_BUILDDIR", tests.join(".."));
    command
        .env("TESTS_STYLE", "")
        .env_remove("RRDTOOL")
        .env_remove("RRDCACHED_ADDRESS");
    let output = command.output().expect("bash");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    match output.status.success() && !said.contains("FAIL") {
        true => Ok(()),
        false => Err(format!("{script}: {}\n{said}", output.status)),
    }
}

fn scripts() -> Vec<String> {
    let entries = fs::read_dir(source_package("rrdtool").join("tests"))
        .expect("tests")
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter(|name| {
            !name.contains('.')
                && !NO_SCRIPTS.contains(&name.as_str())
                && name != "valgrind-supressions"
        })
        .collect();
    names.sort();
    names
}

#[test]
fn scripts_pass_wherever_they_pass_with_stock() {
    let scratch = Scratch::new("scripts");
    let stock = arrange(&scratch, "stock", |at| {
        symlink("/usr/bin/rrdtool", at).expect("a link")
    });
    let ours = arrange(&scratch, "ours", |at| symlink(kymo(), at).expect("a link"));
    let drawing = arrange(&scratch, "drawing", |at| {
        let text = format!(
            "#!/bin/sh\ncase \"$1\" in graph*|xport) exec rrdtool \"$@\";; *) exec {} rrd \"$@\";; esac\n",
            kymo().display()
        );
        fs::write(at, text).expect("a script");
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("its mode");
    });
    let (mut passed, mut wrong) = (0, Vec::new());
    for script in scripts() {
        if run(&stock, &script).is_err() {
            continue;
        }
        let place = if DRAWING.contains(&script.as_str()) {
            &drawing
        } else {
            &ours
        };
        match run(place, &script) {
            Ok(()) => passed += 1,
            Err(log) => wrong.push(log),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} scripts:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(passed >= 20, "only {passed} scripts pass with stock");
}
