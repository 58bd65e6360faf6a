//! `kymo watch`: begins and ends over recordings and live, commands, and refusals.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kymo_tests::served::{LONG, eventually};
use kymo_tests::{Running, Scratch, kymo, put, run, stdout_of};

const IDLE: &str = "0.00 0.00 0.00 1/10 99\n";
const BUSY: &str = "9.00 0.00 0.00 1/10 99\n";
/// An expression whose result has another series each second.
const SECONDS: &str = "count_values('second', floor(vector(time())))";

/// A recorder of a made-up machine, whose load the test sets.
struct Machine {
    scratch: Scratch,
    recorder: Running,
}

impl Machine {
    fn start(name: &str) -> Machine {
        let scratch = Scratch::new(name);
        put(&scratch.path("root"), "proc/loadavg", IDLE);
        put(
            &scratch.path("root"),
            "proc/stat",
            "cpu  1 0 1 9 0 0 0 0 0 0\ncpu0 1 0 1 9 0 0 0 0 0 0\n",
        );
        let (root, rec) = (scratch.text("root"), scratch.text("rec"));
        let mut command = Command::new(kymo());
        command.args(["record", "-f", &rec, "-sc", "-i0.1", "--root", &root]);
        let recorder = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let machine = Machine {
            scratch,
            recorder: Running(recorder.expect("kymo starts")),
        };
        machine.records("node_load1 == 0");
        machine
    }

    fn rec(&self) -> String {
        self.scratch.text("rec")
    }

    fn load(&self, text: &str) {
        put(&self.scratch.path("root"), "proc/loadavg", text);
    }

    /// Waits until the recording has samples for which an expression holds.
    fn records(&self, expr: &str) {
        let rec = self.rec();
        let is_there = || {
            run(&["query", expr, "--open", &rec])
                .status
                .success()
                .then_some(())
        };
        eventually(is_there).unwrap_or_else(|| panic!("{expr}: it is not recorded"));
    }

    /// Ends the recorder.
    fn end(&mut self) {
        self.recorder.signal("-TERM");
        let ended = eventually(|| self.recorder.0.try_wait().ok().flatten());
        assert!(ended.is_some_and(|status| status.success()));
    }
}

fn watch(words: &[&str]) -> Output {
    run(&[&["watch"], words].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The second and third word of each line: the state and the value.
fn turns(lines: &str) -> Vec<String> {
    let turn = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {}", words[1], words[2])
    };
    lines.lines().map(turn).collect()
}

/// A `kymo watch` in the background; its output is a file.
fn watching(scratch: &Scratch, words: &[&str]) -> Running {
    let out = fs::File::create(scratch.path("out")).expect("a file");
    let said = fs::File::create(scratch.path("said")).expect("a file");
    let mut command = Command::new(kymo());
    command.arg("watch").args(words).stdin(Stdio::null());
    // No kymo serve of this machine is asked.
    for name in [
        "XDG_RUNTIME_DIR",
        "RUNTIME_DIRECTORY",
        "STATE_DIRECTORY",
        "HOME",
    ] {
        command.env(name, scratch.path("nowhere"));
    }
    Running(
        command
            .stdout(out)
            .stderr(said)
            .spawn()
            .expect("kymo starts"),
    )
}

fn wait_for_text(path: &Path, is_so: impl Fn(&str) -> bool) -> String {
    let read = || fs::read_to_string(path).unwrap_or_default();
    let found = eventually(|| Some(read()).filter(|text| is_so(text)));
    found.unwrap_or_else(|| panic!("{}: {:?} after {LONG:?}", path.display(), read()))
}

fn ends(mut running: Running, signal: &str) -> Option<i32> {
    running.signal(signal);
    let status = eventually(|| running.0.try_wait().ok().flatten());
    status.expect("it ends").code()
}

/// A program of the shell in a file.
fn script(scratch: &Scratch, name: &str, body: &str) -> String {
    let path = scratch.path(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    path.to_string_lossy().into_owned()
}

#[test]
fn a_recording_has_begins_and_ends() {
    let mut machine = Machine::start("watch-recorded");
    machine.load(BUSY);
    machine.records("min_over_time(node_load1[1s]) > 8");
    machine.load(IDLE);
    machine.records("max_over_time(node_load1[1s]) < 1");
    machine.end();
    let rec = machine.rec();
    let each = ["--every", "100ms"];
    let said = watch(&[&["node_load1 > 8", &rec], &each[..]].concat());
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let lines = text(&said.stdout);
    assert_eq!(turns(&lines), ["begins 9", "ends 9"], "{lines}");
    assert!(lines.contains(" node_load1{instance="), "{lines}");
    // The moments are those at which PromQL has it.
    let time = |line: Option<&str>| {
        line.and_then(|line| line.split(' ').next())
            .map(String::from)
    };
    let begin = time(lines.lines().next()).expect("a time");
    let end = time(lines.lines().nth(1)).expect("a time");
    let at = |time: &str| {
        let time: jiff::Timestamp = time.parse().expect("a time");
        time.as_millisecond()
    };
    let held_ms = at(&end) - at(&begin);
    for (hold_ms, code) in [(held_ms - 100, 0), (held_ms, 1), (60_000, 1)] {
        let hold = format!("{hold_ms}ms");
        let said = watch(&[&["node_load1 > 8", "for", &hold, &rec], &each[..]].concat());
        assert_eq!(
            said.status.code(),
            Some(code),
            "{hold} of {held_ms}: {said:?}"
        );
    }
    // A part of the recording, before it begins.
    let said = watch(&[
        "node_load1 > 8",
        &rec,
        "--from",
        "2001-01-01T00:00",
        "--thru",
        "2001-01-02T00:00",
    ]);
    assert_eq!(
        (said.status.code(), text(&said.stdout)),
        (Some(1), String::new())
    );
    let said = text(&said.stderr);
    assert!(said.contains("nothing was recorded then"), "{said}");
    let json = stdout_of(&[
        "watch",
        "node_load1 > 8",
        &rec,
        "--json",
        "--every",
        "100ms",
    ]);
    let line: serde_json::Value =
        serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&line["state"], &line["value"]),
        (&"begins".into(), &"9".into())
    );
    // The folder as a store that is looked at from a time on.
    let from = ["--open", &rec, "--from", "-1h"];
    let stored = stdout_of(&[&["watch", "node_load1 > 8"], &from[..], &each].concat());
    assert_eq!(turns(&stored)[0], "begins 9");
}

#[test]
fn a_file_of_collectl_is_watched() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/vm-20261121-215607.raw.gz");
    let file = file.to_string_lossy().into_owned();
    let said = stdout_of(&["watch", "node_load1 >= 0", &file]);
    assert!(turns(&said)[0].starts_with("begins "), "{said}");
}

/// The command runs for each begin and end, with all of it in its environment, and texts of series are not words of a shell.
#[test]
fn a_command_has_it_in_its_environment() {
    let mut machine = Machine::start("watch-command");
    machine.load(BUSY);
    machine.records("min_over_time(node_load1[1s]) > 8");
    machine.load(IDLE);
    machine.records("max_over_time(node_load1[1s]) < 1");
    machine.end();
    let (rec, scratch) = (machine.rec(), &machine.scratch);
    let made = scratch.text("made");
    let hostile = format!("$(touch {made}); touch {made} `touch {made}` \u{1b}[2J");
    let expr = format!(
        "label_replace(node_load1 > 8, 'to', \"{}\", '', '')",
        hostile.replace('\u{1b}', "\\x1b").replace('$', "$$")
    );
    let command = script(
        scratch,
        "say",
        &format!(
            "printf '%s|' \"$KYMO_WATCH_STATE\" \"$KYMO_WATCH_VALUE\" \"$KYMO_WATCH_NAME\" \"$KYMO_WATCH_LABEL_to\" \"$KYMO_WATCH_LABELS\" \"$#\" \"$1\" >{}/$KYMO_WATCH_STATE",
            scratch.text("")
        ),
    );
    let said = watch(&[&expr, &rec, "--every", "100ms", "--", &command, "a b"]);
    assert_eq!(
        (said.status.code(), text(&said.stdout)),
        (Some(0), String::new()),
        "{said:?}"
    );
    for state in ["begins", "ends"] {
        let given = fs::read_to_string(scratch.path(state)).expect("the command has run");
        let parts: Vec<&str> = given.split('|').collect();
        assert_eq!(parts[..4], [state, "9", "node_load1", &hostile]);
        assert!(parts[4].contains("\\u{1b}[2J"), "{given}");
        assert_eq!(parts[5..7], ["1", "a b"]);
    }
    assert!(!scratch.path("made").exists());
    let said = watch(&[
        "node_load1 > 8",
        &rec,
        "--every",
        "100ms",
        "--",
        "/no/such/program",
    ]);
    assert_eq!(said.status.code(), Some(0));
    assert!(
        text(&said.stderr).contains("cannot run /no/such/program: No such file"),
        "{said:?}"
    );
}

#[test]
fn what_is_recorded_now_is_watched() {
    let machine = Machine::start("watch-live");
    let rec = machine.rec();
    let words = ["node_load1 > 8", "--open", &rec, "--every", "100ms"];
    let running = watching(&machine.scratch, &words);
    machine.load(BUSY);
    let out = machine.scratch.path("out");
    wait_for_text(&out, |text| text.contains(" begins 9 "));
    machine.load(IDLE);
    let lines = wait_for_text(&out, |text| text.contains(" ends "));
    assert_eq!(turns(&lines), ["begins 9", "ends 9"]);
    assert_eq!(ends(running, "-INT"), Some(0));
    let running = watching(&machine.scratch, &["node_load1 > 99", "--open", &rec]);
    // Signals are blocked as soon as something was read.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(ends(running, "-TERM"), Some(1));
}

/// Without a recorder it reads what the expression asks for; two selectors of which the first picks nothing, too.
#[test]
fn a_machine_that_is_not_recorded_is_watched() {
    let scratch = Scratch::new("watch-own");
    let expr = "(node_load1 < 0 or on() node_memory_MemTotal_bytes) and on() rate(node_cpu_seconds_total{cpu='0'}[5s]) >= 0";
    let running = watching(&scratch, &[expr]);
    let lines = wait_for_text(&scratch.path("out"), |text| text.contains("begins"));
    assert!(lines.contains("node_memory_MemTotal_bytes{"), "{lines}");
    assert_eq!(ends(running, "-TERM"), Some(0));
    let mut running = watching(&scratch, &["up{job='elsewhere'}"]);
    let status = eventually(|| running.0.try_wait().ok().flatten());
    assert_eq!(status.and_then(|status| status.code()), Some(2));
    let said = wait_for_text(&scratch.path("said"), |text| !text.is_empty());
    assert!(
        said.contains("cannot watch") && said.contains("no kymo serve runs"),
        "{said}"
    );
}

/// A command that hangs keeps neither the next one nor the end of the watch.
#[test]
fn a_command_that_hangs_delays_nobody() {
    let mut machine = Machine::start("watch-hang");
    machine.end();
    let (rec, scratch) = (machine.rec(), &machine.scratch);
    let begun = scratch.text("begun");
    let hang = script(
        scratch,
        "hang",
        &format!("echo $$ >>{begun}; exec sleep 1000"),
    );
    let running = watching(scratch, &[SECONDS, "--open", &rec, "--", &hang]);
    let pids = wait_for_text(&scratch.path("begun"), |text| text.lines().count() == 8);
    assert_eq!(ends(running, "-TERM"), Some(0));
    let is_gone = |pid: &str| !Path::new("/proc").join(pid).exists();
    let all_gone = || pids.lines().all(is_gone).then_some(());
    assert!(eventually(all_gone).is_some(), "{pids}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (words, cause) in [
        (&["up >"][..], "cannot use \"up >\""),
        (&["1 + 1"], "it is of the type scalar"),
        (&["\"text\""], "it is of the type string"),
        (&["up[5m]"], "it is of the type range vector"),
        (&["up", "for"], "cannot use for: its DURATION is missing"),
        (
            &["up", "for", "ever"],
            "cannot use for ever: not a duration",
        ),
        (&["up", "--every", "0"], "cannot use --every 0"),
        (
            &["up", "/no/such/recording"],
            "cannot open /no/such/recording",
        ),
        (
            &["up", "--open", "/no/such/folder"],
            "cannot open /no/such/folder",
        ),
        (&["up", "/", "--open", "/"], "not together with a PATH"),
        (&["up", "--thru", "now"], "it needs --from or a PATH"),
        (&["up", "--json", "--", "true"], "not together with"),
    ] {
        let said = watch(words);
        let stderr = text(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{words:?}: {said:?}");
        assert!(stderr.contains(cause), "{words:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
    }
}
