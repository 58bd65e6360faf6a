//! `kymo top`: printed once and on a terminal, of this machine, a recording and a file of collectl's.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use kymo_tests::{Scratch, kymo, stdout_of};

const RAW: &str = "golden/vm-20261121-215607.raw.gz";

/// A screen as text, with the environment's size and locale.
fn once(environment: &[(&str, &str)], words: &[&str]) -> String {
    let output = Command::new(kymo())
        .args(["top", "--once"])
        .args(words)
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE")
        .env_remove("COLUMNS")
        .env_remove("LINES")
        .env("LANG", "C")
        .envs(environment.iter().copied())
        .output()
        .expect("kymo runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A busy process is the first line of its recording, and only it passes the filter of its name.
#[test]
fn a_recording_shows_which_process_it_was() {
    let scratch = Scratch::new("top-recording");
    let folder = scratch.text("rec");
    let mut busy = Command::new("sha256sum")
        .arg0("kymo-top-busy")
        .arg("/dev/zero")
        .spawn()
        .expect("sha256sum");
    stdout_of(&[
        "record", "-f", &folder, "-s", "cmdnpgZ", "-i", "0.5:1", "-c", "6",
    ]);
    busy.kill().expect("killed");
    busy.wait().expect("ended");
    let shown = once(&[], &[&folder, "--keys", "/kymo-top-busy"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines.iter().all(|line| line.len() <= 80) && lines.len() <= 24,
        "{shown}"
    );
    let head = lines
        .iter()
        .position(|line| line.contains("PID  User"))
        .expect("a head");
    assert!(
        lines[head + 1].ends_with("kymo-top-busy /dev/zero"),
        "{shown}"
    );
    assert!(lines[head + 2].is_empty(), "{shown}");
    assert!(shown.is_ascii() && shown.contains(" ago"), "{shown}");
    for (keys, expect) in [
        ("2", "Group"),
        ("3", "Util% Disk"),
        ("4", "Interface"),
        ("5", "Idle CPU"),
        ("6", "Waits for"),
        ("t", "tree"),
        ("u", "Procs"),
        ("?", "one sample back, forward"),
        ("\n", "ancestors:"),
        ("=", "Change"),
        ("w", "before it"),
    ] {
        let shown = once(
            &[("COLUMNS", "200"), ("LANG", "C.UTF-8")],
            &[&folder, "--keys", keys],
        );
        assert!(shown.contains(expect), "{keys}: {shown}");
    }
}

#[test]
fn this_machine_and_files_of_collectl_look_alike() {
    let live = once(&[("LINES", "40")], &[]);
    let raw = once(&[("LINES", "40")], &[RAW]);
    for shown in [&live, &raw] {
        for name in [
            "CPU",
            "Mem",
            "Swp",
            "Psi",
            "Dsk",
            "Net",
            "1:Processes",
            "PID  User",
        ] {
            assert!(shown.contains(name), "{name}: {shown}");
        }
        assert!(shown.lines().count() > 12, "{shown}");
    }
    assert!(
        live.contains("  live") && raw.starts_with("vm  20261121 21:56:"),
        "{live}{raw}"
    );
}

/// A recorder that stood still and one that was started again: `n` and `N` find both, each once, and name them.
#[test]
fn events_are_gone_to_one_after_the_other() {
    let scratch = Scratch::new("top-events");
    let folder = scratch.text("rec");
    let words = ["record", "-f", &folder, "-s", "cm", "-i", "0.2"];
    stdout_of(&[&words[..], &["-c", "10"]].concat());
    let recorder = Command::new(kymo()).args(words).args(["-c", "30"]).spawn();
    let mut recorder = recorder.expect("kymo runs");
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &recorder.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    };
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal("-STOP");
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal("-CONT");
    assert!(recorder.wait().expect("ended").success());
    let at = |keys: &str| {
        let shown = once(&[("COLUMNS", "120")], &[&folder, "--keys", keys]);
        let moment = shown
            .split_whitespace()
            .nth(2)
            .expect("a moment")
            .to_string();
        let said = shown.lines().last().expect("a last line").to_string();
        (moment, said)
    };
    // Other loads may make it miss more samples, but never fewer events.
    let forward: Vec<_> = (1..9)
        .map(|times| at(&format!("B{}", "n".repeat(times))))
        .collect();
    let ends = |said: &str| said == "no event on that side";
    let count = forward.iter().take_while(|(_, said)| !ends(said)).count();
    assert!((2..8).contains(&count), "{forward:?}");
    let found = &forward[..count];
    let has = |word: &str| found.iter().any(|(_, said)| said.contains(word));
    assert!(has("the recorder was not running"), "{forward:?}");
    assert!(has("samples were not taken in time"), "{forward:?}");
    assert!(
        found.windows(2).all(|pair| pair[0].0 <= pair[1].0),
        "{forward:?}"
    );
    for (times, (moment, _)) in (1..).zip(found.iter().rev().skip(1)) {
        let keys = format!("B{}{}", "n".repeat(count), "N".repeat(times));
        assert_eq!(at(&keys).0, *moment, "{keys}: {forward:?}");
    }
}

/// The program on a terminal of its own, with keys that are typed after a second.
fn on_a_terminal(line: &str, typed: &str) -> Output {
    let mut script = Command::new("script")
        .args([
            "-qec",
            &format!("stty cols 80 rows 24; {line}"),
            "/dev/null",
        ])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script");
    let mut keys = script.stdin.take().expect("a pipe");
    // Keys that come before the terminal is raw are typed all the same.
    std::thread::sleep(std::time::Duration::from_secs(1));
    keys.write_all(typed.as_bytes()).expect("typed");
    let output = script.wait_with_output().expect("ended");
    drop(keys);
    output
}

/// By a key, by Ctrl-C and by SIGTERM: the screen before comes back, and the mouse is free.
#[test]
fn the_terminal_is_as_before() {
    let top = format!("{} top {RAW}", kymo().display());
    for (line, typed) in [
        (format!("{top}; stty -a"), "q"),
        (format!("{top}; stty -a"), "\x03"),
        (format!("timeout --foreground 3 {top}; stty -a"), ""),
    ] {
        let output = on_a_terminal(&line, typed);
        let said = String::from_utf8_lossy(&output.stdout);
        let (shown, after) = said.rsplit_once("\x1b[?1049l").expect("left the screen");
        assert!(
            shown.contains("\x1b[?1049h") && shown.contains("Processes"),
            "{said}"
        );
        assert!(
            shown.contains("\x1b[?1000l"),
            "the mouse is not free: {said}"
        );
        assert!(
            after.contains(" icanon") && after.contains(" echo "),
            "{said}"
        );
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let output = kymo_tests::run(&["top", "--once", "/nonexistent"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("kymo: cannot open /nonexistent"), "{said}");
}
