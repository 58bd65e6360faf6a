//! Help from a person's side: one screen first, topics and commands behind it, colours on a terminal alone, causes in words.

use std::fs;
use std::process::Command;

use kymo_tests::commands::commands;
use kymo_tests::{Scratch, kymo, run, stdout_of};

/// The help of kymo was 178 lines long.
#[test]
fn the_first_screen_is_one() {
    let screen = stdout_of(&["--help"]);
    let lines = screen.lines().count();
    assert!((24..=40).contains(&lines), "{lines} lines:\n{screen}");
    assert!(
        screen.lines().all(|line| line.chars().count() <= 80),
        "{screen}"
    );
    for group in ["Look", "Run", "Move", "Mend"] {
        let begin = format!("\n{group} ");
        assert!(screen.contains(&begin), "{group}:\n{screen}");
    }
    for same in [&["-h"] as &[&str], &["help"]] {
        assert_eq!(stdout_of(same), screen, "{same:?}");
    }
}

#[test]
fn each_topic_of_the_first_screen_has_a_page() {
    let screen = stdout_of(&["--help"]);
    let topics = screen.split_once("\nTopics").expect("topics").1;
    let topics: Vec<&str> = topics
        .split("\n\n")
        .next()
        .expect("their list")
        .split_whitespace()
        .collect();
    for word in ["subsystems", "filters", "formats", "time", "configuration"] {
        assert!(topics.contains(&word), "{word}: {topics:?}");
    }
    for word in &topics {
        let page = stdout_of(&["help", word]);
        assert!(page.lines().count() > 5, "{word}:\n{page}");
    }
    let page = stdout_of(&["help", "subsystems"]);
    assert!(
        page.contains("  d - disk, sum:") && page.contains("--dskopts <fioz>"),
        "{page}"
    );
}

#[test]
fn help_on_a_command_is_its_own() {
    for (words, same) in [
        (&["help", "play"] as &[&str], &["play", "--help"] as &[&str]),
        (&["help", "series", "ls"], &["series", "ls", "--help"]),
        (&["help", "poll"], &["poll", "--help"]),
        (&["help", "rrd", "fetch"], &["rrd", "help", "fetch"]),
        (&["help", "collectl"], &["collectl", "--help"]),
    ] {
        assert_eq!(run(words), run(same), "{words:?}");
    }
    let wrong = run(&["help", "no\x1bsuch"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&wrong.stderr),
        "kymo: cannot show help on no\\u{1b}such: no such topic or command; see kymo --help\n"
    );
}

#[test]
fn the_help_of_a_command_has_examples_before_options() {
    for command in commands().iter().filter(|command| *command != "collectl") {
        let output = run(&[command, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout);
        let examples = help.find("Examples:\n  ");
        assert!(examples.is_some_and(|at| at < 100), "{command}:\n{help}");
        assert!(examples < help.find("Usage:"), "{command}:\n{help}");
    }
}

/// Programs of other projects have their own help under their own names, and under them alone.
#[test]
fn other_names_keep_their_help() {
    let scratch = Scratch::new("help-names");
    for (name, word, begin) in [
        (
            "collectl",
            "collectl",
            "kymo under the name collectl\n\nUsage: collectl [switches]\n\n  -p, --playback",
        ),
        ("rrdcached", "rrdcached", "RRDCacheD "),
        ("rrdtool", "rrd", "RRDtool "),
        ("mrtg", "poll", "Usage: kymo poll"),
    ] {
        let link = scratch.path(name);
        std::os::unix::fs::symlink(kymo(), &link).expect("a link");
        let output = Command::new(&link).arg("--help").output().expect("it runs");
        let own = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(own.starts_with(begin), "{name}: {own:.200}");
        let by_word = run(&[word, "--help"]).stdout;
        assert!(String::from_utf8_lossy(&by_word).ends_with(&own), "{word}");
    }
    let own = stdout_of(&["collectl", "--help"]);
    for switch in ["--procfilt", "--export", "--showsubsys", "--tcpfilt"] {
        assert!(own.contains(switch), "{switch}");
    }
}

/// Output on a terminal of its own.
fn on_a_terminal(arguments: &str, no_color: Option<&str>) -> String {
    let line = format!("{} {arguments}", kymo().display());
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm");
    match no_color {
        Some(value) => command.env("NO_COLOR", value),
        None => command.env_remove("NO_COLOR"),
    };
    let output = command.output().expect("script");
    String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n")
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    for arguments in ["--help", "play --help", "help time"] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let plain = stdout_of(&words);
        assert!(
            !plain.contains('\x1b'),
            "{arguments}: a pipe has no colours"
        );
        let coloured = on_a_terminal(arguments, None);
        assert!(coloured.contains("\x1b["), "{arguments}: {coloured}");
        let switched_off = on_a_terminal(arguments, Some("1"));
        assert!(
            !switched_off.contains('\x1b'),
            "{arguments}: {switched_off}"
        );
    }
    assert!(
        on_a_terminal("--help", Some("")).contains("\x1b["),
        "an empty NO_COLOR is none"
    );
}

/// `kymo doctor` printed "cannot read: errno 13". Numbers of errors are for programs.
#[test]
fn causes_have_words() {
    let scratch = Scratch::new("help-causes");
    let root = scratch.path("root");
    fs::create_dir_all(root.join("proc/stat")).expect("a folder in the place of a file");
    let (root, none) = (scratch.text("root"), scratch.text("none"));
    fs::write(scratch.path("file"), "no recording").expect("a file");
    let file = scratch.text("file");
    let (root, none, file) = (root.as_str(), none.as_str(), file.as_str());
    let numbers = regex_lite::Regex::new(r"(?i)\berrno\b|os error").expect("a pattern");
    for words in [
        &["doctor", "--root", root] as &[&str],
        &["doctor", "--root", none],
        &["play", none],
        &["play", file],
        &["record", "-f", file, "-c1", "-i.1"],
        &["graph", "-o", "/proc/no/x.svg", none],
        &["export", none, "/proc/no/x.kymo"],
        &["verify", none],
        &["verify", file],
        &["status", none],
        &["dump", none],
        &["dump", file],
        &["series", "ls", "--open", none],
        &["series", "ls", "--data", none],
        &["query", "1", "--open", none],
        &["programs", "--once", "--data", none],
        &["serve", "--check", "--config", none],
        &["serve", "--open", none, "--listen", "127.0.0.1:0"],
        &["man", "/proc/no/man1"],
        &["rrd", "info", none],
        &["rrd", "import", none, "--store", none, "-b", none],
        &["poll", none],
        &["poll", "--check", root],
        &["-C", none, "-sc"],
        &["--procfilt", root, "-sZ", "-c1"],
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!numbers.is_match(&said), "{words:?}: {said}");
    }
    let said = stdout_of(&["doctor", "--root", root]);
    assert!(
        said.contains("proc/stat             cannot read: Is a directory\n"),
        "{said}"
    );
}
