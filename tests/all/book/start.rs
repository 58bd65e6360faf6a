//! The commands of docs/start.md, one after the other as a reader types them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use kymo_tests::served::{Served, eventually};
use kymo_tests::{Scratch, kymo};

use super::Document;
use super::commands::commands;

/// Runs a line in a folder, by a shell that finds kymo.
fn typed(line: &str, scratch: &Scratch) -> Output {
    let folder = kymo().parent().expect("its folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(scratch.path(""))
        .env("PATH", format!("{folder}:{path}"))
        .stdin(Stdio::null())
        .output();
    output.unwrap_or_else(|error| panic!("cannot run sh: {error}"))
}

#[test]
fn the_first_ten_minutes_are_as_written() {
    let document = Document::read(Path::new("docs/start.md"));
    let mut commands = commands(&document);
    commands.sort();
    let scratch = Scratch::new("start");
    let data = scratch.text("kymo-data");
    let mut served = Served::start(&["--data", &data, "--listen", "127.0.0.1:0"]);
    served.address();
    // Series of this machine come after 30 s; by then there are scans of processes, too.
    let listed = eventually(|| {
        let output = typed("kymo series ls job=kymo --data ./kymo-data", &scratch);
        (!output.stdout.is_empty()).then_some(())
    });
    assert!(
        listed.is_some(),
        "no series of this machine: {:#?}",
        served.said
    );
    let mut count = 0;
    for (line, command) in commands {
        // This one does not end.
        if command.starts_with("kymo serve") {
            continue;
        }
        count += 1;
        let output = typed(&command, &scratch);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // On a busy machine doctor may find a slow file.
        let is_doctor = command == "kymo doctor" && output.status.code() == Some(1);
        assert!(
            output.status.success() || is_doctor,
            "docs/start.md:{line}: {command}: {}: {stderr}",
            output.status
        );
    }
    assert!(count > 10, "only {count} commands were found");
    let top = typed("kymo play ./kymo-data --top time,3 --from -2min", &scratch);
    let top = String::from_utf8_lossy(&top.stdout);
    assert!(top.contains("TOP PROCESSES"), "{top}");
    for file in ["spike.png", "spike.kymo"] {
        assert!(scratch.path(file).is_file(), "{file} is missing");
    }
}
