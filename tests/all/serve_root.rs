//! `kymo serve --root`: the machine below a folder, as a container has it.

use std::os::unix::fs::symlink;
use std::path::Path;

use kymo_tests::served::{Served, eventually};
use kymo_tests::{Scratch, put, run};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A container sees the machine below a folder: `--root` has kymo record that machine, with its names of users.
#[test]
fn serve_records_the_machine_below_a_folder() {
    let scratch = Scratch::new("packages-root");
    let host = scratch.path("host");
    put(&host, "etc/passwd", "captain:x:0:0::/:/bin/sh\n");
    for folder in ["proc", "sys"] {
        let real = Path::new("/").join(folder);
        symlink(real, host.join(folder)).expect("a link");
    }
    let (host, data) = (host.display().to_string(), scratch.text("data"));
    let mut served = Served::start(&["--root", &host, "--data", &data, "--listen", "127.0.0.1:0"]);
    served.address();
    let named = eventually(|| {
        let output = run(&["play", &data, "--top", "time,100"]);
        text(&output.stdout).contains(" captain ").then_some(())
    });
    assert!(named.is_some(), "no process of captain: {:#?}", served.said);
    let nowhere = scratch.text("nowhere");
    let output = run(&["serve", "--root", &nowhere, "--check"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    let expected =
        format!("cannot record the machine below {nowhere}: cannot open {nowhere}/proc/stat");
    assert!(stderr.contains(&expected), "{stderr}");
}
