//! Playback from the side of a collectl user: everything recorded is shown
//! or named, also from several places at once, and damage, resets and
//! absent parts are reported. collectl is the oracle where it is right.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use kymo_tests::{Scratch, kymo, run, stdout_of};

const NAME: &str = "vm-20261121-215607.raw";

/// The header of a raw file with these letters.
fn header(letters: &str) -> String {
    format!(
        "{rule}\n# Collectl:   V4.3.1-1  HiRes: 1  Options: -s{letters}\n# Host:       vm  DaemonOpts: \n# Booted:     1795290000.00 [20261121-19:40:00]\n# Date:       20261121-215607  Secs: 1795298167 TZ: +0000\n# SubSys:     {letters} Options:  Interval: 1:1 NumCPUs: 1  NumBud: 0 Flags: i\n# HZ:         100  Arch: x86_64-linux-gnu-thread-multi PageSize: 4096\n# Cpu:        X Speed(MHz): 2000 Cores: 1  Siblings: 1 Nodes: 1\n# Kernel:     6.1.0  Memory: 1000000 kB  Swap: 0 kB\n# NumDisks:   1 DiskNames: vda\n# NumNets:    1 NetNames: eth0:1000\n{rule}\n",
        rule = "#".repeat(80)
    )
}

/// Counters of a sample. Several lines of the sample are derived from each.
#[derive(Clone, Copy)]
struct Counts {
    busy: u64,
    idle: u64,
    reads: u64,
    bytes: u64,
}

/// A sample with a time in tenths of a second since 1970.
fn sample(tenths: u64, counts: Counts) -> String {
    let Counts {
        busy,
        idle,
        reads,
        bytes,
    } = counts;
    format!(
        ">>> {}.{}00 <<<\ncpu  {busy} 0 {busy} {idle} {idle} 0 0 0 0 0\ncpu0 {busy} 0 {busy} {idle} {idle} 0 0 0 0 0\nintr {busy}\nctxt {bytes}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\ndisk  254       0 vda {reads} 0 {reads} 0 5 0 40 1 0 0 {idle}\nload 0.50 0.40 0.30 1/100 1\nNet   eth0: {bytes} {reads} 0 0 0 0 0 0 {busy} {busy} 0 0 0 0 0 0\n",
        tenths / 10,
        tenths % 10
    )
}

const START: u64 = 17_952_981_670;

/// A raw file with one sample a second.
fn raw(letters: &str, samples: &[Counts]) -> String {
    let lines: String = (START..)
        .step_by(10)
        .zip(samples)
        .map(|(tenths, &counts)| sample(tenths, counts))
        .collect();
    let end = START / 10 + samples.len() as u64;
    format!("{}{lines}>>> {end}.000 <<<\n", header(letters))
}

/// Counters of sample `n` under a steady load.
fn steady(n: u64) -> Counts {
    Counts {
        busy: 1000 + 10 * n,
        idle: 5000 + 40 * n,
        reads: 100 + 7 * n,
        bytes: 1 << 20 | (n * 2048),
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .args(["-c", "-1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip");
    let mut input = child.stdin.take().expect("a pipe");
    let text = text.to_string();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("gzip");
    writer.join().expect("a thread").expect("a pipe");
    output.stdout
}

/// Text on stderr, exit code, and text on stdout.
fn output_of(args: &[&str]) -> (String, Option<i32>, String) {
    let output = run(args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stderr),
        output.status.code(),
        text(&output.stdout),
    )
}

fn rows(args: &[&str]) -> Vec<serde_json::Value> {
    let text = stdout_of(&[args, &["--json"]].concat());
    let row = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(row).collect()
}

fn collectl(args: &[&str]) -> String {
    let output = Command::new("collectl").args(args).output();
    let output = output.expect("collectl, which `make test` installs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// 100 kB that unpack to 100 MB in one interval: stderr says so, memory stays within bounds, and the next
/// interval is shown.
#[test]
fn a_gzip_bomb_costs_one_interval() {
    let scratch = Scratch::new("bomb");
    let bomb = "cpu0 1 2 3 4 5 6 7 8 9 10\n".repeat(4_000_000);
    let counts: Vec<String> = (0..5).map(|n| sample(START + 10 * n, steady(n))).collect();
    let text = [
        &header("c"),
        &counts[0],
        &counts[1],
        &bomb,
        &counts[2],
        &counts[3],
        &counts[4],
        &format!(">>> {}.000 <<<\n", START / 10 + 5),
    ]
    .map(String::as_str)
    .concat();
    let path = scratch.path(&format!("{NAME}.gz"));
    fs::write(&path, gzip(&text)).expect("a file");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 500000; exec \"$0\" play \"$1\" -sc -P"])
        .arg(kymo())
        .arg(&path)
        .output()
        .expect("sh");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    assert_eq!(
        stderr,
        format!("kymo: {NAME}.gz is damaged: an interval is too large\n")
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    let shown = stdout.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(shown, 2, "{stdout}");
}

/// All kinds of plot files, and all headings of verbose output.
#[test]
fn what_was_recorded_is_shown_as_collectl_shows_it() {
    let scratch = Scratch::new("all");
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/vm-20261121-215607.raw.gz"
    );
    let suffixes = |dir: &str| -> BTreeSet<String> {
        let paths = fs::read_dir(dir).expect("a folder");
        paths
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let suffix = path.extension().expect("a suffix");
                suffix.to_string_lossy().into_owned()
            })
            .collect()
    };
    let (theirs, ours) = (scratch.text("theirs"), scratch.text("ours"));
    fs::create_dir(&theirs).expect("a folder");
    collectl(&["-p", golden, "-P", "-oz", "-f", &theirs]);
    stdout_of(&["-p", golden, "-P", "-oz", "-f", &ours]);
    assert!(suffixes(&theirs).len() > 3);
    assert_eq!(suffixes(&ours), suffixes(&theirs));
    let headings = |text: &str| -> BTreeSet<String> {
        let heading = |line: &&str| {
            line.ends_with("/sec)") || line.contains("STATISTICS") || line.contains("SUMMARY")
        };
        let words = |line: &str| line.split(" (").next().unwrap_or_default().to_string();
        text.lines().filter(heading).map(words).collect()
    };
    for form in [&["-p", golden][..], &["-p", golden, "--verbose"]] {
        let theirs = headings(&collectl(form));
        assert!(theirs.len() > 4, "{theirs:?}");
        assert_eq!(headings(&stdout_of(form)), theirs, "{form:?}");
    }
}

/// Each source that kymo, or the chosen format, cannot show is named in a line of its own.
#[test]
fn what_is_not_shown_is_named() {
    let scratch = Scratch::new("named");
    let samples: Vec<Counts> = (0..3).map(steady).collect();
    let process = format!(
        "proc:1 stat 1 (init) S 0 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 5 4096 1{}\n",
        " 0".repeat(28)
    );
    let text = raw("cCnZl", &samples).replace("load 0.50", &format!("{process}load 0.50"));
    let path = scratch.text(NAME);
    fs::write(&path, text).expect("a file");
    let only_collectls = "kymo: not shown: Lustre (l): recorded, but kymo does not show this\n";
    for (args, more, holds) in [
        (&[][..], "", "# PROCESS SUMMARY"),
        (&["--verbose"], "", "# SINGLE CPU"),
        (&["--json"], "", "\"process.pid\":1"),
        (
            &["-P"],
            "kymo: not shown: -s Z: -P shows each of these alone, and all in files, with -f DIR\n",
            "[CPU:0]User%",
        ),
        (
            &["--csv"],
            "kymo: not shown: -s CZ: --csv is one table at a time\n",
            "net.rx_kb",
        ),
    ] {
        let (stderr, code, stdout) = output_of(&[&["-p", &path], args].concat());
        assert_eq!(
            (stderr, code),
            (format!("{only_collectls}{more}"), Some(0)),
            "{args:?}"
        );
        assert!(stdout.contains(holds), "{args:?}: {stdout}");
    }
    // Nothing is missing from the requested sources, so stderr is empty.
    assert_eq!(output_of(&["-p", &path, "-scC"]).0, "");
    fs::write(&path, raw("l", &[])).expect("a file");
    assert_eq!(
        output_of(&["-p", &path]),
        (only_collectls.into(), Some(1), String::new())
    );
}

/// A recording by kymo holds the letters with which it was made.
#[test]
fn our_own_recordings_say_what_they_hold() {
    let scratch = Scratch::new("letters");
    let dir = scratch.text("rec");
    for letters in ["cd", "cdCZ"] {
        stdout_of(&[
            "record", "-s", letters, "-i", ".05:.05", "-c", "3", "-f", &dir,
        ]);
        let shown = stdout_of(&["play", &dir, "--verbose"]);
        for (letter, title) in [('C', "# SINGLE CPU"), ('Z', "# PROCESS SUMMARY")] {
            assert_eq!(
                shown.contains(title),
                letters.contains(letter),
                "{letters}: {shown}"
            );
        }
        assert!(
            shown.contains("# DISK SUMMARY") && !shown.contains("# NETWORK"),
            "{shown}"
        );
    }
}

/// A folder with a recording and a raw file of the same time: both play, in the order of time, and no rate
/// is computed from values of both.
#[test]
fn recordings_beside_raw_files_play_too() {
    let scratch = Scratch::new("beside");
    let dir = scratch.text("both");
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = since_1970.expect("a clock").as_millis() as u64 / 100;
    stdout_of(&["record", "-s", "c", "-i", ".1", "-c", "8", "-f", &dir]);
    // From ten minutes before the recording to ten minutes after it.
    let lines: String = (0..1200)
        .map(|n| sample(now - 6000 + 10 * n, steady(n)))
        .collect();
    let raw = Path::new(&dir).join(NAME);
    fs::write(&raw, header("c") + &lines).expect("a file");
    let alone = rows(&["play", raw.to_str().expect("a name"), "-sc"]);
    let rows = rows(&["play", &dir, "-sc"]);
    let samples = || rows.iter().filter(|row| row.get("event").is_none());
    assert!(alone.iter().all(|row| samples().any(|other| other == row)));
    assert_eq!(samples().count(), alone.len() + 8);
    let times: Vec<f64> = rows.iter().filter_map(|row| row["time"].as_f64()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn patterns_and_lists_of_files() {
    let scratch = Scratch::new("patterns");
    let samples: Vec<Counts> = (0..3).map(steady).collect();
    let text = raw("c", &samples);
    for name in [NAME, "vm-20261122-000000.raw", "b,d-20261123-000000.raw"] {
        fs::write(scratch.path(name), &text).expect("a file");
    }
    fs::write(scratch.path("notes.txt"), "not a recording").expect("a file");
    let dir = scratch.text("");
    let of = |what: &str| -> usize {
        let paths: Vec<String> = what.split(',').map(|part| format!("{dir}{part}")).collect();
        stdout_of(&["-p", &paths.join(","), "-sc", "-P"])
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count()
    };
    for (what, files) in [
        (NAME, 1),
        ("*", 3),
        ("*.raw", 3),
        ("vm-*", 2),
        ("vm-2026112[12]-??????.raw", 2),
        ("vm-20261121-215607.raw,vm-20261122-000000.raw", 2),
        ("vm-*,vm-20261121*", 2),
        ("b*", 1),
    ] {
        assert_eq!(of(what), 2 * files, "{what}");
    }
    // A comma may be part of a file's name.
    let comma = scratch.text("b,d-20261123-000000.raw");
    assert_eq!(stdout_of(&["-p", &comma, "-sc"]).lines().count(), 4);
    for (what, cause) in [
        ("*.gz", "cannot play"),
        ("vm-*,nope.raw", "cannot open"),
        ("[", "cannot play"),
    ] {
        let (stderr, code, stdout) = output_of(&["-p", &format!("{dir}{what}"), "-sc"]);
        assert!(
            stderr.contains(cause) && stderr.lines().count() == 1 && stdout.is_empty(),
            "{what}: {stderr}"
        );
        assert_eq!(code, Some(2), "{what}");
    }
}

/// After a reset, shares and rates are unknown for one interval.
#[test]
fn a_reset_makes_unknown_what_it_touches() {
    let scratch = Scratch::new("reset");
    let mut samples: Vec<Counts> = (0..5).map(steady).collect();
    for sample in &mut samples[3..] {
        sample.busy -= 1000;
        sample.idle -= 5000;
        sample.reads -= 100;
        sample.bytes &= 0xffff;
    }
    let path = scratch.text(NAME);
    fs::write(&path, raw("cdn", &samples)).expect("a file");
    let rows = rows(&["-p", &path, "-scdn"]);
    let known: Vec<Vec<bool>> = rows
        .iter()
        .map(|row| {
            ["user", "idle", "wait", "total", "kernel", "ctxsw"]
                .map(|name| row.get(format!("cpu.{name}")).is_some())
                .to_vec()
        })
        .collect();
    let expect = [true, true, false, true].map(|known| vec![known; 6]);
    assert_eq!(known, expect);
    assert_eq!(rows[2].get("cpu.load1").and_then(|v| v.as_f64()), Some(0.5));
    for (row, known) in rows.iter().zip([true, true, false, true]) {
        assert_eq!(row.get("disk.reads").is_some(), known);
        assert_eq!(row.get("net.rx_kb").is_some(), known);
    }
}

/// kymo treats a 32-bit counter that wraps as collectl does.
#[test]
fn what_goes_round_is_as_collectl_has_it() {
    let scratch = Scratch::new("round");
    let near = (1u64 << 32) - 3000;
    let samples: Vec<Counts> = (0..4)
        .map(|n| Counts {
            bytes: (near + n * 2048) % (1 << 32),
            ..steady(n)
        })
        .collect();
    let path = scratch.text(NAME);
    fs::write(&path, raw("cdn", &samples)).expect("a file");
    for letters in ["-sn", "-sc"] {
        let form = ["-p", &path, letters, "-P", "-oU2"];
        let lines = |text: String| -> Vec<String> {
            let row = |line: &&str| !line.starts_with('#');
            text.lines()
                .filter(row)
                .map(|line| line.trim_end().to_string())
                .collect()
        };
        let (theirs, ours) = (lines(collectl(&form)), lines(stdout_of(&form)));
        assert_eq!(ours.len(), 3, "{letters}");
        assert_eq!(ours, theirs, "{letters}");
    }
}

#[test]
fn a_clock_that_was_set_back_leaves_a_mark() {
    let scratch = Scratch::new("clock");
    let lines: String = [0, 10, 20, 5, 15]
        .iter()
        .zip(0..)
        .map(|(&tenths, n)| sample(START + tenths, steady(n)))
        .collect();
    let path = scratch.text(NAME);
    fs::write(&path, header("c") + &lines + ">>> 1795298170.000 <<<\n").expect("a file");
    let rows = rows(&["-p", &path, "-sc"]);
    let kinds: Vec<String> = rows
        .iter()
        .map(|row| row.get("why").map_or("row".into(), |why| why.to_string()))
        .collect();
    assert_eq!(
        kinds,
        ["row", "row", "\"the clock was set back by 1.5 s\"", "row"]
    );
}

#[test]
fn why_there_is_nothing_to_show() {
    let scratch = Scratch::new("nothing");
    let samples: Vec<Counts> = (0..3).map(steady).collect();
    let path = scratch.text(NAME);
    fs::write(&path, raw("cn", &samples)).expect("a file");
    let single = scratch.text("one-20261121-215607.raw");
    fs::write(&single, raw("c", &samples[..1])).expect("a file");
    let ring = scratch.text("rec");
    stdout_of(&["record", "-s", "c", "-i", ".05", "-c", "3", "-f", &ring]);
    for (args, why) in [
        (
            &[&path, "-sc", "--from", "23:00"][..],
            "nothing was recorded --from 23:00, but from 20261121 21:56:07 to 20261121 21:56:09",
        ),
        (&[&path, "-sm"], "there is no memory (m) in what was played"),
        (
            &[&path, "--top"],
            "there is no process (Z) in what was played",
        ),
        (
            &[&single, "-sc"],
            "rates need two samples one after the other",
        ),
        (
            &[&ring, "-sc", "--thru", "20010101:00:00"],
            "nothing was recorded --thru 20010101:00:00",
        ),
    ] {
        for format in [&[][..], &["-P"], &["--csv"], &["--json"]] {
            let args = [&["play"], args, format].concat();
            let (stderr, code, stdout) = output_of(&args);
            let expect = format!("kymo: nothing to show: {why}\n");
            assert_eq!(
                (stderr, code, stdout.as_str()),
                (expect, Some(1), ""),
                "{args:?}"
            );
        }
    }
    // A part of the requested sources is there.
    let (stderr, code, stdout) = output_of(&["play", &path, "-scm"]);
    assert_eq!(stderr, "kymo: there is no memory (m) in what was played\n");
    assert!(code == Some(0) && stdout.lines().count() == 4, "{stdout}");
}

#[test]
fn a_cut_or_damaged_file_is_told_in_every_format() {
    let scratch = Scratch::new("cut");
    let samples: Vec<Counts> = (0..400).map(steady).collect();
    let whole = gzip(&raw("c", &samples));
    let path = scratch.text(&format!("{NAME}.gz"));
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle..middle + 20].fill(0xff);
    for (bytes, expect) in [(&whole[..middle], "is cut short"), (&damaged, "is ")] {
        fs::write(&path, bytes).expect("a file");
        for format in [
            &["-sc"][..],
            &["-sc", "--verbose"],
            &["-sc", "-P"],
            &["-sc", "--csv"],
            &["-sc", "--json"],
            &["-sc", "-P", "-f", &scratch.text(expect)],
        ] {
            let (stderr, code, _) = output_of(&[&["play", &path], format].concat());
            let line = format!("kymo: {NAME}.gz {expect}");
            assert!(
                stderr.starts_with(&line) && stderr.lines().count() == 1,
                "{format:?}: {stderr}"
            );
            assert_eq!(code, Some(0), "{format:?}");
        }
    }
}

/// Times without a day are of every day. A recording over midnight gives the same lines as all of it, though the samples between
/// are not read.
#[test]
fn times_of_every_day_are_those_of_the_whole() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/quiet.kymo");
    let fixture = fixture.to_string_lossy();
    let played = |more: &[&str]| -> Vec<String> {
        let words = ["play", &fixture, "-scmt", "-oT"];
        let text = stdout_of(&[&words[..], more].concat());
        let lines = text.lines().filter(|line| {
            let mut bytes = line.bytes();
            bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        });
        lines.map(str::to_string).collect()
    };
    let whole = played(&[]);
    assert!(whole.len() > 1000, "{}", whole.len());
    for (from, thru, is_over_midnight) in [
        ("23:58:00", "00:02:00", true),
        ("01:00:00", "01:05:00", false),
        ("03:30:00", "22:10:00", false),
        ("22:30:00", "23:59:59", false),
    ] {
        let part = played(&["--from", from, "--thru", thru]);
        let expected = whole.iter().filter(|line| {
            let time = line.split(' ').next().unwrap_or_default();
            match is_over_midnight {
                true => from <= time || time <= thru,
                false => from <= time && time <= thru,
            }
        });
        let expected: Vec<&String> = expected.collect();
        assert!(!part.is_empty(), "{from}-{thru}");
        assert_eq!(part.iter().collect::<Vec<_>>(), expected, "{from}-{thru}");
    }
}
