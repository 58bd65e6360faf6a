//! The archive with install.sh, the image and the .rpm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use kymo_tests::package_root::{pack, static_program};
use kymo_tests::{Scratch, machine};
use serde_json::Value;

use super::{VERSION, files_of, output_of, text, tool_output};

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
    let archive = files_of(&out)
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .expect("the archive");
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

/// Hash that a descriptor of the image names, and the bytes that it stands for.
fn blob(layout: &Path, digest: &Value) -> Vec<u8> {
    let hash = digest
        .as_str()
        .expect("a digest")
        .trim_start_matches("sha256:");
    let path = layout.join("blobs/sha256").join(hash);
    let sum = tool_output("sha256sum", &[&path.display().to_string()]);
    assert!(sum.starts_with(hash), "{sum}");
    fs::read(path).expect("a blob")
}

/// The image is a layout of the OCI; each digest and size in it is right, and its layer has what the program needs.
#[test]
fn the_image_is_an_oci_layout() {
    let Some(program) = static_program() else {
        return;
    };
    let scratch = Scratch::new("packages-image");
    pack(&program, VERSION, &scratch.path("out"), &["image"]);
    let image = files_of(&scratch.path("out"))
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "tar"))
        .expect("the image");
    let layout = scratch.path("layout");
    fs::create_dir_all(&layout).expect("a folder");
    tool_output(
        "tar",
        &[
            "-xf",
            &image.display().to_string(),
            "-C",
            &scratch.text("layout"),
        ],
    );
    let json = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).expect("JSON") };
    let index = json(&fs::read(layout.join("index.json")).expect("an index"));
    let entry = &index["manifests"][0];
    let manifest_bytes = blob(&layout, &entry["digest"]);
    assert_eq!(entry["size"], manifest_bytes.len());
    let manifest = json(&manifest_bytes);
    let config_bytes = blob(&layout, &manifest["config"]["digest"]);
    assert_eq!(manifest["config"]["size"], config_bytes.len());
    let config = json(&config_bytes);
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/kymo");
    let user = config["config"]["User"].as_str().expect("a user");
    assert!(!user.starts_with('0'), "{user}");
    let layer = &manifest["layers"][0];
    assert_eq!(layer["size"], blob(&layout, &layer["digest"]).len());
    let hash = layer["digest"]
        .as_str()
        .expect("a digest")
        .trim_start_matches("sha256:");
    let path = layout.join("blobs/sha256").join(hash).display().to_string();
    let plain = tool_output("sh", &["-c", &format!("gzip -dc '{path}' | sha256sum")]);
    let expected = format!("sha256:{}", plain.split(' ').next().unwrap_or_default());
    assert_eq!(config["rootfs"]["diff_ids"][0], expected);
    let listed = tool_output("tar", &["-tvzf", &path, "--numeric-owner"]);
    let owned = user.replace(':', "/");
    for (file, part) in [
        ("./usr/bin/kymo", "0/0"),
        ("./var/lib/kymo/", &owned),
        ("./tmp/", "drwxrwxrwt"),
    ] {
        let line = listed.lines().find(|line| line.ends_with(file));
        assert!(
            line.is_some_and(|line| line.contains(part)),
            "{file}: {listed}"
        );
    }
}

/// Words of the .rpm's scripts and files, as rpm reads them.
#[test]
fn the_rpm_has_the_files_and_scripts() {
    let Some(program) = static_program() else {
        return;
    };
    if machine::must_skip(&["rpmbuild", "rpm"]) {
        return;
    }
    let scratch = Scratch::new("packages-rpm");
    pack(&program, VERSION, &scratch.path("out"), &["rpm"]);
    let rpm = files_of(&scratch.path("out"))
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "rpm"))
        .expect("the package");
    let rpm = rpm.display().to_string();
    let files = tool_output("rpm", &["-qlp", &rpm]);
    for file in [
        "/usr/bin/kymo",
        "/etc/kymo/kymo.toml",
        "/usr/lib/systemd/system/kymo.service",
        "/usr/share/man/man1/kymo.1.gz",
    ] {
        assert!(files.lines().any(|line| line == file), "{file}: {files}");
    }
    assert_eq!(
        tool_output("rpm", &["-qcp", &rpm]).trim(),
        "/etc/kymo/kymo.toml"
    );
    assert!(
        tool_output("rpm", &["-qp", "--scripts", &rpm]).contains("systemctl start kymo.service")
    );
    // Another root, without the scripts, which are for a system that runs.
    let root = scratch.text("root");
    fs::create_dir_all(&root).expect("a folder");
    let options = [
        "-i",
        "--root",
        &root,
        "--nodeps",
        "--noscripts",
        "--nosignature",
        &rpm,
    ];
    tool_output("rpm", &options);
    let installed = output_of(format!("{root}/usr/bin/kymo"), &["--version"]);
    assert!(installed.status.success());
}
