//! The suite itself: how `make test` reports failures, and a machine that lacks tools for building.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Output of `tests/failed.awk` for this output of `cargo test`.
fn repeated(output: &str) -> String {
    let child = Command::new("awk")
        .args(["-f", "tests/failed.awk"])
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("awk");
    let mut input = child.stdin.take().expect("its stdin");
    input.write_all(output.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("its output");
    String::from_utf8(output.stdout).expect("text")
}

const PASSED: &str = "test result: ok. 5 passed; 0 failed; 0 ignored\n";
const FAILED: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored\n";

#[test]
fn what_failed_is_repeated_alone() {
    let output = format!(
        "{PASSED}failures:\n\n---- a::b stdout ----\npanicked\n\nfailures:\n    a::b\n    a::c\n\n{FAILED}\
         error: test failed, to rerun pass `-p kymo-store --test all`\n{PASSED}\
         failures:\n\n---- d stdout ----\n\nfailures:\n    d\n\n{FAILED}\
         error: 2 targets failed:\n    `-p kymo-store --test all`\n    `-p kymo-view --lib`\n"
    );
    assert_eq!(
        repeated(&output),
        "-p kymo-store --test all -- --exact a::b a::c\n-p kymo-view --lib -- --exact d\n"
    );
    assert_eq!(repeated(PASSED), "");
}

#[test]
fn a_test_program_that_was_killed_is_repeated_as_a_whole() {
    let output = format!(
        "failures:\n    a\n\n{FAILED}(signal: 6, SIGABRT: process abort signal)\n\
         error: 2 targets failed:\n    `-p kymo-view --lib`\n    `-p kymo-base --lib`\n"
    );
    assert_eq!(
        repeated(&output),
        "-p kymo-view --lib\n-p kymo-base --lib\n"
    );
}

/// Runs `make tools`; true if it succeeded, and its output.
fn tools(settings: &[&str]) -> (bool, String) {
    let output = Command::new("make")
        .args(["--no-print-directory", "tools"])
        .env_remove("MAKEFLAGS")
        .args(settings)
        .current_dir(root())
        .output()
        .expect("make");
    let said = String::from_utf8_lossy(&output.stderr);
    (
        output.status.success(),
        said.lines().next().unwrap_or_default().to_string(),
    )
}

#[test]
fn what_building_lacks_is_said_in_one_line() {
    assert_eq!(tools(&[]), (true, String::new()));
    for (setting, says) in [
        ("CARGO=no-such-cargo", "cargo is missing; install Rust 1.95"),
        ("RUST=99.0", "is too old; install 99.0 or later"),
        ("CC=no-such-cc", "a C compiler (no-such-cc) is missing"),
    ] {
        let (content, said) = tools(&[setting]);
        assert!(!content, "{setting}");
        assert!(
            said.starts_with("cannot build kymo: ") && said.contains(says),
            "{setting}: {said}"
        );
    }
}
