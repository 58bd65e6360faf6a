//! The program from its user's side: wrong usage is one clear line and exit code 2, names from
//! outside never reach the terminal raw, a closed pipe ends quietly, an interrupt ends live well.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
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
        (
            &["-sl"],
            "cannot use -s l: Lustre is not read; a program can publish its numbers, see docs/programs.md",
        ),
        (&["-i", "x"], "cannot use -i x: not a number of seconds"),
        (
            &["-i5:7", "-scZ"],
            "cannot use -i 5:7: the second interval is not a multiple",
        ),
        (&["-c0"], "cannot use -c 0: not a number of intervals"),
        (
            &["-sc", "--from", "10:00"],
            "cannot use --from: it is for what is played; see -p",
        ),
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
        (
            &["play", &raw, "-sc", "-oX"],
            "cannot use -o X: exceptions have no file",
        ),
        (
            &["play", &raw, "-sc", "-oi"],
            "cannot use -o i: it is for -P live",
        ),
        (
            &["play", &raw, "-sc", "--home"],
            "cannot use --home: it has no effect",
        ),
        (
            &["play", &raw, "-sZ", "--procopts", "z"],
            "cannot use --procopts z: it is for --top",
        ),
        (&["-sc", "--stats"], "cannot use --stats: it is for what is"),
        (
            &["play", &raw, "-sC", "--stats"],
            "cannot use --stats: it is for the brief",
        ),
        (
            &["play", &raw, "-sd", "--dskfilt", "("],
            "cannot use --dskfilt (: not a regular expression",
        ),
        (
            &["play", &raw, "-sd", "-l", "SVC"],
            "cannot use -l SVC: not a number",
        ),
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
            "cannot use --procopts q: q is none of",
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
            "cannot use -P: what -sZ shows has lines of its own",
        ),
        (
            &["play", &raw, "-scY", "-P"],
            "cannot use -P: what -sY shows has lines of its own",
        ),
        (
            &["play", &raw, "-sc", "-f", "x"],
            "cannot use -f here: only plot files",
        ),
        (
            &["play", &raw, "-sZ", "--procopts", "u4"],
            "cannot use --procopts u4: a user's column is",
        ),
        (
            &["play", &raw, "-sc", "-oa"],
            "cannot use -o a: it is for plot files",
        ),
        (
            &["play", &raw, "-sc", "-P", "-f", "x", "-oac"],
            "cannot use -o a: not together with -o c",
        ),
        (&["--", "foo"], "cannot run foo: no such command or file"),
        (&["foo.raw.gz", "-sc"], "cannot run foo.raw.gz: no such"),
        (
            &["-sc", "play", &raw],
            "cannot use switches before play: put them behind it",
        ),
        (&["-P", "-P"], "cannot use --plot: given twice"),
        (
            &["play", &raw, "--cap", "1G"],
            "cannot use --cap: it is for recording",
        ),
        (
            &["-p", &raw, "--root", "/"],
            "cannot use --root: it has no effect on what is played",
        ),
        (
            &["-sc", "--keep", "7d"],
            "cannot use --keep: nothing is recorded",
        ),
        (
            &["--export", "gexpr"],
            "cannot use --export gexpr,: it takes",
        ),
        (&["--nonsense"], "cannot use --nonsense: no such switch"),
        (&["play", env!("CARGO_MANIFEST_DIR")], "cannot "),
    ] {
        let output = kymo(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(
            said.starts_with(&format!("kymo: {expect}")) && said.trim_end().lines().count() == 1,
            "{args:?}: {said}"
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// Switches that collectl refuses when it plays, and switches that it accepts without effect.
#[test]
fn switches_without_effect_as_collectl() {
    let raw = capture();
    for (switches, refused) in [
        (&["-i", "5"] as &[&str], true),
        (&["--align"], true),
        (&["-F", "5"], true),
        (&["--rawtoo"], true),
        (&["--quiet"], false),
        (&["--nohup"], false),
        (&["--comment", "a day"], false),
    ] {
        let arguments = [&["-p", &raw, "-sc"], switches].concat();
        let ours = kymo(&arguments);
        let theirs = Command::new("collectl").args(&arguments).output();
        let theirs = String::from_utf8_lossy(&theirs.expect("collectl").stdout).into_owned();
        assert_eq!(
            !theirs.contains("cpu sys inter"),
            refused,
            "{switches:?}: {theirs}"
        );
        let said = String::from_utf8_lossy(&ours.stderr);
        assert_eq!(
            ours.status.code(),
            Some(if refused { 2 } else { 0 }),
            "{switches:?}: {said}"
        );
        assert_eq!(ours.stdout.is_empty(), refused, "{switches:?}");
    }
}

#[test]
fn harmless_switches_are_taken() {
    let switches = [
        "--quiet",
        "--nohup",
        "-N",
        "-F",
        "60",
        "--comment",
        "a day",
        "--align",
    ];
    let output = kymo(&[&["-sc", "-i.1", "-c2"], &switches[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty());
    // A blank line shows that the machine was too busy for a tick.
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    assert_eq!(text.lines().filter(is_row).count(), 2, "{text}");
}

#[test]
fn stamps_add_up_however_they_are_given() {
    let raw = capture();
    let played = |stamps: &[&str]| {
        let output = kymo(&[&["play", &raw, "-sc", "-P"], stamps].concat());
        assert!(output.status.success(), "{stamps:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(played(&["-oT", "-o2", "-o", "m"]), played(&["-oT2m"]));
}

/// `kymo FILE` was no command.
#[test]
fn files_alone_are_played() {
    let raw = capture();
    let expect = kymo(&["play", &raw, "-scd", "-oT"]);
    assert!(expect.status.success() && !expect.stdout.is_empty());
    for arguments in [
        [&raw, "-scd", "-oT"],
        ["-scd", &raw, "-oT"],
        ["-scd", "-oT", &raw],
    ] {
        let output = kymo(&arguments);
        assert_eq!(output.stdout, expect.stdout, "{arguments:?}");
    }
}

/// `--procfilt` with a file uses the text in the file, as collectl does.
#[test]
fn processes_to_show_from_a_file() {
    let scratch = kymo_tests::Scratch::new("procfilt");
    let file = scratch.text("wanted");
    let sleeper = kymo_tests::Running(Command::new("sleep").arg("1000").spawn().expect("sleep"));
    let pid = sleeper.0.id().to_string();
    fs::write(
        &file,
        format!(
            "# of the database

  p {pid} 
p1
"
        ),
    )
    .expect("a file");
    let shown = |program: PathBuf, interval: &str| {
        let output = Command::new(program)
            .args(["-sZ", "-i", interval, "-c1", "--procfilt", &file])
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut pids: Vec<u32> = text
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        pids.sort_unstable();
        pids
    };
    let ours = shown(kymo_tests::kymo(), ".2");
    assert_eq!(ours, shown("collectl".into(), ":1"));
    assert_eq!(ours, [1, sleeper.0.id()]);
    let raw = capture();
    let played = |filter: &str| kymo(&["play", &raw, "-sZ", "--procfilt", filter]).stdout;
    fs::write(
        &file, "csh
",
    )
    .expect("a file");
    assert_eq!(played(&file), played("csh"));
    assert_eq!(
        played("c+sh"),
        played("csh+"),
        "collectl's place for the plus"
    );
    fs::write(
        &file,
        "# nobody
",
    )
    .expect("a file");
    let none = kymo(&["play", &raw, "-sZ", "--procfilt", &file]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("the file names no processes"));
}

#[test]
fn a_full_output_is_named() {
    let raw = capture();
    for arguments in [
        &["play", &raw, "-sc"] as &[&str],
        &["play", &raw, "-sc", "--json"],
        &["-sc", "-i.1", "-c1"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full");
        let output = Command::new(kymo_tests::kymo())
            .args(arguments)
            .stdout(full.expect("/dev/full"))
            .output()
            .expect("kymo");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.starts_with("kymo: cannot write to standard output: No space left"),
            "{arguments:?}: {said}"
        );
    }
}

/// At the second run the plot files exist. kymo did not say how to continue.
#[test]
fn plot_files_that_are_there() {
    let scratch = kymo_tests::Scratch::new("again");
    let (raw, dir) = (capture(), scratch.text("plot"));
    let play = |stamps: &str| kymo(&["play", &raw, "-sc", "-P", stamps, "-f", &dir]);
    let lines = || {
        let file = fs::read_dir(&dir).expect("the folder").next();
        let path = file.expect("a file").expect("a file").path();
        let text = fs::read_to_string(path).expect("text");
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    assert!(play("-oz").status.success());
    let once = lines();
    assert!(once > 0);
    let again = play("-oz");
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert!(
        said.contains(".tab: it is there already; -oa appends to it, -oc begins it again"),
        "{said}"
    );
    assert_eq!(lines(), once, "nothing is touched");
    assert!(play("-oza").status.success());
    assert_eq!(lines(), 2 * once);
    assert!(play("-ozc").status.success());
    assert_eq!(lines(), once);
}

/// A raw file whose disks, interfaces and processes have names that an attacker would choose.
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

/// If all requested sources are absent, the output would be empty.
#[test]
fn what_is_not_on_this_machine_is_named() {
    if Path::new("/sys/class/infiniband").exists() {
        return;
    }
    let output = kymo(&["-sx", "-i.05", "-c1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "kymo: there is no infiniband (x) on this machine\n");
    assert!(output.status.success() && output.stdout.is_empty());
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
