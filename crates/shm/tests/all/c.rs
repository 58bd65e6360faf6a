//! Programs in C that include `kymo.h`, compiled when a test needs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Warnings that a program which includes the header may have turned on.
const STRICT: &[&str] = &["-Wall", "-Wextra", "-pedantic", "-Werror"];

pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a file beneath this crate into a program in `folder`.
pub(crate) fn compile(source: &str, folder: &Path, flags: &[&str]) -> PathBuf {
    let source = crate_folder().join(source);
    let program = folder.join(source.file_stem().expect("a name"));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O2"])
        .args(STRICT)
        .args(flags)
        .arg("-I")
        .arg(crate_folder().join("../../include"))
        .arg("-o")
        .args([&program, &source])
        .output()
        .expect("a C compiler");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// Sources that use all of the header, by languages.
const SOURCES: [(&str, &str); 3] = [
    ("c", "examples/publish.c"),
    ("c", "tests/all/programs/owners.c"),
    ("c++", "tests/all/programs/header.cc"),
];

/// Programs that include the header may turn warnings into errors. The warnings depend on inlining, so all optimisation levels
/// are tried with programs that call all functions.
#[test]
fn the_header_compiles_without_warnings() {
    let folder = crate::folder::Folder::new("header");
    let object = folder.path().join("header.o");
    let flags_of_postgres =
        "-fPIC -fwrapv -Wmissing-prototypes -Wdeclaration-after-statement -Wvla";
    let versions = [
        ("c", "-std=c99"),
        ("c", "-std=c11"),
        ("c", "-std=c17 -Wshadow -Wcast-align -Wconversion"),
        ("c", "-std=gnu99"),
        ("c", "-std=gnu11"),
        ("c++", "-std=c++11 -Wshadow"),
        ("c++", "-std=gnu++20 -Wconversion"),
    ];
    for (language, version) in versions {
        for (of, source) in SOURCES.iter().filter(|(of, _)| *of == language) {
            for compiler in ["gcc", "clang"] {
                for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
                    check(compiler, of, &format!("{version} {level}"), source, &object);
                }
            }
        }
    }
    for (compiler, version) in [
        ("gcc", "-std=c99"),
        ("clang", "-std=c11"),
        ("gcc", "-std=gnu99"),
    ] {
        let flags = format!("{version} {flags_of_postgres} -O2");
        check(
            compiler,
            "c",
            &flags,
            "tests/all/programs/header.c",
            &object,
        );
    }
}

fn check(compiler: &str, language: &str, flags: &str, source: &str, object: &Path) {
    let output = Command::new(compiler)
        .args(flags.split_ascii_whitespace())
        .args(STRICT)
        .arg("-I")
        .arg(crate_folder().join("../../include"))
        .args(["-x", language, "-c"])
        .arg(crate_folder().join(source))
        .arg("-o")
        .arg(object)
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run {compiler}: {why}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} {flags} {source}: {message}"
    );
}

/// A thread's memory, with its slot, is gone when the process forks: the handler of fork wrote into it.
#[test]
fn a_slot_whose_thread_has_ended_is_not_touched() {
    let folder = crate::folder::Folder::new("thread-slot");
    let flags = ["-fsanitize=address", "-pthread"];
    let program = compile("tests/all/programs/thread_slot.c", folder.path(), &flags);
    let mut command = Command::new(program);
    let output = command
        .env("KYMO_DIR", folder.path())
        .output()
        .expect("it runs");
    let [text, message] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(
        output.status.success() && text == "done\n",
        "{text}{message}"
    );
}
