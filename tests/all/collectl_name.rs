//! kymo under the name `collectl`: its command line, its settings, its exit codes, and its life in the background.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use kymo_tests::machine::copy_program;
use kymo_tests::{Running, Scratch, kymo};

const RAW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/golden/vm-20261121-215607.raw.gz"
);

/// A link to kymo with the name `collectl` in the folder.
fn named(scratch: &Scratch) -> String {
    let link = scratch.path("collectl");
    if link.symlink_metadata().is_err() {
        symlink(kymo(), &link).expect("a link");
    }
    link.to_string_lossy().into_owned()
}

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).output().expect("it runs")
}

/// The exit code, and true if stdout has text.
fn seen(output: &Output) -> (Option<i32>, bool) {
    (output.status.code(), !output.stdout.is_empty())
}

#[test]
fn exit_codes_are_those_of_collectl() {
    let scratch = Scratch::new("collectl-codes");
    let ours = named(&scratch);
    for words in [
        &["-p", RAW, "-scd"] as &[&str],
        &["-p", RAW, "-sc", "-sd"],
        &["-p", RAW, "-oT", "-scd", "--stats"],
        &["-v"],
        &["--showsubsys"],
        &["-V"],
        &["-sc", "-i.2", "-c1"],
        &["--vmstat", "-p", RAW],
        &["--nonsense"],
        &["-p", RAW, "-i5"],
        &["-P", "--verbose"],
        &["-c1", "-sc", "--stats"],
    ] {
        let (our, their) = (run(&ours, words), run("/usr/bin/collectl", words));
        let said = String::from_utf8_lossy(&our.stderr).into_owned();
        assert_eq!(our.status.code(), their.status.code(), "{words:?}: {said}");
        // collectl prints its messages about wrong command lines on stdout.
        if our.status.success() {
            assert_eq!(seen(&our), seen(&their), "{words:?}: {said}");
        } else {
            assert!(said.starts_with("collectl: cannot "), "{words:?}: {said}");
        }
    }
}

/// `-f` is a folder or a prefix of file names.
#[test]
fn plot_files_have_the_same_names() {
    let scratch = Scratch::new("collectl-names");
    let ours = named(&scratch);
    let files = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    };
    for (sub, letters) in [("", "-ouz"), ("web", "-oz"), ("web", "-ou")] {
        let mut names = Vec::new();
        for program in [ours.as_str(), "/usr/bin/collectl"] {
            let folder = Scratch::new("collectl-plot");
            let to = folder.path(sub).to_string_lossy().into_owned();
            let output = run(program, &["-p", RAW, "-scdC", "-P", letters, "-f", &to]);
            assert!(output.status.success(), "{output:?}");
            names.push(files(&folder.path("")));
        }
        assert_eq!(names[0], names[1], "{sub} {letters}");
        assert_eq!(names[0].len(), 2, "{names:?}");
    }
}

/// Waits until `done` is true, for as long as a busy machine may need.
fn wait(done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never came");
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The daemon alone has collectl's 10 seconds or the interval of its settings. `-f` in a terminal has 1 second.
#[test]
fn files_of_a_terminal_have_an_interval_of_a_second() {
    let scratch = Scratch::new("collectl-interval");
    let ours = named(&scratch);
    let conf = scratch.text("collectl.conf");
    fs::write(&conf, "Interval = 7\nInterval2 = 30\n").expect("a file");
    for (words, expect) in [
        ("-c1 -sc", ["1", "1:60:120"]),
        ("-c1 -scZ -i :20", ["1:20", "1:20:120"]),
        (&format!("-c1 -scZ -C {conf}"), ["1:30", "1:30:120"]),
        (
            &format!("-c1 -scZ -i .5:1 -C {conf}"),
            [".5:1", "0.5:1:120"],
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        for (program, expect) in ["/usr/bin/collectl", &ours].into_iter().zip(expect) {
            let recorded = Scratch::new("collectl-interval-of");
            let dir = format!("{}/", recorded.text(""));
            let output = run(program, &[&words[..], &["-f", &dir]].concat());
            assert!(output.status.success(), "{program} {words:?}: {output:?}");
            let entries = fs::read_dir(&dir).expect("a folder");
            let mut paths = entries.map(|entry| entry.expect("an entry").path());
            let raw = paths.find(|path| path.to_string_lossy().ends_with(".raw.gz"));
            let from = raw.map_or(dir.clone(), |raw| raw.to_string_lossy().into_owned());
            let header = run(program, &["-p", &from, "--showheader"]).stdout;
            let header = String::from_utf8_lossy(&header).into_owned();
            let found = header.split_once("Interval:").map(|(_, rest)| rest.trim());
            let found = found.and_then(|rest| rest.split_whitespace().next());
            assert_eq!(found, Some(expect), "{program} {words:?}: {header}");
        }
    }
}

/// A service's day: collectl.conf sets it up, it has a name, a pid file and a log, a second one is refused, a signal ends it.
#[test]
fn a_daemon_as_its_settings_say() {
    let scratch = Scratch::new("collectl-daemon");
    let ours = named(&scratch);
    let (dir, pid_file) = (scratch.text("log"), scratch.path("pid"));
    fs::create_dir(&dir).expect("a folder");
    let conf = scratch.path("collectl.conf");
    fs::write(
        &conf,
        format!(
            "# of a test\nDaemonCommands = -f {dir} -r00:00,3 -m -F60 -s+Z --pidfile {}\nInterval = .2\nInterval2 = .2\n",
            pid_file.display()
        ),
    )
    .expect("a file");
    let conf = conf.to_string_lossy().into_owned();
    let start = || {
        run(
            &ours,
            &[
                "-D",
                "-C",
                &conf,
                "--pname",
                "test",
                "--comment",
                "of a test",
            ],
        )
    };
    let output = start();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let pid: u32 = text(&pid_file).trim().parse().expect("a number");
    let alive = || Path::new(&format!("/proc/{pid}")).exists();
    assert!(alive());
    let comm = text(Path::new(&format!("/proc/{pid}/comm")));
    // The second daemon sees the first.
    let second = start();
    let refused = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        refused.contains(&format!("process {pid} runs already")),
        "{refused}"
    );
    // The daemon samples in the background, after the command that started it has ended.
    let rows = || {
        let played = run(&ours, &["-p", &dir, "-scZ", "--procfilt", "p1"]);
        String::from_utf8_lossy(&played.stdout)
            .matches("### RECORD")
            .count()
    };
    wait(|| rows() >= 3);
    kymo_sys::machine::ask_to_end(pid);
    wait(|| !alive());
    assert_eq!(comm.trim(), "collectl-test");
    assert!(!pid_file.exists(), "its pid file has gone");
    let logs = fs::read_dir(&dir).expect("a folder").filter(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.to_string_lossy().contains("-collectl-")
    });
    assert_eq!(logs.count(), 1);
    // The recording can be converted into plot files.
    let plot = scratch.text("plot");
    let played = run(
        &ours,
        &["-p", &dir, "-sc", "-P", "-oz", "-f", &format!("{plot}/")],
    );
    assert!(played.status.success(), "{played:?}");
}

/// A daemon makes its folder before its log. The log's lines have times: of the start, the signal and the end. A daemon that
/// cannot begin fails and leaves no pid file.
#[test]
fn a_daemon_makes_its_folder_and_keeps_a_log() {
    let scratch = Scratch::new("collectl-log");
    let ours = named(&scratch);
    let conf = scratch.text("empty.conf");
    fs::write(&conf, "").expect("a file");
    let (dir, pid_file) = (scratch.path("new/log"), scratch.path("pid"));
    let start = |dir: &str| {
        let pid_file = pid_file.to_str().expect("a name");
        let words = [
            "-D",
            "-m",
            "-sc",
            "-i.2",
            "-C",
            &conf,
            "-f",
            dir,
            "--pidfile",
            pid_file,
        ];
        run(&ours, &words)
    };
    let failed = start(&format!("{conf}/folder"));
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(
        !failed.stderr.is_empty() && !pid_file.exists(),
        "{failed:?}"
    );
    let began = start(dir.to_str().expect("a name"));
    assert_eq!(began.status.code(), Some(0), "{began:?}");
    let pid: u32 = text(&pid_file).trim().parse().expect("a number");
    kymo_sys::machine::ask_to_end(pid);
    wait(|| !Path::new(&format!("/proc/{pid}")).exists());
    let entries = fs::read_dir(&dir).expect("a folder");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let log = paths.find(|path| path.to_string_lossy().ends_with(".log"));
    let log = text(&log.expect("a log"));
    for line in log.lines() {
        let (stamp, _) = line.split_at_checked(18).unwrap_or((line, ""));
        let shape = stamp.replace(|c: char| c.is_ascii_digit(), "0");
        assert_eq!(shape, "00000000 00:00:00 ", "{log}");
    }
    let us = std::process::id();
    let comm = text(Path::new("/proc/self/comm"));
    let signal = format!("ends: SIGTERM from process {us} ({}) of user", comm.trim());
    let places = ["samples, as process", &signal, "ended"].map(|word| log.find(word));
    assert!(places.is_sorted() && places[0].is_some(), "{log}");
}

/// Command lines of collectl's own pages, in the spelling of both generations, and words that collectl has no commands for.
#[test]
fn command_lines_as_collectl_takes_them() {
    let scratch = Scratch::new("collectl-lines");
    let ours = named(&scratch);
    let recorded = scratch.text("recorded");
    let record = ["-scdxZ", "-i.1:.1", "-c3", "-f", &recorded];
    assert!(run(&ours, &record).status.success());
    let said = |words: &[&str]| {
        let output = run(&ours, words);
        let texts =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        (output.status.code(), texts[0].clone(), texts[1].clone())
    };
    let (code, help, _) = said(&["-h"]);
    assert_eq!(code, Some(0));
    assert!(
        help.contains("collectl [switches]") && !help.contains("Commands:"),
        "{help}"
    );
    for word in ["serve", "record", "rrd"] {
        let (code, _, error) = said(&[word]);
        assert_eq!(code, Some(1), "{word}");
        assert!(
            error.contains("collectl has no commands"),
            "{word}: {error}"
        );
    }
    let plots = scratch.text("plots");
    let (code, _, error) = said(&["-p", &recorded, "-P", "-oz", "-f", &format!("{plots}/")]);
    assert_eq!(
        (code, error.as_str()),
        (Some(0), ""),
        "nothing is said of what the machine has not"
    );
    assert!(Path::new(&plots).is_dir());
    let (code, totals, _) = said(&["-p", &recorded, "--stats"]);
    assert_eq!(code, Some(0));
    assert!(totals.contains("\nT"), "{totals}");
    let pages: [&[&str]; 3] = [
        &["-p", &recorded, "-sZ", "-Zccollectl"],
        &["-p", &recorded, "-sZ", "-Z", "ccollectl"],
        &["-p", &recorded, "-sZ", "--procfilt", "ccollectl"],
    ];
    let shown = pages.map(said);
    assert!(shown[0].1.contains("collectl"), "{shown:?}");
    assert!(shown.iter().all(|one| one == &shown[0]), "{shown:?}");
}

/// Every command of collectl's page on performance, in the spelling of both generations, with fewer samples: the recordings of
/// collectl and kymo show the same processes. collectl 4 no longer accepts `-Z` of its own page.
#[test]
fn commands_of_the_page_on_performance() {
    let scratch = Scratch::new("collectl-page");
    let ours = named(&scratch);
    // No other test has a process of this name.
    let sleeper = scratch.path("pagesleeper");
    copy_program(Path::new("/usr/bin/sleep"), &sleeper);
    let _sleeper = Running::shell(&format!("exec {} 1000", sleeper.display()));
    for (line, takes) in [
        ("-sc", "cpu"),
        ("-scdnm", "cpu KBRead KBIn Free"),
        (
            "-scdnm -P",
            "[CPU]User% [DSK]ReadTot [NET]RxPktTot [MEM]Free",
        ),
        ("-sZ", "pagesleeper collectl"),
        ("-sZ --procopts I", "pagesleeper collectl"),
        ("-sZ -Zcpagesleeper", "pagesleeper"),
        ("-sZ --procfilt cpagesleeper", "pagesleeper"),
        ("-sZ -Zcpagesleeper --procopts p", "pagesleeper"),
        ("-sZ --procfilt cpagesleeper --procopts p", "pagesleeper"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let is_old = line.contains("-Zc");
        for program in [ours.as_str(), "/usr/bin/collectl"] {
            let is_ours = program == ours;
            if is_old && !is_ours {
                continue;
            }
            let recorded = Scratch::new("collectl-page-of");
            let dir = format!("{}/", recorded.text(""));
            // collectl's player divides by the time between two samples, which is 0 at -i0 on a quick machine. On a slow machine
            // collectl's own alarm ends it if its interval is short.
            let often = match (is_ours, line.starts_with("-sZ")) {
                (true, _) => ["-i0", "-c13"],
                (false, false) => ["-i1", "-c3"],
                (false, true) => ["-i1:1", "-c3"],
            };
            let output = run(program, &[&words[..], &often[..], &["-f", &dir]].concat());
            assert!(output.status.success(), "{program} {line}: {output:?}");
            let shown = match line.contains("-P") {
                true => packed_plot(recorded.path("").as_path()),
                false => played(program, &dir, words[0]),
            };
            // collectl does not show idle processes.
            let takes = match is_ours || !line.starts_with("-sZ") {
                true => takes,
                false => "PROCESS",
            };
            for word in takes.split(' ') {
                assert!(shown.contains(word), "{program} {line}: {word}: {shown}");
            }
            if line.contains("cpagesleeper") {
                let processes = shown
                    .lines()
                    .filter(|line| line.starts_with(char::is_numeric));
                let others: Vec<_> = processes
                    .filter(|row| !row.contains("pagesleeper"))
                    .collect();
                assert!(others.is_empty(), "{program} {line}: {others:?}");
            }
        }
    }
}

/// Rows that a program shows from its own recording.
fn played(program: &str, dir: &str, letters: &str) -> String {
    let entries = fs::read_dir(dir).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let raw = paths
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(".raw.gz"));
    let from = raw.map_or(dir.to_string(), |raw| raw.to_string_lossy().into_owned());
    let output = run(program, &["-p", &from, letters, "-oT"]);
    assert!(output.status.success(), "{program} {from}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn packed_plot(dir: &Path) -> String {
    let mut paths = fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    let plot = paths.find(|path| path.to_string_lossy().ends_with(".tab.gz"));
    let output = run("zcat", &[&plot.expect("a plot file").to_string_lossy()]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Views of a day that the service recorded: on the terminal, in plot files and for other programs.
#[test]
fn what_a_daemon_recorded_is_looked_at() {
    let scratch = Scratch::new("collectl-day");
    let ours = named(&scratch);
    let (dir, pid_file) = (scratch.text("log"), scratch.path("pid"));
    let pid_text = pid_file.to_string_lossy().into_owned();
    let words = [
        "-D",
        "-f",
        &dir,
        "-i.1:.1",
        "-scdnmijstyZ",
        "--pidfile",
        &pid_text,
    ];
    fs::create_dir(&dir).expect("a folder");
    let output = run(&ours, &words);
    assert!(output.status.success(), "{output:?}");
    let played = |words: &[&str]| {
        let output = run(&ours, &[&["-p", &dir], words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    wait(|| played(&["-sc", "-oT"]).lines().count() > 12);
    let pid = text(&pid_file).trim().parse().expect("a number");
    kymo_sys::machine::ask_to_end(pid);
    wait(|| !pid_file.exists());
    let plot = scratch.text("plot");
    fs::create_dir(&plot).expect("a folder");
    for (words, expected) in [
        (&["-scdn", "-oD"] as &[&str], "KBRead"),
        (&["-smijsty", "-oTm"], "Inodes"),
        (
            &["-sCDN", "--dskfilt", "vda|sda|nvme|dm-", "--netfilt", "lo"],
            "NETWORK STATISTICS",
        ),
        (&["-sc", "--stats"], "\nT"),
        (&["--vmstat"], "procs"),
        (&["--top", "time,5"], "TOP PROCESSES"),
        (
            &["-sZ", "--procfilt", "p1", "--procopts", "w"],
            "PROCESS SUMMARY",
        ),
        (&["-scdmn", "--export", "lexpr"], "cputotals.user"),
        (&["-sY", "--slabfilt", "dentry"], "dentry"),
        (&["-scdn", "-P", "-f", &plot], ""),
        (&["--showheader"], "Collectl"),
    ] {
        let shown = played(words);
        assert!(shown.contains(expected), "{words:?}: {shown}");
        assert!(
            !expected.is_empty() || shown.is_empty(),
            "{words:?}: {shown}"
        );
    }
    let plotted = fs::read_dir(&plot).expect("plot files").count();
    assert_eq!(plotted, 1);
}

/// Refused: a daemon that records nothing, a daemon whose user does not own the folder, and wrong settings.
#[test]
fn what_is_no_daemon() {
    let scratch = Scratch::new("collectl-none");
    let ours = named(&scratch);
    let dir = scratch.text("");
    for (words, expect) in [
        (&["-D"] as &[&str], "cannot use -D: nothing is recorded"),
        (
            &["-D", "-f", &dir, "--runas", "nobody"],
            "cannot use --runas nobody:",
        ),
        (&["-sc", "--runas", "0"], "cannot use --runas: it is for -D"),
        (&["-sc", "--umask", "9"], "cannot use --umask"),
        (&["-C", "/no/such/file"], "cannot read /no/such/file"),
    ] {
        let mut words = words.to_vec();
        let conf = scratch.text("empty.conf");
        fs::write(&conf, "").expect("a file");
        if !words.contains(&"-C") {
            words.extend(["-C", &conf]);
        }
        let output = run(&ours, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains(expect), "{words:?}: {said}");
    }
}
