//! `kymo export`: a part of a recording in one file, which all commands can read.

use std::fs;

use kymo_tests::{Scratch, run, stdout_of};

/// Played rows, without headers.
fn rows(words: &[&str]) -> Vec<String> {
    let text = stdout_of(words);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(str::to_string).collect()
}

/// Playing the file gives the same rows as playing the folder.
#[test]
fn a_file_plays_as_its_recording() {
    let scratch = Scratch::new("exported");
    let (dir, file) = (scratch.text("ring"), scratch.text("whole.kymo"));
    // A small size of blocks makes several of them.
    stdout_of(&[
        "record",
        "-s",
        "cdnmZ",
        "-i",
        ".05:.05",
        "-c",
        "40",
        "--seal-bytes",
        "100k",
        "-f",
        &dir,
    ]);
    stdout_of(&["export", &dir, &file]);
    for letters in ["-scdnm", "-sCDN"] {
        let of = |path: &str| rows(&["play", path, letters, "-P", "-oUm2"]);
        assert_eq!(of(&file), of(&dir), "{letters}");
        assert!(of(&file).len() >= 30, "{letters}");
    }
    let processes = |path: &str| stdout_of(&["play", path, "-sZ", "--json"]);
    assert_eq!(processes(&file), processes(&dir));
    assert_eq!(
        stdout_of(&["dump", &file, "--source", "proc/stat"]),
        stdout_of(&["dump", &dir, "--source", "proc/stat"])
    );
    let svg = scratch.text("out.svg");
    stdout_of(&["graph", "-s", "c", "-o", &svg, &file]);
    assert!(fs::metadata(&svg).is_ok_and(|about| about.len() > 1000));
    let names = fs::read_dir(scratch.path("")).expect("a folder");
    assert_eq!(names.count(), 3, "nothing else is left");
    // An existing file is never overwritten.
    let again = run(&["export", &dir, &file]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("it is there already"));
}

/// A part begins with the key frame before it.
#[test]
fn a_part_of_it() {
    let scratch = Scratch::new("exported-part");
    let (dir, file) = (scratch.text("ring"), scratch.text("part.kymo"));
    stdout_of(&["record", "-s", "c", "-i", ".05", "-c", "100", "-f", &dir]);
    let times = rows(&["play", &dir, "-sc", "-P", "-oU"]);
    let second = |row: &str| -> i64 {
        let first = row.split(' ').next().expect("a time");
        first.parse().expect("a number")
    };
    let middle = second(&times[times.len() / 2]);
    let at = |secs: i64| {
        let date = std::process::Command::new("date")
            .args(["-d", &format!("@{secs}"), "+%Y%m%d:%H:%M:%S"])
            .output();
        String::from_utf8_lossy(&date.expect("date").stdout)
            .trim()
            .to_string()
    };
    stdout_of(&[
        "export",
        "--from",
        &at(middle),
        "--thru",
        &at(middle),
        &dir,
        &file,
    ]);
    let part = rows(&["play", &file, "-sc", "-P", "-oU"]);
    let of_second = |rows: &[String]| {
        let of = rows.iter().filter(|row| second(row) == middle);
        of.cloned().collect::<Vec<_>>()
    };
    assert!(!of_second(&part).is_empty());
    assert_eq!(of_second(&part), of_second(&times));
    assert!(
        part.len() < times.len(),
        "{} of {}",
        part.len(),
        times.len()
    );
    let nothing = run(&[
        "export",
        "--from",
        "20200101",
        "--thru",
        "20200101",
        &dir,
        &scratch.text("none.kymo"),
    ]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(!scratch.path("none.kymo").exists());
}

/// A truncated file plays up to its end, and stderr reports the damage.
#[test]
fn a_cut_or_damaged_file() {
    let scratch = Scratch::new("exported-cut");
    let (dir, file) = (scratch.text("ring"), scratch.path("whole.kymo"));
    stdout_of(&[
        "record",
        "-s",
        "cdnmZ",
        "-i",
        ".05:.05",
        "-c",
        "40",
        "--seal-bytes",
        "100k",
        "-f",
        &dir,
    ]);
    stdout_of(&["export", &dir, &file.to_string_lossy()]);
    let bytes = fs::read(&file).expect("the file");
    let cut = scratch.path("cut.kymo");
    fs::write(&cut, &bytes[..bytes.len() - bytes.len() / 20]).expect("a file");
    let output = run(&["play", &cut.to_string_lossy(), "-sc", "-P"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.is_empty(), "what is missing is said");
    fs::write(&cut, &bytes[..40]).expect("a file");
    let output = run(&["play", &cut.to_string_lossy(), "-sc"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cut.kymo: it is cut short"), "{said}");
}

/// A folder that is missing was named as `x.kymo.4711.blocks`, which is a folder that the program makes for itself.
#[test]
fn messages_name_the_file_of_the_person() {
    let scratch = Scratch::new("exported-names");
    let dir = scratch.text("ring");
    stdout_of(&["record", "-s", "c", "-i", ".05", "-c", "3", "-f", &dir]);
    fs::write(scratch.path("file"), "no folder").expect("a file");
    for (file, cause) in [
        (
            "missing/a.kymo",
            "there is no folder MISSING; make it first",
        ),
        ("file/a.kymo", "Not a directory"),
    ] {
        let path = scratch.text(file);
        let output = run(&["export", &dir, &path]);
        assert_eq!(output.status.code(), Some(2));
        let cause = cause.replace("MISSING", &scratch.text("missing"));
        let expected = format!("kymo: cannot write {path}: {cause}\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    }
}

/// A name below the file that is no block of it was opened, and failed only where it was read.
#[test]
fn a_name_below_the_file_is_looked_for_in_it() {
    let scratch = Scratch::new("exported-below");
    let (dir, file) = (scratch.text("ring"), scratch.text("whole.kymo"));
    stdout_of(&["record", "-s", "c", "-i", ".05", "-c", "3", "-f", &dir]);
    stdout_of(&["export", &dir, &file]);
    for name in ["x", "20260101-000000-0.kymo", "x/y"] {
        let path = format!("{file}/{name}");
        for command in ["play", "dump", "why"] {
            let output = run(&[command, &path]);
            assert_eq!(output.status.code(), Some(2), "{command} {name}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(&path), "{command} {name}: {said}");
        }
    }
}
