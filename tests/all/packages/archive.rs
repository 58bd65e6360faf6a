//! The archive with install.sh.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use kymo_tests::Scratch;
use kymo_tests::package_root::{pack, static_program};

use super::{VERSION, only_file, output_of, text, tool_output};

/// `install.sh --user` in a home folder of its own, and its end.
#[test]
fn the_archive_is_installed_without_root_and_removed() {
    let Some(program) = static_program() else {
        return;
    };
    let scratch = Scratch::new("packages-user");
    let (out, home) = (scratch.path("out"), scratch.path("home dir"));
    pack(&program, VERSION, &out, &["tarball"]);
    fs::create_dir_all(&home).expect("a home folder");
    let archive = only_file(&out, "gz");
    tool_output(
        "tar",
        &[
            "-xzf",
            &archive.display().to_string(),
            "-C",
            &scratch.text("out"),
        ],
    );
    let name = archive
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let install = out
        .join(name.trim_end_matches(".tar.gz"))
        .join("install.sh");
    let run = |options: &[&str]| {
        let output = Command::new(&install)
            .args(options)
            .env("HOME", &home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("DESTDIR")
            .output()
            .expect("install.sh");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let stdout = run(&["--user"]);
    assert!(stdout.contains("export PATH="), "{stdout}");
    let installed = home.join(".local/bin/kymo");
    let mode = fs::metadata(&installed)
        .expect("the program")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
    let version = output_of(&installed, &["--version"]);
    assert_eq!(text(&version.stdout).trim(), format!("kymo {VERSION}"));
    let unit = fs::read_to_string(home.join(".config/systemd/user/kymo.service")).expect("a unit");
    let start = format!("ExecStart=\"{}\" serve", installed.display());
    assert!(unit.contains(&start), "{unit}");
    // Again, as an upgrade does.
    run(&["--user"]);
    run(&["--user", "--uninstall"]);
    let left = tool_output("find", &[&home.display().to_string(), "-type", "f"]);
    assert_eq!(left, "");
}
