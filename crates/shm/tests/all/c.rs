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

/// The header alone, by compilers and versions of the languages that programs use.
#[test]
fn the_header_compiles_without_warnings() {
    let folder = crate::folder::Folder::new("header");
    for (compiler, language, flags) in [
        ("cc", "c", &["-std=c11", "-O2"][..]),
        (
            "cc",
            "c",
            &[
                "-std=c11",
                "-O0",
                "-Wshadow",
                "-Wcast-align",
                "-Wconversion",
            ][..],
        ),
        ("cc", "c", &["-std=gnu17", "-O3", "-D_GNU_SOURCE"][..]),
        // As PostgreSQL compiles its extensions.
        (
            "cc",
            "c",
            &[
                "-std=gnu99",
                "-O2",
                "-fPIC",
                "-fwrapv",
                "-Wmissing-prototypes",
                "-Wdeclaration-after-statement",
                "-Wvla",
            ][..],
        ),
        ("c++", "c++", &["-std=c++17", "-O2"][..]),
        ("c++", "c++", &["-std=gnu++20", "-O2"][..]),
    ] {
        let (source, object) = (
            folder.path().join("header.src"),
            folder.path().join("header.o"),
        );
        std::fs::write(
            &source,
            "#include \"kymo.h\"\nint main(void) { return 0; }\n",
        )
        .expect("a source");
        let output = Command::new(compiler)
            .args(flags)
            .args(STRICT)
            .arg("-I")
            .arg(crate_folder().join("../../include"))
            .args(["-x", language, "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .output()
            .expect("a compiler");
        assert!(
            output.status.success(),
            "{flags:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
