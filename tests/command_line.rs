//! The program as its user meets it: bad usage is one clear line and exit code 2, names from
//! outside never reach the terminal raw, a closed pipe ends quietly, an interrupt ends live well.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn kymo(args: &[&str]) -> Output {
    Command::new(kymo_tests::kymo())
        .args(args)
        .output()
        .expect("kymo")
}

fn capture() -> String {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/vm-20261121-215607.raw.gz"
    )
    .to_string()
}

#[test]
fn bad_usage_is_one_clear_line() {
    let raw = capture();
    for (args, expect) in [
        (&["-sq"] as &[&str], "cannot use -s q: no such subsystem"),
        (&["-sj"], "cannot use -s j: not yet"),
        (&["-i", "x"], "cannot use -i x: not a number of seconds"),
        (
            &["-i5:7", "-scZ"],
            "cannot use -i 5:7: the second interval is not a multiple",
        ),
        (&["-c0"], "cannot use -c 0: not a number of intervals"),
        (
            &["-p", "/no/such/file", "-sc"],
            "cannot open /no/such/file: No such file",
        ),
        (&["play", &raw, "-sz"], "cannot use -s z: no such subsystem"),
        (
            &["play", &raw, "-sc", "--from", "25:00"],
            "cannot use --from 25:00: not a time",
        ),
        (
            &["play", &raw, "-sc", "--thru", "yesterday"],
            "cannot use --thru yesterday: not a time",
        ),
        (&["play", &raw, "-sc", "-oq"], "cannot use -o q: it takes"),
        (&["play", &raw, "-sc", "-og"], "cannot use -o g: not yet"),
        (
            &["play", &raw, "-sc", "--sep", "ab"],
            "cannot use --sep ab: not a separator",
        ),
        (
            &["play", &raw, "--top", "best"],
            "cannot use --top best: no such order",
        ),
        (
            &["play", &raw, "-sZ", "--procfilt", "z1"],
            "cannot use --procfilt z1: it begins with one of",
        ),
        (
            &["play", &raw, "-sZ", "--procopts", "q"],
            "cannot use --procopts q: it takes",
        ),
        (
            &["play", &raw, "-sC", "-sD"],
            "cannot use --subsys <LETTERS>: given twice",
        ),
        (
            &["play", &raw, "-sCD", "--csv"],
            "cannot use --csv: one table at a time",
        ),
        (
            &["play", &raw, "-scZ", "-P"],
            "cannot use -P: processes have lines of their own",
        ),
        (
            &["play", &raw, "-sc", "-f", "x"],
            "cannot use -f here: only plot files",
        ),
        (&["--export", "lexpr"], "cannot use --export: not yet"),
        (&["--nonsense"], "cannot use --nonsense: no such switch"),
        (&["play", env!("CARGO_MANIFEST_DIR")], "cannot "),
    ] {
        let output = kymo(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(
            said.starts_with(expect) && said.trim_end().lines().count() == 1,
            "{args:?}: {said}"
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// A raw file whose disks, interfaces and processes have the names an attacker would give them.
fn hostile() -> PathBuf {
    let header = "# Collectl:   V4.3.1\n# Host:       v\x1b[2Jm\n# Booted:     1000.0 [x]\n# Date:  x  Secs: 1 TZ: +0000\n# SubSys: cdnZ Options:  Interval: 1:1 NumCPUs: 1\n# HZ: 100  Arch: x PageSize: 4096\n";
    let names = [
        "\x1b]52;c;AA\x07",
        "a\u{9b}31m",
        "\u{202e}b",
        "c\rd",
        "q\"u,o;te",
    ];
    let mut text = header.to_string();
    for n in 0..3 {
        text += &format!(">>> {}.0 <<<\ncpu  {n} 0 0 {n}00 0 0 0 0 0 0\n", 2000 + n);
        for (pid, name) in names.iter().enumerate() {
            text += &format!(
                "disk 8 {pid} {name} {n} 0 0 0 0 0 0 0 0 0 0\nNet {name}: {n} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            );
            text += &format!(
                "proc:{0} stat {0} ({name}) \x1b 1 0 0 0 -1 0 0 0 0 0 {n} 0 0 0 20 0 1 0 5 4096 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0\nproc:{0} Uid:\t0\t0\nproc:{0} cmd /x/{name} --\x1b[31m\n",
                pid + 10
            );
        }
    }
    let path = std::env::temp_dir().join(format!("kymo-hostile-{}.raw", std::process::id()));
    fs::write(&path, text + ">>> 2003.0 <<<\n").expect("a temporary file");
    path
}

#[test]
fn names_never_reach_the_terminal_raw() {
    let path = hostile();
    let name = path.to_str().expect("a name");
    for args in [
        &["-scdn"] as &[&str],
        &["-scdn", "--verbose"],
        &["-sCDN"],
        &["-sZ"],
        &["-sZ", "--procopts", "w"],
        &["-sZ", "--procopts", "iw"],
        &["--top"],
        &["-sCDN", "-P"],
        &["-sZ", "-P"],
        &["-sZ", "-P", "--sep", ","],
        &["-sD", "--csv"],
        &["-sZ", "--csv"],
        &["-scdnCDNZ", "--json"],
    ] {
        let output = kymo(&[&["play", name], args].concat());
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).expect("text");
        let raw = text
            .chars()
            .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(raw, None, "{args:?}");
    }
    let output = kymo(&["play", name, "-sZ", "--csv"]);
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("\"q\"\"u,o;te\""),
        "quotes are doubled"
    );
    fs::remove_file(path).expect("the temporary file");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = Command::new(kymo_tests::kymo())
        .args(["-sc", "-i.01", "-c200"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kymo");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout"))
        .read_line(&mut line)
        .expect("a line");
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("stderr")
        .read_to_string(&mut said)
        .expect("text");
    assert_eq!(
        (child.wait().expect("an end").code(), said.as_str()),
        (Some(0), "")
    );
}

#[test]
fn an_interrupt_ends_live_well() {
    let mut child = Command::new(kymo_tests::kymo())
        .args(["-scdnmp", "-i.1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("kymo");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    for _ in 0..4 {
        lines.next().expect("a line").expect("text");
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .expect("kill")
            .success()
    );
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

/// Plot files live, as `-P -f DIR` writes them.
#[test]
fn live_plot_files() {
    let dir = std::env::temp_dir().join(format!("kymo-live-plot-{}", std::process::id()));
    let output = kymo(&[
        "-scD",
        "-i.05",
        "-c3",
        "-P",
        "-oz",
        "-f",
        dir.to_str().expect("a name"),
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut suffixes: Vec<_> = fs::read_dir(&dir)
        .expect("a folder")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let rows = fs::read_to_string(&path)
                .expect("text")
                .lines()
                .filter(|line| !line.starts_with('#'))
                .count();
            (
                path.extension()
                    .expect("a suffix")
                    .to_string_lossy()
                    .into_owned(),
                rows,
            )
        })
        .collect();
    suffixes.sort();
    assert_eq!(suffixes, [("dsk".to_string(), 3), ("tab".to_string(), 3)]);
    fs::remove_dir_all(dir).expect("the folder");
}
