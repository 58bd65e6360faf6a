//! Recordings as texts: `--grep`, `--extract`, `--showheader`, and `--showcolheaders`, beside collectl itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kymo_tests::{Scratch, run, stdout_of};

const RAW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/golden/vm-20261121-215607.raw.gz"
);
const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-0");

fn collectl(words: &[&str]) -> String {
    let output = Command::new("/usr/bin/collectl")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("collectl, which `make test` installs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn lines_that_match() {
    for (pattern, stamp) in [
        ("^ctxt", "-oT"),
        ("^ctxt|^load", "-oDm"),
        (r"^proc:\d+ cmd", "-odm"),
        (r"eth0:\s+\d", "-oD"),
        ("no such line", "-oT"),
    ] {
        let words = ["-p", RAW, "--grep", pattern, stamp];
        let (theirs, ours) = (collectl(&words), run(&words));
        let ours = String::from_utf8_lossy(&ours.stdout).into_owned();
        // collectl prints a message where nothing is found.
        let theirs = if pattern.starts_with("no such") {
            String::new()
        } else {
            theirs
        };
        assert_eq!(ours, theirs, "{words:?}");
        assert_eq!(ours.is_empty(), pattern.starts_with("no such"));
    }
    let part = stdout_of(&[
        "-p", RAW, "--grep", "^ctxt", "--from", "21:56:09", "--thru", "21:56:10",
    ]);
    let times: Vec<&str> = part.lines().map(|line| &line[..8]).collect();
    assert_eq!(times, ["21:56:09", "21:56:10"]);
}

#[test]
fn lines_of_a_recording_stand_behind_the_names_of_their_files() {
    let found = stdout_of(&["-p", RECORDING, "--grep", "^ctxt [0-9]+$", "-oDm"]);
    assert!(found.lines().count() > 1, "{found}");
    for line in found.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(
            words.len() == 5 && words[2..4] == ["proc/stat", "ctxt"],
            "{line}"
        );
    }
    let none = run(&["-p", RECORDING, "--grep", "no such line"]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn heads_alone() {
    for words in [
        &["-scdn"] as &[&str],
        &["-sc", "--verbose"],
        &["-sC"],
        &["-sD", "-oTm"],
        &["-sN"],
        &["-sZ"],
        &["-scm", "-P"],
        &["--vmstat"],
        &["-scdn", "--iosize"],
    ] {
        let words = [&["-p", RAW, "--showcolheaders"], words].concat();
        assert_eq!(stdout_of(&words), collectl(&words), "{words:?}");
    }
    let all = stdout_of(&["-p", RAW, "--showcolheaders", "-scdCD"]);
    let theirs = collectl(&["-p", RAW, "--showcolheaders", "-scdCD"]);
    assert!(all.starts_with(&theirs), "{all}");
    for title in [
        "CPU SUMMARY",
        "SINGLE CPU",
        "DISK SUMMARY",
        "DISK STATISTICS",
    ] {
        assert!(all.contains(title), "{title}: {all}");
    }
    let words = ["--showcolheaders", "-scdn"];
    assert_eq!(stdout_of(&words), collectl(&words));
}

#[test]
fn what_a_file_begins_with() {
    let words = ["-p", RAW, "--showheader"];
    assert_eq!(stdout_of(&words), collectl(&words));
    let (ours, theirs) = (stdout_of(&["--showheader"]), collectl(&["--showheader"]));
    for key in ["Host:", "HZ:", "Kernel:", "NumDisks:", "NumNets:"] {
        let line = |text: &str| {
            let line = text.lines().find(|line| line.contains(key));
            line.unwrap_or_else(|| panic!("no {key} in {text}"))
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        // collectl has other words for the architecture and for speeds, and another order of interfaces.
        let words = if ["HZ:", "NumNets:"].contains(&key) {
            3
        } else {
            99
        };
        let begin = |text: &str| {
            line(text)
                .split(' ')
                .take(words)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(begin(&ours), begin(&theirs));
    }
    let of_recording = stdout_of(&["-p", RECORDING, "--showheader"]);
    assert!(
        of_recording.contains("# SubSys:") && of_recording.contains(" RECORDED "),
        "{of_recording}"
    );
}

/// Both programs play the extract, and it has the samples between the given times.
#[test]
fn a_part_of_a_file() {
    let scratch = Scratch::new("extract");
    let folder = scratch.text("");
    let name = Path::new(RAW)
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    for (to, made) in [
        (folder.clone(), scratch.path(&name)),
        (scratch.text("web"), scratch.path(&format!("web-{name}"))),
    ] {
        let words = [
            "-p",
            RAW,
            "--extract",
            &to,
            "--from",
            "21:56:09",
            "--thru",
            "21:56:11",
        ];
        let output = run(&words);
        assert!(output.status.success(), "{output:?}");
        let part = made.to_string_lossy().into_owned();
        let shown = |file: &str| stdout_of(&["-p", file, "-scdnm", "-oT"]);
        let (part_rows, whole) = (shown(&part), shown(RAW));
        let rows: Vec<&str> = part_rows
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        let times: Vec<&str> = rows.iter().map(|row| &row[..8]).collect();
        assert_eq!(times, ["21:56:10", "21:56:11"], "{part_rows}");
        assert!(rows.iter().all(|row| whole.contains(row)), "{part_rows}");
        let words = ["-p", &part, "-scdn", "-oT"];
        assert_eq!(stdout_of(&words), collectl(&words));
        let again = run(&["-p", RAW, "--extract", &to, "--from", "21:56:09"]);
        assert_eq!(again.status.code(), Some(2), "what is there stays");
    }
    let none = run(&[
        "-p",
        RAW,
        "--extract",
        &scratch.text("n"),
        "--from",
        "23:00:00",
    ]);
    assert_eq!(none.status.code(), Some(1));
    assert!(!scratch.path(&format!("n-{name}")).exists());
    let words = ["-p", RECORDING, "--extract", &folder, "--from", "00:00:00"];
    let output = run(&words);
    let extracted = scratch.text("recording-0.kymo");
    assert!(
        output.status.success() && fs::metadata(&extracted).is_ok(),
        "{output:?}"
    );
    let heads = |path: &str| stdout_of(&["-p", path, "--showcolheaders", "-sc"]);
    assert_eq!(heads(&extracted), heads(RECORDING));
}

#[test]
fn what_is_refused() {
    for (words, cause) in [
        (&["--grep", "x"] as &[&str], "it is for what is played"),
        (&["--extract", "x"], "it is for what is played"),
        (&["-p", RAW, "--grep", "("], "cannot use --grep"),
        (&["-p", RAW, "--extract", "x"], "--from or --thru"),
        (
            &["-p", RAW, "--extract", "x", "-sc", "--from", "1:00"],
            "-s",
        ),
        (&["--showcolheaders", "-i1"], "cannot use -i"),
        (&["--showcolheaders", "-c1"], "cannot use -c"),
        (&["--showheader", "-f", "x"], "cannot use -f"),
        (
            &["-p", RAW, "--showcolheaders", "--json"],
            "--showcolheaders",
        ),
        (&["-sc", "--tcpfilt", "i", "-c1"], "--tcpfilt"),
        (&["-st", "--tcpfilt", "x", "-c1"], "--tcpfilt"),
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains(cause) && said.lines().count() == 1,
            "{words:?}: {said}"
        );
    }
}
