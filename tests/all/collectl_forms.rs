//! Forms of a collectl user's command lines, each given to collectl and to kymo with the same raw file: what is
//! printed is the same, line by line, but for blanks at the end of lines.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use kymo_tests::{Scratch, run};

const RAW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/golden/vm-20261121-215607.raw.gz"
);

/// Lines without what cannot be seen.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let lines = text.lines().map(|line| line.trim_end().to_string());
    lines.filter(|line| !line.is_empty()).collect()
}

/// What collectl prints.
fn theirs(words: &[&str]) -> Vec<String> {
    let output = Command::new("collectl").args(words).output();
    lines(&output.expect("collectl, which `make test` installs").stdout)
}

/// What kymo prints.
fn ours(words: &[&str]) -> Vec<String> {
    let output = run(words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    lines(&output.stdout)
}

/// The capture, with these switches.
fn played(switches: &str) -> Vec<&str> {
    let mut words = vec!["-p", RAW];
    words.extend(switches.split_whitespace());
    words
}

#[test]
fn played_forms_are_those_of_collectl() {
    let mut wrong = Vec::new();
    for switches in [
        "-sc -oT --from 21:56:10-21:56:11",
        "-sc -oT --from 20261121:21:56:10-20261121:21:56:11",
        "-sc -oT --from 20261121",
        "-sc -oT --thru 20261121",
    ] {
        let words = played(switches);
        let (theirs, ours) = (theirs(&words), ours(&words));
        assert!(theirs.len() > 1, "{switches}: {theirs:?}");
        if theirs != ours {
            wrong.push(format!(
                "{switches}\n{}\n---\n{}",
                theirs.join("\n"),
                ours.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n=====\n"));
}

/// Words of a plot file's comment by their keys, as scripts look for them.
fn keys(path: &std::path::Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).expect("a plot file");
    let mut keys = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("# ")) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        for pair in words.windows(2).filter(|pair| pair[0].ends_with(':')) {
            keys.insert(pair[0].to_string(), pair[1].to_string());
        }
    }
    keys
}

/// Scripts read these of a plot file.
#[test]
fn plot_files_begin_as_those_of_collectl() {
    let scratch = Scratch::new("plot-header");
    let dir = scratch.text("");
    let words = |sub: &str| {
        let to = format!("{dir}{sub}");
        fs::create_dir_all(&to).expect("a folder");
        to
    };
    let (their_dir, our_dir) = (words("theirs"), words("ours"));
    for (program, to) in [
        ("collectl".into(), &their_dir),
        (kymo_tests::kymo(), &our_dir),
    ] {
        let done = Command::new(program)
            .args(["-p", RAW, "-scd", "-P", "-oz", "-f", to])
            .output();
        assert!(done.expect("it runs").status.success());
    }
    let file = |dir: &str| std::path::Path::new(dir).join("vm-20261121.tab");
    let (theirs, ours) = (keys(&file(&their_dir)), keys(&file(&our_dir)));
    for key in [
        "Host:",
        "HZ:",
        "Arch:",
        "PageSize:",
        "Kernel:",
        "Memory:",
        "NumCPUs:",
        "TZ:",
        "Subsys:",
    ] {
        assert_eq!(ours.get(key), theirs.get(key), "{key}");
        assert!(ours.contains_key(key), "{key}: {ours:?}");
    }
    // collectl writes less of these than it recorded.
    for (key, expect) in [
        ("Interval:", "1:1"),
        ("DiskNames:", "vda"),
        ("NumNets:", "4"),
        ("SubSys:", "cd"),
    ] {
        assert_eq!(ours.get(key).map(String::as_str), Some(expect), "{key}");
    }
    assert!(ours["Date:"].starts_with("20261121-2156"), "{ours:?}");
    assert_eq!(ours["Booted:"], "1795294179.40");
    let first = fs::read_to_string(file(&our_dir)).expect("a plot file");
    assert!(first.starts_with(&format!(
        "{0} RECORDED {0}\n# Collectl:   V4.3.1-1 ",
        "#".repeat(35)
    )));
}

/// Loop devices that nothing is on filled most of a `.dsk` file.
#[test]
fn devices_that_do_nothing_have_no_columns() {
    let scratch = Scratch::new("idle-loop");
    let raw = scratch.path("vm-20261121-000000.raw");
    let disks = |reads: u32, loops: u32| {
        format!(
            "disk    7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\ndisk    7       1 loop1 {loops} 0 {loops} 0 0 0 0 0 0 0 0\ndisk  254       0 vda {reads} 0 {reads} 0 0 0 0 0 0 5 5\n"
        )
    };
    fs::write(
        &raw,
        format!(
            "# Collectl:   V4.3.1\n# Host:       vm\n# SubSys: D Options: Interval: 1\n# HZ: 100\n>>> 1795298168.000 <<<\n{}>>> 1795298169.000 <<<\n{}>>> 1795298170.000 <<<\n{}",
            disks(10, 0),
            disks(20, 0),
            disks(30, 4)
        ),
    )
    .expect("a raw file");
    let path = raw.to_string_lossy().into_owned();
    let heads = |line: &str| -> Vec<String> {
        let names = line
            .split(' ')
            .filter_map(|head| head.strip_suffix("]Name"));
        names.map(str::to_string).collect()
    };
    let shown = ours(&["-p", &path, "-sD", "-P"]);
    let headers: Vec<_> = shown
        .iter()
        .filter(|line| line.starts_with("#Date"))
        .map(|line| heads(line))
        .collect();
    assert_eq!(
        headers,
        [vec!["[DSK:vda"], vec!["[DSK:loop1", "[DSK:vda"]],
        "{shown:?}"
    );
}

/// A crontab converts the files of the day before.
#[test]
fn days_by_name() {
    let scratch = Scratch::new("days");
    let day = |ago: &str| {
        let date = Command::new("date").args(["-d", ago, "+%Y%m%d"]).output();
        String::from_utf8_lossy(&date.expect("date").stdout)
            .trim()
            .to_string()
    };
    for (word, ago) in [("TODAY", "today"), ("YESTERDAY", "yesterday")] {
        fs::copy(RAW, scratch.path(&format!("vm-{}-000000.raw.gz", day(ago)))).expect("a copy");
        let pattern = scratch.text(&format!("*{word}*"));
        let words = ["-p", &pattern, "-sc", "-oT"];
        let shown = ours(&words);
        assert_eq!(shown, theirs(&words), "{word}");
        assert!(shown.len() > 2, "{word}: {shown:?}");
    }
}
