//! Common command lines of collectl users, run by collectl and by kymo on the same raw file: the output is the
//! same, line by line, except for blanks at the end of lines.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use kymo_tests::{Scratch, run};

const RAW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/golden/vm-20261121-215607.raw.gz"
);

/// Lines without trailing blanks; empty lines are left out.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let lines = text.lines().map(|line| line.trim_end().to_string());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Output lines of collectl.
fn theirs(words: &[&str]) -> Vec<String> {
    let output = Command::new("collectl").args(words).output();
    lines(&output.expect("collectl, which `make test` installs").stdout)
}

/// Output lines of kymo.
fn ours(words: &[&str]) -> Vec<String> {
    let output = run(words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    lines(&output.stdout)
}

/// Arguments that play the capture with these switches.
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
        "-sC --cpufilt 0",
        "-sC --cpufilt ^0 -oT",
        "-scd --cpufilt 0-1",
        "-scd --dskfilt vd",
        "-sD --dskfilt vd,sd",
        "-sn --netfilt eth,lo",
        "-sN --netfilt eth,lo",
        "-sN --netopts w10",
        "-sN --netopts w7 --netfilt lo",
        "-sdn --iosize",
        "-sdn --iosize -oT",
        "-sd --dskopts i",
        "-sn --netopts i",
        "-sn --netopts e",
        "-sn --netopts ie",
        "-s-mZ",
        "-s-mZ -oTm",
        "-sC",
        "-sC -oT",
        "-sD --dskopts f",
        "-sC --cpuopts z",
        "-sD --dskremap vd:XX",
        "-sm --memopts V",
        "-scdn -w",
        "-sc --full",
        "-scd --full",
        "-scd --stats",
        "-scdn --stats --statopts i -oT",
        "-sd --stats --iosize",
        "-sc -oT --offsettime 3600",
        "-sc -oT --offsettime -60",
    ] {
        let words = played(switches);
        let (mut theirs, mut ours) = (theirs(&words), ours(&words));
        if switches.contains("-sC") {
            // Here kymo's columns stand under their names; collectl's columns do not.
            let by_words = |line: &mut String| {
                let words: Vec<&str> = line.split_whitespace().collect();
                *line = words.join(" ");
            };
            theirs.iter_mut().chain(&mut ours).for_each(by_words);
        }
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

/// Lines of processes are collectl's. collectl does not apply its filter to played files.
#[test]
fn columns_of_processes_are_those_of_collectl() {
    let passwd = Scratch::new("passwd");
    let file = passwd.text("users");
    fs::write(&file, "ann:x:0:0::/:/bin/sh\n").expect("a file");
    let with_users = format!("-sZ --passwd {file}");
    for switches in [
        "-sZ --procopts s",
        "-sZ --procopts S",
        "-sZ --procopts u",
        "-sZ --procopts u10",
        "-sZ --procopts R",
        "-sZ --procopts r",
        "-sZ --procopts k",
        "-sZ --procopts kw",
        "-sZ --procopts w12",
        "-sZ --procopts su10w",
        "-sZ --procopts xu12",
        "-sZ --procopts is",
        "-sZ --procopts f",
        "-sZ --procstate S",
        with_users.as_str(),
    ] {
        let words = played(switches);
        let heads = |lines: &[String]| -> Vec<String> {
            let heads = lines.iter().filter(|line| line.starts_with("# "));
            heads.take(2).cloned().collect()
        };
        // Processes for which collectl and kymo have the same numbers: those that only sleep.
        let sleepers = |lines: &[String]| -> Vec<String> {
            let first = lines.iter().skip_while(|line| !line.starts_with("# PID"));
            let rows = first.skip(1).take_while(|line| !line.starts_with('#'));
            rows.filter(|line| line.contains("bash") || line.contains("kthreadd"))
                .cloned()
                .collect()
        };
        let (theirs, ours) = (theirs(&words), ours(&words));
        assert_eq!(heads(&ours), heads(&theirs), "{switches}");
        let (their_rows, our_rows) = (sleepers(&theirs), sleepers(&ours));
        assert!(their_rows.len() >= 3, "{switches}: {theirs:?}");
        // collectl has 0 where nothing could be read, and cuts 0.58 s to 0.57.
        for (their, our) in their_rows.iter().zip(&our_rows) {
            let words = |line: &str| -> Vec<String> {
                let words = line.split_whitespace().map(|word| match word {
                    "-" => "0",
                    word => word,
                });
                words
                    .filter(|word| !word.contains('.'))
                    .map(str::to_string)
                    .collect()
            };
            assert_eq!(words(our), words(their), "{switches}");
        }
        assert_eq!(our_rows.len(), their_rows.len(), "{switches}");
    }
}

/// Forms in which collectl is wrong, each with its own check.
#[test]
fn played_forms_that_differ() {
    // Memory as changes, also for the first interval.
    let changes = ours(&played("-sm --memopts R"));
    let theirs_later = theirs(&played("-sm --memopts R"));
    assert_eq!(changes[0], theirs_later[0]);
    assert_eq!(changes[1], theirs_later[1]);
    // Free, Buff, Cach, Slab and Map are collectl's; Inac counts inactive file pages only.
    let but_inactive = |line: &String| -> Vec<String> {
        let words = line.split_whitespace().enumerate();
        let words = words.filter(|(at, _)| *at != 3);
        words.map(|(_, word)| word.to_string()).collect()
    };
    for (ours, theirs) in changes.iter().zip(&theirs_later).skip(3) {
        assert_eq!(but_inactive(ours), but_inactive(theirs));
    }
    // No interval has errors, so none is shown, and stderr says so.
    let none = run(&played("-sn --netopts E"));
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no interval has errors"));
    // Chosen processes are one table, without a line above each interval; collectl filters live output only.
    let chosen = ours(&played("-sZ --procfilt cbash"));
    let heads = chosen.iter().filter(|line| line.starts_with('#')).count();
    assert!(heads == 2 && chosen.len() > 4, "{chosen:?}");
    // Columns of errors stand under their names.
    let errors = ours(&played("-sN --netopts e"));
    assert!(errors[1].starts_with("#Num    Name   ErrIn"), "{errors:?}");
    assert_eq!(errors[2].split_whitespace().count(), 11, "{errors:?}");
    // The format of vmstat.
    let vmstat = |lines: Vec<String>| -> Vec<Vec<String>> {
        let rows = lines.iter().map(|line| {
            let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
            words
        });
        rows.collect()
    };
    let (their, our) = (
        vmstat(theirs(&played("--vmstat"))),
        vmstat(ours(&played("--vmstat"))),
    );
    assert_eq!(our[..2], their[..2], "heads");
    assert_eq!(our.len(), their.len());
    for (our, their) in our[2..].iter().zip(&their[2..]) {
        for at in (0..our.len()).filter(|at| ![6, 7].contains(at)) {
            let number = |text: &str| {
                text.trim_end_matches(['K', 'M'])
                    .parse::<f64>()
                    .expect("a number")
            };
            let (our, their) = (number(&our[at]), number(&their[at]));
            assert!((our - their).abs() <= 1.0, "column {at}: {our} {their}");
        }
    }
}

/// Exceptions: only disks that are slow or busy have lines.
#[test]
fn exceptions_alone() {
    let rows = |limits: &str| {
        let lines = ours(&played(&format!("-sD -oxT -l {limits}")));
        lines.iter().filter(|line| !line.starts_with('#')).count()
    };
    for (limits, expect) in [
        ("IOS:1-SVC:1000", 3),
        ("IOS:7-SVC:1000", 2),
        ("IOS:7-SVC:1000-AND", 0),
        ("IOS:1000-SVC:1", 3),
        ("IOS:7-SVC:1-AND", 2),
    ] {
        assert_eq!(rows(limits), expect, "{limits}");
    }
}

/// Values in a plot file's header by key, as scripts look them up.
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

/// Scripts read these keys in the header of a plot file.
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
    // collectl writes fewer of these than it recorded.
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

/// Idle loop devices filled most of a `.dsk` file.
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

/// The file of `lexpr` has the last interval only. With -f, kymo writes a recording and the export.
#[test]
fn exports_into_a_file_and_beside_recordings() {
    let scratch = Scratch::new("lexpr-file");
    let file = scratch.path("values");
    let export = format!("lexpr,f={}", file.display());
    let words = played("-sdn");
    let words = [&words[..], &["--export", &export]].concat();
    let written = |shown: Vec<String>| {
        assert!(shown.iter().all(|line| !line.contains("disktotals")));
        let text = fs::read_to_string(&file).expect("the file");
        fs::remove_file(&file).expect("it goes away");
        text
    };
    let (their_text, our_text) = (written(theirs(&words)), written(ours(&words)));
    assert_eq!(our_text.matches("sample.time").count(), 1, "{our_text}");
    assert_eq!(our_text, their_text);
    let folder = scratch.text("recorded");
    let live = ["-sc", "-i.2", "-c3", "-f", &folder, "--export"];
    let output = run(&[&live[..], &["lexpr"]].concat());
    assert!(output.status.success() && output.stdout.is_empty());
    let text = fs::read_to_string(format!("{folder}/L")).expect("the file");
    assert_eq!(text.matches("cputotals.num").count(), 1, "{text}");
    let carbon = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = format!("graphite,{}", carbon.local_addr().expect("an address"));
    let reader = std::thread::spawn(move || {
        use std::io::Read as _;
        let mut text = String::new();
        let (mut stream, _) = carbon.accept().expect("a connection");
        stream.read_to_string(&mut text).expect("text");
        text
    });
    assert!(run(&[&live[..], &[&to]].concat()).status.success());
    let text = reader.join().expect("the reader");
    assert!(text.contains(".cputotals.user "), "{text}");
    let recorded = ours(&["-p", &folder, "-sc"]).len();
    assert!(recorded > 3, "{recorded} lines");
}

/// A crontab converts the files of the previous day.
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

/// `--export lexpr` has collectl's names, order and values, and a listener gets graphite's lines.
#[test]
fn exports_are_those_of_collectl() {
    let known = |name: &str| {
        // These are of files only, always 0, or not of a CPU without -sj.
        !["meminfo.inactive", "meminfo.shared"].contains(&name)
            && !name.starts_with("cpuinfo.intrpt")
            && !name.starts_with("cputotals.usertot.cpu")
    };
    for switches in [
        "-scdmn --export lexpr",
        "-sC --export lexpr",
        "-sN --netfilt eth --export lexpr",
    ] {
        let words = played(switches);
        let shown = |lines: Vec<String>| -> Vec<String> {
            let kept = lines
                .into_iter()
                .filter(|line| known(line.split(' ').next().unwrap_or_default()));
            kept.collect()
        };
        let (theirs, ours) = (shown(theirs(&words)), shown(ours(&words)));
        assert!(theirs.len() > 8, "{switches}: {theirs:?}");
        assert_eq!(ours, theirs, "{switches}");
    }
    let carbon = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = carbon.local_addr().expect("an address");
    let reader = std::thread::spawn(move || {
        use std::io::Read as _;
        let (mut stream, _) = carbon.accept().expect("a connection");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        text
    });
    let export = format!("graphite,{address},b=site.,p=.x");
    let words = played("-scd");
    let output = run(&[&words[..], &["--export", &export]].concat());
    assert!(output.status.success() && output.stdout.is_empty());
    let text = reader.join().expect("the reader");
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(first, "site.vm.x.cputotals.user 51 1795298169");
    assert_eq!(text.lines().count(), 4 * (15 + 4), "{text}");
}
