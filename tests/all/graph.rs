//! `kymo graph` from its user's side: a recording of this machine becomes a picture, an error is one
//! clear line, and no half-written file is ever left.

use std::fs;
use std::path::Path;

use kymo_tests::{Scratch, run, stdout_of};

/// Three seconds of this machine with gzip at work.
fn recording(scratch: &Scratch) -> String {
    let dir = scratch.text("ring");
    stdout_of(&["record", "-scdnmp", "-i.1", "-R3s", "-f", &dir]);
    dir
}

/// Width and height in a PNG's header.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "PNG's magic");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.flatten().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_recording_becomes_a_picture() {
    let scratch = Scratch::new("graph");
    let ring = recording(&scratch);
    fs::create_dir(scratch.path("out")).expect("folder");
    let (svg, png) = (scratch.text("out/x.svg"), scratch.text("out/x.PNG"));
    stdout_of(&["graph", "-s", "cdnm", "-o", &svg, &ring]);
    let drawn = fs::read_to_string(&svg).expect("svg");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    for word in [
        "CPU", "Load", "Disks", "Network", "Memory", "min", "avg", "max", "last", "GiB",
    ] {
        assert!(drawn.contains(&format!(">{word}</text>")), "{word}");
    }
    assert!(drawn.matches("<path").count() > 20, "curves are drawn");
    let options = ["--width", "640", "--height", "100", "--theme", "dark"];
    let fields = "cpu.user,cpu.total:*,memory.free";
    stdout_of(&[&["graph", "-s", fields, "-o", &png][..], &options, &[&ring]].concat());
    let bytes = fs::read(&png).expect("png");
    let (width, height) = png_size(&bytes);
    assert_eq!(width, 640);
    assert!((300..600).contains(&height), "{height}");
    // A blank picture of this size has less than 2 kB.
    assert!(bytes.len() > 8000, "{} bytes", bytes.len());
    assert_eq!(names(&scratch.path("out")), ["x.PNG", "x.svg"]);
}

#[test]
fn a_file_of_collectls_is_drawn_too() {
    let scratch = Scratch::new("graph-collectl");
    let raw = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/vm-20261121-215607.raw.gz"
    );
    let svg = scratch.text("x.svg");
    stdout_of(&["graph", "-s", "cd", "-o", &svg, raw]);
    let drawn = fs::read_to_string(&svg).expect("svg");
    assert!(drawn.contains("Sat 21 Nov 2026 21:56:0"), "{drawn}");
}

#[test]
fn wrong_usage_is_one_clear_line() {
    let scratch = Scratch::new("graph-errors");
    let raw = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/vm-20261121-215607.raw.gz"
    );
    let missing = scratch.text("no/such/x.svg");
    let svg = scratch.text("x.svg");
    for (args, code, expect) in [
        (
            &["-o", "x.gif", raw][..],
            2,
            "cannot draw x.gif: the name must end in .svg or .png",
        ),
        (
            &["-o", "svg", raw],
            2,
            "cannot draw svg: the name must end in .svg or .png",
        ),
        (
            &[raw],
            2,
            "cannot run kymo: --output <FILE> is missing; see kymo graph --help",
        ),
        (
            &["-o", &svg],
            2,
            "cannot run kymo: <PATH>... is missing; see kymo graph --help",
        ),
        (
            &["-o", &svg, "/no/such"],
            2,
            "cannot open /no/such: No such file",
        ),
        (
            &["-o", &svg, "-sq", raw],
            2,
            "cannot draw q: no such graphs",
        ),
        (
            &["-o", &svg, "-scpu.usr", raw],
            2,
            "cannot find field \"cpu.usr\": no such column",
        ),
        (
            &["-o", &svg, "-s", "", raw],
            2,
            "cannot draw nothing: no letters and no fields",
        ),
        (
            &["-o", &svg, "--width", "20", raw],
            2,
            "cannot use --width 20: not a number from 300 to 8000",
        ),
        (
            &["-o", &svg, "--height", "x", raw],
            2,
            "cannot use --height x: not a number from 40 to 2000",
        ),
        (
            &["-o", &svg, "--points", "0", raw],
            2,
            "cannot use --points 0: not a number from 2 to 100000",
        ),
        (
            &["-o", &svg, "--theme", "red", raw],
            2,
            "cannot use --theme <light|dark> red: it takes light, dark",
        ),
        (
            &["-o", &svg, "--from", "25:00", raw],
            2,
            "cannot use --from 25:00: not a time",
        ),
        // A file that is not there may be meant as an expression.
        (
            &["-o", &svg, "mistyped"],
            2,
            "cannot open mistyped: there is no such file; as an expression: ",
        ),
        (
            &["-o", &svg, "--step", "5s", raw],
            2,
            "cannot use --step and --open: they are of an expression; see kymo graph --help",
        ),
        (&["-o", &missing, raw], 2, "cannot write "),
        (
            &["-o", &svg, "--from", "10:00", "--thru", "10:05", raw],
            1,
            &format!(
                "cannot draw {svg}: nothing was recorded in Sat 21 Nov 2026 10:00:00 – 10:05:00"
            ),
        ),
        (
            &[
                "-o",
                &svg,
                "--from",
                "20261122:10:00",
                "--thru",
                "20261122:09:00",
                raw,
            ],
            2,
            "cannot draw anything: it ends before it begins",
        ),
    ] {
        let output = run(&[&["graph"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(
            said.starts_with(&format!("kymo: {expect}")) && said.lines().count() == 1,
            "{args:?}: {said}"
        );
    }
    assert!(names(&scratch.path("")).is_empty(), "nothing is left");
}
